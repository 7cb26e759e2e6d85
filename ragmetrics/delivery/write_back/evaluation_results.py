"""Evaluation results: the scores of a run as tracing tools get them, one per span and metric."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from typing import Any

from ragmetrics.config import Settings, WriteBackStatus
from ragmetrics.errors import StoreError
from ragmetrics.metrics import bundled_metrics
from ragmetrics.records import Manifest, Status, Summary, dump_json
from ragmetrics.storage import Files, RunRef, StoredPart, is_missing, passing_over
from ragmetrics.text import clean

LONGEST_REASON = 500
_STATUSES: Mapping[str, WriteBackStatus] = {
    Status.SCORED: "scored",
    Status.NOT_APPLICABLE: "skipped",
    Status.OVER_BUDGET: "skipped",
    Status.NOT_SAMPLED: "skipped",
}
"""All other statuses are failures."""
_IDS = ("id", "timestamp", "trace_id", "span_id", "hop_sizes", "tags")
_CHANGING = ("run", "ragmetrics")
"""Metadata that a repeated night may change although its scores stay the same."""


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """One score of one span, or of one document of a span's retrieval."""

    dataset: str
    trace_id: str | None
    span_id: str | None
    metric: str
    value: float | None
    """The score; None unless `status` is `scored`."""
    status: WriteBackStatus
    reason: str
    timestamp: datetime
    """The time of the row, or the start of its night. It never depends on when it is sent."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Values are texts, numbers, booleans or lists of numbers."""
    document: int | None = None
    """The position of the document from 0; None for a score of the whole retrieval."""

    @property
    def id(self) -> str:
        """32 hex digits. Equal for the same span, metric and document, also in a repeated night."""
        what = [self.dataset, self.trace_id, self.span_id, self.metric, self.document]
        return _digest(what)

    @property
    def digest(self) -> str:
        """32 hex digits. Equal only if the content is equal too, apart from the run's id."""
        metadata = {name: one for name, one in self.metadata.items() if name not in _CHANGING}
        content = [self.value, self.status, self.reason, self.timestamp.isoformat(), metadata]
        return _digest([self.id, *content])


@dataclass(frozen=True)
class ResultReader:
    """Reads the results of a run from its stored parts, always in the same order."""

    settings: Settings
    files: Files
    manifest: Manifest

    def results(self, *, documents: bool = False) -> Iterator[EvaluationResult]:
        """The results of all shards; with `documents` also those of single documents.

        Rows without a trace and a span have none. Raises StoreError if a part cannot be read.
        """
        ref = RunRef.of(self.manifest)
        for shard in range(ref.shards):
            rows = _rows(self.files, ref, shard)
            for summary in self._metrics():
                scores = _scores(self.files, ref, summary.metric, shard, details=documents)
                about = self._about(summary)
                for number, row in enumerate(rows):
                    if row["trace_id"] is None and row["span_id"] is None:
                        continue
                    score = scores[number] if scores is not None else None
                    yield from self._of_row(row, about, score, documents=documents)

    def unknown_rows(self) -> int:
        """Number of rows that name neither a trace nor a span."""
        ref = RunRef.of(self.manifest)
        return sum(
            row["trace_id"] is None and row["span_id"] is None
            for shard in range(ref.shards)
            for row in _rows(self.files, ref, shard)
        )

    def _metrics(self) -> Iterator[Summary]:
        chosen = self.settings.write_back.metrics if self.settings.write_back else None
        for summary in self.manifest.metrics:
            if chosen is None or summary.metric in chosen:
                yield summary

    def _of_row(
        self,
        row: Mapping[str, Any],
        about: Mapping[str, Any],
        score: Mapping[str, Any] | None,
        *,
        documents: bool,
    ) -> Iterator[EvaluationResult]:
        score = score or {"value": None, "status": "judge_failed", "reason": "not scored"}
        status = _STATUSES.get(score["status"], "failed")
        if self.settings.write_back and status not in self.settings.write_back.statuses:
            return
        redacted = self.settings.redacts_messages or self.manifest.redacts
        result = EvaluationResult(
            dataset=self.manifest.dataset,
            trace_id=row["trace_id"],
            span_id=row["span_id"],
            metric=about["metric"],
            value=score["value"] if status == "scored" else None,
            status=status,
            reason="" if redacted else clean(score["reason"] or "", LONGEST_REASON),
            timestamp=row["timestamp"] or datetime.combine(self.manifest.date, time(), UTC),
            metadata=_metadata(about, score, row["id"]),
        )
        yield result
        several = len(row.get("hop_sizes") or ()) > 1  # each document is of another span
        if documents and status == "scored" and not several:
            for position, value in enumerate(_verdicts(result.metric, score)):
                of_document = {**result.metadata, "row_score": result.value}
                yield replace(
                    result, value=value, reason="", metadata=of_document, document=position
                )

    def _about(self, summary: Summary) -> dict[str, Any]:
        """The metadata that all scores of a metric share."""
        manifest = self.manifest
        return {
            "metric": summary.metric,
            "judge": manifest.judge.of(summary.metric).name
            if _asks_judge(summary.metric)
            else None,
            "fingerprint": summary.fingerprint,
            "dataset": manifest.dataset,
            "night": manifest.date.isoformat(),
            "run": manifest.run,
            "ragmetrics": manifest.ragmetrics,
            "night_mean": summary.mean,
            "night_mean_low": summary.low,
            "night_mean_high": summary.high,
        }


def _metadata(about: Mapping[str, Any], score: Mapping[str, Any], row: str) -> dict[str, Any]:
    """The metadata of one score. Unknown values are left out."""
    votes = [vote for vote in score.get("votes") or () if vote is not None]
    known = {
        "status": score["status"],
        **about,
        "row": clean(row, LONGEST_REASON),
        "votes": votes or None,
        "votes_low": min(votes, default=None),
        "votes_high": max(votes, default=None),
        "spread": score.get("spread"),
    }
    return {name: value for name, value in known.items() if value is not None}


def _asks_judge(metric: str) -> bool:
    """Whether a judge takes part in a metric. One of another package counts as judged."""
    known = bundled_metrics().get(metric)
    return known is None or bool(known.prompts)


def _rows(files: Files, ref: RunRef, shard: int) -> list[dict[str, Any]]:
    """The ids of a shard's rows. Tags `trace_id` and `span_id` stand in for missing fields."""
    try:
        records = list(StoredPart(files, ref.rows(shard)).records(_IDS))
    except StoreError as error:
        if is_missing(error):
            raise StoreError(
                f"{files.uri(ref.rows(shard))}: the rows of the night are gone; a night can be "
                "written back until `prune` removes its rows"
            ) from error
        raise
    for row in records:
        tags = dict(row.get("tags") or [])
        for name in ("trace_id", "span_id"):
            row[name] = row.get(name) or tags.get(name) or None
    return records


def _scores(
    files: Files, ref: RunRef, metric: str, shard: int, *, details: bool
) -> list[dict[str, Any]] | None:
    """The scores of a shard in the order of its rows; None if the part was never written."""
    columns = ["value", "status", "reason", "votes", "spread", *(["details"] if details else [])]
    with passing_over(is_missing):
        return StoredPart(files, ref.scores(metric, shard)).columns(columns).to_pylist()  # type: ignore[no-any-return]
    return None


def _verdicts(metric: str, score: Mapping[str, Any]) -> Sequence[float]:
    """The verdicts on each context, from 0 to 1, in rank order; empty if the metric has none."""
    try:
        details = json.loads(score["details"] or "{}")
    except (ValueError, RecursionError):  # details may be from any version
        return ()
    if metric == "context_relevance" and _all_are(grades := details.get("grades"), int | float):
        return [grade / 2 for grade in grades]
    needed, sentences = details.get("needed"), details.get("sentences")
    if metric == "context_relevancy" and _all_are(needed, list) and _all_are(sentences, int):
        pairs = zip(needed, sentences, strict=False)
        return [len(some) / total if total else 0.0 for some, total in pairs]
    return ()


def _all_are(values: object, kind: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def _digest(content: Sequence[Any]) -> str:
    text = dump_json(content).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()

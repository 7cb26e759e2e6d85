"""The notes of the parts of a run: usage, refusals, errors of metrics, and why rows lack a verdict.

A part counts them while it is scored, and stores them in the file of its first metric. The summary
of the run reads and adds them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ragmetrics.config import Settings
from ragmetrics.records import (
    UNSETTLED,
    Score,
    Status,
    Summary,
    Usage,
    VerdictCount,
    current_judge_name,
)
from ragmetrics.scoring.metric_choice import score_families
from ragmetrics.storage import Files, RunRef, StoredPart
from ragmetrics.text import clean

_Notes: TypeAlias = Mapping[str, Mapping[str, int]]

_LONGEST = 240
"""Characters of a reason."""

_TOLD_APART = 100
"""Characters by which reasons are told apart: what follows may quote a row."""

_MOST_KEPT = 100
"""Distinct reasons of a metric that a part counts; more are not told apart."""

_MOST_SHOWN = 3

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")

_FAILED = frozenset(UNSETTLED) - {Status.METRIC_FAILED}
"""Statuses that the judge is the reason of; errors of a metric's own code are told apart."""


class UnansweredRows:
    """Counts the rows without a usable verdict, by metric and reason, and by judge of a panel.

    Reasons that differ in numbers only, such as seconds or ids of requests, are one.
    """

    def __init__(self) -> None:
        self._metrics: defaultdict[str, _Reasons] = defaultdict(_Reasons)
        self._judges: defaultdict[str, _Reasons] = defaultdict(_Reasons)

    def note(self, metric: str, score: Score) -> None:
        """Count a score if a judge gave no usable verdict."""
        if score.status in _FAILED:
            self._metrics[metric].add(score.reason)
        judges = score.details.get("judges", {}) if score.failed else {}
        for name in score.failed:
            self._judges[name].add(judges.get(name, {}).get("reason", ""))

    def add(self, notes: Mapping[str, _Notes]) -> None:
        """Add the counts from the notes of a part."""
        for mine, kind in ((self._metrics, "metrics"), (self._judges, "judges")):
            for name, reasons in notes.get(kind, {}).items():
                for reason, rows in reasons.items():
                    mine[name].add(reason, rows)

    def notes(self) -> dict[str, Any]:
        """The counts as they are stored in the notes of a part."""
        return {
            "metrics": {name: one.most_common() for name, one in self._metrics.items()},
            "judges": {name: one.most_common() for name, one in self._judges.items()},
        }

    def reasons(self, metric: str) -> dict[str, int]:
        """The most frequent reasons of a metric, with their rows."""
        reasons = self._metrics.get(metric)
        return reasons.most_common(_MOST_SHOWN) if reasons else {}

    def problems(
        self, summaries: Sequence[Summary], most_failures: float, told: Sequence[str]
    ) -> list[str]:
        """A sentence for the metrics of which more than a share of the rows failed, for each set of
        reasons; then one for each judge of a panel. What `told` says already is left out.
        """
        alike: dict[str, list[Summary]] = {}
        for summary in summaries:
            failed, asked = summary.unanswered_rows
            fails = failed > most_failures * asked
            if fails and summary.unanswered and not _is_told(summary.unanswered, told):
                # The counts may differ: metrics ask about other rows.
                alike.setdefault(next(iter(summary.unanswered)), []).append(summary)
        return [_sentence(group) for group in alike.values()] + [
            f"{name}: no usable verdict on {sum(usual.values()):,} row scores: {next(iter(usual))}"
            for name, reasons in self._judges.items()
            if (usual := reasons.most_common(_MOST_SHOWN)) and not _is_told(usual, told)
        ]


class _Reasons:
    """Counts of reasons, each shown as it was first said."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._shown: dict[str, str] = {}

    def add(self, reason: str, rows: int = 1) -> None:
        text = clean(reason, _LONGEST) or "no reason given"
        kind = _NUMBER.sub("0", text)[:_TOLD_APART]
        if kind not in self._shown and len(self._shown) >= _MOST_KEPT:
            kind = text = "other reasons"
        self._shown.setdefault(kind, text)
        self._rows[kind] += rows

    def most_common(self, most: int | None = None) -> dict[str, int]:
        return {self._shown[kind]: rows for kind, rows in self._rows.most_common(most)}


def _is_told(reasons: Mapping[str, int], told: Sequence[str]) -> bool:
    """Whether a sentence has the most frequent reason."""
    return any(next(iter(reasons)) in sentence for sentence in told)


def _sentence(alike: Sequence[Summary]) -> str:
    first, *others = alike
    failed, asked = first.unanswered_rows
    more = f" and {len(others)} more metric{'s' if others[1:] else ''}" if others else ""
    return f"{failed:,} of {asked:,} rows failed in {first.metric}{more}: {first.why_unanswered}"


@dataclass(frozen=True)
class PartReport:
    """What scoring one part took, for the log of whoever scored it."""

    rows: int
    usage: Usage
    """Of all judges and of the embedder together."""
    failed: dict[str, int]
    """Scores that should have a value and have none, by status."""

    def __str__(self) -> str:
        """`50 rows; 40 requests, 12 answers from the store, 5,210 tokens; failed: 2 refused`."""
        usage = self.usage
        asked = (
            f"{self.rows:,} rows; {usage.requests:,} requests, {usage.answered_from_store:,} "
            f"answers from the store, {usage.tokens:,} tokens"
        )
        failures = {**usage.failures, **self.failed}
        told = ", ".join(f"{count:,} {kind}" for kind, count in failures.items())
        return f"{asked}; failed: {told or 'none'}"


class MetricErrors:
    """Counts failed rows per metric and stores the first error of each metric."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def note(self, metric: str, row: str, score: Score) -> None:
        """Count a score if its metric failed."""
        if score.status is Status.METRIC_FAILED:
            self._rows[metric] += 1
            self._first.setdefault(metric, f"row {row}: {score.reason}")

    def add(self, notes: Mapping[str, Any]) -> None:
        """Add the counts from the notes of a part."""
        for metric, counts in notes.items():
            self._rows[metric] += counts["rows"]
            self._first.setdefault(metric, counts["first"])

    def notes(self) -> dict[str, Any]:
        """The counts as they are stored in the notes of a part."""
        return {
            metric: {"rows": rows, "first": self._first[metric]}
            for metric, rows in self._rows.items()
        }

    def problems(self) -> list[str]:
        """The errors as sentences."""
        return [
            f"metric {metric} failed on {rows:,} row{'' if rows == 1 else 's'}, "
            f"first on {self._first[metric]}"
            for metric, rows in self._rows.items()
        ]


@dataclass
class UsageReport:
    """The notes of all parts of a run."""

    usage: defaultdict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))
    """Usage by judge; embeddings have a key of their own."""
    by_metric: defaultdict[str, defaultdict[str, Usage]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Usage))
    )
    """Usage by metric, then by judge."""
    splits: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    """Maps the name of a judge to the reason why it refused."""
    overdue: str = ""
    """Message if the deadline of the run passed before all requests were sent."""
    metric_errors: MetricErrors = field(default_factory=MetricErrors)
    unanswered: UnansweredRows = field(default_factory=UnansweredRows)
    changed_parameters: dict[str, str] = field(default_factory=dict)
    """What judges were sent in place of parameters that they refused, by name of the judge."""
    verdicts: dict[str, dict[str, VerdictCount]] = field(default_factory=dict)
    """Verdicts by judge, then by prompt."""
    taken_over: int = 0
    """Number of parts that were reused from an earlier run of the night."""

    def add(self, usage_by_judge: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the usage of a part, by judge and by metric. Its judges get the names of today."""
        for name, by_metric in usage_by_judge.items():
            judge = str(current_judge_name(name))
            for metric, counted in by_metric.items():
                usage = Usage.model_validate(counted)
                self.usage[judge] += usage
                self.by_metric[metric][judge] += usage

    def add_verdicts(self, verdicts: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the verdicts that a part counted."""
        for judge, by_prompt in verdicts.items():
            if not by_prompt:  # a judge that computes its verdicts
                continue
            of_judge = self.verdicts.setdefault(judge, {})
            for prompt, counted in by_prompt.items():
                count = VerdictCount.model_validate(counted)
                of_judge[prompt] = of_judge.get(prompt, VerdictCount()) + count

    def by_metric_without(self, free: set[str]) -> dict[str, dict[str, Usage]]:
        """Usage by metric and judge without the `free` judges; metrics without usage are left
        out.
        """
        usages = {
            metric: {name: usage for name, usage in of.items() if name not in free}
            for metric, of in self.by_metric.items()
        }
        return {metric: of for metric, of in usages.items() if of}

    def problems(self) -> list[str]:
        """Refusals, errors of metrics and a missed deadline, as sentences."""
        refused = [f"{name}: {reason}" for name, reason in self.refused.items()]
        problems = [*refused, *self.metric_errors.problems()]
        if not self.overdue:
            return problems
        again = "rows without a verdict are judge_failed, and a rerun requests only these"
        return [*problems, f"{self.overdue}: {again}"]


def read_usage_report(settings: Settings, files: Files, ref: RunRef) -> UsageReport:
    """Read the notes of all parts that exist."""
    costs, families = UsageReport(), score_families(settings)
    for shard in range(ref.shards):
        of_shard: Counter[str] = Counter()
        for family in families:
            path = ref.scores(family[0], shard)
            if not files.exists(path):
                continue
            notes = StoredPart(files, path).notes()
            costs.add(notes["usage"])
            costs.refused.update(notes["refused"])
            costs.overdue = notes.get("overdue") or costs.overdue  # older parts do not say
            costs.metric_errors.add(notes.get("metric_errors", {}))
            costs.unanswered.add(notes.get("unanswered", {}))
            costs.changed_parameters.update(notes.get("changed_parameters", {}))
            costs.add_verdicts(notes.get("verdicts", {}))
            costs.taken_over += "taken_over" in notes
            # Families split the same texts: the largest count is the count of the shard.
            of_shard |= Counter(notes["splits"])
        costs.splits.update(of_shard)
    return costs

"""Golden nights of real per-question scores, by a judge whose level may move from night to night.

Of 200 real questions on four real runs of one application (`azure_northwind.jsonl`), scored by the
lexical judge. A question's value of a night is that of one of its four runs, drawn at random; for
context relevance, where the four are alike, with the spread that GPT-4's four ratings of the same
question have. The judge's level then moves all questions of a night together, so that their mean
moves by exactly as much as was drawn, and no score leaves [0, 1].
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragmetrics import evaluate
from ragmetrics.comparison import find_moves
from ragmetrics.config import AlertSettings, Rule
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.records import Finding, JudgeInfo, Manifest, Source, Status, Summary
from ragmetrics.records.judging import Usage
from ragmetrics.rules import NightContext, evaluate_rules as hold_rules, with_movements
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import mean_interval

Values: TypeAlias = NDArray[np.float64]
METRICS = ("context_relevance", "context_recall", "faithfulness")
LIMIT, LOST = 0.05, 0.5
_LOG = "azure_northwind.jsonl"
_RUNS = 4
_FIRST = datetime(2026, 1, 1, 2, tzinfo=UTC)
_HALVINGS = 40


def data_folder() -> Path:
    """The labelled data: where RAGMETRICS_DATA says, or beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("RAGMETRICS_DATA") or beside)


def real_scores() -> dict[str, Values]:
    """Of each metric, questions x runs; SystemExit where the data are not there."""
    log = data_folder() / _LOG
    if not log.is_file():
        raise SystemExit(f"no {log}: RAGMETRICS_DATA names the folder of labelled data")
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    fields = ("id", "user_input", "retrieved_contexts", "response", "reference")
    result = evaluate([{name: row[name] for name in fields} for row in rows], metrics=METRICS)
    scores = {(record["metric"], record["id"]): record["value"] for record in result.records()}
    found = {name: _by_question(rows, lambda r, n=name: scores[n, r["id"]]) for name in METRICS}
    ratings = _by_question(rows, lambda row: (row["labels"]["judge"]["gpt_relevance"] - 1) / 4)
    spread = ratings - ratings.mean(axis=1, keepdims=True)
    found["context_relevance"] = np.clip(found["context_relevance"] + spread, 0, 1)
    return found


def _by_question(rows: list[dict[str, Any]], value: Any) -> Values:
    """Questions x runs, of those that have a value on all four."""
    own: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if (found := value(row)) is not None:
            own[row["meta"]["query_id"]].append(found)
    return np.array([values for _, values in sorted(own.items()) if len(values) == _RUNS])


@dataclass(frozen=True)
class Golden:
    """The same questions every night; `sd` is how far the judge's level moves a night."""

    scores: Mapping[str, Values]
    sd: float
    random: np.random.Generator

    def night(self, lost: float = 0.0) -> dict[str, Values]:
        """Each metric's scores of a night, on which a share of the questions lost 0.5."""
        level = float(self.random.normal(0, self.sd)) if self.sd else 0.0
        return {name: _moved(self._drawn(own, lost), level) for name, own in self.scores.items()}

    def _drawn(self, own: Values, lost: float) -> Values:
        runs = self.random.integers(0, _RUNS, len(own))
        values: Values = own[np.arange(len(own)), runs].copy()
        order = self.random.permutation(len(own))
        most = order[np.argsort(-values[order], kind="stable")]
        # Rows that have so much to lose, first; as many as make the mean fall by as much.
        left = lost * LOST * len(own)
        for place in most:
            taken = min(LOST, values[place], left)
            values[place] -= taken
            left -= taken
        return values


def _moved(values: Values, level: float) -> Values:
    """The scores with their mean moved by a level, within [0, 1]."""
    if not level:
        return values
    wanted = float(np.clip(values.mean() + level, 0, 1))
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = float(np.clip(values + middle, 0, 1).mean()) < wanted
        low, high = (middle, high) if below else (low, middle)
    return np.clip(values + high, 0, 1)


class _Scores(MetricScores):
    """Scores with one row per question, grouped once."""

    def by_question(self, segment: Any = None) -> dict[str, list[float]]:
        """See `MetricScores`."""
        if "_kept" not in self.__dict__:
            columns = self.table["question"], self.table["value"]
            self.__dict__["_kept"] = {name: [one] for name, one in zip(*columns, strict=True)}
        found: dict[str, list[float]] = self.__dict__["_kept"]
        return found


@dataclass
class World:
    """Nights in a row, as a store has them; `knows` is False of what was before this estimate."""

    knows: bool = True
    max_drop: float = LIMIT
    history: int = 30
    """Nights before that are looked at."""
    nights: list[Manifest] = field(default_factory=list)
    scores: dict[date, dict[str, MetricScores]] = field(default_factory=dict)
    book: AlertStates = field(default_factory=AlertStates)

    def add(self, values: Mapping[str, Values], *, ruled: bool = True) -> Manifest:
        """Another night, judged anew; its drop rules are held where it is `ruled`."""
        manifest, self.book = self._published(values, ruled=ruled)
        self.nights.append(manifest)
        self.scores.pop(manifest.date - timedelta(self.history + 1), None)
        return manifest

    def would_be(self, values: Mapping[str, Values]) -> Manifest:
        """The next night, if it were so; it is not kept."""
        return self._published(values, ruled=True)[0]

    def _published(
        self, values: Mapping[str, Values], *, ruled: bool
    ) -> tuple[Manifest, AlertStates]:
        scores = {name: _table(name, own) for name, own in values.items()}
        manifest = self._manifest(scores)
        nights, states = self.nights[-self.history :], self.book.states
        night = NightContext(manifest, scores, nights, self.load, states=states)
        told, book = list[Finding](), self.book
        if ruled:
            found = hold_rules(AlertSettings(rules=self._rules()), night)
            book, told = advance_states(book, found, manifest.date, remind_days=7)
        manifest = manifest.model_copy(update={"metrics": with_movements(night), "findings": told})
        self.scores[manifest.date] = scores
        moves = find_moves(manifest, night.earlier, self.load)
        return manifest.model_copy(update={"moves": moves}), book

    def load(self, one: Manifest, metric: str) -> MetricScores:
        """The scores of a night."""
        return self.scores[one.date][metric]

    def _rules(self) -> tuple[Rule, ...]:
        return tuple(
            Rule(metric=name, max_drop=self.max_drop, versus="trailing:7") for name in METRICS
        )

    def _manifest(self, scores: Mapping[str, MetricScores]) -> Manifest:
        at = _FIRST + timedelta(len(self.nights))
        asked = {name: {"judge": Usage(requests=200)} for name in scores} if self.knows else {}
        return Manifest(
            dataset="golden",
            date=at.date(),
            run="run",
            started_at=at,
            finished_at=at,
            ragmetrics="0",
            source=Source(logs="logs", files=1, rows=200),
            judge=JudgeInfo(name="judge", fingerprint="judge"),
            shards=1,
            metrics=[_summary(score) for score in scores.values()],
            segments=[],
            findings=[],
            worst=[],
            usage=Usage(),
            usage_by_metric=asked,
        )


def _table(metric: str, values: Values) -> MetricScores:
    table = pd.DataFrame(
        {
            "question": [f"q{number:04}" for number in range(len(values))],
            "value": values,
            "status": Status.SCORED.value,
            "shard": 0,
            "position": np.arange(len(values)),
        }
    )
    return _Scores(metric, table.astype({"question": object, "status": object}))


def _summary(scores: MetricScores) -> Summary:
    values = scores.table["value"].to_numpy()
    mean = mean_interval(values, np.arange(len(values)))
    return Summary(
        metric=scores.metric,
        mean=mean.mean if mean else None,
        low=mean.low if mean else None,
        high=mean.high if mean else None,
        scored=len(values),
        questions=len(values),
        status={Status.SCORED.value: len(values)},
        fingerprint="judge",
    )

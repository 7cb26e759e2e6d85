"""Simulated nights whose truth is known, as the alerts see them.

Manifests and scores are made in memory; what judges them are `evaluate` and `advance`, as in a
run. Only the summaries are made without pandas, which would take most of the time. Five metrics
by eight segments and over all rows: 45 rules of `max_drop: 0.03`. Two worlds:

golden   the same 300 questions every night; 15% of the rows change between runs, and the standard
         deviation of a row over runs is 0.02 on average: 0.133 for those that change
traffic  300 other questions of the same population every night
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias
from unittest.mock import patch

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.records import (
    Finding,
    JudgeInfo,
    Manifest,
    Notification,
    Segment,
    Source,
    Status,
    Summary,
)
from ragmetrics.records.judging import Usage
from ragmetrics.rules import NightContext, evaluate_rules
from ragmetrics.rules.attribution import Attribution, TaggedRows, attribute_drop
from ragmetrics.rules.escalation import escalate
from ragmetrics.rules.rule_check import RuleCheck
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import mean_interval

Values: TypeAlias = NDArray[np.float64]
"""Questions x metrics."""

QUESTIONS, SEGMENTS, LIMIT = 300, 8, 0.03
CHANGING, ROW_SD = 0.15, 0.02
KINDS: Mapping[str, Callable[[Values], Values]] = {
    "often": lambda u: (u > 0.2).astype(float),
    "nearly_always": lambda u: (u > 0.05).astype(float),
    "seldom": lambda u: (u > 0.93).astype(float),
    "graded": lambda u: np.ceil(4 * u**0.3) / 4,
    "continuous": lambda u: u**0.4,
}
"""Metrics by their scores, from numbers that are uniform in [0, 1]."""
FALSE_ALARMS = 0.01
_FIRST = date(2026, 1, 1)
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
_REMEMBERED = 30


class _Scores(MetricScores):
    """Scores with one row per question, grouped once: pandas would take most of the time."""

    def by_question(self, segment: Segment | None = None) -> dict[str, list[float]]:
        """See `MetricScores`."""
        if "_kept" not in self.__dict__:
            rows: dict[str | None, dict[str, list[float]]] = {}
            columns = (self.table[name] for name in ("question", "value", "tag:segment"))
            for question, value, own in zip(*columns, strict=True):
                rows.setdefault(None, {})[question] = rows.setdefault(own, {})[question] = [value]
            self.__dict__["_kept"] = rows
        found: dict[str, list[float]] = self.__dict__["_kept"][segment.value if segment else None]
        return found


@dataclass
class World:
    """Nights in a row, as the alerts see them."""

    versus: str = "previous"
    for_: int = 2
    nights: list[Manifest] = field(default_factory=list)
    scores: dict[date, dict[str, MetricScores]] = field(default_factory=dict)
    book: AlertStates = field(default_factory=AlertStates)
    notified: dict[str, Notification] = field(default_factory=dict)
    """What people were last told, of alerts that fire whatever their numbers are."""

    def add(self, values: Values, first_question: int = 0) -> list[Finding]:
        """Another night; return what its drop rules find."""
        manifest, scores = self._night(values, first_question)
        night = NightContext(
            manifest,
            scores,
            self.nights[-_REMEMBERED:],
            lambda one, metric: self.scores[one.date][metric],
            notified=self.book.notified,
            states=self.book.states,
        )
        settings = AlertSettings(rules=rules(self.versus, self.for_))
        with patch("ragmetrics.rules.rules.summarise", _summary):
            found = evaluate_rules(settings, night)
        self.book, told = advance_states(self.book, found, manifest.date, remind_days=7, run="run")
        self._keep(manifest.model_copy(update={"findings": told}), scores)
        return [one for one in told if one.is_rule]

    def escalated(self, values: Values, first_question: int = 0) -> list[Finding]:
        """Which alerts would escalate on another night, if each fires whatever its numbers are."""
        return self._escalated(*self._night(values, first_question))

    def firing(
        self, values: Values, first_question: int = 0, *, remind: bool = False
    ) -> list[Finding]:
        """Another such night; people are told of those that escalate, and reminded of all."""
        manifest, scores = self._night(values, first_question)
        found = self._escalated(manifest, scores)
        told = Notification(night=manifest.date, run=manifest.run)
        keys = [case.finding.key for case in _firing()] if remind else [one.key for one in found]
        self.notified |= dict.fromkeys(keys, told)
        self._keep(manifest, scores)
        return found

    def _escalated(self, manifest: Manifest, scores: dict[str, MetricScores]) -> list[Finding]:
        earlier = self.nights[-_REMEMBERED:]
        night = NightContext(
            manifest,
            scores,
            earlier,
            lambda one, metric: self.scores[one.date][metric],
            notified=self.notified,
        )
        cases = _firing()
        found = escalate(cases, [case.finding for case in cases], night, FALSE_ALARMS)
        return [one for one in found if one.escalation]

    def remember(self, values: Values, first_question: int = 0) -> None:
        """Another night, which no rule was held against."""
        self._keep(*self._night(values, first_question))

    def _night(
        self, values: Values, first_question: int
    ) -> tuple[Manifest, dict[str, MetricScores]]:
        scores = {
            metric: _table(metric, values[:, column], first_question)
            for column, metric in enumerate(KINDS)
        }
        return _manifest(_FIRST + timedelta(len(self.nights)), scores), scores

    def _keep(self, manifest: Manifest, scores: dict[str, MetricScores]) -> None:
        self.nights.append(manifest)
        self.scores[manifest.date] = scores
        self.scores.pop(manifest.date - timedelta(_REMEMBERED + 1), None)

    def carriers(self, metric: str) -> Attribution:
        """What carries the drop of the last night against the one before."""
        now, before = (_tagged(self.scores[one.date][metric]) for one in self.nights[:-3:-1])
        found = attribute_drop(before, now)
        if found is None:
            raise ValueError("a night without questions")
        return found


def rules(versus: str, for_: int = 2) -> tuple[Rule, ...]:
    """One rule per metric over all rows, and one by segment."""
    return tuple(
        Rule.model_validate(
            {"metric": metric, "max_drop": LIMIT, "versus": versus, "by": by, "for": for_}
        )
        for metric in KINDS
        for by in (None, "segment")
    )


def _firing() -> list[RuleCheck]:
    """An alert of each rule over all rows and each segment."""
    segments = [None, *(Segment(tag="segment", value=f"s{one}") for one in range(SEGMENTS))]
    return [
        RuleCheck(
            Rule(metric=metric, max_drop=LIMIT),
            Finding(
                key=f"{metric}/{segment}",
                kind="metric",
                level="breach",
                rule="",
                message="",
                metric=metric,
                segment=segment,
            ),
        )
        for metric in KINDS
        for segment in segments
    ]


def population(random: np.random.Generator) -> Values:
    """Scores of 300 questions; the metrics of a question are correlated, by 0.4."""
    from scipy import special

    ease = random.normal(size=(QUESTIONS, 1))
    uniform = special.ndtr(0.6 * ease + 0.8 * random.normal(size=(QUESTIONS, len(KINDS))))
    made = [kind(uniform[:, column]) for column, kind in enumerate(KINDS.values())]
    return np.stack(made, axis=1)


@dataclass
class Golden:
    """The same questions every night, with a judge that does not always say the same."""

    random: np.random.Generator

    def __post_init__(self) -> None:
        order = self.random.random((QUESTIONS, len(KINDS))).argsort(axis=0)
        self.changing = order < CHANGING * QUESTIONS
        middle = self.random.uniform(0.3, 0.7, self.changing.shape)
        self.base = np.where(self.changing, middle, population(self.random))

    def night(self) -> Values:
        """The scores of a run."""
        noise = self.random.normal(0, ROW_SD / CHANGING, self.base.shape)
        return np.clip(self.base + self.changing * noise, 0, 1)


def unchanged_golden(random: np.random.Generator, nights: int) -> Iterator[tuple[Values, int]]:
    """The same questions, judged every night."""
    golden = Golden(random)
    for _ in range(nights):
        yield golden.night(), 0


def unchanged_traffic(random: np.random.Generator, nights: int) -> Iterator[tuple[Values, int]]:
    """Other questions every night."""
    for number in range(nights):
        yield population(random), number * QUESTIONS


def rows_of(segment: int) -> NDArray[np.int_]:
    """The rows of a segment."""
    return np.arange(segment, QUESTIONS, SEGMENTS)


def means(values: Values) -> Values:
    """The means over all rows, and of each segment."""
    own = [values[rows_of(number)].mean(axis=0) for number in range(SEGMENTS)]
    return np.stack([values.mean(axis=0), *own])


def _table(metric: str, values: Values, first_question: int) -> MetricScores:
    table = pd.DataFrame(
        {
            "question": [f"q{first_question + number:06}" for number in range(len(values))],
            "value": values,
            "status": Status.SCORED.value,
            "tag:segment": [f"s{number % SEGMENTS}" for number in range(len(values))],
        }
    )
    texts = ["question", "status", "tag:segment"]
    return _Scores(metric, table.astype(dict.fromkeys(texts, object)))


def _summary(scores: MetricScores, fingerprint: str, segment: Segment | None = None) -> Summary:
    """As `summarise` makes it of rows that were all scored, one per question."""
    values = [value for (value,) in scores.by_question(segment).values()]
    mean = mean_interval(values, np.arange(len(values)))
    return Summary(
        metric=scores.metric,
        segment=segment,
        mean=mean.mean if mean else None,
        low=mean.low if mean else None,
        high=mean.high if mean else None,
        scored=len(values),
        questions=len(values),
        status={Status.SCORED.value: len(values)},
        fingerprint=fingerprint,
    )


def _tagged(scores: MetricScores) -> TaggedRows:
    rows = scores.scored
    tags = {"segment": rows["tag:segment"].tolist()}
    return TaggedRows(rows["question"].tolist(), rows["value"].to_numpy(), tags)


def _manifest(day: date, scores: Mapping[str, MetricScores]) -> Manifest:
    return Manifest(
        dataset="simulated",
        date=day,
        run="run",
        started_at=_MOMENT,
        finished_at=_MOMENT,
        ragmetrics="0",
        source=Source(logs="logs", files=1, rows=QUESTIONS),
        judge=JudgeInfo(name="judge", fingerprint="judge"),
        shards=1,
        metrics=[_summary(one, "judge") for one in scores.values()],
        segments=[],
        findings=[],
        worst=[],
        usage=Usage(),
    )

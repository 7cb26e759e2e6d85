"""How a question stands by a metric: its score now, its usual one, whether it fell or is back.

The usual score is the median of the nights before. A question fell if its newest score is worse by
at least a tenth of the metric's range, and is back if it was that low on an earlier night only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

from ragmetrics.dashboard.question_history import Question
from ragmetrics.records import Finding, Manifest, Summary

State: TypeAlias = Literal["firing", "fell", "back", ""]
_ORDER: tuple[State, ...] = ("firing", "fell", "back", "")
_TENTH = 0.1
_WORST = 10
"""Questions of each metric with the worst scores that are shown in any case."""


@dataclass(frozen=True)
class Standing:
    """How a question stands by one metric."""

    metric: str
    now: float
    """The score on the newest night that has one."""
    usual: float | None
    """The median of the scores before it; None without one."""
    state: State
    depth: float
    """How far it fell, now or before it was back, in parts of the metric's range."""

    @property
    def fell(self) -> bool:
        """Whether its newest score is worse than usual."""
        return self.state in ("firing", "fell")

    @property
    def urgency(self) -> tuple[int, float]:
        """Sort key: firing first, then fallen, then back; the furthest fallen first."""
        return _ORDER.index(self.state), -self.depth


class Standings:
    """How all questions stand by all metrics, on the newest night.

    `metrics` has the newest summary of each metric, in the order of the page.
    """

    def __init__(
        self, questions: Mapping[str, Question], night: Manifest, metrics: Mapping[str, Summary]
    ) -> None:
        self._lower = {name for name, one in metrics.items() if not one.higher_is_better}
        self._firing = [one for one in night.findings if one.state == "firing" and one.metric]
        self._night, self._metrics = night, list(metrics)
        self._ranges = {name: _range(questions.values(), name) for name in metrics}
        self.by_question = {key: self._of(question) for key, question in questions.items()}

    def _of(self, question: Question) -> dict[str, Standing]:
        standings = (self._standing(question, metric) for metric in self._metrics)
        return {one.metric: one for one in standings if one}

    def _standing(self, question: Question, metric: str) -> Standing | None:
        values = question.values(metric)
        if not values:
            return None
        *earlier, now = values
        if not earlier:
            return Standing(metric, now, None, "", 0.0)
        usual, lower = median(earlier), metric in self._lower
        losses = [(value - usual if lower else usual - value) for value in values]
        depths = [loss / self._ranges[metric] for loss in losses]
        if depths[-1] >= _TENTH:
            state: State = "firing" if self._fires(question, metric) else "fell"
            return Standing(metric, now, usual, state, depths[-1])
        deepest = max(depths)
        return Standing(metric, now, usual, "back" if deepest >= _TENTH else "", max(0.0, deepest))

    def _fires(self, question: Question, metric: str) -> bool:
        """Whether an alert on the metric fires that concerns the question."""
        return question.newest == self._night.date and any(
            finding.metric == metric and _concerns(finding, question) for finding in self._firing
        )

    def badness(self, standing: Standing) -> float:
        """Sort key: the worst score first."""
        return -standing.now if standing.metric in self._lower else standing.now

    def lead(self, key: str) -> Standing | None:
        """The metric in which the question fell furthest; else the first that has a score."""
        standings = self.by_question[key].values()
        order = (len(_ORDER), 0.0)
        return min(standings, key=lambda one: one.urgency if one.state else order, default=None)

    def chosen(self, questions: Mapping[str, Question], most: int) -> list[str]:
        """The keys of so many questions: those that fell, the worst, and a sample of the others,
        in the order in which they are shown.

        Half of the room is for those that fell or are back. The sample prefers questions of the
        newest nights, and is drawn by a hash, so it is the same on the next night.
        """
        urgent = sorted(questions, key=self._urgency)
        fell = [key for key in urgent if self._urgency(key)[0] < _ORDER.index("")]
        worst = (key for metric in self._metrics for key in self._worst(questions, metric))
        sample = sorted(questions, key=lambda key: (-questions[key].newest.toordinal(), _mark(key)))
        kept = set(list(dict.fromkeys([*fell[: most // 2], *worst, *sample]))[:most])
        return [key for key in urgent if key in kept]

    def _urgency(self, key: str) -> tuple[int, float, float]:
        lead = self.lead(key)
        return (*lead.urgency, self.badness(lead)) if lead else (len(_ORDER), 0.0, 0.0)

    def _worst(self, keys: Iterable[str], metric: str) -> list[str]:
        having = [key for key in keys if metric in self.by_question[key]]
        return sorted(having, key=lambda key: self.badness(self.by_question[key][metric]))[:_WORST]


def _range(questions: Iterable[Question], metric: str) -> float:
    """The difference of the greatest and the least score, at least 1."""
    values = [value for question in questions for value in question.values(metric)]
    return max(1.0, max(values, default=0.0) - min(values, default=0.0))


def _concerns(finding: Finding, question: Question) -> bool:
    segment = finding.segment
    return segment is None or (segment.tag, segment.value) in question.tags


def _mark(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=8).digest()

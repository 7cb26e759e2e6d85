"""The decision of a gate: the drop of each metric between two builds, and the verdict.

    hold          some drop is above its limit, and significantly above 0; or significantly many
                  questions lost a passage that is gone from the index
    promote       the upper bound of every drop is below its limit, or every row is the same
    inconclusive  neither

A hold is decided as an alert's breach: p values are adjusted over the gate's metrics. A promotion
needs every metric to pass, which controls the error by itself (an intersection-union test, Berger
1982). Drops are paired by question; questions of one build alone do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.comparison.gate.measured_drop import (
    MeasuredDrop,
    further_to_hold,
    further_to_promote,
)
from ragmetrics.records import JudgeMovement, MetricVerdict, Verdict
from ragmetrics.stats import ALPHA, adjust_p_values

_NUMBERS = ("before", "after", "drop", "low", "high", "upper", "detectable")
"""Fields of a MeasuredDrop that a MetricVerdict repeats."""


@dataclass(frozen=True, slots=True)
class VerdictEvidence:
    """The evidence of one metric for a decision."""

    metric: str
    fall: MeasuredDrop | None
    """The measured drop; None where less than two questions are scored in both builds."""
    max_drop: float
    asked: int
    """Questions of the serving build to which the metric applies."""
    missing: int
    """Questions of `asked` that could not be compared."""
    fingerprint: str = ""
    movement: JudgeMovement | None = None
    """Movement of the judge from night to night, where it affects the drop."""


def weigh(
    evidence: Sequence[VerdictEvidence],
    *,
    min_questions: int,
    max_missing: float,
    identical: bool = False,
) -> list[MetricVerdict]:
    """The verdict of each metric, with p values adjusted over all metrics.

    `identical`: both builds gave every question the same passages. A metric without a drop then
    passes, however few questions its bound is of.
    """
    p_values = adjust_p_values([one.fall.p_value if one.fall else None for one in evidence])
    verdicts = []
    for metric, p_value in zip(evidence, p_values, strict=True):
        verdict = _verdict(metric, p_value, min_questions, max_missing, identical)
        further = None
        if verdict == "inconclusive":
            further = _further(metric, p_value, min_questions, max_missing, tests=len(evidence))
        verdicts.append(_metric_verdict(metric, p_value, verdict, further))
    return verdicts


def conclude(
    metrics: Sequence[MetricVerdict], obstacles: Sequence[str] = (), gone: Sequence[str] = ()
) -> tuple[Verdict, int | None]:
    """The verdict of a gate, and the number of questions still needed.

    With `obstacles`, which do not depend on numbers, nothing is promoted, but a significant drop
    still holds the build, and so do passages that are significantly `gone`. The number is None
    where further questions alone would not decide.
    """
    if gone or any(one.verdict == "hold" for one in metrics):
        return "hold", None
    undecided = [one for one in metrics if one.verdict == "inconclusive"]
    if metrics and not undecided and not obstacles:
        return "promote", None
    needed = [one.further for one in undecided]
    known = [further for further in needed if further is not None]
    if obstacles or not known or len(known) < len(needed):
        return "inconclusive", None
    return "inconclusive", max(known)


def too_much_missing(asked: int, missing: int, max_missing: float) -> bool:
    """Whether too many of the serving build's questions could not be compared."""
    return asked == 0 or missing > max_missing * asked


def _verdict(
    one: VerdictEvidence,
    p_value: float | None,
    min_questions: int,
    max_missing: float,
    identical: bool,
) -> Verdict:
    if one.fall is None or p_value is None or one.fall.questions < min_questions:
        return "inconclusive"
    if one.fall.drop > one.max_drop and p_value < ALPHA:
        return "hold"
    if too_much_missing(one.asked, one.missing, max_missing):
        return "inconclusive"
    unchanged = identical and one.fall.drop <= 0
    return "promote" if unchanged or one.fall.upper < one.max_drop else "inconclusive"


def _further(
    one: VerdictEvidence, p_value: float | None, min_questions: int, max_missing: float, tests: int
) -> int | None:
    """Questions that an inconclusive metric needs; None where they alone would not decide it."""
    fall = one.fall
    if fall is None or too_much_missing(one.asked, one.missing, max_missing):
        return None
    numbers = fall.drop, fall.spread, fall.questions, one.max_drop, fall.level
    if fall.drop <= one.max_drop:
        needed = further_to_promote(*numbers)
    elif p_value is not None and p_value < ALPHA:
        needed = 0  # only `min_questions` is lacking
    else:
        needed = further_to_hold(*numbers, tests=tests)
    return None if needed is None else max(needed, min_questions - fall.questions, 1)


def _metric_verdict(
    one: VerdictEvidence, p_value: float | None, verdict: Verdict, further: int | None
) -> MetricVerdict:
    numbers = {name: getattr(one.fall, name) if one.fall else None for name in _NUMBERS}
    return MetricVerdict(
        **numbers,
        metric=one.metric,
        p_value=p_value,
        questions=one.fall.questions if one.fall else 0,
        asked=one.asked,
        missing=one.missing,
        paired=one.fall is not None,
        max_drop=one.max_drop,
        verdict=verdict,
        further=further,
        fingerprint=one.fingerprint,
        movement=one.movement,
    )

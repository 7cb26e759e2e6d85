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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import special

from ragmetrics.records import JudgeMovement, MetricVerdict, Verdict
from ragmetrics.stats import (
    ALPHA,
    FEWEST_FOR_T,
    POWER,
    Drop,
    LevelError,
    MeanDifference,
    adjust_p_values,
    compare,
    detectable,
    smallest_enough,
    widen_difference,
    with_movement,
)

_NUMBERS = ("before", "after", "drop", "low", "high", "upper", "detectable")
"""Fields of a MeasuredDrop that a MetricVerdict repeats."""


@dataclass(frozen=True, slots=True)
class MeasuredDrop:
    """The drop of a metric, over the questions that are scored in both builds."""

    before: float
    after: float
    drop: float
    low: float
    high: float
    upper: float
    """One-sided bound: with 95% confidence the drop is not above it."""
    p_value: float
    """One-sided p against the hypothesis of no drop."""
    questions: int
    spread: float
    """Standard deviation of the questions' drops."""
    level: LevelError | None = None
    """Error by the judge's movement, where the builds were judged on different days."""

    @property
    def detectable(self) -> float:
        """Smallest drop that this number of questions shows with 80% power, by the upper bound's
        error.
        """
        _, found = _guarded(self.drop, self.spread, self.questions, self.level)
        return detectable(found.error, found.freedom)


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


def measure(
    before: Mapping[str, Sequence[float]],
    after: Mapping[str, Sequence[float]],
    level_of: Callable[[Drop], LevelError | None] = lambda drop: None,
) -> MeasuredDrop | None:
    """Compare two builds, `{question: values of its rows}`, over the questions they share.

        d_q = mean(before_q) - mean(after_q);   a paired test on d, as `stats.compare`

    The upper bound is that of d with one more question that lost everything (d = 1):

        upper = m + t_(0.95, n) * se    over d_1 .. d_n, 1

    A large loss in few questions may not be among the asked ones. Where nothing changed in n
    questions, up to a share of 3/n may be lost ("rule of three"), while t alone would exclude any
    loss. `level_of` gives the error that movement between the days of judging adds; it widens every
    bound, and p. None with less than two shared questions.
    Sources: Miller 2024, "Adding error bars to evals"; Agresti and Coull 1998 for added
    observations; Hanley and Lippman-Hand 1983 for the rule of three.
    """
    shared = sorted(before.keys() & after.keys())
    one, other = ({question: side[question] for question in shared} for side in (before, after))
    if (drop := compare(one, other)) is None:
        return None
    drop = with_movement(drop, level := level_of(drop))
    differences = np.array([fmean(one[question]) - fmean(other[question]) for question in shared])
    count, spread = len(shared), float(differences.std(ddof=1))
    plain = widen_difference(MeanDifference(drop.drop, spread / math.sqrt(count), count - 1), level)
    _, guarded = _guarded(drop.drop, spread, count, level)
    return MeasuredDrop(
        before=drop.before,
        after=drop.now,
        drop=drop.drop,
        low=drop.low,
        high=drop.high,
        upper=max(_bound(plain), _bound(guarded)),
        p_value=drop.p_value,
        questions=count,
        spread=spread,
        level=level,
    )


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
    for one, p_value in zip(evidence, p_values, strict=True):
        verdict = _verdict(one, p_value, min_questions, max_missing, identical)
        further = None
        if verdict == "inconclusive":
            further = _further(one, p_value, min_questions, max_missing, tests=len(evidence))
        verdicts.append(_metric_verdict(one, p_value, verdict, further))
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


def further_to_promote(
    drop: float, spread: float, questions: int, limit: float, level: LevelError | None = None
) -> int | None:
    """Questions to add so that the upper bound is below a limit, with 80% power.

        smallest n with  m_n + (t_0.95 + t_0.80) * se_n < limit

    Drop and spread stay as they are; m_n and se_n are those of the upper bound. None where the drop
    is not below the limit, or more than 100,000 questions are needed.
    """

    def enough(n: int) -> bool:
        centre, found = _guarded(drop, spread, n, level)
        return centre + detectable(found.error, found.freedom) < limit

    return _added(enough, questions) if drop < limit else None


def further_to_hold(
    drop: float,
    spread: float,
    questions: int,
    limit: float = 0.0,
    level: LevelError | None = None,
    *,
    tests: int = 1,
) -> int | None:
    """Questions to add so that a drop is above its limit and significant, with 80% power.

        smallest n with  max((t_(1-a) + t_0.80) * se_n, limit + t_0.80 * se_n) < drop

    Drop and spread stay as they are; a is 0.05 by the number of `tests`, as this drop may be the
    only one. It is at least 30, from which the t test decides. None where the drop is not above the
    limit, or more than 100,000 questions are needed.
    """

    def enough(n: int) -> bool:
        found = widen_difference(MeanDifference(drop, spread / math.sqrt(n), n - 1), level)
        beyond = limit + float(special.stdtrit(found.freedom, POWER)) * found.error
        shown = detectable(found.error, found.freedom, alpha=ALPHA / tests)
        return n >= FEWEST_FOR_T and max(shown, beyond) < drop

    return _added(enough, questions)


def _added(enough: Callable[[int], bool], questions: int) -> int | None:
    needed = smallest_enough(enough, questions)
    return None if needed is None else needed - questions


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


def _guarded(
    drop: float, spread: float, questions: int, level: LevelError | None
) -> tuple[float, MeanDifference]:
    """Mean of the drops with one more drop of 1, and its difference with the full error."""
    n = questions + 1
    centre = (questions * drop + 1) / n
    squares = (questions - 1) * spread**2 + questions * (drop - centre) ** 2 + (1 - centre) ** 2
    error = math.sqrt(squares / (n - 1) / n)
    return centre, widen_difference(MeanDifference(centre, error, questions), level)


def _bound(found: MeanDifference) -> float:
    """The one-sided upper bound."""
    return found.difference + float(special.stdtrit(found.freedom, 1 - ALPHA)) * found.error

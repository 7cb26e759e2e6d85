"""Drift: whether a judge changed between calibrations on the same labelled set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragmetrics.errors import InputError
from ragmetrics.people.calibration.labelled_sets import TARGETS, LabelTarget
from ragmetrics.people.calibration.units import (
    Unit,
    columns,
    figures_of,
    has_strengths,
    mean_figure,
    statistics,
)
from ragmetrics.records import (
    DRIFT_VERSION,
    Calibration,
    Drift,
    DriftUnknown,
    FigureName,
    MetricDrift,
)
from ragmetrics.stats import Numbers, Statistic

TESTED: tuple[FigureName, ...] = ("kappa_quadratic", "auc")
"""The figures whose change is tested for drift."""
FEWEST_QUESTIONS = 20
"""Fewest questions judged both times for a test of drift."""
ALARMS = 0.05
"""Rate of false alarms: the share of unchanged judges that are said to have drifted."""
_SEED = 20_071
"""Fixed, so that the same units give the same p."""
_SWAPS = 4_000
_WORK = 20_000_000
"""Above this number of counts (swaps x units) fewer swaps are drawn, at least `_FEWEST_SWAPS`."""
_FEWEST_SWAPS = 2_000
_AT_ONCE = 2_000_000
Pairs = list[tuple[Unit, Unit]]
LoadUnits = Callable[[Calibration], Mapping[str, Sequence[Unit]]]
"""Reads every verdict of a calibration, by metric."""


def compare_last(units: LoadUnits, earlier: Sequence[Calibration], later: Calibration) -> Drift:
    """Drift of the judge since the earlier calibrations, of which there is at least one.

    `units` reads the verdicts of a calibration.

    Each metric is compared with the newest earlier calibration that judged enough of the same
    units; where none judged enough, with the newest that judged some. Units are the same where
    text and label are equal. A change is later minus earlier. Its interval is that of a cluster
    bootstrap with the same resamples of both sides. Raises InputError for calibrations of
    different sets or judges, or calibrations that are not stored.
    """
    if {(one.name, one.judge.name) for one in earlier} != {(later.name, later.judge.name)}:
        raise InputError("only calibrations of one set and one judge compare")
    matches = _matches(units, earlier, later)
    chances = {name: _chances(match) for name, match in matches.items() if match.enough}
    tests = sum(len(chance) for chance in chances.values())
    return Drift(
        version=DRIFT_VERSION,
        name=later.name,
        judge=later.judge.name,
        before=earlier[-1].at,
        earlier=max((match.earlier.at for match in matches.values()), default=earlier[-1].at),
        later=later.at,
        same_fingerprint=all(
            _asked(match.earlier, name) == _asked(later, name) for name, match in matches.items()
        )
        and (bool(matches) or earlier[-1].judge.fingerprint == later.judge.fingerprint),
        metrics=[
            _drift(matches[name], chances.get(name, []), tests)
            if name in matches
            else MetricDrift(metric=name, untold=_why_unknown(name, earlier, later))
            for name in (target.metric for target in TARGETS)
            if later.measured(name)
        ],
    )


@dataclass(frozen=True)
class _Match:
    """The units of a metric that were judged now and at an earlier time."""

    target: LabelTarget
    earlier: Calibration
    pairs: Pairs

    @property
    def questions(self) -> list[str]:
        """The question of each unit."""
        return [new.question for _, new in self.pairs]

    @property
    def enough(self) -> bool:
        """Whether there are enough questions to test drift."""
        return len(set(self.questions)) >= FEWEST_QUESTIONS


def _matches(
    units: LoadUnits, earlier: Sequence[Calibration], later: Calibration
) -> dict[str, _Match]:
    """The units and the earlier calibration that each metric is compared with."""
    now = units(later)
    found: dict[str, _Match] = {}
    for calibration in reversed(earlier):
        wanted = [
            target
            for target in TARGETS
            if _answered(calibration, target.metric) and _answered(later, target.metric)
            if target.metric not in found or not found[target.metric].enough
        ]
        if not wanted or not _same_texts(calibration, later):
            continue
        before = units(calibration)
        for target in wanted:
            name = target.metric
            match = _Match(target, calibration, _shared(before.get(name, ()), now.get(name, ())))
            if match.pairs and (name not in found or match.enough):
                found[name] = match
    return found


def _answered(calibration: Calibration, metric: str) -> bool:
    measured = calibration.measured(metric)
    return measured is not None and measured.overall is not None


def _same_texts(one: Calibration, other: Calibration) -> bool:
    """Whether the judge's replies depend on the same texts, as far as that is known."""
    return None in (one.corpus, other.corpus) or one.corpus == other.corpus


def _asked(calibration: Calibration, metric: str) -> tuple[str, str]:
    """Fingerprints of judge and prompts."""
    measured = calibration.measured(metric)
    return calibration.judge.fingerprint, measured.fingerprint if measured else ""


def _why_unknown(metric: str, earlier: Sequence[Calibration], later: Calibration) -> DriftUnknown:
    if not _answered(later, metric):
        return "no_verdict"
    changed = any(not _same_texts(one, later) for one in earlier)
    return "set_changed" if changed else "nothing_shared"


def _strong(match: _Match) -> bool:
    """Whether both sides have strengths."""
    return all(has_strengths(side) for side in zip(*match.pairs, strict=True))


def _changes(match: _Match) -> dict[FigureName, Statistic]:
    """The change of each figure."""
    target = match.target
    before, after = (
        statistics(columns(side, target.label_from, target.verdict_from, _strong(match)))
        for side in zip(*match.pairs, strict=True)
    )

    def change(name: FigureName) -> Statistic:
        return lambda counts: after[name](counts) - before[name](counts)

    return {name: change(name) for name in before if name in after}


def _chances(match: _Match) -> list[float]:
    """p value of each tested figure by a permutation test.

    For an unchanged judge, the order of its two verdicts is arbitrary. So before and after are
    swapped question by question. Unlike the bootstrap, the test keeps its error rate with few
    questions too. Source: Good 2005, "Permutation, Parametric and Bootstrap Tests".
    """
    units = [unit for side in zip(*match.pairs, strict=True) for unit in side]
    target, count = match.target, len(match.pairs)
    figures = statistics(columns(units, target.label_from, target.verdict_from, _strong(match)))
    _, codes = np.unique(np.array(match.questions), return_inverse=True)
    random = np.random.default_rng(_SEED)
    left = min(_SWAPS, max(_FEWEST_SWAPS, _WORK // (2 * count)))
    swaps = [np.zeros((1, count))]  # the observed change first, then random swaps
    while left:
        size = min(left, max(1, _AT_ONCE // (2 * count)))
        swaps.append(random.integers(0, 2, (size, codes.max() + 1))[:, codes].astype(np.float64))
        left -= size
    changes = {
        name: np.concatenate([_swapped(figures[name], swap) for swap in swaps]) for name in TESTED
    }
    return [
        float(np.mean(~(np.abs(change) < abs(change[0]) - 1e-9)))
        for change in changes.values()
        if np.isfinite(change[0])
    ]


def _swapped(statistic: Statistic, swaps: Numbers) -> Numbers:
    """Later minus earlier, with the two verdicts of some units swapped."""
    unswapped = 1 - swaps
    return statistic(np.hstack([swaps, unswapped])) - statistic(np.hstack([unswapped, swaps]))


def _drift(match: _Match, chances: Sequence[float], tests: int) -> MetricDrift:
    p_value = min(1.0, min(chances) * tests) if chances else None
    changed = [old.verdict != new.verdict for old, new in match.pairs]
    return MetricDrift(
        metric=match.target.metric,
        earlier=match.earlier.at,
        units=len(match.pairs),
        questions=len(set(match.questions)),
        changed=mean_figure(changed, match.questions),
        figures=figures_of(_changes(match), match.questions),
        p_value=p_value,
        drifted=p_value is not None and p_value <= ALARMS,
        untold="" if match.enough else "too_few",
    )


def _shared(before: Sequence[Unit], after: Sequence[Unit]) -> Pairs:
    known = {(one.id, one.unit, one.content, one.label): one for one in before}
    pairs = []
    for new in after:
        old = known.get((new.id, new.unit, new.content, new.label))
        if old and old.verdict is not None and new.verdict is not None:
            pairs.append((old, new))
    return pairs

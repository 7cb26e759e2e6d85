"""Drift: whether a judge changed between calibrations on the same labelled set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragmetrics.calibration.label_mapping import TARGETS, LabelTarget
from ragmetrics.calibration.store import load_calibrations, load_units
from ragmetrics.calibration.units import Unit, columns, figure, has_strengths, statistics
from ragmetrics.errors import InputError
from ragmetrics.model import (
    DRIFT_VERSION,
    Calibration,
    Drift,
    DriftUnknown,
    Figure,
    FigureName,
    MetricDrift,
)
from ragmetrics.stats import SEED, Floats, Statistic, bootstrap_intervals, mean_interval, unweighted
from ragmetrics.storage import Files

TELLING: tuple[FigureName, ...] = ("kappa_quadratic", "auc")
"""The figures whose change is called drift."""
FEWEST_QUESTIONS = 20
"""Judged both times; fewer cannot tell."""
ALARMS = 0.05
"""Of unchanged judges, the share that may be said to have drifted, in any metric."""
_SWAPS = 4_000
_WORK = 20_000_000
"""Counts (swaps x units) above which fewer swaps are drawn, at least `_FEWEST_SWAPS`."""
_FEWEST_SWAPS = 2_000
_AT_ONCE = 2_000_000
Pairs = list[tuple[Unit, Unit]]


def compare_calibrations(files: Files, earlier: Calibration, later: Calibration) -> Drift:
    """How the judge's figures changed from one calibration to another: see `compare_last`."""
    return compare_last(files, [earlier], later)


def compare_last(files: Files, earlier: Sequence[Calibration], later: Calibration) -> Drift:
    """How the judge's figures changed since those before, of which there is at least one.

    Each metric is compared with the last calibration that judged units of it that are judged now,
    enough of them if there is such a one. Units are the same where text and label are. Changes are
    later less earlier, with the interval of a cluster bootstrap over the same resamples of both
    sides. Raises InputError for calibrations of different sets or judges, or ones that are not
    kept.
    """
    if {(one.name, one.judge.name) for one in earlier} != {(later.name, later.judge.name)}:
        raise InputError("only calibrations of one set and one judge compare")
    matches = _matches(files, earlier, later)
    chances = {name: _chances(match) for name, match in matches.items() if match.enough}
    tests = sum(len(one) for one in chances.values())
    return Drift(
        version=DRIFT_VERSION,
        name=later.name,
        judge=later.judge.name,
        before=earlier[-1].at,
        earlier=max((one.earlier.at for one in matches.values()), default=earlier[-1].at),
        later=later.at,
        same_fingerprint=all(
            _asked(one.earlier, name) == _asked(later, name) for name, one in matches.items()
        )
        and (bool(matches) or earlier[-1].judge.fingerprint == later.judge.fingerprint),
        metrics=[
            _drift(matches[one.metric], chances.get(one.metric, []), tests)
            if one.metric in matches
            else MetricDrift(metric=one.metric, untold=_untold(one.metric, earlier, later))
            for one in TARGETS
            if later.measured(one.metric)
        ],
    )


def calibration_drifts(
    files: Files, *, name: str | None = None, judge: str | None = None
) -> list[Drift]:
    """Each calibration of a store against those before it, oldest first."""
    before: dict[tuple[str, str], list[Calibration]] = {}
    found = []
    for one in load_calibrations(files, name=name, judge=judge):
        earlier = before.setdefault((one.name, one.judge.name), [])
        if earlier:
            found.append(compare_last(files, earlier, one))
        earlier.append(one)
    return found


def since_last(files: Files, calibration: Calibration) -> Drift | None:
    """A kept calibration against those kept before it, of the same set and judge."""
    kept = load_calibrations(files, name=calibration.name, judge=calibration.judge.name)
    before = [one for one in kept if one.at < calibration.at]
    return compare_last(files, before, calibration) if before else None


@dataclass(frozen=True)
class _Match:
    """The units of a metric that were judged now and at an earlier time."""

    target: LabelTarget
    earlier: Calibration
    pairs: Pairs

    @property
    def questions(self) -> list[str]:
        """Of the units, in their order."""
        return [new.question for _, new in self.pairs]

    @property
    def enough(self) -> bool:
        """Whether drift can be told by them."""
        return len(set(self.questions)) >= FEWEST_QUESTIONS


def _matches(files: Files, earlier: Sequence[Calibration], later: Calibration) -> dict[str, _Match]:
    """What each metric is compared with."""
    now = load_units(files, later)
    found: dict[str, _Match] = {}
    for one in reversed(earlier):
        wanted = [
            target
            for target in TARGETS
            if _answered(one, target.metric) and _answered(later, target.metric)
            if target.metric not in found or not found[target.metric].enough
        ]
        if not wanted or not _same_texts(one, later):
            continue
        before = load_units(files, one)
        for target in wanted:
            name = target.metric
            match = _Match(target, one, _shared(before.get(name, ()), now.get(name, ())))
            if match.pairs and (name not in found or match.enough):
                found[name] = match
    return found


def _answered(calibration: Calibration, metric: str) -> bool:
    measured = calibration.measured(metric)
    return measured is not None and measured.overall is not None


def _same_texts(one: Calibration, other: Calibration) -> bool:
    """Whether the judge knew the same texts, as far as that is known and matters to it."""
    return None in (one.corpus, other.corpus) or one.corpus == other.corpus


def _asked(calibration: Calibration, metric: str) -> tuple[str, str]:
    """Judge and prompts."""
    measured = calibration.measured(metric)
    return calibration.judge.fingerprint, measured.fingerprint if measured else ""


def _untold(metric: str, earlier: Sequence[Calibration], later: Calibration) -> DriftUnknown:
    if not _answered(later, metric):
        return "no_verdict"
    changed = any(not _same_texts(one, later) for one in earlier)
    return "set_changed" if changed else "nothing_shared"


def _strong(match: _Match) -> bool:
    """Whether strengths were given both times."""
    return all(has_strengths(side) for side in zip(*match.pairs, strict=True))


def _changes(match: _Match) -> dict[FigureName, Statistic]:
    """The change of each figure."""
    target = match.target
    before, after = (
        statistics(columns(side, target.label_from, target.verdict_from, _strong(match)))
        for side in zip(*match.pairs, strict=True)
    )
    return {name: _change(before[name], after[name]) for name in before if name in after}


def _chances(match: _Match) -> list[float]:
    """Of each telling figure, how often chance alone changes it as much: a permutation test.

    A judge that did not change could as well have given its later verdicts first: before and
    after are swapped question by question. Unlike the bootstrap it holds what it promises with
    few questions too. Source: Good 2005, "Permutation, Parametric and Bootstrap Tests".
    """
    units = [unit for side in zip(*match.pairs, strict=True) for unit in side]
    target, count = match.target, len(match.pairs)
    figures = statistics(columns(units, target.label_from, target.verdict_from, _strong(match)))
    _, codes = np.unique(np.array(match.questions), return_inverse=True)
    random = np.random.default_rng(SEED)
    left = min(_SWAPS, max(_FEWEST_SWAPS, _WORK // (2 * count)))
    swaps = [np.zeros((1, count))]  # the change as it is, and then by chance
    while left:
        size = min(left, max(1, _AT_ONCE // (2 * count)))
        swaps.append(random.integers(0, 2, (size, codes.max() + 1))[:, codes].astype(np.float64))
        left -= size
    changes = {
        name: np.concatenate([_swapped(figures[name], one) for one in swaps]) for name in TELLING
    }
    return [
        float(np.mean(~(np.abs(one) < abs(one[0]) - 1e-9)))
        for one in changes.values()
        if np.isfinite(one[0])
    ]


def _swapped(statistic: Statistic, swaps: Floats) -> Floats:
    """Later less earlier, where these units have their two verdicts swapped."""
    kept = 1 - swaps
    return statistic(np.hstack([swaps, kept])) - statistic(np.hstack([kept, swaps]))


def _drift(match: _Match, chances: Sequence[float], tests: int) -> MetricDrift:
    changes = _changes(match)
    intervals = bootstrap_intervals(changes, match.questions)
    p_value = min(1.0, min(chances) * tests) if chances else None
    return MetricDrift(
        metric=match.target.metric,
        earlier=match.earlier.at,
        units=len(match.pairs),
        questions=len(set(match.questions)),
        changed=_changed(match.pairs),
        figures={
            name: figure(unweighted(change, len(match.pairs)), intervals[name])
            for name, change in changes.items()
        },
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


def _change(earlier: Statistic, later: Statistic) -> Statistic:
    def statistic(counts: Floats) -> Floats:
        return later(counts) - earlier(counts)

    return statistic


def _changed(pairs: Pairs) -> Figure:
    changed = np.array([float(old.verdict != new.verdict) for old, new in pairs])
    share = mean_interval(changed, [new.question for _, new in pairs])
    return Figure(value=share.mean, low=share.low, high=share.high) if share else Figure()

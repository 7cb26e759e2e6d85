"""Drift: whether a judge changed between two calibrations on the same labelled set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragmetrics.calibration.kept import load_calibrations, load_units
from ragmetrics.calibration.records import Calibration, Drift, Figure, FigureName, MetricDrift
from ragmetrics.calibration.targets import TARGETS, Target
from ragmetrics.calibration.units import Unit, columns, figure, has_strengths, statistics
from ragmetrics.errors import InputError
from ragmetrics.stats.intervals import mean_interval
from ragmetrics.stats.resampling import Floats, Statistic, bootstrap_intervals, once
from ragmetrics.store.files import Files

TELLING: tuple[FigureName, ...] = ("kappa_quadratic", "auc")
"""The figures whose change is called drift."""


def compare(files: Files, earlier: Calibration, later: Calibration) -> Drift:
    """How the judge's figures changed, on the units that it judged both times.

    Units are the same where text and label are. Changes are later less earlier, with the interval
    of a cluster bootstrap over the same resamples of both sides. Raises InputError for
    calibrations of different sets or judges, or ones that are not kept.
    """
    if (earlier.name, earlier.judge.name) != (later.name, later.judge.name):
        raise InputError("only calibrations of one set and one judge compare")
    before, after = load_units(files, earlier), load_units(files, later)
    found = (_drift(one, before.get(one.metric, ()), after.get(one.metric, ())) for one in TARGETS)
    return Drift(
        name=later.name,
        judge=later.judge.name,
        earlier=earlier.at,
        later=later.at,
        same_fingerprint=earlier.judge.fingerprint == later.judge.fingerprint,
        metrics=[one for one in found if one],
    )


def drifts(files: Files, *, name: str | None = None, judge: str | None = None) -> list[Drift]:
    """Each calibration of a store against the one before it, oldest first."""
    last: dict[tuple[str, str], Calibration] = {}
    found = []
    for one in load_calibrations(files, name=name, judge=judge):
        key = one.name, one.judge.name
        if key in last:
            found.append(compare(files, last[key], one))
        last[key] = one
    return found


def since_last(files: Files, calibration: Calibration) -> Drift | None:
    """A kept calibration against the one kept before it, of the same set and judge."""
    kept = load_calibrations(files, name=calibration.name, judge=calibration.judge.name)
    before = [one for one in kept if one.at < calibration.at]
    return compare(files, before[-1], calibration) if before else None


def _drift(target: Target, before: Sequence[Unit], after: Sequence[Unit]) -> MetricDrift | None:
    pairs = _shared(before, after)
    if not pairs:
        return None
    old, new = [one for one, _ in pairs], [one for _, one in pairs]
    both_strong = has_strengths(old) and has_strengths(new)
    sides = [
        statistics(columns(side, target.label_from, target.verdict_from, both_strong))
        for side in (old, new)
    ]
    changes = {
        name: _change(sides[0][name], sides[1][name]) for name in sides[0] if name in sides[1]
    }
    questions = [one.question for one in new]
    intervals = bootstrap_intervals(changes, questions)
    figures: dict[FigureName, Figure] = {
        name: figure(once(change, len(pairs)), intervals[name]) for name, change in changes.items()
    }
    return MetricDrift(
        metric=target.metric,
        units=len(pairs),
        questions=len(set(questions)),
        changed=_changed(pairs),
        figures=figures,
        drifted=any(_leaves_out_zero(figures[name]) for name in TELLING),
    )


def _shared(before: Sequence[Unit], after: Sequence[Unit]) -> list[tuple[Unit, Unit]]:
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


def _changed(pairs: Sequence[tuple[Unit, Unit]]) -> Figure:
    changed = np.array([float(old.verdict != new.verdict) for old, new in pairs])
    share = mean_interval(changed, [new.question for _, new in pairs])
    return Figure(value=share.mean, low=share.low, high=share.high) if share else Figure()


def _leaves_out_zero(change: Figure) -> bool:
    return change.low is not None and change.high is not None and not change.low <= 0 <= change.high

"""Levels: how high a night's judges score a fixed labelled set, which they judge afresh.

A labelled row's level in a metric is the score that the metric would give it by the verdicts of a
calibration. The rows never change, so neither would their levels if the judges did not: what they
moved by from some nights to others is the judges' own doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise
from statistics import fmean, median
from typing import TypeAlias

import pyarrow as pa

from ragmetrics.calibration.history import judge_names, repeats
from ragmetrics.calibration.sets import set_name
from ragmetrics.calibration.store import load_units
from ragmetrics.calibration.units import Unit
from ragmetrics.config import Aggregate, Settings
from ragmetrics.errors import InputError
from ragmetrics.metrics import BASES, average_precision
from ragmetrics.model import Calibration, Manifest, Usage
from ragmetrics.scoring import chosen_metrics, majority
from ragmetrics.stats import Drop, NightStep, QuestionValues, compare_nights, step_between
from ragmetrics.storage import Files

NEAR = timedelta(hours=12)
"""From a run to a calibration that is still of its night; one of the same day (UTC) always is, as
the nightly's own is made once a day."""
FEWEST_QUESTIONS = 20
"""Judged in all nights that are compared; fewer cannot tell."""
_SHARED = 0.5
"""Of tonight's rows, the share that another night must have judged to be compared."""

Row: TypeAlias = tuple[str, str, str, str]
"""A labelled row, the same in two calibrations where its texts and labels are: set, id, its units
as text, question."""
Levels: TypeAlias = Mapping[Row, float]
Asked: TypeAlias = tuple[str, str, str | None]
"""Judge, settings with prompts, and what else its verdicts depend on."""


def _chunks(units: Sequence[Unit]) -> float:
    """Share of the contexts with a needed sentence; unit `0:2` is a sentence of context 0."""
    needed: dict[str, bool] = {}
    for one in units:
        place = one.unit.partition(":")[0]
        needed[place] = needed.get(place, False) or one.verdict == 1
    return sum(needed.values()) / len(needed)


def _mean(units: Sequence[Unit]) -> float:
    return fmean(one.verdict or 0.0 for one in units)


_AGGREGATES: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "majority": majority,
}


@dataclass(frozen=True)
class _Judged:
    """A night's levels in one metric, by set, and how they were asked for."""

    asked: Mapping[str, set[Asked]]
    levels: Mapping[str, Levels]

    @property
    def rows(self) -> set[Row]:
        """Those that have a level."""
        return {row for levels in self.levels.values() for row in levels}


@dataclass(frozen=True)
class FixedSets:
    """Labelled sets, as the judges of the nights scored them.

    `relevant_from` is that of context_precision: the grade of a context that counts as relevant.
    """

    files: Files
    calibrations: Sequence[Calibration]
    aggregate: Aggregate = "mean"
    relevant_from: int = 1
    _units: dict[tuple[str, str, datetime], Mapping[str, Sequence[Unit]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def judged(self, night: Manifest) -> bool:
        """Whether all judges of a night judged some set at that time."""
        return bool(self._of(night))

    def questions(self, night: Manifest) -> int:
        """Those of rows that got all verdicts, in the metric of a night that has the most."""
        rows = (self._judged(night, one.metric).rows for one in night.metrics)
        return max((len({row[-1] for row in one}) for one in rows), default=0)

    def spent(self, night: Manifest) -> Usage | None:
        """What judging the sets cost a night; None where nobody was paid, or another run was."""
        names = judge_names(night.judge)
        paid = [
            one.usage
            for one in self.calibrations
            if night.started_at <= one.at <= night.finished_at
            if one.judge.name in names and one.usage.prompt_tokens
        ]
        return sum(paid, Usage()) if paid else None

    def moved(
        self, metric: str, before: Sequence[Manifest], now: Sequence[Manifest]
    ) -> Drop | None:
        """How far the judges' level fell from some nights to others; negative where it rose.

        Over the rows that all of these nights judged, paired by question; the last night is
        tonight. Nights without a calibration of their own are passed over. None where the metric
        has no levels, where one side has no night left, or the questions are fewer than 20.
        """
        tonight = self._judged(now[-1], metric)
        if not tonight.rows:
            return None
        old, new = (
            [levels for one in side if (levels := self._alike(one, metric, tonight))]
            for side in (before, now)
        )
        shared = tonight.rows.intersection(*old, *new)
        if not old or len(shared) < FEWEST_QUESTIONS:
            return None
        drop = compare_nights(
            [_by_question(one, shared) for one in old], [_by_question(one, shared) for one in new]
        )
        return drop if drop and drop.questions >= FEWEST_QUESTIONS else None

    def steps(self, metric: str, nights: Sequence[Manifest]) -> Iterator[tuple[date, NightStep]]:
        """How far the judges' level went from each of some nights to the next, by the later date.

        Over the rows that both judged, paired by question; nights without a calibration of their
        own are passed over.
        """
        own = [(night, judged) for night in nights if (judged := self._judged(night, metric)).rows]
        for (before, _), (now, judged) in pairwise(own):
            if self._times(before) & self._times(now):
                continue  # the same verdicts
            old = self._alike(before, metric, judged)
            shared = judged.rows.intersection(old)
            new = {row: level for of in judged.levels.values() for row, level in of.items()}
            step = step_between(_by_question(old, shared), _by_question(new, shared))
            if step:
                yield now.date, step

    def _times(self, night: Manifest) -> set[datetime]:
        return {one.at for own in self._of(night) for one in own}

    def _alike(self, night: Manifest, metric: str, tonight: _Judged) -> Levels:
        """A night's levels by the same judges, settings and prompts, of enough of the rows."""
        own = self._judged(night, metric)
        found = {
            row: level
            for name, levels in own.levels.items()
            if own.asked[name] == tonight.asked.get(name)
            for row, level in levels.items()
        }
        return found if len(found.keys() & tonight.rows) >= _SHARED * len(tonight.rows) else {}

    def _judged(self, night: Manifest, metric: str) -> _Judged:
        """The rows that all judges gave all verdicts on."""
        asked: dict[str, set[Asked]] = {}
        levels: dict[str, Levels] = {}
        for calibrations in self._of(night) if metric in BASES else ():
            name = calibrations[0].name
            judges = [self._of_judge(one, metric) for one in calibrations]
            combine = _AGGREGATES[self.aggregate]
            asked[name] = {_asked(one, BASES[metric]) for one in calibrations}
            levels[name] = {
                row: float(combine([one[row] for one in judges]))
                for row in set(judges[0]).intersection(*judges[1:])
            }
        return _Judged(asked, levels)

    def _of_judge(self, calibration: Calibration, metric: str) -> Levels:
        rows: dict[str, list[Unit]] = {}
        for unit in self._read(calibration).get(BASES[metric], ()):
            rows.setdefault(unit.row or unit.id, []).append(unit)
        return {
            _row(calibration.name, units): self._value(metric, units)
            for units in rows.values()
            if all(one.verdict is not None for one in units)
        }

    def _value(self, metric: str, units: Sequence[Unit]) -> float:
        if metric == "context_precision":
            grades = [round(2 * (one.verdict or 0.0)) for one in units]
            score = average_precision([grade >= self.relevant_from for grade in grades])
            return score.value or 0.0
        return _chunks(units) if metric == "context_relevancy_chunks" else _mean(units)

    def _read(self, calibration: Calibration) -> Mapping[str, Sequence[Unit]]:
        key = calibration.name, calibration.judge.name, calibration.at
        if key not in self._units:
            try:
                self._units[key] = load_units(self.files, calibration)
            except (InputError, pa.ArrowInvalid):  # a record without its verdicts tells nothing
                self._units[key] = {}
        return self._units[key]

    def _answers(self, calibration: Calibration) -> bool:
        units = (one for of in self._read(calibration).values() for one in of)
        return any(one.verdict is not None for one in units)

    def _of(self, night: Manifest) -> list[list[Calibration]]:
        """Of each set that all judges of a night judged then: the calibrations of that night."""
        names = judge_names(night.judge)
        sets: dict[str, dict[str, Calibration]] = {}
        near = (one for one in self.calibrations if _is_near(one, night))

        def rank(one: Calibration) -> tuple[bool, timedelta, datetime]:
            return not self._answers(one), _away(one, night), one.at

        # The nearest that gave verdicts is the last one to be set.
        for one in sorted(near, key=rank, reverse=True):
            if one.judge.name in names and _same_judge(one, night):
                sets.setdefault(one.name, {})[one.judge.name] = one
        return [
            [judges[name] for name in names]
            for _, judges in sorted(sets.items())
            if len(judges) == len(set(names))
        ]


def fixed_sets(
    settings: Settings, files: Files, calibrations: Sequence[Calibration]
) -> FixedSets | None:
    """The labelled set that the nightly judges, scored as the settings score rows; None where
    there is none.
    """
    if settings.alerts.drift_set is None:
        return None
    name = set_name(settings.alerts.drift_set)
    own = [one for one in calibrations if one.name == name]
    scored = {one.name: one for one in chosen_metrics(settings)}
    precision = scored.get("context_precision")
    relevant_from = precision.parameters.get("relevant_from", 1) if precision else 1
    return FixedSets(files, own, settings.aggregate, relevant_from)


def fresh_share(night: Manifest, metric: str) -> float:
    """Share of a metric's requests that were asked anew: what the store had does not drift.

    1 where nothing is known of them, as of judges that cost nothing and are always asked.
    """
    own = [
        usage
        for name, by_judge in night.usage_by_metric.items()
        if {metric, BASES.get(metric, metric)} & set(name.split(" + "))
        for usage in by_judge.values()
    ]
    asked = sum(one.requests for one in own)
    known = asked + sum(one.answered_from_store for one in own)
    return asked / known if known else 1.0


def _same_judge(calibration: Calibration, night: Manifest) -> bool:
    """Of a panel, and of one asked several times, the settings are known by name alone."""
    if night.judge.panel or repeats(night.judge) > 1:
        return True
    return calibration.judge.fingerprint == night.judge.fingerprint


def _is_near(calibration: Calibration, night: Manifest) -> bool:
    same_day = calibration.at.date() == night.started_at.date()
    return same_day or _away(calibration, night) <= NEAR


def _away(calibration: Calibration, night: Manifest) -> timedelta:
    """From a run to a calibration; none where it was made during the run."""
    return max(night.started_at - calibration.at, calibration.at - night.finished_at, timedelta(0))


def _asked(calibration: Calibration, metric: str) -> Asked:
    measured = calibration.measured(metric)
    prompts = measured.fingerprint if measured else ""
    return calibration.judge.name, prompts, calibration.corpus


def _row(name: str, units: Sequence[Unit]) -> Row:
    same = "|".join(f"{one.unit}={one.content}={one.label:g}" for one in units)
    return name, units[0].id, same, units[0].question


def _by_question(levels: Levels, rows: set[Row]) -> QuestionValues:
    grouped: dict[str, list[float]] = {}
    for row in sorted(rows):
        grouped.setdefault(row[-1], []).append(levels[row])
    return grouped


__all__ = ["NEAR", "FixedSets", "Levels", "fixed_sets", "fresh_share"]

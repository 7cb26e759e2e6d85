"""Levels: the scores that a night's judges give a fixed labelled set, judged again each night.

A labelled row's level in a metric is the metric's score of the row by the verdicts of a
calibration. The rows never change, so a change of their levels between nights is a change of the
judges.
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
from ragmetrics.metrics import average_precision, label_targets
from ragmetrics.model import Calibration, Manifest, Usage
from ragmetrics.scoring import chosen_metrics, majority
from ragmetrics.stats import Drop, NightStep, QuestionValues, compare_nights, step_between
from ragmetrics.storage import Files

NEAR = timedelta(hours=12)
"""Longest time between a run and a calibration of its night. A calibration of the same day (UTC)
always counts, as the nightly calibrates once a day."""
FEWEST_QUESTIONS = 20
"""Fewest questions judged in all compared nights."""
_SHARED = 0.5
"""Share of tonight's rows that another night must have judged to be compared."""

Row: TypeAlias = tuple[str, str, str, str]
"""Key of a labelled row: set, id, units, question. Equal where texts and labels are equal."""
Levels: TypeAlias = Mapping[Row, float]
Asked: TypeAlias = tuple[str, str, str | None]
"""Judge, fingerprint of settings and prompts, and digest of the texts that verdicts depend on."""


def _chunks(units: Sequence[Unit]) -> float:
    """Share of the contexts with a needed sentence. Unit `0:2` is a sentence of context 0."""
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
    """A night's levels in one metric, by set, with the judges and prompts behind them."""

    asked: Mapping[str, set[Asked]]
    levels: Mapping[str, Levels]

    @property
    def rows(self) -> set[Row]:
        """The rows that have a level."""
        return {row for levels in self.levels.values() for row in levels}


@dataclass(frozen=True)
class FixedSets:
    """Levels of the labelled sets in each night.

    `relevant_from` is the parameter of context_precision: the lowest grade that counts as relevant.
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
        """Number of questions with all verdicts, in the metric of the night that has most."""
        rows = (self._judged(night, one.metric).rows for one in night.metrics)
        return max((len({row[-1] for row in one}) for one in rows), default=0)

    def spent(self, night: Manifest) -> Usage | None:
        """Usage of judging the sets in a run; None where it was free, or another run paid it."""
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
        """Drop of the judges' level from some nights to others; negative where it rose.

        It is over the rows that all of these nights judged, paired by question. The last night is
        tonight. Nights without a calibration are left out. None where the metric has no levels, a
        side has no night left, or there are fewer than 20 questions.
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
        """Change of the judges' level from each night to the next, with the later date.

        It is over the rows that both nights judged, paired by question. Nights without a
        calibration are left out.
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
        """A night's levels by the same judges, settings and prompts, if it has enough rows."""
        own = self._judged(night, metric)
        found = {
            row: level
            for name, levels in own.levels.items()
            if own.asked[name] == tonight.asked.get(name)
            for row, level in levels.items()
        }
        return found if len(found.keys() & tonight.rows) >= _SHARED * len(tonight.rows) else {}

    def _judged(self, night: Manifest, metric: str) -> _Judged:
        """The levels of the rows that have all verdicts of all judges."""
        asked: dict[str, set[Asked]] = {}
        levels: dict[str, Levels] = {}
        for calibrations in self._of(night) if metric in label_targets() else ():
            name = calibrations[0].name
            judges = [self._of_judge(one, metric) for one in calibrations]
            combine = _AGGREGATES[self.aggregate]
            asked[name] = {_asked(one, label_targets()[metric]) for one in calibrations}
            levels[name] = {
                row: float(combine([one[row] for one in judges]))
                for row in set(judges[0]).intersection(*judges[1:])
            }
        return _Judged(asked, levels)

    def _of_judge(self, calibration: Calibration, metric: str) -> Levels:
        rows: dict[str, list[Unit]] = {}
        for unit in self._read(calibration).get(label_targets()[metric], ()):
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
            except (InputError, pa.ArrowInvalid):  # a record without its verdicts has no levels
                self._units[key] = {}
        return self._units[key]

    def _answers(self, calibration: Calibration) -> bool:
        units = (one for of in self._read(calibration).values() for one in of)
        return any(one.verdict is not None for one in units)

    def _of(self, night: Manifest) -> list[list[Calibration]]:
        """The night's calibrations of each set that all its judges judged."""
        names = judge_names(night.judge)
        sets: dict[str, dict[str, Calibration]] = {}
        near = (one for one in self.calibrations if _is_near(one, night))

        def rank(one: Calibration) -> tuple[bool, timedelta, datetime]:
            return not self._answers(one), _away(one, night), one.at

        # The nearest calibration with verdicts comes last, so it is the one that stays.
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
    """The labelled set of the nightly, scored as the settings score rows; None without one."""
    if settings.alerts.drift_set is None:
        return None
    name = set_name(settings.alerts.drift_set)
    own = [one for one in calibrations if one.name == name]
    scored = {one.name: one for one in chosen_metrics(settings)}
    precision = scored.get("context_precision")
    relevant_from = precision.parameters.get("relevant_from", 1) if precision else 1
    return FixedSets(files, own, settings.aggregate, relevant_from)


def fresh_share(night: Manifest, metric: str) -> float:
    """Share of a metric's requests that went to the judge: cached replies do not drift.

    1 where the usage is not known, as for judges that cost nothing and are always asked.
    """
    own = [
        usage
        for name, by_judge in night.usage_by_metric.items()
        if {metric, label_targets().get(metric, metric)} & set(name.split(" + "))
        for usage in by_judge.values()
    ]
    asked = sum(one.requests for one in own)
    known = asked + sum(one.answered_from_store for one in own)
    return asked / known if known else 1.0


def _same_judge(calibration: Calibration, night: Manifest) -> bool:
    """Whether a calibration is by the night's judge. For a panel, or a judge with repeats, only
    the name is compared.
    """
    if night.judge.panel or repeats(night.judge) > 1:
        return True
    return calibration.judge.fingerprint == night.judge.fingerprint


def _is_near(calibration: Calibration, night: Manifest) -> bool:
    same_day = calibration.at.date() == night.started_at.date()
    return same_day or _away(calibration, night) <= NEAR


def _away(calibration: Calibration, night: Manifest) -> timedelta:
    """Time between a run and a calibration; 0 where it was made during the run."""
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

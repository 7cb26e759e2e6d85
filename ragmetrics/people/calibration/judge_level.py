"""The level of a night's judges: measured on a fixed labelled set, and its effect on comparisons.

A labelled row's level in a metric is the metric's score of the row by the verdicts of a
calibration. The rows never change, so a change of their levels between nights is a change of the
judges.

Scores judged on one day share the judge's level of that day, which cancels between them. Cached
verdicts have the level of an earlier day. So each side of a comparison is split by the day of its
verdicts:

    a_day = share of now's verdicts of that day - f * share of before's of that day
    error = sd * sqrt(sum over days of a_day^2)      f: share of now's verdicts that are new

For seven earlier nights and tonight, all with new verdicts, it is sd * sqrt(1/7 + 1). Where
tonight has no new verdict, the judge moved no question, and the error is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise
from statistics import fmean, median
from typing import TypeAlias

import pyarrow as pa

from ragmetrics.config import Aggregate, Settings
from ragmetrics.errors import InputError
from ragmetrics.metrics import average_precision, label_targets
from ragmetrics.people.calibration.labelled_sets import set_name
from ragmetrics.people.calibration.store import judge_names, load_units, repeats
from ragmetrics.people.calibration.units import Unit
from ragmetrics.records import Calibration, JudgeInfo, Manifest, Usage
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

Row: TypeAlias = tuple[str, str, str]
"""Key of a labelled row: id, units, question. Equal where texts and labels are equal."""
Levels: TypeAlias = Mapping[Row, float]
Asked: TypeAlias = tuple[str, str, str | None]
"""Judge, fingerprint of settings and prompts, and digest of the texts that verdicts depend on."""
_AGGREGATES: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "median": median,
    "min": min,
    "max": max,
    "majority": majority,
}


def _chunks(units: Sequence[Unit]) -> float:
    """Share of the contexts with a needed sentence. Unit `0:2` is a sentence of context 0."""
    needed: dict[str, bool] = {}
    for unit in units:
        place = unit.unit.partition(":")[0]
        needed[place] = needed.get(place, False) or unit.verdict == 1
    return sum(needed.values()) / len(needed)


@dataclass(frozen=True)
class _Judged:
    """A night's levels in one metric, with the judges and prompts behind them."""

    asked: set[Asked]
    levels: Levels


@dataclass(frozen=True)
class FixedSets:
    """Levels of a labelled set in each night. `calibrations` are those of the set.

    `relevant_from` is the parameter of context_precision: the lowest grade that counts as relevant.
    """

    files: Files
    calibrations: Sequence[Calibration]
    aggregate: Aggregate = "mean"
    relevant_from: int = 1
    _units: dict[tuple[str, datetime], Mapping[str, Sequence[Unit]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def judged(self, night: Manifest) -> bool:
        """Whether all judges of a night judged the set at that time; of a judge and the one under
        its `also` either, as the set may have labels for one alone.
        """
        return any(self._of(night, judge) for judge in night.judge.each)

    def questions(self, night: Manifest) -> int:
        """Number of questions with all verdicts, in the metric of the night that has most."""
        found = (self._judged(night, metric.metric).levels for metric in night.metrics)
        return max((len({row[-1] for row in levels}) for levels in found), default=0)

    def spent(self, night: Manifest) -> Usage | None:
        """Usage of judging the set in a run; None where it was free, or another run paid it."""
        names = [name for judge in night.judge.each for name in judge_names(judge)]
        paid = [
            calibration.usage
            for calibration in self.calibrations
            if night.started_at <= calibration.at <= night.finished_at
            if calibration.judge.name in names and calibration.usage.prompt_tokens
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
        old, new = (
            [levels for one in side if (levels := self._alike(one, metric, tonight))]
            for side in (before, now)
        )
        shared = set(tonight.levels).intersection(*old, *new)
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
        judged_nights = [(night, self._judged(night, metric)) for night in nights]
        levelled = [(night, judged) for night, judged in judged_nights if judged.levels]
        for (before, _), (now, judged) in pairwise(levelled):
            if self._times(before, metric) & self._times(now, metric):
                continue  # the same verdicts
            old = self._alike(before, metric, judged)
            shared = judged.levels.keys() & old.keys()
            step = step_between(_by_question(old, shared), _by_question(judged.levels, shared))
            if step:
                yield now.date, step

    def _times(self, night: Manifest, metric: str) -> set[datetime]:
        return {one.at for one in self._of(night, night.judge.of(metric))}

    def _alike(self, night: Manifest, metric: str, tonight: _Judged) -> Levels:
        """A night's levels by the same judges, settings and prompts, if it has enough rows."""
        own = self._judged(night, metric)
        shared = own.levels.keys() & tonight.levels.keys()
        enough = own.asked == tonight.asked and len(shared) >= _SHARED * len(tonight.levels)
        return own.levels if enough else {}

    def _judged(self, night: Manifest, metric: str) -> _Judged:
        """The levels of the rows that have all verdicts of all judges."""
        known = metric in label_targets()
        calibrations = self._of(night, night.judge.of(metric)) if known else []
        judges = [self._of_judge(calibration, metric) for calibration in calibrations]
        combine = _AGGREGATES[self.aggregate]
        rows = set[Row]().union(*judges).intersection(*judges)
        levels = {row: float(combine([judge[row] for judge in judges])) for row in rows}
        return _Judged({_asked(one, label_targets()[metric]) for one in calibrations}, levels)

    def _of_judge(self, calibration: Calibration, metric: str) -> Levels:
        rows: dict[str, list[Unit]] = {}
        for unit in self._read(calibration).get(label_targets()[metric], ()):
            rows.setdefault(unit.row or unit.id, []).append(unit)
        return {
            _row(units): self._value(metric, units)
            for units in rows.values()
            if all(unit.verdict is not None for unit in units)
        }

    def _value(self, metric: str, units: Sequence[Unit]) -> float:
        if metric == "context_precision":
            grades = [round(2 * (unit.verdict or 0.0)) for unit in units]
            score = average_precision([grade >= self.relevant_from for grade in grades])
            return score.value or 0.0
        if metric == "context_relevancy_chunks":
            return _chunks(units)
        return fmean(unit.verdict or 0.0 for unit in units)

    def _read(self, calibration: Calibration) -> Mapping[str, Sequence[Unit]]:
        key = calibration.judge.name, calibration.at
        if key not in self._units:
            try:
                self._units[key] = load_units(self.files, calibration)
            except (InputError, pa.ArrowInvalid):  # a record without its verdicts has no levels
                self._units[key] = {}
        return self._units[key]

    def _answers(self, calibration: Calibration) -> bool:
        units = (one for of in self._read(calibration).values() for one in of)
        return any(unit.verdict is not None for unit in units)

    def _of(self, night: Manifest, judge: JudgeInfo) -> list[Calibration]:
        """The night's calibrations by its judge, or by all judges of its panel; empty where one has
        none.
        """
        names = judge_names(judge)
        near = (calibration for calibration in self.calibrations if _is_near(calibration, night))

        def rank(one: Calibration) -> tuple[bool, timedelta, datetime]:
            return not self._answers(one), _away(one, night), one.at

        # The nearest calibration with verdicts comes last, so it is the one that stays.
        judges = {
            calibration.judge.name: calibration
            for calibration in sorted(near, key=rank, reverse=True)
            if calibration.judge.name in names and _same_judge(calibration, judge)
        }
        return [judges[name] for name in names] if len(judges) == len(set(names)) else []


def fixed_sets(
    settings: Settings, files: Files, calibrations: Sequence[Calibration]
) -> FixedSets | None:
    """The labelled set of the nightly, scored as the settings score rows; None without one."""
    if settings.alerts.drift_set is None:
        return None
    name = set_name(settings.alerts.drift_set)
    own = [calibration for calibration in calibrations if calibration.name == name]
    scored = {metric.name: metric for metric in chosen_metrics(settings)}
    precision = scored.get("context_precision")
    relevant_from = precision.parameters.get("relevant_from", 1) if precision else 1
    return FixedSets(files, own, settings.aggregate, relevant_from)


def _same_judge(calibration: Calibration, judge: JudgeInfo) -> bool:
    """Whether a calibration is by the night's judge. For a panel, or a judge with repeats, only
    the name is compared.
    """
    if judge.panel or repeats(judge) > 1:
        return True
    return calibration.judge.fingerprint == judge.fingerprint


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


def _row(units: Sequence[Unit]) -> Row:
    same = "|".join(f"{unit.unit}={unit.content}={unit.label:g}" for unit in units)
    return units[0].id, same, units[0].question


def _by_question(levels: Levels, rows: set[Row]) -> QuestionValues:
    grouped: dict[str, list[float]] = {}
    for row in sorted(rows):
        grouped.setdefault(row[-1], []).append(levels[row])
    return grouped

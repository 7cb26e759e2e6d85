"""The mix effect: the part of a drop between nights that is due to another mix of tags.

Tonight's questions may have another mix than those of earlier nights: a Saturday has other users
than a Monday. So the earlier rows are weighted to tonight's mix, by the tags that explain their
scores (`stats.choose_strata`). Where tags do not explain the differences between nights, and the
level of the last weeks depends on the day of the week, the day counts as a tag. The same days of
the four weeks before are then part of the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ragmetrics.people import carried_movement
from ragmetrics.records import WEEKDAY, Manifest, Segment
from ragmetrics.rules.coded_rows import MOST_VALUES, CodedRows, joined
from ragmetrics.rules.context import Baseline, NightContext
from ragmetrics.rules.golden_dates import one_sided_questions, without_questions
from ragmetrics.rules.judge_movement import find_movement, level_between
from ragmetrics.rules.level_series import spread_of_nights
from ragmetrics.rules.weekly_cycle import SAME_DAYS, WEEK, goes_by_weekday
from ragmetrics.stats import (
    Codes,
    Drop,
    LevelError,
    Numbers,
    QuestionValues,
    Strata,
    StratifiedRows,
    choose_strata,
    compare_nights,
    hardest_mix,
    like_for_like,
    likely_movement,
    residuals,
    same_level_chance,
    with_movement,
)
from ragmetrics.storage import trailing_nights

_DIFFER = 0.1
"""Significance level for differences between nights that tags do not explain."""
_LEAST = 0.01
"""A smaller mix effect is not compared with the mixes of the week before."""


def without_mix(
    plain: Drop | None,
    night: NightContext,
    which: RowSelection,
    baseline: Baseline,
    now: Sequence[Manifest],
) -> Drop | None:
    """The drop of a metric from a baseline to some nights, like compared with like.

    `plain` is the drop without regard to tags. It is unchanged where it is paired (each question is
    compared with itself), where `alerts: mix_tags` is empty, and where neither a tag nor the day of
    the week explains the earlier scores.
    """
    if plain is None or plain.paired or night.mix_tags == ():
        return plain
    sides = _Sides(night, which, baseline.nights, now, baseline.build)
    strata = sides.strata()
    if goes_by_weekday(baseline.past, which.metric, night.manifest.date) and sides.differ(strata):
        days = {one.date.weekday() for one in now}
        past = trailing_nights(baseline.past, night.manifest.date, SAME_DAYS)
        same = [one for one in past if one.date.weekday() in days]
        sides = sides.with_before([one for one in same if one not in baseline.nights])
        strata = sides.strata(WEEKDAY)
    if not strata.tags:
        return plain
    found = like_for_like(plain, *sides.split(strata))
    week = baseline.usual[-WEEK:]
    if (found.mix or 0.0) > _LEAST and _covers(week, night):
        beside = sides.with_beside([one for one in week if one not in sides.before])
        strata = beside.strata(*strata.tags, choose=False)
        before, tonight = beside.split(strata)
        most = hardest_mix(before, beside.nights(strata, week))
        found = like_for_like(plain, before, tonight, most=most)
    return replace(found, mix_tags=strata.tags)


def _covers(week: Sequence[Manifest], night: NightContext) -> bool:
    """Whether some nights show the usual mixes: seven nights, one of them on tonight's weekday."""
    day = night.manifest.date.weekday()
    return len(week) == WEEK and any(one.date.weekday() == day for one in week)


@dataclass(frozen=True)
class RowSelection:
    """The rows of a night that are compared."""

    metric: str
    segment: Segment | None = None
    without: Collection[str] = ()
    """Excluded questions."""
    sign: int = 1
    """-1 to negate the scores."""


@dataclass(frozen=True)
class _Sides:
    """The rows of the earlier nights, of the nights compared with them, and of other nights."""

    night: NightContext
    which: RowSelection
    before: Sequence[Manifest]
    now: Sequence[Manifest]
    build: str | None
    beside: Sequence[Manifest] = ()

    def with_before(self, more: Sequence[Manifest]) -> _Sides:
        """These sides with more earlier nights."""
        return replace(self, before=[*more, *self.before])

    def with_beside(self, more: Sequence[Manifest]) -> _Sides:
        """These sides with nights that belong to neither side."""
        return replace(self, beside=more)

    @cached_property
    def _coded(self) -> list[CodedRows]:
        """The compared rows, night by night."""
        night, which, coder = self.night, self.which, self.night.coder
        wanted = {*(night.mix_tags or ()), *([which.segment.tag] if which.segment else [])}
        found = []
        for one in (*self.before, *self.now, *self.beside):
            build = None if one in self.now else self.build
            place = f"{one.date}/{one.run}/{build}"
            rows = coder.code(place, night.rows(which.metric, one, build), wanted)
            rows = rows.of_segment(which.segment)
            if which.without:
                rows = rows.only(~np.isin(rows.questions, coder.numbers(which.without)))
            found.append(rows)
        return found

    @cached_property
    def _ends(self) -> list[int]:
        """The end of each night's rows, after a leading 0."""
        return [0, *np.cumsum([len(one.values) for one in self._coded]).tolist()]

    @cached_property
    def _tags(self) -> dict[str, Codes]:
        """The value of each row of each tag that may be standardised by, as a number."""
        named, own = self.night.mix_tags, self.which.segment
        known = sorted({tag for one in self._coded for tag in one.tags})
        end, found = self._ends[len(self.before)], {}
        for tag in known if named is None else [one for one in named if one in known]:
            if own is not None and tag == own.tag:
                continue
            codes, _ = joined(self._coded, tag)
            if named is not None or 1 < len(np.unique(codes[:end])) <= MOST_VALUES:
                found[tag] = codes
        return found

    @cached_property
    def _days(self) -> Codes:
        """The day of the week of each row's night."""
        nights = (*self.before, *self.now, *self.beside)
        days = [one.date.weekday() for one in nights]
        return np.repeat(days, np.diff(self._ends)).astype(np.intp)

    @cached_property
    def _columns(self) -> tuple[Codes, Numbers]:
        """The question of each row, as a number, and its value."""
        questions = np.concatenate([one.questions for one in self._coded])
        return questions, self.which.sign * np.concatenate([one.values for one in self._coded])

    def _rows(self, start: int, end: int, strata: Strata | None = None) -> StratifiedRows:
        own = slice(start, end)
        questions, values = self._columns
        return StratifiedRows(
            np.unique(questions[own], return_inverse=True)[1].astype(np.intp),
            values[own],
            [level[own] for level in strata.levels] if strata else (),
        )

    def strata(self, *first: str, choose: bool = True) -> Strata:
        """The tags to standardise by: those of the settings, or the best ones."""
        end = self._ends[len(self.before)]
        tags = {**self._tags, **({WEEKDAY: self._days} if WEEKDAY in first else {})}
        named = [one for one in self.night.mix_tags or () if one in tags and one not in first]
        return choose_strata(
            self._rows(0, end),
            tags,
            slice(0, end),
            first=[*first, *named],
            choose=choose and self.night.mix_tags is None,
        )

    def split(self, strata: Strata) -> tuple[StratifiedRows, StratifiedRows]:
        """The earlier rows and the current rows."""
        end, last = (self._ends[n] for n in (len(self.before), len(self.before) + len(self.now)))
        return self._rows(0, end, strata), self._rows(end, last, strata)

    def nights(self, strata: Strata, wanted: Sequence[Manifest]) -> list[StratifiedRows]:
        """The rows of each of some nights, without nights that have no rows."""
        nights = [*self.before, *self.now, *self.beside]
        ends = [(self._ends[n], self._ends[n + 1]) for n in (nights.index(one) for one in wanted)]
        return [self._rows(*own, strata) for own in ends if own[1] > own[0]]

    def differ(self, strata: Strata) -> bool:
        """Whether the earlier nights differ by more than these tags explain."""
        if not strata.tags:
            return True
        rows, _ = self.split(strata)
        left = residuals(rows, strata.levels[-1][: len(rows.values)])
        nights = [
            left[start:end]
            for start, end in zip(self._ends, self._ends[1 : len(self.before) + 1], strict=False)
        ]
        return same_level_chance(nights) < _DIFFER


def drop_between(
    night: NightContext,
    which: RowSelection,
    baseline: Baseline,
    before: Sequence[QuestionValues],
    now: Sequence[QuestionValues],
) -> Drop | None:
    """The drop from the baseline to tonight, or to the last nights of the incident with tonight.

    `before` and `now` are the scores of those nights. The drop is paired by question where enough
    questions recur, else adjusted to the same mix of tags. Its error includes the judge's movement
    from night to night. None where there are less than two questions to compare.
    """
    nights = [*baseline.spell, night.manifest][-len(now) :]
    if one_sided := one_sided_questions(night, baseline.nights, nights):
        which = replace(which, without={*which.without, *one_sided})
        before, now = ([without_questions(one, one_sided) for one in own] for own in (before, now))
    drop = without_mix(compare_nights(before, now), night, which, baseline, nights)
    if drop is None:
        return None
    return with_movement(
        drop, level_error_between(drop, night, which.metric, baseline.nights, nights)
    )


def level_error_between(
    drop: Drop,
    night: NightContext,
    metric: str,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
) -> LevelError | None:
    """The error that movement of the level adds to a drop: the judge's, or that of the nights where
    it is larger.

    What is likely of the nights without being seen counts by the verdicts that are new. Where
    questions recur, they show how far the judge moves; until they have, what is usual counts, since
    levels of the same questions vary by less than their errors say.
    """
    judge = level_between(night, metric, before, now)
    if metric not in night.spreads:
        night.spreads[metric] = spread_of_nights(night, metric)
    spread, moves = night.spreads[metric], find_movement(night, metric)
    if spread is None:
        return judge
    share = math.sqrt(1 / len(before) + 1 / len(now))
    if not spread.is_seen:
        share = carried_movement(metric, before, now)
        if not share or (drop.paired and moves and moves.sd is not None):
            return judge
        if drop.paired:
            spread = likely_movement([], drop.error / share, 0.0, max(1.0, abs(drop.before)))
    nights = replace(spread, error=spread.error * share)
    return nights if judge is None or nights.error > judge.error else judge

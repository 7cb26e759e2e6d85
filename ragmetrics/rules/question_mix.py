"""The mix effect: the part of a drop that is due to another mix of tags.

Tonight's questions may have another mix than those of earlier nights: a Saturday has other users
than a Monday. So the earlier rows are weighted to tonight's mix, by the tags that explain their
scores (`stats.choose_strata`). Where tags do not explain the differences between nights, and the
level of the last weeks depends on the day of the week, the day counts as a tag. The same days of
the four weeks before are then part of the baseline.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ragmetrics.records import WEEKDAY, Manifest, Segment
from ragmetrics.rules.context import Baseline, NightContext
from ragmetrics.rules.tagged_rows import MOST_VALUES, CodedRows, joined
from ragmetrics.rules.weekly_cycle import SAME_DAYS, WEEK, goes_by_weekday, same_level_chance
from ragmetrics.stats import (
    Codes,
    Drop,
    Numbers,
    Strata,
    StratifiedRows,
    choose_strata,
    like_for_like,
)
from ragmetrics.storage import trailing_nights

_DIFFER = 0.1
"""Significance level for differences between nights that tags do not explain."""
_LEAST = 0.01
"""A smaller mix effect is not compared with the mixes of the week before."""


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
class MixedRows:
    """The rows of two sides and of others beside them, night by night, with their tags."""

    before: Sequence[CodedRows]
    now: Sequence[CodedRows]
    beside: Sequence[CodedRows] = ()
    days: Sequence[int] = ()
    """The day of the week of each of these nights."""
    named: Sequence[str] | None = None
    """The tags to standardise by; None: those that explain the scores."""
    ignored: str | None = None
    """A tag that all rows share."""
    sign: int = 1

    @cached_property
    def _all(self) -> Sequence[CodedRows]:
        return (*self.before, *self.now, *self.beside)

    @cached_property
    def _ends(self) -> list[int]:
        """The end of each night's rows, after a leading 0."""
        return [0, *np.cumsum([len(rows.values) for rows in self._all]).tolist()]

    @cached_property
    def _tags(self) -> dict[str, Codes]:
        """The value of each row of each tag that may be standardised by, as a number."""
        known = sorted({tag for rows in self._all for tag in rows.tags} - {self.ignored})
        end, tags = self._ends[len(self.before)], {}
        for tag in known if self.named is None else [tag for tag in self.named if tag in known]:
            codes, _ = joined(self._all, tag)
            if self.named is not None or 1 < len(np.unique(codes[:end])) <= MOST_VALUES:
                tags[tag] = codes
        return tags

    @cached_property
    def _columns(self) -> tuple[Codes, Numbers]:
        """The question of each row, as a number, and its value."""
        questions = np.concatenate([rows.questions for rows in self._all])
        return questions, self.sign * np.concatenate([rows.values for rows in self._all])

    def _rows(self, start: int, end: int, strata: Strata | None = None) -> StratifiedRows:
        part = slice(start, end)
        questions, values = self._columns
        return StratifiedRows(
            np.unique(questions[part], return_inverse=True)[1].astype(np.intp),
            values[part],
            [level[part] for level in strata.levels] if strata else (),
        )

    def strata(self, *first: str, choose: bool = True) -> Strata:
        """The tags to standardise by: the named ones, or those that explain the earlier scores."""
        end, tags = self._ends[len(self.before)], self._tags
        if WEEKDAY in first:
            days = np.repeat(self.days, np.diff(self._ends)).astype(np.intp)
            tags = {**tags, WEEKDAY: days}
        named = [tag for tag in self.named or () if tag in tags and tag not in first]
        return choose_strata(
            self._rows(0, end),
            tags,
            slice(0, end),
            first=[*first, *named],
            choose=choose and self.named is None,
        )

    def split(self, strata: Strata) -> tuple[StratifiedRows, StratifiedRows]:
        """The earlier rows and the current rows."""
        end, last = (self._ends[n] for n in (len(self.before), len(self.before) + len(self.now)))
        return self._rows(0, end, strata), self._rows(end, last, strata)

    def nights(self, strata: Strata, places: Sequence[int]) -> list[StratifiedRows]:
        """The rows of each of some nights, without nights that have no rows."""
        parts = [(self._ends[place], self._ends[place + 1]) for place in places]
        return [self._rows(*part, strata) for part in parts if part[1] > part[0]]

    def differ(self, strata: Strata) -> bool:
        """Whether the earlier nights differ by more than these tags explain."""
        if not strata.tags:
            return True
        rows, _ = self.split(strata)
        left = rows.residuals(strata.levels[-1][: len(rows.values)])
        return same_level_chance(np.split(left, self._ends[1 : len(self.before)])) < _DIFFER


def like_by_tags(plain: Drop, rows: MixedRows, strata: Strata | None = None) -> Drop:
    """The drop without the mix effect, by the tags that explain the earlier scores. A paired drop
    stays as it is: each question is compared with itself. So does one that no tag explains.
    """
    if plain.paired:
        return plain
    strata = strata or rows.strata()
    if not strata.tags:
        return plain
    return replace(like_for_like(plain, *rows.split(strata)), mix_tags=strata.tags)


def without_mix(
    plain: Drop,
    night: NightContext,
    which: RowSelection,
    baseline: Baseline,
    now: Sequence[Manifest],
) -> Drop:
    """The drop of a metric from a baseline to some nights, like compared with like.

    `plain` is the drop without regard to tags. It is unchanged where it is paired, where `alerts:
    mix_tags` is empty, and where neither a tag nor the day of the week explains the earlier scores.
    """
    if plain.paired or night.mix_tags == ():
        return plain
    before = list(baseline.nights)
    rows = _rows_of(night, which, before, now, baseline.build)
    strata = rows.strata()
    if goes_by_weekday(baseline.past, which.metric, night.manifest.date) and rows.differ(strata):
        days = {one.date.weekday() for one in now}
        past = trailing_nights(baseline.past, night.manifest.date, SAME_DAYS)
        same = [one for one in past if one.date.weekday() in days]
        before = [*(one for one in same if one not in before), *before]
        rows = _rows_of(night, which, before, now, baseline.build)
        strata = rows.strata(WEEKDAY)
    drop = like_by_tags(plain, rows, strata)
    week = baseline.usual[-WEEK:]
    if (drop.mix or 0.0) <= _LEAST or not _covers(week, night):
        return drop
    beside = [one for one in week if one not in before]
    rows = _rows_of(night, which, before, now, baseline.build, beside)
    strata = rows.strata(*strata.tags, choose=False)
    earlier, tonight = rows.split(strata)
    nights = [*before, *now, *beside]
    usual = rows.nights(strata, [nights.index(one) for one in week])
    drop = like_for_like(plain, earlier, tonight, usual=usual)
    return replace(drop, mix_tags=strata.tags)


def _covers(week: Sequence[Manifest], night: NightContext) -> bool:
    """Whether some nights show the usual mixes: seven nights, one of them on tonight's weekday."""
    day = night.manifest.date.weekday()
    return len(week) == WEEK and any(one.date.weekday() == day for one in week)


def _rows_of(
    night: NightContext,
    which: RowSelection,
    before: Sequence[Manifest],
    now: Sequence[Manifest],
    build: str | None,
    beside: Sequence[Manifest] = (),
) -> MixedRows:
    """The compared rows of some nights: of an index build, except on the nights `now`."""
    segment, coder = which.segment, night.coder
    wanted = {*(night.mix_tags or ()), *([segment.tag] if segment else [])}

    def coded(one: Manifest) -> CodedRows:
        of_build = None if one in now else build
        place = f"{one.date}/{one.run}/{of_build}"
        rows = coder.code(place, night.rows(which.metric, one, of_build), wanted)
        rows = rows.of_segment(segment)
        if not which.without:
            return rows
        return rows.only(~np.isin(rows.questions, coder.numbers(which.without)))

    return MixedRows(
        before=list(map(coded, before)),
        now=list(map(coded, now)),
        beside=list(map(coded, beside)),
        days=[one.date.weekday() for one in (*before, *now, *beside)],
        named=night.mix_tags,
        ignored=segment.tag if segment else None,
        sign=which.sign,
    )

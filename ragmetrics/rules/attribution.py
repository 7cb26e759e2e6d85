"""Attribution of a drop to tag values, with tests.

For each tag the drop is split over its values so that the parts sum to the drop: lower scores
within a value, and a change of its weight (more rows of a kind that was always poor). A value is
named only if its test is significant; the false discovery rate is controlled over all values of
all tags.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.stats import PAIRED_FROM, MeanDifference, Numbers, adjust_p_values

ALARMS = 0.05
"""False discovery rate among the named values."""
_FEWEST = 2
"""Questions of a value, and of the rest, below which it is not tested."""


@dataclass(frozen=True)
class TaggedRows:
    """Scored rows of one side; `tags` has a column per tag, None if a row lacks it."""

    questions: Sequence[str] | NDArray[np.object_]
    values: Sequence[float] | Numbers
    tags: Mapping[str, Sequence[str | None]]


@dataclass(frozen=True, slots=True)
class Contributor:
    """Contribution of one tag value to the drop."""

    tag: str
    value: str | None
    """The tag value; None for rows without the tag."""
    within: float
    """Part of the drop from lower scores of its rows."""
    mix: float
    """Part of the drop from the change of its weight."""
    share: float | None
    """`within` plus `mix` as a share of the drop; None if there is no drop."""
    drop: float | None
    """Drop of its own mean; None if it has no rows tonight."""
    questions: int
    """Questions with rows of this value tonight."""
    is_new: bool
    """Whether no row had it before; then `drop` is relative to all rows of before."""
    before: float | None
    """Its mean before, and"""
    now: float | None
    """its mean tonight."""
    p_value: float | None
    """Adjusted p: it fell further than the rest, or its weight changed. None: untested."""
    named: bool = False


@dataclass(frozen=True, slots=True)
class Attribution:
    """A drop and its contributors, tag by tag, the largest part first."""

    drop: float
    paired: bool
    carriers: tuple[Contributor, ...]

    @property
    def named(self) -> tuple[Contributor, ...]:
        """Contributors with a significant test; none if the drop is spread over all values."""
        return tuple(carrier for carrier in self.carriers if carrier.named)


def attribute_drop(before: TaggedRows, now: TaggedRows) -> Attribution | None:
    """Split a drop over the values of each tag, and name the significant contributors.

        w_g, m_g   weight and mean of value g; a question has one vote, shared by its rows
        drop = M_before - M_now = sum_g within_g + mix_g
        within_g = w_now,g (m_before,g - m_now,g)
        mix_g    = (w_before,g - w_now,g) (m_before,g - M_before)

    A new value is compared with all rows of before (m_before,g = M_before). If at least half of
    tonight's questions are on both sides, only these count, each compared with itself, with its
    tags of tonight: mix is 0, and the drop is attributed to a new index build by its questions.

    Tests, one-sided: the drop within g is larger than that of the rest (t test on the
    differences where paired, else on the contrast of four means); and for `mix`, both that its
    weight changed and that its mean differed from the rest's (the larger p). A new value with
    all rows is tested by the whole drop; a value that always had all rows is not tested.
    Benjamini-Hochberg over all tests controls the share of false names at 5%.
    Less than two questions on a side: None.
    Sources: Kitagawa 1955; Oaxaca 1973; Blinder 1973; Berger 1982 for the larger p.
    """
    old, new = _Side(before), _Side(now)
    shared = old.names & new.names
    paired = len(shared) >= max(_FEWEST, PAIRED_FROM * len(new.names))
    if paired:
        old, new = old.only(shared), new.only(shared)
    if min(len(old.names), len(new.names)) < _FEWEST:
        return None
    part = _paired_part if paired else _unpaired_part
    drop = old.mean - new.mean
    found = [
        part(old, new, tag, value)
        for tag in {**dict.fromkeys(before.tags), **dict.fromkeys(now.tags)}
        for value in sorted(old.values_of(tag) | new.values_of(tag), key=lambda v: (v is None, v))
        if not (paired and value not in new.values_of(tag))
    ]
    tested = [
        replace(part, p_value=p, named=p is not None and p < ALARMS and part.within + part.mix > 0)
        for part, p in zip(found, adjust_p_values([one.p_value for one in found]), strict=True)
    ]
    ranked = sorted(tested, key=lambda one: -(one.within + one.mix))
    return Attribution(drop, paired, tuple(ranked))


class _Side:
    """Rows with a weight each, so that every question has one vote."""

    def __init__(self, rows: TaggedRows) -> None:
        self.tags = {tag: _column(values) for tag, values in rows.tags.items()}
        self.question = np.asarray(rows.questions, dtype=object)
        self.value = np.asarray(rows.values, dtype=np.float64)
        self.names: set[str] = set(self.question.tolist())
        _, self.place, count = np.unique(
            self.question.astype(str), return_inverse=True, return_counts=True
        )
        self.weight = 1 / count[self.place] / max(1, len(count))
        self.mean = float(self.weight @ self.value)

    def only(self, names: set[str]) -> _Side:
        """The rows of these questions."""
        kept = np.array([name in names for name in self.question], dtype=bool)
        tags = {tag: column[kept].tolist() for tag, column in self.tags.items()}
        return _Side(TaggedRows(self.question[kept], self.value[kept], tags))

    def values_of(self, tag: str) -> set[str | None]:
        """The values of a tag that occur."""
        return set(self.tags[tag].tolist()) if tag in self.tags else {None}

    def has(self, tag: str, value: str | None) -> NDArray[np.bool_]:
        """Mask of the rows with the value."""
        if tag not in self.tags:
            return np.full(len(self.value), value is None)
        found: NDArray[np.bool_] = self.tags[tag] == value
        return found

    def share_of(self, rows: NDArray[np.bool_]) -> float:
        """Share of their weight in the total."""
        return float(self.weight[rows].sum())

    def mean_of(self, rows: NDArray[np.bool_]) -> float:
        """Their weighted mean."""
        return float(self.weight[rows] @ self.value[rows]) / self.share_of(rows)

    def questions_of(self, rows: NDArray[np.bool_]) -> tuple[NDArray[np.int_], Numbers]:
        """The questions that have such rows, in order of name, and their means over these."""
        count = np.bincount(self.place[rows], minlength=len(self.names))
        sums = np.bincount(self.place[rows], weights=self.value[rows], minlength=len(self.names))
        there = np.flatnonzero(count)
        return there, sums[there] / count[there]


def _column(values: Sequence[str | None]) -> NDArray[np.object_]:
    """A tag's values; None if missing, which is NaN in pandas."""
    column = np.empty(len(values), dtype=object)
    column[:] = [value if isinstance(value, str) else None for value in values]
    return column


def _paired_part(old: _Side, new: _Side, tag: str, value: str | None) -> Contributor:
    """Contribution of a value to a paired drop: the losses of its questions of tonight."""
    rows = new.has(tag, value)
    everything = np.ones(len(old.value), dtype=bool)
    was = old.questions_of(everything)[1]
    lost, own = _losses(was, new, rows), new.questions_of(rows)[0]
    weight = np.bincount(new.place[rows], weights=new.weight[rows], minlength=len(was))[own]
    rest = _losses(was, new, ~rows)
    is_new = value not in old.values_of(tag)
    contrast = None
    if min(len(lost), len(rest)) >= _FEWEST:
        contrast = MeanDifference.unpaired(lost, rest)
    elif is_new and not len(rest):
        contrast = MeanDifference.paired(lost)
    within, before = float(weight @ lost), float(weight @ was[own] / weight.sum())
    fell = float(weight @ lost / weight.sum())
    return Contributor(
        tag=tag,
        value=value,
        within=within,
        mix=0.0,
        share=_share(old, new, within),
        drop=fell,
        questions=len(own),
        is_new=is_new,
        before=before,
        now=before - fell,
        p_value=contrast.p_value if contrast else None,
    )


def _share(old: _Side, new: _Side, part: float) -> float | None:
    drop = old.mean - new.mean
    return part / drop if drop > 1e-12 else None


def _losses(was: Numbers, new: _Side, rows: NDArray[np.bool_]) -> Numbers:
    there, means = new.questions_of(rows)
    return np.round(was[there] - means, 12)


def _unpaired_part(old: _Side, new: _Side, tag: str, value: str | None) -> Contributor:
    """Contribution of a value to an unpaired drop: of its rows and of its weight."""
    was, now = old.has(tag, value), new.has(tag, value)
    is_new = not was.any()
    weight_was, weight_now = old.share_of(was), new.share_of(now)
    mean_was = old.mean if is_new else old.mean_of(was)
    fell = mean_was - new.mean_of(now) if now.any() else None
    # A new value has no earlier rows: it is compared with all of before.
    own = np.ones_like(was) if is_new else was
    tests = _fell_further(old, new, own, now, was), _weighs_otherwise(old, new, was, now)
    found = [p for p in tests if p is not None]
    within = weight_now * (fell or 0.0)
    mix = (weight_was - weight_now) * (mean_was - old.mean)
    return Contributor(
        tag=tag,
        value=value,
        within=within,
        mix=mix,
        share=_share(old, new, within + mix),
        drop=fell,
        questions=len(new.questions_of(now)[0]),
        is_new=is_new,
        before=mean_was,
        now=None if fell is None else mean_was - fell,
        p_value=min(1.0, len(found) * min(found)) if found else None,
    )


def _fell_further(
    old: _Side, new: _Side, own: NDArray[np.bool_], now: NDArray[np.bool_], was: NDArray[np.bool_]
) -> float | None:
    """One-sided p that the value's drop is not larger than the rest's."""
    fell = _fell(old, new, own, now)
    if fell is None:
        return None
    if now.all() and not was.any():
        return fell.p_value
    rest = _fell(old, new, ~was, ~now)
    if rest is None:
        return None
    squares = np.square([fell.error, rest.error])
    whole = float(squares.sum())
    freedom = [fell.freedom, rest.freedom]
    least = whole**2 / float((np.square(squares) / freedom).sum()) if whole > 0 else min(freedom)
    return MeanDifference(fell.difference - rest.difference, math.sqrt(whole), least).p_value


def _fell(
    old: _Side, new: _Side, was: NDArray[np.bool_], now: NDArray[np.bool_]
) -> MeanDifference | None:
    before, after = old.questions_of(was)[1], new.questions_of(now)[1]
    return (
        MeanDifference.unpaired(before, after) if min(len(before), len(after)) >= _FEWEST else None
    )


def _weighs_otherwise(
    old: _Side, new: _Side, was: NDArray[np.bool_], now: NDArray[np.bool_]
) -> float | None:
    """p of the mix: the larger of two p values, for the change of the weight and for the
    difference of the earlier means."""
    own, rest = old.questions_of(was)[1], old.questions_of(~was)[1]
    if min(len(own), len(rest)) < _FEWEST:
        return None
    n, m = len(old.names), len(new.names)
    a, b = len(old.questions_of(was)[0]) / n, len(new.questions_of(now)[0]) / m
    share = (a * n + b * m) / (n + m)
    error = math.sqrt(share * (1 - share) * (1 / n + 1 / m))
    z = (a - b) / error if error > 0 else 0.0
    level = MeanDifference.unpaired(own, rest)
    sign = math.copysign(1.0, level.difference)
    return max(level.p_two_sided, float(special.ndtr(-z * sign)))

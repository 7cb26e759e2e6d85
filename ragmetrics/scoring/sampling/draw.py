"""Sampling: how many rows of each metric are judged in a night, and which.

Rows have a key, uniform by the hash of seed, question and the row's place among those of its
question (by the hash of its id, of one id by their order); in each stratum those with the lowest
keys are judged. So a night that is repeated, or cut into other shards, has the same sample; a late
row takes the place of one other at most; a question that comes every night is judged every night,
as the paired tests like it; and the rows of a question that is asked often are drawn one by one.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import SampleSettings, Settings
from ragmetrics.metrics import Metric
from ragmetrics.model import FIELDS, Manifest, Summary, question_key
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.part import score_families
from ragmetrics.scoring.sampling.plan import (
    Group,
    SamplePlan,
    load_sample,
    mark_again,
    mark_of,
    save_sample,
    stratum_of,
)
from ragmetrics.stats import FEWEST_OF_A_STRATUM, allocate, rows_to_judge
from ragmetrics.storage import Files, RunRef, outlines, read_records

log = logging.getLogger(__name__)

ROWS_A_STRATUM = 10
"""Judged rows for which there is a stratum: of more strata the smallest are sampled as one."""
FEWEST = 100
"""Rows that a `half_width` asks for at least: spreads of fewer are little to plan by."""
WIDEST = 0.5
"""Standard deviation of the first night: scores in [0, 1] have none above."""
_NIGHTS = 7
_LOOKED_THROUGH = 30
_95 = 1.96
_NO_PRINTS: Mapping[str, str] = MappingProxyType({})
_ALWAYS = {"id", "user_input", "tags", "language"}

Keys = NDArray[np.uint64]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Known:
    """What earlier nights say of a metric."""

    spread: float = WIDEST
    """A row's standard deviation by the expensive judge."""
    correlation: float = 0.0
    """With the cheap one."""


@dataclass
class SamplingFrame:
    """What the draw needs of every row of a night: 24 bytes each."""

    kinds: Sequence[Sequence[Metric]]
    """Metrics that go together, as they need the same fields and share what is asked."""
    tags: Sequence[str] = ()
    questions: array[int] = field(default_factory=lambda: array("I"))
    first_marks: array[int] = field(default_factory=lambda: array("Q"))
    """As if no other row had the same question and id."""
    codes: array[int] = field(default_factory=lambda: array("i"))
    """Of the strata,"""
    strata: dict[str, int] = field(default_factory=dict)
    """by their names."""
    fits: array[int] = field(default_factory=lambda: array("Q"))
    """A bit for each kind of which the row has all that it needs."""

    @property
    def columns(self) -> list[str]:
        """What has to be read of the rows."""
        needed = {
            name
            for kind in self.kinds
            for need in kind[0].needs
            for name in re.split(r" [+|] ", need)
        }
        return sorted(_ALWAYS | needed & set(FIELDS) - {"retrieved_contexts"})

    def count(self, record: Mapping[str, Any]) -> None:
        """Take a row into account."""
        filled = {name for name, value in record.items() if value} | {"retrieved_contexts"}
        key = question_key(record["user_input"])
        stratum = stratum_of(dict(record["tags"] or ()), record["language"], self.tags)
        self.questions.append(int(key, 16))
        self.first_marks.append(int(mark_of(key, record["id"]), 16))
        self.codes.append(self.strata.setdefault(stratum, len(self.strata)))
        self.fits.append(sum(kind[0].fits(filled) << n for n, kind in enumerate(self.kinds)))

    def marks(self) -> Keys:
        """The marks of the rows, in their order."""
        found = np.array(self.first_marks, dtype=np.uint64)
        order = np.argsort(found, kind="stable")
        further = order[1:][found[order[1:]] == found[order[:-1]]]
        seen: Counter[int] = Counter()
        for at in further.tolist():
            first = self.first_marks[at]
            seen[first] += 1
            found[at] = int(mark_again(f"{first:016x}", seen[first]), 16)
        return found

    def keys(self, seed: int) -> Keys:
        """The keys of the rows, in their order."""
        questions = np.frombuffer(self.questions, dtype=np.uint32)
        order = np.lexsort((np.frombuffer(self.first_marks, dtype=np.uint64), questions))
        keys = np.empty(len(order), dtype=np.uint64)
        last, place = -1, 0
        for at in order.tolist():
            question = self.questions[at]
            place = place + 1 if question == last else 0
            last = question
            keys[at] = _key(seed, question, place)
        return keys


def _key(seed: int, question: int, place: int) -> int:
    digest = hashlib.blake2b(f"sample {seed} {question:08x} {place}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "big")


def plan_sample(
    settings: Settings, files: Files, ref: RunRef, prints: Mapping[str, str] = _NO_PRINTS
) -> SamplePlan | None:
    """Draw once which rows of a staged run are judged, or find what was drawn.

    None where all are. `prints` are the fingerprints of the metrics, by which a `half_width` finds
    the nights that compare.
    """
    if settings.sample is None or not settings.samples:
        return None
    if (found := load_sample(files, ref)) is not None:
        return found
    census = read_sampling_frame(settings, files, ref)
    looks_back = settings.sample.half_width is not None and prints
    past = outlines(files, before=ref.date, last=_LOOKED_THROUGH) if looks_back else []
    plan = draw_all(settings.sample, census, past, prints)
    save_sample(files, ref, plan)
    for one in plan.groups:
        log.info("%s: %d of %d rows to be judged", ", ".join(one.metrics), one.judged, one.rows)
    return plan


def read_sampling_frame(settings: Settings, files: Files, ref: RunRef) -> SamplingFrame:
    """Count the rows of a staged run for the metrics that ask a judge."""
    metrics = {one.name: one for one in chosen_metrics(settings) if one.prompts}
    kinds: dict[tuple[int, tuple[str, ...]], list[Metric]] = {}
    for number, family in enumerate(score_families(settings)):
        for metric in (metrics[name] for name in family if name in metrics):
            kinds.setdefault((number, metric.needs), []).append(metric)
    tags = settings.sample.strata if settings.sample else ()
    census = SamplingFrame(list(kinds.values()), tags)
    columns = census.columns
    for shard in range(ref.shards):
        for record in read_records(files, ref.rows(shard), columns):
            census.count(record)
    return census


def draw_all(
    sample: SampleSettings,
    census: SamplingFrame,
    past: Sequence[Manifest],
    prints: Mapping[str, str],
) -> SamplePlan:
    """Draw the rows of each kind of metrics, of those that have what it needs."""
    keys, fits = census.keys(sample.seed), np.frombuffer(census.fits, dtype=np.uint64)
    marks = census.marks()
    codes, names = np.frombuffer(census.codes, dtype=np.int32), list(census.strata)
    groups = []
    for number, kind in enumerate(census.kinds):
        there = np.flatnonzero(fits >> np.uint64(number) & np.uint64(1))
        wanted = max(
            wanted_rows(sample, len(there), known(comparable(past, one.name, prints.get(one.name))))
            for one in kind
        )
        drawn, strata = draw(keys[there], codes[there], names, wanted)
        group = Group(
            metrics=tuple(one.name for one in kind),
            rows=len(there),
            judged=len(drawn),
            strata=tuple(strata),
            marks=None
            if len(drawn) == len(there)
            else tuple(f"{mark:016x}" for mark in sorted(marks[there[drawn]].tolist())),
        )
        groups.append(group)
    return SamplePlan(tags=sample.strata, groups=tuple(groups))


def wanted_rows(sample: SampleSettings, rows: int, seen: Known) -> int:
    """How many of the rows that a metric can be scored on are to be judged."""
    if sample.half_width is None:
        return min(sample.rows or 0, rows)
    wanted = rows_to_judge(sample.half_width, seen.spread, seen.correlation, rows)
    return min(max(wanted, FEWEST), rows)


def comparable(past: Sequence[Manifest], metric: str, fingerprint: str | None) -> list[Summary]:
    """What the last seven nights found of a metric that were scored by the same judge."""
    found = [
        summary
        for night in past
        if (summary := night.summary(metric)) and summary.fingerprint == fingerprint
    ]
    return found[-_NIGHTS:]


def known(found: Sequence[Summary]) -> Known:
    """What some nights say of a metric; nights that all were judged do not tell of the cheap judge,
    and no night at all leaves the widest spread that scores in [0, 1] can have.

        s^2 = mean of s_night^2,   r = mean of r_night
    """
    spreads = [one for summary in found if (one := _spread(summary)) is not None]
    if not spreads:
        return Known()
    agreed = [one.sample.correlation for one in found if one.sample]
    correlations = [one for one in agreed if one is not None]
    spread = math.sqrt(sum(one**2 for one in spreads) / len(spreads))
    return Known(spread, sum(correlations) / len(correlations) if correlations else 0.0)


def _spread(summary: Summary) -> float | None:
    """A row's standard deviation in a night; of one that was not sampled by its interval."""
    if summary.sample:
        return summary.sample.spread
    if summary.low is None or summary.high is None:
        return None
    return (summary.high - summary.low) / 2 / _95 * math.sqrt(summary.scored)


def draw(
    keys: Keys, codes: Codes, names: Sequence[str], rows: int
) -> tuple[NDArray[np.intp], list[str]]:
    """Of rows with keys and strata (numbers of `names`), the places of those to be judged, and the
    strata that were sampled one by one; the others were sampled as one.
    """
    sizes = np.bincount(codes, minlength=len(names))
    largest = sorted(range(len(names)), key=lambda code: (-sizes[code], names[code]))
    own = [code for code in largest if sizes[code] >= FEWEST_OF_A_STRATUM]
    own = own[: rows // ROWS_A_STRATUM]
    together = np.where(np.isin(codes, own), codes, -1)
    kinds = np.unique(together).tolist()
    counts = {str(code): int((together == code).sum()) for code in kinds}
    given = allocate(counts, rows)
    found = []
    for code in kinds:
        there = np.flatnonzero(together == code)
        lowest = np.argsort(keys[there], kind="stable")[: given[str(code)]]
        found.append(there[lowest])
    drawn = np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.intp)
    return drawn, [names[code] for code in own] if len(kinds) > 1 else []

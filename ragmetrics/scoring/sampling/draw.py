"""Draws the sample: how many rows of each metric are judged in a night, and which.

Each row has a uniform key: the hash of the seed, the question, and the row's rank among the rows of
its question (ordered by the hash of the id, then by position). In each stratum the rows with the
lowest keys are judged. It follows:

- a repeated night, or one with other shards, has the same sample;
- a late row replaces at most one other row;
- a question that occurs every night is judged every night, which suits paired tests;
- the rows of a frequent question are drawn independently.
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
from ragmetrics.scoring.metric_choice import chosen_metrics, score_families
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
"""There is at most one stratum per so many judged rows. The smallest strata are merged."""
FEWEST = 100
"""Smallest sample for a `half_width`: fewer rows give no reliable standard deviation."""
WIDEST = 0.5
"""Standard deviation that is assumed on the first night: the largest of scores in [0, 1]."""
_NIGHTS = 7
_LOOKED_THROUGH = 30
_95 = 1.96
_NO_PRINTS: Mapping[str, str] = MappingProxyType({})
_ALWAYS = {"id", "user_input", "tags", "language"}

Keys = NDArray[np.uint64]
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Known:
    """What is known about a metric from earlier nights."""

    spread: float = WIDEST
    """Standard deviation of the expensive judge's scores."""
    correlation: float = 0.0
    """Correlation of the expensive judge's scores with the embedded judge's."""


@dataclass
class SamplingFrame:
    """Data of every row of a night that the draw needs: 24 bytes per row."""

    kinds: Sequence[Sequence[Metric]]
    """Groups of metrics that need the same fields and share requests."""
    tags: Sequence[str] = ()
    questions: array[int] = field(default_factory=lambda: array("I"))
    first_marks: array[int] = field(default_factory=lambda: array("Q"))
    """Row ids before duplicates of question and id are numbered."""
    codes: array[int] = field(default_factory=lambda: array("i"))
    """The stratum of each row as a number."""
    strata: dict[str, int] = field(default_factory=dict)
    """Maps the name of a stratum to its number."""
    fits: array[int] = field(default_factory=lambda: array("Q"))
    """One bit per group of metrics: set when the row has all fields that the group needs."""

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        needed = {
            name
            for kind in self.kinds
            for need in kind[0].needs
            for name in re.split(r" [+|] ", need)
        }
        return sorted(_ALWAYS | needed & set(FIELDS) - {"retrieved_contexts"})

    def count(self, record: Mapping[str, Any]) -> None:
        """Add a row."""
        filled = {name for name, value in record.items() if value} | {"retrieved_contexts"}
        key = question_key(record["user_input"])
        stratum = stratum_of(dict(record["tags"] or ()), record["language"], self.tags)
        self.questions.append(int(key, 16))
        self.first_marks.append(int(mark_of(key, record["id"]), 16))
        self.codes.append(self.strata.setdefault(stratum, len(self.strata)))
        self.fits.append(sum(kind[0].fits(filled) << n for n, kind in enumerate(self.kinds)))

    def marks(self) -> Keys:
        """The unique ids of the rows, in their order."""
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
        """The random keys of the rows, in their order."""
        questions = np.frombuffer(self.questions, dtype=np.uint32)
        order = np.lexsort((np.frombuffer(self.first_marks, dtype=np.uint64), questions))
        keys = np.empty(len(order), dtype=np.uint64)
        last, rank = -1, 0
        for at in order.tolist():
            question = self.questions[at]
            rank = rank + 1 if question == last else 0
            last = question
            keys[at] = _key(seed, question, rank)
        return keys


def _key(seed: int, question: int, rank: int) -> int:
    digest = hashlib.blake2b(f"sample {seed} {question:08x} {rank}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "big")


def plan_sample(
    settings: Settings, files: Files, ref: RunRef, prints: Mapping[str, str] = _NO_PRINTS
) -> SamplePlan | None:
    """Draw the rows of a staged run that are judged, or load the sample that was drawn before.

    None when all rows are judged. `prints` are the fingerprints of the metrics; a `half_width`
    uses them to find comparable nights.
    """
    if settings.sample is None or not settings.samples:
        return None
    if (found := load_sample(files, ref)) is not None:
        return found
    frame = read_sampling_frame(settings, files, ref)
    looks_back = settings.sample.half_width is not None and prints
    past = outlines(files, before=ref.date, last=_LOOKED_THROUGH) if looks_back else []
    plan = draw_all(settings.sample, frame, past, prints)
    save_sample(files, ref, plan)
    for one in plan.groups:
        log.info("%s: %d of %d rows to be judged", ", ".join(one.metrics), one.judged, one.rows)
    return plan


def read_sampling_frame(settings: Settings, files: Files, ref: RunRef) -> SamplingFrame:
    """Read the data for the draw from a staged run, for the metrics that use a judge."""
    metrics = {one.name: one for one in chosen_metrics(settings) if one.prompts}
    kinds: dict[tuple[int, tuple[str, ...]], list[Metric]] = {}
    for number, family in enumerate(score_families(settings)):
        for metric in (metrics[name] for name in family if name in metrics):
            kinds.setdefault((number, metric.needs), []).append(metric)
    tags = settings.sample.strata if settings.sample else ()
    frame = SamplingFrame(list(kinds.values()), tags)
    columns = frame.columns
    for shard in range(ref.shards):
        for record in read_records(files, ref.rows(shard), columns):
            frame.count(record)
    return frame


def draw_all(
    sample: SampleSettings,
    frame: SamplingFrame,
    past: Sequence[Manifest],
    prints: Mapping[str, str],
) -> SamplePlan:
    """Draw rows for each group of metrics, among the rows with the fields that it needs."""
    keys, fits = frame.keys(sample.seed), np.frombuffer(frame.fits, dtype=np.uint64)
    marks = frame.marks()
    codes, names = np.frombuffer(frame.codes, dtype=np.int32), list(frame.strata)
    groups = []
    for number, kind in enumerate(frame.kinds):
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
    """The sample size for a metric that can be scored on so many rows."""
    if sample.half_width is None:
        return min(sample.rows or 0, rows)
    wanted = rows_to_judge(sample.half_width, seen.spread, seen.correlation, rows)
    return min(max(wanted, FEWEST), rows)


def comparable(past: Sequence[Manifest], metric: str, fingerprint: str | None) -> list[Summary]:
    """A metric's summaries of the last seven nights with the same fingerprint."""
    found = [
        summary
        for night in past
        if (summary := night.summary(metric)) and summary.fingerprint == fingerprint
    ]
    return found[-_NIGHTS:]


def known(found: Sequence[Summary]) -> Known:
    """Standard deviation and correlation of a metric, from summaries of earlier nights.

        s^2 = mean of s_night^2,   r = mean of r_night

    Nights without a sample have no correlation. Without any night s is the largest standard
    deviation that scores in [0, 1] can have.
    """
    spreads = [one for summary in found if (one := _spread(summary)) is not None]
    if not spreads:
        return Known()
    agreed = [one.sample.correlation for one in found if one.sample]
    correlations = [one for one in agreed if one is not None]
    spread = math.sqrt(sum(one**2 for one in spreads) / len(spreads))
    return Known(spread, sum(correlations) / len(correlations) if correlations else 0.0)


def _spread(summary: Summary) -> float | None:
    """The standard deviation of a night's scores; without a sample it follows from the interval."""
    if summary.sample:
        return summary.sample.spread
    if summary.low is None or summary.high is None:
        return None
    return (summary.high - summary.low) / 2 / _95 * math.sqrt(summary.scored)


def draw(
    keys: Keys, codes: Codes, names: Sequence[str], rows: int
) -> tuple[NDArray[np.intp], list[str]]:
    """Draw rows by their keys and strata (`codes` are indexes of `names`). Returns the positions of
    the drawn rows, and the strata that were sampled separately; all others were merged into one.
    """
    sizes = np.bincount(codes, minlength=len(names))
    largest = sorted(range(len(names)), key=lambda code: (-sizes[code], names[code]))
    own = [code for code in largest if sizes[code] >= FEWEST_OF_A_STRATUM]
    own = own[: rows // ROWS_A_STRATUM]
    together = np.where(np.isin(codes, own), codes, -1)
    kinds = np.unique(together).tolist()
    counts = {str(code): int((together == code).sum()) for code in kinds}
    allocation = allocate(counts, rows)
    found = []
    for code in kinds:
        there = np.flatnonzero(together == code)
        lowest = np.argsort(keys[there], kind="stable")[: allocation[str(code)]]
        found.append(there[lowest])
    drawn = np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.intp)
    return drawn, [names[code] for code in own] if len(kinds) > 1 else []

"""Draws the sample: how many rows of each metric are judged in a night, and which.

    rows/dt=DATE/run=ID/sample.json      written once, before anything is judged

Each row has a uniform key: the hash of the seed, the question, and the row's rank among the rows of
its question (ordered by the hash of the id, then by position). In each stratum the rows with the
lowest keys are judged. It follows:

- a repeated night, or one with other shards, has the same sample;
- a late row replaces at most one other row;
- a question that occurs every night is judged every night, which suits paired tests;
- the rows of a frequent question are drawn independently.

The plan names the drawn rows by their marks and holds for all parts and retries. A mark is a hash
of the question and the row's id, so it does not depend on the number of shards. Rows with equal
question and id are numbered in their order; all rows of a question are in one shard.
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
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import SampleSettings, Settings
from ragmetrics.metrics import Metric
from ragmetrics.model import FIELDS, Manifest, Record, Summary, question_key
from ragmetrics.scoring.metric_choice import chosen_metrics, score_families
from ragmetrics.scoring.sampling.cheap import choose_learned
from ragmetrics.stats import FEWEST_OF_A_STRATUM, allocate, rows_to_judge
from ragmetrics.storage import Files, RunRef, outlines, read_records, require_record

log = logging.getLogger(__name__)
LANGUAGE = "language"
"""A row without a tag of this name uses its field `language`."""
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


def mark_of(question_key: str, row_id: str) -> str:
    """The mark of the first row with a question and an id: sixteen hex digits."""
    return _digest(f"{question_key} {row_id}")


def mark_again(mark: str, number: int) -> str:
    """The mark of a further row with the same question and id; `number` starts at 1."""
    return _digest(f"{mark} again {number}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class RowIds:
    """Computes the marks of a shard's rows. Call `of` once per row, in order."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, question_key: str, row_id: str) -> str:
        """The mark of the next row."""
        mark = mark_of(question_key, row_id)
        number = self._seen[mark]
        self._seen[mark] += 1
        return mark_again(mark, number) if number else mark


def stratum_of(tags: Mapping[str, str], language: str | None, names: Sequence[str]) -> str:
    """A row's values of some tags as one text. A missing tag counts as a value of its own."""
    own = {LANGUAGE: language, **tags} if language else tags
    return "\x1f".join("\x1e" if (value := own.get(name)) is None else value for name in names)


class Group(Record):
    """Metrics with the same sample."""

    metrics: tuple[str, ...]
    rows: int
    """Number of rows with all fields that these metrics need."""
    judged: int
    """Number of rows that are judged."""
    strata: tuple[str, ...] = ()
    """Strata that were sampled separately. All other rows are one more stratum."""
    marks: tuple[str, ...] | None = None
    """Marks of the rows that are judged; None: all rows are judged."""

    @cached_property
    def sample(self) -> frozenset[str] | None:
        """The marks as a set."""
        return None if self.marks is None else frozenset(self.marks)

    @cached_property
    def own_strata(self) -> frozenset[str]:
        """The strata as a set."""
        return frozenset(self.strata)

    def judges(self, mark: str) -> bool:
        """True when a row is judged."""
        return self.sample is None or mark in self.sample

    def stratum(self, name: str) -> str:
        """The stratum in which rows with these tags were sampled."""
        return name if name in self.own_strata else ""


class SamplePlan(Record):
    """The sample of a run. Metrics that use no judge are in no group."""

    tags: tuple[str, ...] = ()
    """Tags whose values define the strata."""
    groups: tuple[Group, ...] = ()
    cheap: str = ""
    """Path of the learned judge that scores all rows; empty: the embedded judge does."""
    cheap_note: str = ""
    """A sentence on the judge of all rows, for people."""

    def left_out(self, mark: str) -> set[str]:
        """The metrics that do not judge a row."""
        return {name for group in self.groups if not group.judges(mark) for name in group.metrics}

    def group(self, metric: str) -> Group | None:
        """The group of a metric; None when it uses no judge."""
        return next((one for one in self.groups if metric in one.metrics), None)


def _path(ref: RunRef) -> str:
    return f"{ref.folder('rows')}/sample.json"


def save_sample(files: Files, ref: RunRef, plan: SamplePlan) -> None:
    """Write the plan of a run."""
    files.write(_path(ref), plan.model_dump_json().encode())


def load_sample(files: Files, ref: RunRef) -> SamplePlan | None:
    """The plan of a run; None when all rows are judged. Raises StoreError."""
    return require_record(files, _path(ref), SamplePlan)


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
    cheap, note = choose_learned(settings, files)
    plan = draw_all(settings.sample, frame, past, prints)
    plan = plan.model_copy(update={"cheap": cheap, "cheap_note": note})
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

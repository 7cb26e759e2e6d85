"""The plan of a sample: which rows of each metric are judged in a night.

    rows/dt=DATE/run=ID/sample.json      written once, before anything is judged

The plan names the drawn rows by their marks and holds for all parts and retries. A mark is a hash
of the question and the row's id, so it does not depend on the number of shards. Rows with equal
question and id are numbered in their order; all rows of a question are in one shard.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

from ragmetrics.records import Record
from ragmetrics.storage import Files, RunRef, require_record

LANGUAGE = "language"
"""A row without a tag of this name uses its field `language`."""


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
    values = {LANGUAGE: language, **tags} if language else tags
    return "\x1f".join("\x1e" if (value := values.get(name)) is None else value for name in names)


@dataclass(frozen=True, slots=True)
class Chance:
    """How a judged row was drawn."""

    probability: float
    """Its inclusion probability."""
    compared: bool
    """Whether it is in the uniform part of the sample."""


_CERTAIN = Chance(1.0, compared=True)


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
    weighted: bool = False
    """Whether rows have an inclusion probability of their own: with active sampling."""
    probabilities: tuple[float, ...] = ()
    """The inclusion probability of each of these marks; empty where all are 1."""
    compared: tuple[bool, ...] = ()
    """Whether each of these marks is in the uniform part of the sample; empty where all are."""
    uniform: str = ""
    """Why rows had equal chances despite active sampling; empty otherwise."""

    def chance(self, mark: str) -> Chance | None:
        """How a judged row was drawn; None without active sampling."""
        return self._chances.get(mark, _CERTAIN) if self.weighted and self.judges(mark) else None

    @cached_property
    def _chances(self) -> Mapping[str, Chance]:
        """How each judged row was drawn, where its probability is not 1."""
        pairs = zip(self.probabilities, self.compared or repeat(True), strict=False)
        return {mark: Chance(*how) for mark, how in zip(self.marks or (), pairs, strict=False)}

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
    """Path of the learned judge that scores all rows; empty: the lexical judge does."""
    cheap_note: str = ""
    """A sentence on the judge of all rows, for people."""
    draw: str = "uniform"
    """How rows were drawn by the settings: `uniform` or `active`."""

    def left_out(self, mark: str) -> set[str]:
        """The metrics that do not judge a row."""
        return {name for group in self.groups if not group.judges(mark) for name in group.metrics}

    def group(self, metric: str) -> Group | None:
        """The group of a metric; None when it uses no judge."""
        return next((group for group in self.groups if metric in group.metrics), None)


def load_sample(files: Files, ref: RunRef) -> SamplePlan | None:
    """The plan of a run; None when all rows are judged. Raises StoreError."""
    return require_record(files, ref.beside_rows("sample"), SamplePlan)

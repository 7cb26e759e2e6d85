"""The plan of a sampled night: which rows the judge is asked about, for all parts and retries.

    rows/dt=DATE/run=ID/sample.json      written once, before anything is judged

A row is known by a mark, the hash of its question and its id, so the plan holds whatever the number
of shards. Rows that have both in common, as where ids are those of questions, are told apart by
their order: all rows of a question are in one shard.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from pydantic import ValidationError

from ragmetrics.errors import StoreError
from ragmetrics.model import Record, explain_validation_error
from ragmetrics.storage import Files, RunRef

LANGUAGE = "language"
"""A row without a tag of this name says it itself."""


def mark_of(question_key: str, row_id: str) -> str:
    """Sixteen hex digits: of the first row of a question and id."""
    return _digest(f"{question_key} {row_id}")


def mark_again(mark: str, number: int) -> str:
    """The mark of a further row of the same question and id, the first of them being number 1."""
    return _digest(f"{mark} again {number}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class RowIds:
    """The marks of a shard's rows, to be asked for in their order, once for each row."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, question_key: str, row_id: str) -> str:
        """The mark of the next row."""
        mark = mark_of(question_key, row_id)
        number = self._seen[mark]
        self._seen[mark] += 1
        return mark_again(mark, number) if number else mark


def stratum_of(tags: Mapping[str, str], language: str | None, names: Sequence[str]) -> str:
    """A row's values of some tags as one text; a tag that it lacks is a value of its own."""
    own = {LANGUAGE: language, **tags} if language else tags
    return "\x1f".join("\x1e" if (value := own.get(name)) is None else value for name in names)


class Group(Record):
    """Metrics that are asked of the same rows."""

    metrics: tuple[str, ...]
    rows: int
    """That have all that these metrics need,"""
    judged: int
    """and how many of them are judged."""
    strata: tuple[str, ...] = ()
    """Those that were sampled one by one; rows of all others are one more."""
    marks: tuple[str, ...] | None = None
    """Of the rows that are judged; None: all are."""

    @cached_property
    def sample(self) -> frozenset[str] | None:
        """The marks, to be looked up."""
        return None if self.marks is None else frozenset(self.marks)

    @cached_property
    def own_strata(self) -> frozenset[str]:
        """The strata, to be looked up."""
        return frozenset(self.strata)

    def judges(self, mark: str) -> bool:
        """Whether a row is judged."""
        return self.sample is None or mark in self.sample

    def stratum(self, name: str) -> str:
        """In which stratum rows of some tags were sampled."""
        return name if name in self.own_strata else ""


class SamplePlan(Record):
    """What was drawn before a run. Metrics that ask no judge are in none of its groups."""

    tags: tuple[str, ...] = ()
    """By whose values the strata are."""
    groups: tuple[Group, ...] = ()

    def left_out(self, mark: str) -> set[str]:
        """The metrics whose judge is not asked about a row."""
        return {name for group in self.groups if not group.judges(mark) for name in group.metrics}

    def group(self, metric: str) -> Group | None:
        """The group of a metric; None where it asks no judge."""
        return next((one for one in self.groups if metric in one.metrics), None)


def _path(ref: RunRef) -> str:
    return f"{ref.folder('rows')}/sample.json"


def save_sample(files: Files, ref: RunRef, plan: SamplePlan) -> None:
    """Write what was drawn."""
    files.write(_path(ref), plan.model_dump_json().encode())


def load_sample(files: Files, ref: RunRef) -> SamplePlan | None:
    """What was drawn for a run; None where all rows are judged. Raises StoreError."""
    found = files.find(_path(ref))
    try:
        return None if found is None else SamplePlan.model_validate_json(found)
    except ValidationError as error:
        raise StoreError(
            f"{files.uri(_path(ref))} is damaged: {explain_validation_error(error)}"
        ) from error

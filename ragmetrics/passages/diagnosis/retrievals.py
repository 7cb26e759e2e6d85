"""Reads what a run retrieved: for each question its passages, and which of them it needs.

A passage is known by its document id, or by its text where a row has no ids. A question needs

    the passages that its reference_context_ids name; without these
    the passages that hold its reference_contexts; without these
    the passages that the judge graded as a full answer (grade 2 of context_relevance)

Questions are 32-bit keys and passages 64-bit hashes, so a million rows with ten passages each take
about 200 MB.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragmetrics.errors import StoreError
from ragmetrics.passages.diagnosis.document_ids import Ids, elements, is_in, rows_of_elements
from ragmetrics.passages.diagnosis.text_match import contained, shingles
from ragmetrics.records import BUILDS, question_key
from ragmetrics.storage import Files, RunRef, StoredPart, is_missing, passing_over

Questions: TypeAlias = NDArray[np.uint32]
Mask: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.int64]
VERDICTS = "context_relevance"
"""The metric whose verdicts say which passages a question without labels needs."""
_ANSWERS = 2
_HOLDS = 0.5
"""Share of a reference context that a passage must hold to count as it."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Run:
    """A run whose rows are in a store."""

    files: Files
    ref: RunRef
    judged: bool = False
    """Whether it has scores of context_relevance."""
    build: str | None = None
    """The index build whose rows count; None: all rows."""


@dataclass(frozen=True)
class Retrievals:
    """The rows of a run, and a pair for each passage that a row retrieved."""

    question: Questions
    """Of each row, its question; so are `run`, `shard`, `position` and `labelled`."""
    run: Places
    """The row's run, as its position in the runs that were read."""
    shard: Places
    position: Places
    labelled: Mask
    """Whether the row has reference_context_ids."""
    named: Mask
    """Whether its passages are known by their ids, and not by their texts."""
    row: Places
    """Of each pair, its row; so are `passage`, `rank` and `needed`."""
    passage: Ids
    rank: Places
    needed: Mask
    labels: Ids
    """Pairs of question and labelled passage, as `pair_keys`."""

    @property
    def keys(self) -> Ids:
        """Of each pair, question and passage as one number."""
        return pair_keys(self.question[self.row], self.passage)


def pair_keys(questions: NDArray[Any], passages: Ids) -> Ids:
    """Question and passage of each pair as one number."""
    mixed: Ids = (passages ^ (questions.astype(np.uint64) * _MIX)) * _MIX
    return mixed


def read_retrievals(
    run: Run,
    only: Questions | None = None,
    *,
    without: Questions | None = None,
    by_text: bool = False,
) -> Retrievals | None:
    """What a run retrieved, optionally for some questions only, or `without` some; None where its
    rows are not stored.

    With `by_text` passages are known by their texts, even where they have ids.

    Raises StoreError where the store is down.
    """
    shards = [
        _read_shard(run, number, only, without, by_text=by_text) for number in range(run.ref.shards)
    ]
    found = [shard for shard in shards if shard is not None]
    return _joined(found) if len(found) == len(shards) and found else None


def read_newest(
    runs: Sequence[Run], only: Questions | None = None, *, by_text: bool = False
) -> Retrievals | None:
    """What each question retrieved in the newest of some runs that asked it, newest first. None
    where the rows of the newest are not stored. Raises StoreError where the store is down.
    """
    parts: list[Retrievals] = []
    for number, run in enumerate(runs):
        asked = np.unique(np.concatenate([part.question for part in parts])) if parts else None
        found = read_retrievals(run, only, without=asked, by_text=by_text)
        if found is None and not parts:
            return None
        if found is not None:
            parts.append(replace(found, run=np.full(len(found.question), number)))
    return _joined(parts)


def _joined(shards: Sequence[Retrievals]) -> Retrievals:
    """The rows of all shards in one table."""
    starts = np.cumsum([0, *(len(shard.question) for shard in shards)])
    moved = [replace(one, row=one.row + start) for one, start in zip(shards, starts, strict=False)]
    names = [field.name for field in fields(Retrievals)]
    return Retrievals(
        **{name: np.concatenate([getattr(one, name) for one in moved]) for name in names}
    )


def _read_shard(
    run: Run, number: int, only: Questions | None, without: Questions | None, *, by_text: bool
) -> Retrievals | None:
    path = run.ref.rows(number)
    names = ["user_input", "retrieved_context_ids", "reference_context_ids", BUILDS]
    try:
        table = StoredPart(run.files, path).columns(names)
        asked = _question_numbers(table["user_input"])
        wanted = of_build(table, run.build)
        wanted &= is_in(asked, only) if only is not None else True
        wanted &= ~is_in(asked, without) if without is not None else True
        at = np.flatnonzero(wanted)
        table = table.take(at)
        row, passage, named = _passages(run.files, path, table, at, by_text=by_text)
    except StoreError as error:
        if error.transient:
            raise
        return None  # the rows were removed
    references = elements(table["reference_context_ids"])
    of_reference = rows_of_elements(table["reference_context_ids"])
    labelled = is_in(np.arange(len(at)), of_reference)
    rank = np.arange(len(row)) - np.searchsorted(row, row) + 1
    found = Retrievals(
        question=asked[at],
        run=np.zeros(len(at), dtype=np.int64),
        shard=np.full(len(at), number),
        position=at,
        labelled=labelled,
        named=named,
        row=row,
        passage=passage,
        rank=rank,
        needed=is_in(pair_keys(row, passage), pair_keys(of_reference, references)),
        labels=pair_keys(asked[at][of_reference], references),
    )
    return replace(found, needed=found.needed | _needed_without_ids(run, path, found))


def of_build(table: Any, build: str | None) -> Mask:
    """The rows of an index build, or all rows."""
    import pyarrow.compute as pc

    if build is None:
        return np.ones(len(table), dtype=bool)
    found: Mask = pc.fill_null(pc.equal(table[BUILDS], build), False).to_numpy()
    return found.copy()


def _question_numbers(column: Any) -> Questions:
    coded = column.combine_chunks().dictionary_encode()
    if not len(coded):
        return np.array([], dtype=np.uint32)
    numbers = np.array(
        [int(question_key(one or ""), 16) for one in coded.dictionary.to_pylist()], dtype=np.uint32
    )
    asked: Questions = numbers[coded.indices.to_numpy(zero_copy_only=False)]
    return asked


def _passages(
    files: Files, path: str, table: Any, at: Places, *, by_text: bool
) -> tuple[Places, Ids, Mask]:
    """The row and the passage of each pair, in the order of rows and ranks, and which rows have
    ids.
    """
    ids = table["retrieved_context_ids"].slice(0, 0 if by_text else len(at))
    row, passage = rows_of_elements(ids), elements(ids)
    nameless = ~is_in(np.arange(len(at)), row)
    if not nameless.any():
        return row, passage, ~nameless
    texts = StoredPart(files, path).columns(["retrieved_contexts"]).take(at[nameless])
    column = texts["retrieved_contexts"]
    more = np.flatnonzero(nameless)[rows_of_elements(column)]
    row, passage = np.concatenate([row, more]), np.concatenate([passage, elements(column)])
    order = np.argsort(row, kind="stable")
    return row[order], passage[order], ~nameless


def _needed_without_ids(run: Run, path: str, found: Retrievals) -> Mask:
    """The needed pairs of rows that have no reference_context_ids."""
    needed = np.zeros(len(found.row), dtype=bool)
    places = ~found.labelled
    if not places.any():
        return needed
    texts = StoredPart(run.files, path).columns(["reference_contexts"]).take(found.position)
    by_text = np.unique(rows_of_elements(texts["reference_contexts"]))
    by_text = by_text[places[by_text]]
    starts = np.searchsorted(found.row, np.arange(len(found.question) + 1))

    def mark(row: int, helps: Sequence[bool]) -> None:
        if len(helps) == starts[row + 1] - starts[row]:
            needed[starts[row] : starts[row + 1]] = helps

    if len(by_text):
        columns = ["retrieved_contexts", "reference_contexts"]
        rows = (
            StoredPart(run.files, path).columns(columns).take(found.position[by_text]).to_pylist()
        )
        for row, record in zip(by_text, rows, strict=True):
            mark(row, _holding(record["reference_contexts"], record["retrieved_contexts"]))
        places[by_text] = False
    if run.judged and places.any():
        _mark_verdicts(run, int(found.shard[0]), found.position, np.flatnonzero(places), mark)
    return needed


def _mark_verdicts(
    run: Run,
    shard: int,
    positions: Places,
    rows: Places,
    mark: Callable[[int, Sequence[bool]], None],
) -> None:
    """Mark the passages that the judge graded as a full answer."""
    with passing_over(is_missing):
        table = StoredPart(run.files, run.ref.scores(VERDICTS, shard)).columns(["details"])
        details = table["details"].take(positions[rows]).to_pylist()
        for row, text in zip(rows, details, strict=True):
            if text and (grades := json.loads(text).get("grades")):
                mark(row, [grade == _ANSWERS for grade in grades])


def _holding(references: Sequence[str | None], contexts: Sequence[str | None]) -> list[bool]:
    """Which contexts hold at least half of a reference context, or are within one."""
    wanted = [shingles(reference) for reference in references if reference and reference.strip()]
    found = [shingles(context or "") for context in contexts]
    return [
        any(max(contained(ref, context), contained(context, ref)) >= _HOLDS for ref in wanted)
        for context in found
    ]

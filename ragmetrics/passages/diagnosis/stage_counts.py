"""Counts the questions that lost a passage at each stage, over all of them and by tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.diagnosis.document_ids import is_in
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.passages.diagnosis.question_rows import in_shards
from ragmetrics.passages.diagnosis.retrievals import Retrievals, Run
from ragmetrics.records import BUILDS, Stage, StageCounts
from ragmetrics.storage import StoredPart

MOST_VALUES = 20
"""A tag with more values names items, not kinds."""


def count_stages(
    lost: LostPairs, stages: Sequence[Stage], tags: Mapping[str, NDArray[np.object_]]
) -> StageCounts:
    """The questions with a needed passage, and those that lost one at each of the `stages`, which
    are those of the lost pairs. `tags` has the values of the questions with a needed passage.
    """
    asked = needing_questions(lost)
    losing = _losing(lost, stages, asked)
    return _count(losing, np.ones(len(asked), dtype=bool)).model_copy(
        update={
            "segments": {
                tag: {value: _count(losing, own) for value, own in _values(values)}
                for tag, values in tags.items()
            }
        }
    )


def needing_questions(lost: LostPairs) -> NDArray[np.uint32]:
    """The distinct questions with a needed passage, ascending."""
    return np.unique(lost.pairs.question[lost.pairs.needed])


def _losing(
    lost: LostPairs, stages: Sequence[Stage], asked: NDArray[np.uint32]
) -> dict[Stage, NDArray[np.bool_]]:
    """By stage, which questions lost a passage at it."""
    names, questions = np.array(stages, dtype=object), lost.questions
    return {stage: is_in(asked, questions[names == stage]) for stage in sorted(set(stages))}


def _count(losing: Mapping[Stage, NDArray[np.bool_]], own: NDArray[np.bool_]) -> StageCounts:
    counts = {stage: int((which & own).sum()) for stage, which in losing.items()}
    return StageCounts(of=int(own.sum()), stages={s: n for s, n in counts.items() if n})


def _values(values: NDArray[np.object_]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for value in sorted({value for value in values.tolist() if value is not None}):
        yield value, values == value


def tags_of_questions(
    runs: Sequence[Run], now: Retrievals, asked: NDArray[np.uint32]
) -> dict[str, NDArray[np.object_]]:
    """The values of each tag, and the index build, of some distinct questions, by their first rows.

    A tag with more than 20 values is left out, and a build where there is only one.
    """
    _, first = np.unique(now.question, return_index=True)
    rows = first[is_in(now.question[first], asked)]
    tags: dict[str, NDArray[np.object_]] = {}
    for run, shard, of_shard in in_shards(now, rows):
        table = StoredPart(runs[run].files, runs[run].ref.rows(shard)).columns(["tags", BUILDS])
        records = table.take(now.position[of_shard]).to_pylist()
        numbers = np.flatnonzero(is_in(rows, of_shard)).tolist()
        for number, record in zip(numbers, records, strict=True):
            for tag, value in (*(record["tags"] or ()), (BUILDS, record[BUILDS])):
                if tag not in tags:
                    tags[tag] = np.full(len(rows), None, dtype=object)
                tags[tag][number] = value
    kinds = {tag: len(set(values.tolist()) - {None}) for tag, values in tags.items()}
    return {
        tag: values
        for tag, values in tags.items()
        if 1 <= kinds[tag] <= MOST_VALUES and (tag != BUILDS or kinds[tag] > 1)
    }

"""Counts the questions that lost a passage at each stage, and tests their share.

    k of n questions lost a passage at the stage now; x of m on the nights before
    share ~ Beta(1 + x, 19 + m - x),   p = P(K >= k),   K ~ BetaBinomial(n, share)

The prior, a share of 5%, stands for nights that are not known: a first night, or a comparison
of two files. p values are adjusted over the stages (Benjamini-Hochberg). A stage is significant
below 0.001, and above its share of every night before; below 0.05 where none is known.
Source: Gelman et al., "Bayesian Data Analysis", 3rd edition, posterior predictive p values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.diagnosis.document_ids import is_in
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.passages.diagnosis.question_rows import in_shards
from ragmetrics.passages.diagnosis.retrievals import Retrievals, Run
from ragmetrics.records import BUILDS, Segment, Stage, StageCounts, StageShare
from ragmetrics.stats import adjust_p_values, share_interval
from ragmetrics.storage import StoredPart

LEVEL = 0.001
"""Significance level of a stage."""
FIRST_LEVEL = 0.05
"""The same where no night before is known: the prior is wide."""
SEGMENT_LEVEL = 0.01
"""Significance level of a segment, tested where its stage is significant."""
_PRIOR = (1.0, 19.0)
UNTOLD: tuple[Stage, ...] = ("undecided",)
"""Stages that are no finding."""
MOST_VALUES = 20
"""A tag with more values names items, not kinds."""


def count_stages(
    lost: LostPairs, stages: Sequence[Stage], tags: Mapping[str, NDArray[np.object_]]
) -> StageCounts:
    """The questions with a needed passage, and those that lost one at each of the `stages`, which
    are those of the lost pairs. `tags` has the values of the questions with a needed passage.
    """
    asked, names = needing_questions(lost), np.array(stages, dtype=object)
    losing = {stage: is_in(asked, lost.questions[names == stage]) for stage in sorted(set(stages))}
    segments = {
        tag: {
            value: _count(losing, values == value)
            for value in sorted(set(values.tolist()) - {None})
        }
        for tag, values in tags.items()
    }
    every = np.ones(len(asked), dtype=bool)
    return _count(losing, every).model_copy(update={"segments": segments})


def needing_questions(lost: LostPairs) -> NDArray[np.uint32]:
    """The distinct questions with a needed passage, ascending."""
    return np.unique(lost.pairs.question[lost.pairs.needed])


def _count(losing: Mapping[Stage, NDArray[np.bool_]], own: NDArray[np.bool_]) -> StageCounts:
    counts = {stage: int((which & own).sum()) for stage, which in losing.items()}
    return StageCounts(of=int(own.sum()), stages={s: n for s, n in counts.items() if n})


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


def predictive_p_value(count: int, of: int, before: int, of_before: int) -> float:
    """P(at least `count` of `of`) after `before` of `of_before`; 1 for a count of 0.

    Raises ValueError for a count above its total.
    """
    from scipy import special

    if not (0 <= count <= of and 0 <= before <= of_before):
        raise ValueError(f"{count} of {of}, {before} of {of_before}: more than all")
    a, b = _PRIOR[0] + before, _PRIOR[1] + of_before - before
    terms = [
        math.exp(
            math.lgamma(of + 1)
            - math.lgamma(k + 1)
            - math.lgamma(of - k + 1)
            + float(special.betaln(k + a, of - k + b))
            - float(special.betaln(a, b))
        )
        for k in range(count, of + 1)
    ]
    return min(1.0, math.fsum(terms)) if count else 1.0


def share_of_stages(
    counts: StageCounts,
    passages: Mapping[Stage, int],
    before: Sequence[StageCounts],
    sources: Mapping[Stage, Sequence[Stage]],
) -> list[StageShare]:
    """The share of each stage of `counts`. `passages` counts its lost passages.

    The nights `before` have stages from the logs alone. `sources` gives the stages that a stage had
    by the logs.
    """
    stages = list(counts.stages)
    shares = [
        _share(stage, counts, passages.get(stage, 0), before, sources.get(stage, [stage]))
        for stage in stages
    ]
    known = any(night.of for night in before)
    return _adjusted(shares, LEVEL if known else FIRST_LEVEL)


def share_of_segments(
    counts: StageCounts,
    before: Sequence[StageCounts],
    sources: Mapping[Stage, Sequence[Stage]],
    stage: Stage,
) -> list[StageShare]:
    """The share of a stage in each segment that lost a passage at it."""
    shares = [
        _share(
            stage,
            cell,
            0,
            [night.segments.get(tag, {}).get(value, StageCounts()) for night in before],
            sources.get(stage, [stage]),
            Segment(tag=tag, value=value),
        )
        for tag, values in counts.segments.items()
        for value, cell in values.items()
        if cell.stages.get(stage)
    ]
    return _adjusted(shares, SEGMENT_LEVEL)


def _share(
    stage: Stage,
    counts: StageCounts,
    passages: int,
    before: Sequence[StageCounts],
    sources: Sequence[Stage],
    segment: Segment | None = None,
) -> StageShare:
    questions, of = counts.stages[stage], counts.of
    nights = [one for one in before if one.of]
    counted = [min(night.of, sum(night.stages.get(s, 0) for s in sources)) for night in nights]
    lost, asked = sum(counted), sum(night.of for night in nights)
    highest = max((n / one.of for n, one in zip(counted, nights, strict=True)), default=0.0)
    share = questions / of
    low, high = share_interval(questions, of)
    p_value = predictive_p_value(questions, of, lost, asked) if share > highest else 1.0
    return StageShare(
        stage=stage,
        passages=passages,
        questions=questions,
        of=of,
        share=share,
        low=low,
        high=high,
        usual=lost / asked if asked else None,
        p_value=None if stage in UNTOLD else p_value,
        segment=segment,
    )


def _adjusted(shares: Sequence[StageShare], level: float) -> list[StageShare]:
    adjusted = adjust_p_values([share.p_value for share in shares])
    return [
        share.model_copy(update={"p_value": p, "significant": p is not None and p < level})
        for share, p in zip(shares, adjusted, strict=True)
    ]

"""Measures variants of a retriever: mended and broken questions, and paired changes of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import JsonValue

from ragmetrics.passages import NeedingQuestion
from ragmetrics.records import LogRow, VariantChange, VariantResult
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import Numbers, compare_aligned, share_interval

ASKED = "asked"
"""Tag of a scored answer: `VARIANT/QUESTION`, both as numbers."""


@dataclass(frozen=True)
class VariantAnswers:
    """What a variant returned for each asked question: a row, or the reason why there is none."""

    name: str
    parameters: Mapping[str, JsonValue]
    rows: Sequence[LogRow | str]


def measure_variants(
    answers: Sequence[VariantAnswers],
    fallen: Sequence[NeedingQuestion],
    others: Sequence[NeedingQuestion],
    scores: Sequence[MetricScores],
) -> list[VariantResult]:
    """The result of each variant: the first, `as now`, then those that mend most.

    The first questions of each variant are the `fallen` ones, the rest the `others`. The
    `scores` have the tag ASKED. No correction is needed: one judge scores the same questions at
    one time.
    """
    count = len(fallen) + len(others)
    values = [(score, _by_variant(score, len(answers), count)) for score in scores]
    results = [_result(number, one, fallen, others, values) for number, one in enumerate(answers)]
    first, *rest = results
    rest.sort(key=lambda one: (-one.mended, one.broken))
    return [first, *rest]


def _by_variant(scores: MetricScores, variants: int, questions: int) -> list[Numbers]:
    """The value of each question in each variant; NaN where there is none."""
    values = np.full((variants, questions), np.nan)
    table = scores.scored
    for name, value in zip(table[f"tag:{ASKED}"], table["value"], strict=True):
        variant, _, question = str(name).partition("/")
        values[int(variant), int(question)] = value
    return list(values)


def _result(
    number: int,
    variant: VariantAnswers,
    fallen: Sequence[NeedingQuestion],
    others: Sequence[NeedingQuestion],
    values: Sequence[tuple[MetricScores, Sequence[Numbers]]],
) -> VariantResult:
    half = len(fallen)
    fell = _missing(fallen, variant.rows[:half])
    kept = _missing(others, variant.rows[half:])
    mended, reasons = fell.count(0), [row for row in variant.rows if isinstance(row, str)]
    low, high = share_interval(mended, half)
    sizes = [len(row.retrieved_contexts) for row in variant.rows if isinstance(row, LogRow)]
    return VariantResult(
        name=variant.name,
        parameters=dict(variant.parameters),
        asked=half,
        mended=mended,
        share=mended / half if half else None,
        low=low if half else None,
        high=high if half else None,
        others=len(kept),
        broken=sum(count > 0 for count in kept),
        contexts=float(np.mean(sizes)) if sizes else None,
        fell=_changes(number, slice(0, half), values),
        kept=_changes(number, slice(half, None), values),
        failed=len(reasons),
        reason=reasons[0] if reasons else "",
    )


def _missing(asked: Sequence[NeedingQuestion], rows: Sequence[LogRow | str]) -> list[int]:
    """The number of needed passages that each answer lacks; questions without one are left out."""
    return [
        question.missing(row)
        for question, row in zip(asked, rows, strict=True)
        if isinstance(row, LogRow)
    ]


def _changes(
    number: int, which: slice, values: Sequence[tuple[MetricScores, Sequence[Numbers]]]
) -> list[VariantChange]:
    """The change of each metric from the first variant, over some questions."""
    return [
        change
        for scores, by_variant in values
        if number
        for change in [_change(scores, by_variant[0][which], by_variant[number][which])]
    ]


def _change(scores: MetricScores, before: Numbers, after: Numbers) -> VariantChange:
    both = ~np.isnan(before) & ~np.isnan(after)
    drop = compare_aligned(before[both], after[both]) if both.sum() > 1 else None
    return VariantChange(
        metric=scores.metric,
        questions=int(both.sum()),
        difference=-drop.drop if drop else None,
        low=-drop.high if drop else None,
        high=-drop.low if drop else None,
        higher_is_better=scores.higher_is_better,
    )

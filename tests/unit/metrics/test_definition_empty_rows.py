"""Rows that lack what a bundled metric is about: the score says so, and nothing is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ragmetrics.metrics import Metric, bundled_metrics
from ragmetrics.records import LogRow, Score, Status

ROW = LogRow(
    "row-1",
    "When was it opened?",
    ("It was opened in 1889.",),
    response="It was opened in 1889.",
    reference="It was opened in May 1889.",
)
NO_TEXT = (None, "", " \n")
LACKING = [
    (
        "user_input",
        ("", " ", "\t\n"),
        "empty question",
        "context_precision context_precision_with_reference context_precision_without_reference "
        "context_relevance context_relevancy context_relevancy_chunks response_relevancy",
    ),
    ("user_input", (" ",), "empty question", "ragas_response_relevancy"),
    (
        "reference",
        NO_TEXT,
        "no reference answer",
        "context_entity_recall context_precision_with_reference context_recall "
        "ragas_context_recall noise_sensitivity",
    ),
    ("reference", ("...",), "no reference answer", "noise_sensitivity"),
    (
        "response",
        NO_TEXT,
        "no response",
        "context_precision_without_reference faithfulness noise_sensitivity response_relevancy "
        "ragas_response_relevancy",
    ),
    ("response", ("?!",), "no statement in the response", "noise_sensitivity"),
    ("retrieved_contexts", ((), (" ", "")), "nothing retrieved", "noise_sensitivity"),
]
"""A field, what is in it, and the reason why these metrics are not applicable."""
ZERO = [
    (
        "nothing retrieved",
        ((),),
        "context_precision context_precision_with_reference context_precision_without_reference "
        "context_relevance",
    ),
    ("nothing retrieved", ((), ("",), (" ", "\n")), "context_entity_recall context_recall"),
    ("nothing retrieved supports it", ((), ("",), (" ", "\n")), "faithfulness"),
    (
        "no sentence retrieved",
        ((), ("",), (" ", "\n")),
        "context_relevancy context_relevancy_chunks",
    ),
]
"""The reason of a zero, and contexts for which these metrics have it."""


def at_once(metric: Metric, **fields: Any) -> Score:
    """The score of the row with other fields, for which nothing may be asked."""
    with pytest.raises(StopIteration) as stop:
        next(metric.play(replace(ROW, **fields)))
    score: Score = stop.value.value
    return score


@pytest.mark.parametrize(
    ("name", "field", "value", "reason"),
    [
        (name, field, value, reason)
        for field, values, reason, names in LACKING
        for name in names.split()
        for value in values
    ],
)
def test_a_row_that_lacks_what_is_judged_is_not_applicable(
    name: str, field: str, value: Any, reason: str
) -> None:
    """It has no value, which is no bad value."""
    expected = Score(None, reason, status=Status.NOT_APPLICABLE)
    assert at_once(bundled_metrics()[name], **{field: value}) == expected


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("context_entity_recall", "reference"),
        ("context_precision_with_reference", "reference"),
        ("context_precision_without_reference", "response"),
        ("context_recall", "reference"),
    ],
)
@pytest.mark.parametrize("value", NO_TEXT)
def test_what_the_row_lacks_comes_before_what_the_retriever_lacks(
    name: str, field: str, value: str | None
) -> None:
    """A row that cannot be judged is not applicable, also where nothing was retrieved."""
    score = at_once(bundled_metrics()[name], **{field: value}, retrieved_contexts=())
    assert score.status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("name", "contexts", "reason"),
    [
        (name, contexts, reason)
        for reason, several, names in ZERO
        for name in names.split()
        for contexts in several
    ],
)
def test_nothing_retrieved_is_zero(name: str, contexts: tuple[str, ...], reason: str) -> None:
    """It is the worst retrieval there is, and costs nothing."""
    assert at_once(bundled_metrics()[name], retrieved_contexts=contexts) == Score(0.0, reason)


@pytest.mark.parametrize(
    "name",
    [
        "context_precision",
        "context_precision_with_reference",
        "context_precision_without_reference",
        "context_relevance",
    ],
)
def test_only_blank_contexts_are_zero(name: str) -> None:
    """Where every context is blank there is nothing to ask."""
    score = at_once(bundled_metrics()[name], retrieved_contexts=("", " "))
    assert (score.value, score.status) == (0.0, Status.SCORED)

"""Whatever questions, answers and templates hold: values stay values, and rows stay rows."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from ragmetrics.config import RetrieverSettings
from ragmetrics.records import LogRow, read_row
from ragmetrics.retriever.questions import NoAnswer, Question, line_of, read_answer
from ragmetrics.retriever.templates import fill, fill_body, fill_params

TEXT = st.text(st.characters(codec="utf-8")) | st.sampled_from(
    [
        "{build}",
        "{user_input}",
        "{{id}}",
        '"}',
        "\\",
        "\x00",
        "\r\n",
        "\u2028",
        "{",
        "%s",
        "$1",
        r"\1",
    ]
)
TEMPLATE_TEXT = st.lists(TEXT | st.sampled_from(["{language}", "{id}", "{user_input}"])).map(
    "".join
)
TEMPLATE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEMPLATE_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["hits", "text", "id", "score", "retrieved_contexts"]), inner
        )
    ),
    max_leaves=12,
)
MOMENT = datetime(2026, 11, 19, tzinfo=UTC)


def values(user_input: str, row_id: str = "7") -> dict[str, str]:
    """What a template is filled in with."""
    return {"user_input": user_input, "build": "b1", "id": row_id, "language": "de"}


def same_shape(one: Any, other: Any) -> bool:
    """Whether two JSON values differ in their texts alone, and not in their keys."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and list(one) == list(other)
            and all(same_shape(one[key], other[key]) for key in one)
        )
    if isinstance(one, list):
        return (
            isinstance(other, list) and len(one) == len(other) and all(map(same_shape, one, other))
        )
    return isinstance(other, str) if isinstance(one, str) else one == other


@given(TEMPLATE, TEXT)
def test_a_question_never_changes_the_shape_of_a_body(template: Any, question: str) -> None:
    """What is sent is JSON with the template's keys, lists, numbers and nulls."""
    sent = fill_body(template, values(question))
    if template is None:
        assert sent is None
    else:
        assert sent is not None
        assert same_shape(template, json.loads(sent))


@given(TEXT)
@example("{build}{id}{language}{user_input}")
def test_a_question_arrives_as_it_is(question: str) -> None:
    """Braces and quotes in it are its own: nothing in it is filled in."""
    sent = fill_body({"a": ["{user_input}"], "b": "<{user_input}|{build}>"}, values(question))
    assert sent is not None
    assert json.loads(sent) == {"a": [question], "b": f"<{question}|b1>"}
    assert fill_params({"q": "{user_input}", "on": True, "k": [1, 2.5]}, values(question)) == [
        ("q", question),
        ("on", "true"),
        ("k", "1"),
        ("k", "2.5"),
    ]


@given(TEMPLATE_TEXT, TEXT, TEXT)
def test_each_hole_is_filled_in_once(template: str, question: str, row_id: str) -> None:
    """From left to right, as if nothing else were there."""
    filled = fill(template, values(question, row_id))
    pieces = RetrieverSettings.placeholder.split(template)
    pieces[1::2] = [values(question, row_id)[name] for name in pieces[1::2]]
    assert filled == "".join(pieces)


@given(JSON, st.sampled_from([None, ".", "hits", "hits.text", "hits.0.text"]), TEXT)
def test_any_answer_is_a_row_or_no_answer(answer: Any, path: str | None, question: str) -> None:
    """Never another error; and the line of a row is read as that row."""
    settings = RetrieverSettings(url="http://localhost/", contexts=path)
    asked = Question("q1", question, "en", {"a": question})
    try:
        row = read_answer(settings, asked, "b1", answer, MOMENT)
        line = line_of(row, 10_000)
    except NoAnswer as error:
        assert error.kind in ("unreadable", "too_large")
        assert str(error)
        return
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert read_row(json.loads(line), "other") == row
    assert row.user_input == question
    assert all(math.isfinite(score) for score in row.retrieved_context_scores or ())


@pytest.mark.parametrize("score", [math.nan, math.inf, "NaN", np.float32("nan")])
def test_a_score_that_is_not_finite_is_no_answer(score: Any) -> None:
    """A replay, a what-if and a night would each read another row from it."""
    asked = Question("q1", "Who?", "en", {})
    with pytest.raises(NoAnswer, match=r"retrieved_context_scores\.1: should be a finite number"):
        read_answer(
            RetrieverSettings(url="http://localhost/"),
            asked,
            "b1",
            [{"text": "x", "score": 1.0}, {"text": "y", "score": score}],
            MOMENT,
        )


@given(st.lists(TEXT), TEXT)
def test_texts_come_back_in_their_order(texts: list[str], question: str) -> None:
    """Rank order is the order of the answer."""
    settings = RetrieverSettings(url="http://localhost/", contexts="hits.text")
    hits = [{"text": text} for text in texts]
    asked = Question("q1", question, "en", {})
    row = read_answer(settings, asked, "b1", {"hits": hits}, MOMENT)
    read = read_row(json.loads(line_of(row, 1_000_000)), "other")
    assert isinstance(read, LogRow)
    assert read.retrieved_contexts == tuple(texts)

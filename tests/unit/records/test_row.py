"""Rows: what a logged retrieval may look like, and the reason a person gets when it does not."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.records import FIELDS, MAX_CONTEXTS, BadRow, LogRow, question_key, read_row

RAGAS = {
    "user_input": "Where is the Eiffel Tower?",
    "retrieved_contexts": ["The Eiffel Tower is in Paris.", "Paris is in France."],
    "response": "In Paris.",
    "reference": "The Eiffel Tower is in Paris.",
    "rubrics": {"score1": "bad"},
}

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=15,
)
ALMOST_ROWS = st.fixed_dictionaries(
    {"user_input": st.text() | JSON, "retrieved_contexts": st.lists(st.text()) | JSON},
    optional={name: JSON for name in FIELDS if name not in ("user_input", "retrieved_contexts")},
)


def row(**fields: Any) -> LogRow:
    """A small good row with some fields set."""
    return read_row({"user_input": "q", "retrieved_contexts": ["c"], **fields}, "log.jsonl:1")


def reason(**fields: Any) -> str:
    """Why such a row goes to quarantine."""
    with pytest.raises(BadRow) as error:
        row(**fields)
    return str(error.value)


def test_a_ragas_row_reads_as_it_is() -> None:
    """ragas's names are ours, a column we do not know is ignored, and no id is needed."""
    assert read_row(RAGAS, "log.jsonl:7") == LogRow(
        id="log.jsonl:7",
        user_input="Where is the Eiffel Tower?",
        retrieved_contexts=("The Eiffel Tower is in Paris.", "Paris is in France."),
        response="In Paris.",
        reference="The Eiffel Tower is in Paris.",
    )


def test_rows_do_not_change() -> None:
    """A row is frozen: what was logged stays as it was logged."""
    with pytest.raises(FrozenInstanceError):
        row().id = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", [name for name in FIELDS if name not in ("id", "tags")])
def test_nan_is_a_missing_value(name: str) -> None:
    """What pandas writes for a missing value is no value, whatever the field."""
    data = {"user_input": "q", "retrieved_contexts": ["c"], name: math.nan}
    if name in ("user_input", "retrieved_contexts"):
        with pytest.raises(BadRow, match=f"{name}: (no question|not there)"):
            read_row(data, "x:1")
    else:
        assert getattr(read_row(data, "x:1"), name) is None


@pytest.mark.parametrize("missing", [None, "", math.nan])
def test_a_row_without_an_id_is_named_by_its_place(missing: object) -> None:
    """No id, an empty one or NaN: the row is called by file and line."""
    assert row(id=missing).id == "log.jsonl:1"


def test_ids_may_be_integers() -> None:
    """Documents and builds numbered by an exporter become texts."""
    read = row(id=7, retrieved_context_ids=[1, "b"], reference_context_ids=[2], index_build=42)
    assert (read.id, read.index_build) == ("7", "42")
    assert (read.retrieved_context_ids, read.reference_context_ids) == (("1", "b"), ("2",))


def test_ids_may_be_whole_floats() -> None:
    """What pandas makes of a column of integers with gaps; exact however large."""
    read = row(id=7.0, retrieved_context_ids=[1.0, 2.0**60], index_build=-0.0)
    assert (read.id, read.index_build) == ("7", "0")
    assert read.retrieved_context_ids == ("1", "1152921504606846976")
    assert row(id=7.0).id == row(id=7).id


def test_a_time_without_a_zone_is_utc() -> None:
    """So that times of one log can be compared."""
    assert row(timestamp="2026-11-19T02:00:00").timestamp == datetime(2026, 11, 19, 2, tzinfo=UTC)


def test_a_time_with_a_zone_is_the_same_instant() -> None:
    """Two o'clock in Helsinki is midnight UTC."""
    read = row(timestamp="2026-11-19T02:00:00+02:00").timestamp
    assert read == datetime(2026, 11, 19, tzinfo=UTC)
    assert isinstance(read, datetime)
    assert read.utcoffset() in (timedelta(0), timedelta(hours=2))


def test_a_blank_time_is_no_time() -> None:
    """As CSV exports have it."""
    assert row(timestamp=" ").timestamp is None


@pytest.mark.parametrize("text", ["2026-11-19 02:00:00+00", "2026-11-19 02:00:00.0 UTC"])
def test_times_of_databases_are_read(text: str) -> None:
    """Postgres writes the hours of a zone only, BigQuery its name."""
    assert row(timestamp=text).timestamp == datetime(2026, 11, 19, 2, tzinfo=UTC)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_the_calendar_is_rejected(time: str) -> None:
    """It could be written, but never be read again."""
    assert reason(timestamp=time).startswith("timestamp: ")


def test_tags_take_numbers_and_booleans_and_drop_nulls() -> None:
    """Tag values become text, as they are shown; a tag without a value is not there."""
    tags = {"channel": "web", "tier": 2, "beta": True, "score": 0.5, "none": None}
    expected = {"channel": "web", "tier": "2", "beta": "True", "score": "0.5"}
    assert row(tags=tags).tags == expected
    assert row(tags=None).tags == {}


def test_a_conversation_is_rejected_with_a_reason() -> None:
    """ragas's multi-turn samples have a list of messages where a question should be."""
    messages = [{"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}]
    assert reason(user_input=messages) == "user_input: should be a valid string"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"user_input": None}, "user_input: no question"),
        ({"user_input": 3}, "user_input: should be a valid string"),
        ({"retrieved_contexts": "one text"}, "retrieved_contexts: "),
        ({"retrieved_contexts": None}, "retrieved_contexts: "),
        ({"retrieved_contexts": ["a", None]}, "retrieved_contexts.1: should be a valid string"),
        ({"retrieved_contexts": [{"text": "a"}]}, "retrieved_contexts.0: should be a valid string"),
        ({"retrieved_context_scores": ["high"]}, "retrieved_context_scores.0: "),
        ({"timestamp": "yesterday"}, "timestamp: "),
        ({"tags": ["web"]}, "tags: "),
        ({"tags": {"a": ["b"]}}, "tags.a: should be a valid string"),
        ({"id": True}, "id: should be a valid string"),
        ({"id": 1.5}, "id: should be a valid string"),
        ({"id": math.inf}, "id: should be a valid string"),
        ({"retrieved_context_ids": [1.0, math.nan]}, "retrieved_context_ids.1: should be a valid"),
        (
            {"response": ["a"], "reference": ["b"]},
            "response: should be a valid string (and 1 more)",
        ),
    ],
)
def test_the_reason_names_the_field(fields: dict[str, Any], expected: str) -> None:
    """A reason begins with the field and says what is wrong with it in one line."""
    told = reason(**fields)
    assert told.startswith(expected)
    assert "\n" not in told


@pytest.mark.parametrize(
    ("data", "kind"),
    [([1], "a list"), ("text", "a text"), (3, "a number"), (None, "null"), (True, "bool")],
)
def test_what_is_no_object_is_rejected_by_kind(data: object, kind: str) -> None:
    """A line of JSON that is no object says what it is."""
    with pytest.raises(BadRow, match=f"not an object but {kind}"):
        read_row(data, "x:1")


def test_a_row_with_too_many_contexts_is_rejected() -> None:
    """One row must not hurt the night."""
    assert row(retrieved_contexts=["c"] * MAX_CONTEXTS)
    assert reason(retrieved_contexts=["c"] * (MAX_CONTEXTS + 1)) == (
        "retrieved_contexts: 1,001 contexts in one row"
    )


def test_nothing_retrieved_is_a_good_row() -> None:
    """That nothing was found is what the metrics are there to tell."""
    assert row(retrieved_contexts=[]).retrieved_contexts == ()


@settings(deadline=None)
@given(JSON | ALMOST_ROWS)
def test_any_json_is_a_row_or_a_reason(data: object) -> None:
    """Whatever a line holds, it is a row or a BadRow that says why: never another exception."""
    try:
        assert isinstance(read_row(data, "x:1"), LogRow)
    except BadRow as error:
        assert str(error)


@pytest.mark.parametrize("other", ["What is it?", "  what is it? ", "WHAT  IS\nIT?"])
def test_equal_questions_have_equal_keys(other: str) -> None:
    """Case and white space do not make another question."""
    assert question_key(other) == question_key("What is it?")
    assert len(question_key(other)) == 8


def test_other_questions_have_other_keys() -> None:
    """A different word is a different question."""
    assert question_key("What is it?") != question_key("What was it?")

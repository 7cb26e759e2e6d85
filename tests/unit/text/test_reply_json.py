"""Verdicts in replies as models write them: thoughts, prose, fences, braces, refusals."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from ragmetrics.errors import UnreadableReply
from ragmetrics.records import Prompt
from ragmetrics.text import is_refusal, json_objects


class Grade(BaseModel):
    grade: int


PROMPT = Prompt("grade", 1, Grade, "Grade it.")


@pytest.mark.parametrize(
    "text",
    [
        '{"grade": 2}',
        '```json\n{"grade": 2}\n```',
        'Sure! {"grade": 2} Hope this helps {smile}.',
        '{{"grade": 2}}',
        '{ {"grade": 2} }',
        '<think>Perhaps {"grade": 0}? No.</think>{"grade": 2}',
        '<think>\n{"grade": 0}\n</think>\n\n```\n{"grade": 2}\n```',
        'Perhaps {"grade": 0}.</think> {"grade": 2}',
        '<thinking>a set {x | x > 1}</thinking>{"grade": 2}',
        'First {"grade": 0}, then I saw more: {"grade": 2}',
        'With f(x) = {x} and "quotes {": {"grade": 2}',
        '{"grade": 2}\n{"confidence": "high"}',
        '{"grade": 2, "note": "a {brace} and a </think> in a string"}',
    ],
)
def test_the_last_object_that_validates_is_the_verdict(text: str) -> None:
    """Whatever stands around it."""
    assert PROMPT.parse(text, {}).grade == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"grade": 2, "grade": 0}',
        '{"grade": 1} and {"grade": 2, "grade": 2}',
        '{"grade": 2, "more": {"a": 1, "a": 2}}',
    ],
)
def test_a_key_that_occurs_twice_is_unreadable(text: str) -> None:
    """Nobody knows which value is meant, so no other object is taken in its place."""
    with pytest.raises(UnreadableReply, match="occurs twice"):
        PROMPT.parse(text, {})


@pytest.mark.parametrize(
    "text",
    ['<think>{"grade": 2}', "", "{", '{"grade": NaN}', '{"grade": 1e999}', '{"grade": "two"}'],
)
def test_what_holds_no_verdict_is_unreadable(text: str) -> None:
    """Thoughts without an end are drafts, and numbers that JSON has not are none."""
    with pytest.raises(UnreadableReply, match="grade: "):
        PROMPT.parse(text, {})


@pytest.mark.parametrize(
    "text",
    [
        "{" * 500_000,
        '{"a":' * 200_000,
        '{"a":[' * 100_000 + "1",
        '{"' * 300_000,
        '{"a":x' * 200_000,
        '{"a":"' * 200_000,
    ],
)
def test_the_search_for_an_object_is_bounded(text: str) -> None:
    """Megabytes of open braces are read a bounded number of times, and are no verdict."""
    assert json_objects(text) == []


@given(
    st.dictionaries(st.text(max_size=30), st.integers() | st.text(max_size=30)),
    st.text(alphabet="ab \n.`#", max_size=9),
)
def test_any_object_is_found_as_it_is_written(value: dict[str, object], around: str) -> None:
    """Of an object in prose, all of it and nothing else."""
    text = json.dumps(value)
    assert json_objects(f"{around}{text}{around}") == [text]


@pytest.mark.parametrize(
    "text",
    [
        "I can't help with that.",
        "I’m sorry, but I can’t assist with that request.",
        "I cannot provide an evaluation of this content.",
        "Sorry, I am unable to judge this passage.",
        "<think>This is about weapons.</think>I won't answer this.",
    ],
)
def test_a_refusal_is_known_by_its_words(text: str) -> None:
    """As models put it."""
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    ["", "grade: two", "The context does not help.", "I think the grade is 2.", "x" * 10_000],
)
def test_other_words_are_no_refusal(text: str) -> None:
    """They are unreadable, and asked again as often as is usual."""
    assert not is_refusal(text)

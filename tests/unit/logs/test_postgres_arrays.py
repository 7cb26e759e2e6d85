"""Arrays as Postgres writes them in a text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.logs.postgres_arrays import read_array

_TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=4)


def written(texts: list[str]) -> str:
    """An array with every item in quotes."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("{}", []),
        ("{a,b c}", ["a", "b c"]),
        ('{"a, b","say \\"no\\"",NULL,"NULL",""}', ["a, b", 'say "no"', None, "NULL", ""]),
        (' { a , "b" } ', ["a", "b"]),
        ("{{a,b},{c}}", [["a", "b"], ["c"]]),
    ],
)
def test_arrays_are_read(text: str, items: list[Any]) -> None:
    """Quoted or not, with escapes, without a value, and within each other."""
    assert read_array(text) == items


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "{",
        "}",
        "{a",
        "{a,}",
        "{,a}",
        "{a}b",
        "{a}{b}",
        '{"a}',
        '{"a" "b"}',
        "{a},",
        "{{a}",
    ],
)
def test_another_text_is_an_error(text: str) -> None:
    """No text is half read."""
    with pytest.raises(ValueError, match="no array of Postgres"):
        read_array(text)


def test_an_array_is_as_deep_as_in_postgres() -> None:
    """A text of brackets builds no list that nothing else can walk."""
    assert read_array("{" * 6 + "}" * 6) == [[[[[[]]]]]]
    with pytest.raises(ValueError, match="no array of Postgres"):
        read_array("{" * 100_000 + "}" * 100_000)


@given(texts=_TEXTS)
def test_what_postgres_writes_is_read(texts: list[str]) -> None:
    """Any texts in quotes."""
    assert read_array(written(texts)) == texts


@given(text=st.text(st.sampled_from('{}",\\ aN')))
def test_any_text_is_an_array_or_an_error(text: str) -> None:
    """Nothing else is raised."""
    try:
        items = read_array(text)
    except ValueError:
        return
    assert isinstance(items, list)

"""`.json` logs: arrays, envelopes, single objects and lines, read item by item."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.logs import LogSet, find_logs
from ragmetrics.logs.formats import Reading, read_records
from ragmetrics.logs.json_items import split
from ragmetrics.records import LogRow, Rejected

ROWS: list[dict[str, Any]] = [
    {"id": "a", "user_input": "q", "retrieved_contexts": ["one", "two"]},
    {"id": "b", "user_input": "größer?", "retrieved_contexts": [], "retrieved_context_scores": []},
]


def read(path: Path, **how: Any) -> list[LogRow | Rejected]:
    """All that a file gives."""
    return list(LogSet(*find_logs(str(path)), **how).read())


def ids(path: Path) -> list[str]:
    """The names of the rows of a file that is well."""
    return [item.id for item in read(path) if isinstance(item, LogRow)]


LINES = "\n".join(json.dumps(row) for row in ROWS)
WHOLE = {
    "array": json.dumps(ROWS),
    "pretty array": json.dumps(ROWS, indent=2),
    "envelope": json.dumps({"meta": {"page": 1}, "data": ROWS}),
    "pretty envelope": json.dumps({"runs": ROWS, "next_cursor": None}, indent=2),
    "lines": LINES,
    "lines after a blank one": "\n" + LINES + "\n",
    "pretty objects": "\n".join(json.dumps(row, indent=2) for row in ROWS),
}


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_form_gives_the_same_rows(tmp_path: Path, form: str, mark: str) -> None:
    """Packed or not, and with a byte order mark."""
    (tmp_path / "a.json").write_text(mark + WHOLE[form], encoding="utf-8")
    (tmp_path / "b.json.gz").write_bytes(gzip.compress((mark + WHOLE[form]).encode()))
    assert ids(tmp_path) == ["a", "b"] * 2


def test_a_single_object_is_a_row(tmp_path: Path) -> None:
    """Pretty printed or on one line; an empty file is none."""
    for name, indent in (("a.json", 2), ("b.json", None)):
        (tmp_path / name).write_text(json.dumps(ROWS[0], indent=indent))
    (tmp_path / "c.json").write_text(" \n")
    assert ids(tmp_path) == ["a", "a"]


@pytest.mark.parametrize("form", ["array", "pretty array", "envelope"])
def test_a_cut_file_gives_what_stands_before_the_cut(tmp_path: Path, form: str) -> None:
    """Then it is told as broken, once, with the row after which it broke."""
    (tmp_path / "a.json").write_text(WHOLE[form][:-30])
    row, broken = read(tmp_path / "a.json")
    assert isinstance(row, LogRow)
    assert isinstance(broken, Rejected)
    assert (row.id, broken.whole_file, broken.line) == ("a", True, 2)
    assert broken.reason.endswith("after row 1: the JSON is not closed")


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (json.dumps("x" * 3_000), "too large: 3,003 bytes, 2,000 allowed"),
        ("[" * 300 + "]" * 300, "not JSON: recursion limit exceeded at line 1 column 203"),
        ("9" * 1_500 + "9" * 400, "not an object but a number"),
        ("{'a': 1}", "not JSON: key must be a string at line 1 column 3"),
        ("NaN", "not an object but a number"),
        ("7", "not an object but a number"),
        ("null", "not an object but null"),
    ],
)
def test_a_bad_item_does_not_spoil_the_others(tmp_path: Path, item: str, reason: str) -> None:
    """It is in quarantine by its number; what is too large is never held in memory."""
    text = json.dumps(ROWS[0])
    (tmp_path / "a.json").write_text(f"[{text}, {item}, {text}]")
    first, bad, last = read(tmp_path / "a.json", row_bytes=2_000)
    assert isinstance(first, LogRow)
    assert isinstance(last, LogRow)
    assert isinstance(bad, Rejected)
    assert (bad.line, bad.reason) == (2, reason)


def test_sizes_are_those_of_the_items(tmp_path: Path) -> None:
    """The limit holds for an item, however long the list or what stands around it."""
    (tmp_path / "a.json").write_text(json.dumps({"meta": "x" * 500, "data": ROWS * 9}))
    items = read(tmp_path / "a.json", row_bytes=120)
    assert len(items) == 18
    assert not any(isinstance(item, Rejected) for item in items)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(JSON, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_items_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any], indent: int | None, wrapped: bool
) -> None:
    """Any array, alone or in an envelope whose other keys are not the data's."""
    path = tmp_path_factory.mktemp("json") / "a.json"
    whole: Mapping[str, Any] | list[Any] = {"data": items, "meta": [1]} if wrapped else items
    path.write_text(json.dumps(whole, indent=indent), encoding="utf-8")
    reading = Reading((), row_bytes=10_000)
    with path.open("rb") as file:
        assert [item for _, item in read_records("a.json", file, reading)] == items


@given(st.lists(JSON.filter(lambda item: item is not None), max_size=4), st.integers(1, 7))
def test_items_do_not_depend_on_where_chunks_are_cut(items: list[Any], width: int) -> None:
    """In the midst of a string, between a backslash and its sign, anywhere."""
    data = json.dumps(items).encode()
    chunks = [data[start : start + width] for start in range(0, len(data), width)]
    assert [json.loads(item) for item, _ in split(chunks, 10_000)] == items


@given(st.binary(max_size=60))
def test_any_bytes_are_read_without_error(data: bytes) -> None:
    """What is no JSON gives items that are bad, or one EOFError."""
    with suppress(EOFError):
        for item, size in split([data], 1_000):
            assert item.strip()
            assert size == len(item)

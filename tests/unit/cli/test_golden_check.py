"""`ragmetrics golden check` on golden sets that cannot be read, or that measure nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fakes.command import Run

PASSAGE = "Tower 1 is 101 metres high."
QUESTION: dict[str, Any] = {
    "id": "q1",
    "user_input": "What is the height of tower 1?",
    "reference": "101 metres",
    "reference_context_ids": ["d1"],
    "reference_contexts": [PASSAGE],
}
LINE = f"{json.dumps(QUESTION)}\n"


def line(**changes: Any) -> str:
    """The question with some fields changed."""
    return f"{json.dumps({**QUESTION, **changes})}\n"


NOTHING_READ: dict[str, tuple[str | bytes, str]] = {
    "empty.jsonl": ("", "there is no row in it"),
    "blank.jsonl": ("\n \n", "there is no row in it"),
    "array.json": ("[]", "there is no row in it"),
    "header.csv": ("user_input,reference\n", "there is no row in it"),
    "text.jsonl": ("hello\nworld\n", "not JSON"),
    "number.jsonl": ("1\n2\n", "not an object but a number"),
    "binary.jsonl": (bytes(range(256)) * 10, "not JSON"),
    "latin.jsonl": (LINE.encode().replace(b"height", b"h\xf6he"), "not UTF-8"),
    "utf16.jsonl": (LINE.encode("utf-16"), "UTF-16"),
    "deep.jsonl": ("[" * 5000 + "]" * 5000 + "\n", "recursion"),
    "unasked.jsonl": (line(user_input=None), "user_input: no question"),
    "numbered.jsonl": (line(user_input=17), "user_input: should be a valid string"),
    "others.jsonl": ('{"foo": 1}\n', "user_input: no question"),
    "object.json": ("{}", "user_input: no question"),
    "columns.csv": ("a,b\n1,2\n", "user_input: no question"),
    "huge.jsonl": (line(reference="x" * 10_000_000), "too large"),
    "cut.jsonl.gz": (gzip.compress(LINE.encode() * 500)[:-20], "truncated or damaged"),
    "empty.jsonl.gz": (b"", "truncated or damaged"),
    "text.jsonl.gz": (LINE, "truncated or damaged"),
    "cut.jsonl.zst": (b"\x28\xb5\x2f\xfd\x00", "truncated or damaged"),
    "text.parquet": (LINE, "truncated or damaged"),
    "cut.json": ("[" + LINE, "the JSON is not closed"),
    "quote.csv": ('user_input,reference\n"open quote,x\n', "ends inside quotes"),
    "log.txt": (LINE, "not a log"),
}
PARTLY_READ: dict[str, tuple[str, str]] = {
    "half.jsonl": (LINE + "{broken\n", "1 row: not JSON"),
    "labels.jsonl": (line(reference_context_ids={"a": [1]}), "1 row: reference_context_ids: "),
    "dates.jsonl": (line(since="yesterday"), "1 row: since: should be a date"),
    "unlabelled.jsonl": ('{"user_input": "Who?", "expected": ["d1"]}\n', "without reference"),
    "retired.jsonl": (line(until="2020-01-01"), "not in use on this night"),
}


@pytest.fixture
def check(tmp_path: Path, run: Run) -> Any:
    """Checks a golden set against a list of passages; returns what the command did."""

    def checked(name: str, content: str | bytes | None = None) -> Any:
        if content is not None:
            (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        passages = tmp_path / "passages.jsonl"
        passages.write_text(json.dumps({"id": "d1", "text": PASSAGE}))
        settings = tmp_path / "ragmetrics.yaml"
        settings.write_text(json.dumps({"golden": str(tmp_path / name), "store": str(tmp_path)}))
        return run("golden", "check", "--settings", str(settings), "--passages", str(passages))

    return checked


@pytest.mark.parametrize("name", NOTHING_READ)
def test_a_golden_set_that_cannot_be_read_is_wrong_input(check: Any, name: str) -> None:
    """Exit code 2, and the reason."""
    content, reason = NOTHING_READ[name]
    ended = check(name, content)
    assert ended.code == 2
    assert reason in " ".join(ended.err.split())


@pytest.mark.parametrize("name", PARTLY_READ)
def test_what_a_golden_set_lacks_is_named(check: Any, name: str) -> None:
    """Rows, fields, labels, or questions for this night: exit code 1, and the reason."""
    content, reason = PARTLY_READ[name]
    ended = check(name, content)
    assert ended.code == 1
    assert reason in " ".join(ended.out.split())


@pytest.mark.parametrize("table", [{"a": [1]}, {"user_input": pa.array([], pa.string())}])
def test_a_table_without_questions_is_wrong_input(
    check: Any, tmp_path: Path, table: dict[str, Any]
) -> None:
    """Of Parquet: other columns, or no row."""
    pq.write_table(pa.table(table), tmp_path / "golden.parquet")
    ended = check("golden.parquet")
    assert ended.code == 2
    assert "no question can be read" in " ".join(ended.err.split())


def test_a_sound_golden_set_has_exit_code_0(check: Any) -> None:
    """Its one label is among the passages."""
    assert check("golden.jsonl", LINE).code == 0

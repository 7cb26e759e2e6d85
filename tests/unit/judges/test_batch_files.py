"""Lines of batches: what is written can be read back, and what is read breaks nothing."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_files import (
    Fault,
    FaultAction,
    fault,
    input_line,
    read_outputs,
    write_inputs,
)

TEXTS = st.text(st.characters())  # surrogates and control characters among them


@given(
    texts=st.lists(TEXTS, max_size=20),
    most_requests=st.integers(1, 6),
    most_bytes=st.integers(120, 400),
)
def test_every_request_is_in_one_file_as_it_was(
    texts: list[str], most_requests: int, most_bytes: int
) -> None:
    """In order, once, unchanged, within both limits; only what no file can hold is left out."""
    bodies: list[tuple[str, Any]] = [
        (f"id-{n}", partial(dict, content=text)) for n, text in enumerate(texts)
    ]
    with tempfile.TemporaryDirectory() as folder:
        files, too_long = write_inputs(
            bodies, Path(folder), most_requests=most_requests, most_bytes=most_bytes
        )
        found = []
        for file in files:
            data = file.path.read_bytes()
            lines = [json.loads(line) for line in data.splitlines()]
            assert 0 < len(lines) <= most_requests
            assert len(data) <= most_bytes
            assert [line["custom_id"] for line in lines] == file.ids
            found += lines
    lengths = {name: len(input_line(name, body())) for name, body in bodies}
    assert too_long == [name for name, length in lengths.items() if length > most_bytes]
    kept = [(name, body()) for name, body in bodies if name not in too_long]
    assert [(line["custom_id"], line["body"]) for line in found] == kept


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
LINES = st.fixed_dictionaries(
    {"custom_id": st.text()}, optional={"response": JSON, "error": JSON, "id": JSON}
)


@given(st.lists(st.binary() | LINES.map(lambda line: json.dumps(line).encode()), max_size=8))
def test_lines_of_any_kind_are_read_or_passed_over(lines: list[bytes]) -> None:
    """A broken line costs its own request at most: the good line after it is read."""
    body = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    good = {"custom_id": "good\u2028", "response": {"status_code": 200, "body": body}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "output.jsonl"
        path.write_bytes(b"\n".join([*lines, json.dumps(good).encode()]) + b"\n")
        found = read_outputs(path)
    reply = found["good\u2028"]
    assert isinstance(reply, Reply)
    assert reply.text == "yes"


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"custom_id": "a", "response": {"status_code": Infinity}}',
        '{"custom_id": "a", "response": {"status_code": 200, "body": {"choices": []}, "x": 1e999}}',
    ],
)
def test_hostile_numbers_and_depths_are_passed_over(tmp_path: Path, line: str) -> None:
    """What Python's own parser trips over is a line that cannot be read, or a reply of no text."""
    path = tmp_path / "output.jsonl"
    path.write_text(line)
    assert not any(reply.text for reply in read_outputs(path).values() if isinstance(reply, Reply))


@pytest.mark.parametrize("order", [1, -1])
def test_an_error_takes_away_no_reply(tmp_path: Path, order: int) -> None:
    """A request that has a reply and an error line is answered, whichever comes first."""
    body = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    lines = [
        {"custom_id": "a", "response": {"status_code": 200, "body": body}},
        {"custom_id": "a", "response": {"status_code": 500, "body": {}}},
    ]
    path = tmp_path / "output.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[::order]))
    reply = read_outputs(path)["a"]
    assert isinstance(reply, Reply)
    assert reply.text == "yes"


@pytest.mark.parametrize(
    ("status", "code", "kind", "then"),
    [
        (0, "batch_expired", "expired", FaultAction.ASK_AGAIN),
        (0, "batch_cancelled", "cancelled", FaultAction.ASK_AGAIN),
        (0, "request_timeout", "timeout", FaultAction.ASK_AGAIN),
        (429, "rate_limit_exceeded", "rate_limited", FaultAction.ASK_AGAIN),
        (429, "insufficient_quota", "refused", FaultAction.REFUSE),
        (401, "invalid_api_key", "refused", FaultAction.REFUSE),
        (404, "model_not_found", "refused", FaultAction.REFUSE),
        (503, "", "server_error", FaultAction.ASK_AGAIN),
        (400, "context_length_exceeded", "refused", FaultAction.GIVE_UP),
    ],
)
def test_what_follows_from_an_error_line(
    status: int, code: str, kind: str, then: FaultAction
) -> None:
    """What passes is asked again; what hits every request ends the run; the rest is given up."""
    found = fault(status, {"code": code, "message": "so\nit is"})
    assert (found.kind, found.then) == (kind, then)
    assert "so it is" in found.message
    assert isinstance(found, Fault)

"""Answers that unpack to gigabytes, or never end: memory stays bounded, and the run goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.odd_judge import Said, bomb, odd_judge

KINDS = ("gzip", "endless", "endless error")
MOST = 120 << 10  # kB beyond what importing takes: of the bombs, a third


@cache
def answer(kind: str) -> Said:
    """300 kB that unpack to 300 MB, or what never ends."""
    if kind == "gzip":
        return Said(bomb(300 << 20), headers={"Content-Encoding": "gzip"})
    if kind == "endless":
        return Said(endless=b" " * 65_536)
    return Said(status=400, endless=b"x" * 65_536)


def asked_of(kind: str, url: str, **more: Any) -> dict[str, Any]:
    """What a process of its own says of one request, and the memory it took."""
    command = [sys.executable, "-m", "tests.fakes.one_request", kind, url, json.dumps(more)]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    said: dict[str, Any] = json.loads(ended.stdout)
    return said


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
def test_a_judges_answer_is_read_to_its_bound(kind: str) -> None:
    """Its row has a status with the reason, and it is not asked for again."""
    with odd_judge(lambda path, _: answer(kind)) as (url, asked):
        told = asked_of("judge", url)
    assert told["status"] == "judge_failed"
    assert ("max_reply_bytes" in told["reason"]) == (kind != "endless error")
    assert len(asked) == 1
    assert told["grown_kb"] < MOST


@pytest.mark.process
@pytest.mark.parametrize(
    ("whom", "kind"), [("embeddings", "gzip"), ("retriever", "gzip"), ("batch", "endless")]
)
def test_so_are_those_of_others(whom: str, kind: str) -> None:
    """Embeddings, the retriever and the Batch API."""
    with odd_judge(lambda path, _: answer(kind)) as (url, _):
        told = asked_of(whom, url)
    assert "larger than" in told["reason"]
    assert told["grown_kb"] < MOST


@pytest.mark.process
@pytest.mark.parametrize(("whom", "kind"), [("webhook", "endless"), ("bot", "endless error")])
def test_slacks_answer_is_read_to_its_bound(whom: str, kind: str) -> None:
    """It confirms nothing, and an alert that is not confirmed is kept."""
    with odd_judge(lambda path, _: answer(kind)) as (url, _):
        told = asked_of(whom, url)
    assert "Slack" in told["reason"]
    assert told["grown_kb"] < MOST

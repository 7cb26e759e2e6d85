"""What must hold with a real server and a real model, weak as it is: 135 million parameters."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.llama import LlamaServer
from tests.fakes.prefect_live import started
from tests.fakes.processes import ROOT
from tests.model.conftest import CONTEXTS, Scored, Task, demo_rows, make_task

pytestmark = pytest.mark.process

ROWS, FEW = 5, 2
GRADES = FEW * CONTEXTS
METRICS = ("context_relevance", "context_recall")
TOO_LONG = "too-long"
_KILLED_WITHIN = 120


@dataclass(frozen=True)
class FiveRows:
    """The scores of five rows, and what the server says itself about that time."""

    scored: Scored
    prompt_tokens: int
    completion_tokens: int

    @property
    def usage(self) -> Mapping[str, Any]:
        """Usage as the command printed it."""
        usage: Mapping[str, Any] = self.scored.summary["usage"]
        return usage


@pytest.fixture(scope="module")
def five_rows(two_slots: LlamaServer, tmp_path_factory: pytest.TempPathFactory) -> FiveRows:
    """Five rows, and one whose contexts are longer than the server's."""
    rows = demo_rows(ROWS)
    long = [" ".join(rows[0]["retrieved_contexts"]) * 20]
    rows.append(rows[0] | {"id": TOO_LONG, "retrieved_contexts": long})
    folder = tmp_path_factory.mktemp("five") / "task"
    read, written = two_slots.tokens()
    scored = make_task(folder, two_slots, rows, METRICS, reasks=1).score()
    read_since, written_since = two_slots.tokens()
    return FiveRows(scored, read_since - read, written_since - written)


def test_no_row_is_lost(five_rows: FiveRows) -> None:
    """Each row has a score of each metric, or a status and the reason why it has none."""
    scores = five_rows.scored.scores
    assert Counter(score["metric"] for score in scores) == dict.fromkeys(METRICS, ROWS + 1)
    for score in scores:
        assert (score["value"] is not None) == (score["status"] == "scored"), score
        assert score["value"] is not None or score["reason"], score


def test_every_grade_is_readable(five_rows: FiveRows) -> None:
    """The server turns the schema into a grammar, which even a weak model cannot leave."""
    for score in five_rows.scored.scores:
        if score["metric"] == "context_relevance" and score["id"] != TOO_LONG:
            assert score["status"] == "scored", score
            assert set(score["details"]["grades"]) <= {0, 1, 2}


def test_a_row_beyond_the_context_is_told_with_its_length(five_rows: FiveRows) -> None:
    """The row fails alone, with the server's own numbers, and is not cut."""
    [score, _] = [score for score in five_rows.scored.scores if score["id"] == TOO_LONG]
    assert score["value"] is None
    assert "exceeds the available context size (2048 tokens)" in score["reason"]


def test_tokens_are_those_that_the_server_counts(five_rows: FiveRows) -> None:
    """Prompt and completion tokens, with those of unreadable replies, as the server's metrics."""
    assert "timeout" not in five_rows.usage["failures"]
    assert five_rows.usage["prompt_tokens"] == five_rows.prompt_tokens
    assert five_rows.usage["completion_tokens"] == five_rows.completion_tokens


def few_rows(folder: Path, server: LlamaServer) -> Task:
    """Four grades, asked one after another."""
    rows = demo_rows(FEW)
    return make_task(folder, server, rows, ["context_relevance"], concurrency=1)


def kill_after(task: Task, replies: int) -> int:
    """Start to score, kill it with SIGKILL after so many replies; return how many are stored."""
    with started(task.command, ROOT, os.environ, task.folder / "output") as process:
        until = time.monotonic() + _KILLED_WITHIN
        while task.stored < replies:
            assert process.poll() is None, "the command ended before it was killed"
            assert time.monotonic() < until, "the server never answered"
            time.sleep(0.02)
    return task.stored  # the block's end killed it


def test_a_killed_command_asks_for_no_stored_reply_again(
    tmp_path: Path, one_slot: LlamaServer
) -> None:
    """Killed half-way, `score` asks the rest alone: the server got as many requests as replies
    were missing. The scores are those of a run that nobody killed.
    """
    task = few_rows(tmp_path / "killed", one_slot)
    stored = kill_after(task, replies=2)
    # One slot: what the killed command still asked comes before this run's requests.
    undisturbed = few_rows(tmp_path / "undisturbed", one_slot).score()
    before = one_slot.requests()
    resumed = task.score()
    assert undisturbed.summary["usage"]["requests"] == GRADES
    assert resumed.summary["usage"]["answered_from_store"] == stored
    assert one_slot.requests() - before == GRADES - stored
    assert resumed.scores == undisturbed.scores


def test_decisions_by_logprobs(tmp_path: Path, two_slots: LlamaServer) -> None:
    """One token for each question, with probabilities; of a row the server reads most once."""
    rows = demo_rows(FEW)
    task = make_task(tmp_path / "task", two_slots, rows, METRICS, kind="decision", api="logprobs")
    read, written = two_slots.tokens()
    before = two_slots.requests()
    scored = task.score()
    usage = scored.summary["usage"]
    for score in scored.scores:
        assert score["status"] in ("scored", "not_applicable"), score
        assert score["status"] != "scored" or score["details"]["probabilities"]
    assert usage["requests"] == two_slots.requests() - before == usage["completion_tokens"]
    assert two_slots.tokens() == (read + usage["prompt_tokens"], written + usage["requests"])
    assert usage["cached_tokens"] > usage["prompt_tokens"] / 3


def test_a_model_that_cannot_decide_is_told(tmp_path: Path, two_slots: LlamaServer) -> None:
    """The server knows the protocol, but not for this model: one sentence says what to do."""
    rows = demo_rows(1)
    task = make_task(tmp_path / "task", two_slots, rows, ["context_relevance"], kind="decision")
    done = subprocess.run(task.command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 2
    assert "501" in done.stderr
    assert "`api: logprobs` asks a chat model" in done.stderr

"""`ragmetrics batches`: what is at work, and how to stop it, as people run it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.judges.batch_records import BatchRecords, all_batches
from ragmetrics.storage import Files
from tests.builders import judge_at, save_settings
from tests.fakes.batch_judging import answer, asks, make_judge
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run


@pytest.fixture
def at_work(judge_server: JudgeServer, tmp_path: Path) -> list[Any]:
    """The arguments for a store with one batch of three requests at work."""
    judge_server.batch_faults(delay_seconds=3600)
    judge = make_judge(judge_server, Files(str(tmp_path)), wait_seconds=0.01)
    asyncio.run(answer(judge, asks(3)))
    return [tmp_path, "--base-url", judge_server.base_url]


def test_it_has_help(run: Run) -> None:
    """The command says what it is for."""
    ended = run("batches", "--help")
    assert ended.code == 0
    assert "Usage: ragmetrics batches" in ended.out


def test_batches_are_listed_with_their_state(run: Run, at_work: list[Any]) -> None:
    """One line each: id, requests, since when, and how far it is."""
    ended = run("batches", *at_work)
    assert ended.code == 0, ended.err
    assert "batch_000000  3 requests" in ended.out
    assert "validating, 0 of 3 answered" in ended.out


def test_the_settings_name_the_endpoint(
    run: Run, at_work: list[Any], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """The batch judge of a ragmetrics.yaml is the one that is asked."""
    judge = judge_at(judge_server, name="openai-batch")
    save_settings(tmp_path, judges=["lexical", judge])
    ended = run("batches", tmp_path, "--settings", tmp_path / "ragmetrics.yaml", "--json")
    (one,) = json.loads(ended.out)["batches"]
    assert (one["batch"], one["requests"]) == ("batch_000000", 3)


@pytest.mark.parametrize("which", ["batch_000000", "all"])
def test_a_batch_is_stopped(
    run: Run, at_work: list[Any], judge_server: JudgeServer, which: str
) -> None:
    """By its id, or with all others; what it had not answered is not paid for."""
    ended = run("batches", *at_work, "--cancel", which)
    assert ended.code == 0, ended.err
    assert "cancelling" in ended.out
    assert "cancelled" in run("batches", *at_work).out
    assert judge_server.batch_stats()["answered"] == {}


def test_a_batch_whose_id_was_never_written_is_found(
    run: Run, at_work: list[Any], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A run killed right after the creation left no id: the nonce finds it, to be stopped too."""
    (record,) = all_batches(Files(str(tmp_path)))
    fingerprint = make_judge(judge_server, None).fingerprint
    kept = BatchRecords(Files(str(tmp_path)), fingerprint)
    kept.put(record.model_copy(update={"batch": None}))
    assert "cancelling" in run("batches", *at_work, "--cancel", "batch_000000").out


def test_what_is_not_there_is_said(run: Run, at_work: list[Any], tmp_path: Path) -> None:
    """An unknown id is an error, and so is a store that is none; an empty one has no batch."""
    ended = run("batches", *at_work, "--cancel", "batch_7")
    assert (ended.code, "no batch 'batch_7' in the records" in ended.err) == (2, True)
    (tmp_path / "empty").mkdir()
    assert "no open batch" in run("batches", tmp_path / "empty").out
    nowhere = run("batches", tmp_path / "nothing")
    assert (nowhere.code, "there is no such store" in nowhere.err) == (2, True)

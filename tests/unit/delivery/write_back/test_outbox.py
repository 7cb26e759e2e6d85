"""Nights whose scores wait: until a target is back, a manifest is whole, or for two weeks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ragmetrics.delivery import queue_night, send_waiting, waiting
from ragmetrics.pipeline import Night
from ragmetrics.storage import RunRef, open_store
from tests.fakes.tracing import (
    LangfuseServer,
)
from tests.fakes.written_back import (
    a_night,
    send,
    settings_of,
    to_langfuse,
)

pytestmark = pytest.mark.process


def test_a_target_that_stays_down_leaves_the_rest_for_the_next_night(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """The night does not fail; what was taken is not sent again; the oldest night goes first."""
    settings = to_langfuse(tmp_path, langfuse, batch_size=2, retry_seconds=0.0)
    first = a_night(settings)
    langfuse.statuses = [200, 200, 503]
    report = send(settings, first)
    assert (report.sent, report.waiting) == (4, 6)
    assert "answered 503: told to fail" in report.problem
    [kept] = waiting(open_store(settings))
    assert (kept.night, kept.waiting, kept.problem) == (first.date, 6, report.problem)
    other = a_night(settings, date=first.date + timedelta(1), run="run-1", dataset="other")
    one, two = Night(settings).write_back(other)
    assert (one.night, one.sent, one.before, two.night, two.sent) == (
        first.date,
        6,
        4,
        other.date,
        10,
    )
    assert len(langfuse.scores) == 20
    assert waiting(open_store(settings)) == []


def test_a_replaced_run_is_not_sent(tmp_path: Path, langfuse: LangfuseServer) -> None:
    """Its night's newer run has its own place in the outbox."""
    settings = to_langfuse(tmp_path, langfuse)
    old = a_night(settings)
    queue_night(settings, open_store(settings), old)
    later = old.finished_at + timedelta(hours=1)
    new = a_night(settings, run="run-0-2", finished_at=later)
    [report] = Night(settings).write_back(new)
    assert report.sent == 10
    assert {score["metadata"]["run"] for score in langfuse.scores.values()} == {"run-0-2"}
    assert Night(settings).write_back(old) == ()


def test_a_damaged_manifest_does_not_drop_a_waiting_night(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """It waits with the reason, and is sent when the manifest is written again."""
    settings = to_langfuse(tmp_path, langfuse)
    manifest, files = a_night(settings), open_store(settings)
    queue_night(settings, files, manifest)
    path = RunRef.of(manifest).manifest
    whole = files.read(path)
    files.write(path, b"{")
    [report] = send_waiting(settings, files)
    assert (report.sent, len(waiting(files))) == (0, 1)
    assert "cannot be read: its scores wait" in report.problem
    files.write(path, whole)
    [report] = send_waiting(settings, files)
    assert (report.sent, waiting(files)) == (10, [])


def test_a_night_is_given_up_after_two_weeks(tmp_path: Path, langfuse: LangfuseServer) -> None:
    """It is kept for people; a target that left the settings is forgotten at once."""
    settings = to_langfuse(tmp_path, langfuse, retry_seconds=0)
    langfuse.statuses = [503] * 2
    manifest = a_night(settings)
    send(settings, manifest)
    files = open_store(settings)
    assert send_waiting(settings, files, newest=manifest.date + timedelta(14)) == []
    assert (waiting(files), len(files.below("write-back/given-up"))) == ([], 1)
    queue_night(settings, files, manifest)
    without = settings_of(tmp_path, otlp={"endpoint": "http://127.0.0.1:9"})
    assert send_waiting(without, files) == []
    assert waiting(files) == []


def test_rows_that_are_gone_are_a_problem_and_no_crash(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """`prune` removed them."""
    settings = to_langfuse(tmp_path, langfuse)
    manifest = a_night(settings)
    for info in open_store(settings).below("rows"):
        open_store(settings).remove(info.path)
    assert "the rows of the night are gone" in send(settings, manifest).problem

"""History: one manifest speaks for a night."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from ragmetrics.records import JudgeInfo, Manifest, Source
from ragmetrics.records.judging import Usage
from ragmetrics.storage import FileInfo, Files, RunRef, Runs, trailing_nights

MONDAY = date(2026, 11, 16)
START = datetime(2026, 11, 17, 2, tzinfo=UTC)


def a_night(day: date = MONDAY, run: str = "a", hours: float = 1, **more: Any) -> Manifest:
    """The manifest of a run that took so many hours."""
    return Manifest(
        dataset="default",
        date=day,
        run=run,
        started_at=START,
        finished_at=START + timedelta(hours=hours),
        ragmetrics="0.1.0",
        source=Source(logs="logs", files=1, rows=1),
        judge=JudgeInfo(name="lexical", fingerprint="f"),
        shards=2,
        metrics=[],
        segments=[],
        findings=[],
        worst=[],
        usage=Usage(),
        **more,
    )


def test_a_run_exists_once_its_manifest_does(files: Files) -> None:
    """And is found by its reference."""
    night = a_night()
    assert Runs(files).find(RunRef.of(night)) is None
    Runs(files).save(night)
    assert Runs(files).find(RunRef.of(night)) == night
    assert files.exists("runs/dt=2026-11-16/run=a.json")


def test_nights_are_by_date(files: Files) -> None:
    """Oldest first, whatever order they were run in; none in an empty store."""
    assert Runs(files).nights() == []
    for offset in (2, 0, 1):
        Runs(files).save(a_night(MONDAY + timedelta(offset)))
    assert [night.date.day for night in Runs(files).nights()] == [16, 17, 18]
    assert [night.date.day for night in Runs(files).nights(before=MONDAY + timedelta(2))] == [
        16,
        17,
    ]
    assert [night.date.day for night in Runs(files).nights(last=1)] == [18]


@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_the_newest_run_speaks_for_its_night(files: Files, order: tuple[str, str]) -> None:
    """The one that finished last, not the one whose file came last."""
    for run in order:
        Runs(files).save(a_night(run=run, hours={"old": 1, "new": 2}[run]))
    assert [night.run for night in Runs(files).nights()] == ["new"]


def test_a_rerun_takes_the_word_back(files: Files) -> None:
    """An older run that is repeated is the newest again."""
    Runs(files).save(a_night(run="first", hours=1))
    Runs(files).save(a_night(run="second", hours=2))
    Runs(files).save(a_night(run="first", hours=3))
    assert [night.run for night in Runs(files).nights()] == ["first"]


def test_the_run_that_looked_last_speaks_whichever_ended_last(files: Files) -> None:
    """A run that began on fewer files and took long does not silence the one that had them all;
    a run of a version that did not say when it looked counts by its end."""
    looked = {run: START + timedelta(minutes=minutes) for run, minutes in (("a", 0), ("b", 30))}
    Runs(files).save(a_night(run="b", hours=1, seen_at=looked["b"]))
    Runs(files).save(a_night(run="a", hours=5, seen_at=looked["a"]))
    assert [night.run for night in Runs(files).nights()] == ["b"]
    Runs(files).save(a_night(run="old", hours=0.25))
    assert [night.run for night in Runs(files).nights()] == ["b"]
    without = Runs(files).current(MONDAY, without="b")
    assert without is not None
    assert without.run == "old"
    assert Runs(files).current(MONDAY + timedelta(1)) is None


def test_what_is_no_manifest_is_passed_over(files: Files) -> None:
    """A file that somebody put beside the runs does not hurt."""
    Runs(files).save(a_night())
    files.write("runs/dt=2026-11-16/notes.txt", b"hello")
    files.write("runs/README.md", b"hello")
    assert len(Runs(files).nights()) == 1


def test_a_broken_manifest_is_left_out_and_told(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """One damaged file must not stop all nights to come; its own night can be run again."""
    files.write("runs/dt=2026-11-16/run=a.json", b'{"dataset": ')
    assert Runs(files).nights() == []
    assert "dt=2026-11-16/run=a.json is not a manifest" in caplog.text


def test_a_manifest_that_is_removed_meanwhile_is_none(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody deletes an old run between the listing and the reading."""
    Runs(files).save(a_night())
    gone = FileInfo("runs/dt=2026-11-16/run=gone.json", 1, "1")
    below = Files.below
    monkeypatch.setattr(Files, "below", lambda self, folder="": [*below(self, folder), gone])
    assert [night.run for night in Runs(files).nights()] == ["a"]
    assert Runs(files).current(MONDAY, without="a") is None


def test_a_manifest_of_a_later_version_is_read() -> None:
    """Keys that this version does not know are left aside."""
    later = a_night().model_dump(mode="json") | {"version": 1, "brand_new": {"x": 1}}
    assert Manifest.model_validate(later) == a_night()


def test_trailing_nights_are_by_calendar() -> None:
    """The seven days before; a night that is missing makes no older one step in."""
    days = [MONDAY + timedelta(offset) for offset in (-8, -7, -3, -1, 0, 1)]
    chosen = trailing_nights([a_night(day) for day in days], MONDAY, 7)
    assert [(night.date - MONDAY).days for night in chosen] == [-7, -3, -1]

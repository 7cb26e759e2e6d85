"""The history by month: outlines of all nights in few files, corrected by a listing of the runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from ragmetrics.errors import StoreError
from ragmetrics.records import Manifest, WorstRow
from ragmetrics.storage import FileInfo, Files, RunIndex, RunRef, Runs, run_index as months_module
from ragmetrics.storage.run_index import outline
from tests.fakes.clients import Bucket
from tests.fakes.nights import FIRST, finding, night

MONTH = "history/2026-11.json"
Read = list[str]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    """The paths of all files that are read, as they are."""
    paths: Read = []
    really = Files.read

    def told(self: Files, path: str) -> bytes:
        paths.append(path)
        return really(self, path)

    monkeypatch.setattr(Files, "read", told)
    yield paths


def a_night(number: int = 0, run: str = "a", **change: Any) -> Manifest:
    """A night with something of everything that an outline leaves out."""
    worst = [WorstRow(id="1", metric="context_recall", value=0.0, user_input="Why?")]
    change = {"worst": worst, "settings": {"store": "s3://here"}, **change}
    return night(number, run=run, **change)


def save(files: Files, *manifests: Manifest) -> None:
    """Save manifests, and the history of what there is then."""
    for manifest in manifests:
        Runs(files).save(manifest)
    RunIndex(files).keep(files.below("runs"))


def test_an_outline_tells_of_a_night_among_others() -> None:
    """Without what its own pages alone show: segments, worst rows, histograms, settings, and the
    numbers of rules that found nothing. What fired, and when, is told in full.
    """
    quiet, fired = finding(mean=0.93, n=200), finding(level="breach", mean=0.7, transition="fired")
    whole = a_night(findings=[quiet, fired])
    short = outline(whole)
    assert (short.segments, short.worst, short.settings) == ([], [], {})
    assert [metric.histogram for metric in short.metrics] == [[], []]
    assert [metric.mean for metric in short.metrics] == [metric.mean for metric in whole.metrics]
    assert (short.findings[0].key, short.findings[0].mean) == (quiet.key, None)
    assert short.findings[1] == fired
    assert short.usage == whole.usage


def test_an_outline_of_a_night_whose_texts_are_hidden_says_so() -> None:
    """Whatever page it comes to."""
    assert outline(a_night(settings={"redact": True, "shards": 2})).settings == {"redact": True}


def test_a_year_is_read_in_as_many_files_as_it_has_months(files: Files, read: Read) -> None:
    """No manifest is read, and the outlines are those of the manifests."""
    made = [a_night(number) for number in range(365)]
    save(files, *made)
    read.clear()
    assert Runs(files).outlines() == [outline(one) for one in made]
    assert len(read) == 13  # from November to November
    assert all(path.startswith("history/") for path in read)


def test_the_last_nights_need_the_last_months(files: Files, read: Read) -> None:
    """And nights before a date theirs."""
    save(files, *(a_night(number) for number in range(60)))
    read.clear()
    newest = Runs(files).outlines(last=2)
    assert [one.date for one in newest] == [FIRST + timedelta(58), FIRST + timedelta(59)]
    assert read == ["history/2027-01.json"]
    read.clear()
    assert len(Runs(files).outlines(before=FIRST + timedelta(3))) == 3
    assert read == [MONTH]


def test_a_store_without_history_works(files: Files, read: Read) -> None:
    """As one of an earlier version: the manifests are read, and the first to keep it writes it."""
    made = [a_night(number) for number in range(3)]
    for manifest in made:
        Runs(files).save(manifest)
    assert Runs(files).outlines() == [outline(one) for one in made]
    assert not files.exists("history")
    save(files)
    read.clear()
    assert Runs(files).outlines() == [outline(one) for one in made]
    assert read == [MONTH]


@pytest.mark.parametrize("damaged", [b"", b'{"shape": ', b"[]", b"\x00\xff", b'{"runs": [{}]}'])
def test_a_damaged_month_costs_time_alone(
    files: Files, damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told of, its manifests are read, and the next to keep it writes it anew."""
    save(files, a_night())
    whole = files.read(MONTH)
    files.write(MONTH, damaged)
    assert Runs(files).outlines() == [outline(a_night())]
    assert "history/2026-11.json is damaged" in caplog.text
    save(files)
    assert files.read(MONTH) == whole


def test_a_month_of_another_version_is_read_anew(
    files: Files, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose manifests may lack what this one's have, or have what it does not know."""
    with monkeypatch.context() as patched:
        patched.setattr(months_module, "_shape", lambda: "of another version")
        save(files, a_night())
    read.clear()
    Runs(files).outlines()
    assert RunRef.of(a_night()).manifest in read
    save(files)
    read.clear()
    Runs(files).outlines()
    assert read == [MONTH]


def test_nothing_is_written_where_nothing_changed(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a new night writes its own month alone."""
    save(files, a_night(0), a_night(30))
    written: list[str] = []
    write: Callable[[Files, str, bytes], None] = Files.write

    def told(self: Files, path: str, data: bytes) -> None:
        written.append(path)
        write(self, path, data)

    monkeypatch.setattr(Files, "write", told)
    save(files)
    assert written == []
    save(files, a_night(31))
    assert written == ["runs/dt=2026-12-11/run=a.json", "history/2026-12.json"]


def test_one_month_may_be_kept_alone(files: Files) -> None:
    """As a backfill does, which keeps each night's as it goes."""
    Runs(files).save(a_night(0))
    Runs(files).save(a_night(30))
    RunIndex(files).keep(files.below("runs"), of=FIRST)
    assert [info.path for info in files.below("history")] == [MONTH]


def test_a_run_that_is_repeated_is_read_anew(files: Files, read: Read) -> None:
    """Its file is of another version, so what is kept of it does not count."""
    save(files, a_night(recall=0.93))
    Runs(files).save(a_night(recall=0.7))
    (again,) = Runs(files).outlines()
    assert again.metrics[0].mean == 0.7
    save(files)
    read.clear()
    assert Runs(files).outlines() == [again]
    assert read == [MONTH]


def test_the_run_that_looked_last_speaks_in_outline_too(files: Files) -> None:
    """All runs of a night are kept, and which speaks for it is told as by the manifests."""
    late, early = a_night(run="late"), a_night(run="early")
    late = late.model_copy(update={"seen_at": late.started_at + timedelta(minutes=1)})
    early = early.model_copy(update={"seen_at": early.started_at})
    save(files, late, early)
    assert (
        [one.run for one in Runs(files).outlines()]
        == [one.run for one in Runs(files).nights()]
        == ["late"]
    )
    files.remove(RunRef.of(late).manifest)
    assert [one.run for one in Runs(files).outlines()] == ["early"]


def test_a_run_that_was_removed_leaves_its_month(files: Files) -> None:
    """It is told of no more at once, and stands there no more once the month is kept."""
    save(files, a_night(0), a_night(1))
    files.remove(RunRef.of(a_night(0)).manifest)
    assert [one.date for one in Runs(files).outlines()] == [FIRST + timedelta(1)]
    save(files)
    kept = json.loads(files.read(MONTH))["runs"]
    assert [one["path"] for one in kept] == ["runs/dt=2026-11-11/run=a.json"]


def test_two_runs_at_once_lose_nothing(files: Files, read: Read) -> None:
    """Each listed the runs before the other had saved its own: what the last to write left out is
    read by the listing, and put in by whoever keeps the month next.
    """
    one, other = RunIndex(files), RunIndex(files)
    Runs(files).save(a_night(0))
    seen_by_one = files.below("runs")
    Runs(files).save(a_night(1))
    other.keep(files.below("runs"))
    one.keep(seen_by_one)
    assert len(json.loads(files.read(MONTH))["runs"]) == 1
    assert Runs(files).outlines() == [outline(a_night(0)), outline(a_night(1))]
    save(files)
    read.clear()
    assert len(Runs(files).outlines()) == 2
    assert read == [MONTH]


def test_what_was_read_once_is_not_read_again(files: Files, read: Read) -> None:
    """A run that publishes looks at the nights before it publishes and after."""
    save(files, *(a_night(number) for number in range(5)))
    known = RunIndex(files)
    Runs(files).outlines(months=known)
    Runs(files).save(a_night(5))
    read.clear()
    known.listed(a_night(5).date)
    assert len(Runs(files).outlines(months=known)) == 6
    assert read == ["runs/dt=2026-11-15/run=a.json"]


def test_all_runs_are_listed_once_and_one_night_again(files: Files) -> None:
    """What else changed meanwhile is seen by the listing after all is written."""
    save(files, a_night(0, run="a"), a_night(2))
    known = RunIndex(files)
    assert known.listed() == files.below("runs")
    Runs(files).save(a_night(0, run="b"))
    Runs(files).save(a_night(1))
    files.remove(RunRef.of(a_night(0, run="a")).manifest)
    told = [info.path for info in known.listed(FIRST)]
    assert told == ["runs/dt=2026-11-10/run=b.json", "runs/dt=2026-11-12/run=a.json"]
    assert [info for info in files.below("runs") if info.path in told] == known.listed()


def test_a_manifest_that_cannot_be_read_is_in_no_outline(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told of whenever it is read, and no month keeps it."""
    files.write("runs/dt=2026-11-10/run=a.json", b'{"dataset": ')
    save(files, a_night(1))
    assert [one.date for one in Runs(files).outlines()] == [FIRST + timedelta(1)]
    assert caplog.text.count("dt=2026-11-10/run=a.json is not a manifest") == 2
    assert len(json.loads(files.read(MONTH))["runs"]) == 1


def test_a_store_that_tells_no_versions_is_read_whole(files: Files) -> None:
    """As nobody could tell a manifest that was written anew."""
    Runs(files).save(a_night())
    infos = [FileInfo(info.path, info.size, "") for info in files.below("runs")]
    known = RunIndex(files)
    known.keep(infos)
    assert not files.exists(MONTH)
    assert Runs(files).outlines(months=known, runs=infos) == [outline(a_night())]


def test_an_outline_is_read_in_full_where_its_manifest_is_there(files: Files) -> None:
    """Where somebody removed it meanwhile, what is known of it stays."""
    made = [a_night(0), a_night(1)]
    save(files, *made)
    short = Runs(files).outlines()
    files.remove(RunRef.of(made[0]).manifest)
    assert Runs(files).in_full(short) == [short[0], made[1]]


def test_a_bucket_is_asked_for_many_at_once(s3: Bucket) -> None:
    """Manifests and months come in their order, and those that are not there are none."""
    files = Files(f"{s3.uri}/store")
    made = [a_night(number) for number in range(40)]
    for manifest in made:
        Runs(files).save(manifest)
    assert Runs(files).nights() == made
    assert Runs(files).outlines() == [outline(one) for one in made]
    save(files)
    assert [key.rpartition("/")[2] for key in s3.keys("store/history")] == [
        "2026-11.json",
        "2026-12.json",
    ]
    assert Runs(files).outlines() == [outline(one) for one in made]


def test_a_history_that_may_not_be_read_costs_only_time(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a cache: the manifests are read in its place, and nobody goes without an alert."""
    save(files, a_night(0), a_night(1))
    expected = Runs(files).outlines()
    really = Files.read

    def denied(self: Files, path: str) -> bytes:
        if path.startswith("history/"):
            raise StoreError(f"read {path}: access denied")
        return really(self, path)

    monkeypatch.setattr(Files, "read", denied)
    monkeypatch.setattr(Files, "find", lambda self, path: denied(self, path))
    assert Runs(files).outlines() == expected

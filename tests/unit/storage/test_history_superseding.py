"""Superseding: what a later run says of the earlier one, and pages that show whatever was saved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ragmetrics.dashboard.render_cache import StoreSnapshot, render_until_stable
from ragmetrics.records import Source
from ragmetrics.storage import Files, Runs, history
from ragmetrics.storage.history import differing
from tests.fakes.nights import night, summary


@pytest.mark.parametrize(
    ("read", "told"),
    [
        ((3, 10, 0), "as many files and rows"),
        ((4, 1_214, 0), "1 more file, 1,204 more rows"),
        ((1, 9, 2), "2 fewer files, 1 fewer row, 2 more quarantined rows"),
    ],
)
def test_the_difference_is_told_in_words(read: tuple[int, int, int], told: str) -> None:
    """Files, rows and quarantined rows, more or fewer than the run before it read."""
    before = night(source=Source(logs="logs/", files=3, rows=10))
    count, rows, quarantined = read
    source = Source(logs="logs/", files=count, rows=rows, quarantined=quarantined)
    assert differing(night(source=source), before) == told


def test_verdicts_that_are_missing_are_part_of_the_difference() -> None:
    """Of metrics that both runs have: a new one's are no news of the old one's rows."""
    short = {"scored": 190, "judge_failed": 7, "unreadable": 3}
    before = night(metrics=[summary("context_recall", 0.9, status=short)])
    whole = summary("context_recall", 0.9, status={"scored": 200})
    after = night(metrics=[whole, summary("mrr", 0.5, status={"unreadable": 5})])
    assert differing(after, before) == "10 fewer missing verdicts"
    assert differing(before, after) == "10 more missing verdicts"


def test_a_run_whose_clock_was_ahead_does_not_speak_for_ever(
    files: Files, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later run takes its place and says why; one after that takes the place of both. So it
    stays when the moment has come that the wrong clock showed."""
    now = datetime.now(UTC)
    wrong = night(run="wrong", seen_at=now + timedelta(days=365))
    Runs(files).save(wrong)
    right, other = Runs(files).superseding(night(run="right", seen_at=now - timedelta(hours=2)))
    assert other == wrong
    assert right.supersedes == "wrong"
    assert "its clock was ahead" in right.difference
    assert "run wrong of the night" in caplog.text
    Runs(files).save(right)
    assert Runs(files).is_current(right)
    latest, other = Runs(files).superseding(night(run="latest", seen_at=now - timedelta(hours=1)))
    assert other == right
    Runs(files).save(latest)
    earlier, other = Runs(files).superseding(night(run="early", seen_at=now - timedelta(hours=3)))
    assert (earlier.supersedes, other) == (None, None)
    assert [one.run for one in Runs(files).nights()] == ["latest"]
    monkeypatch.setattr(history, "is_ahead", lambda _: False)  # a year later
    assert [one.run for one in Runs(files).nights()] == ["latest"]
    assert Runs(files).is_current(latest)


def test_a_run_goes_on_being_replaced_when_the_wrong_one_is_gone(files: Files) -> None:
    """What ranks above a wrong clock is outranked by the next run as any other."""
    now = datetime.now(UTC)
    ranked = now + timedelta(days=365)
    Runs(files).save(night(run="a", seen_at=now - timedelta(hours=2), ranked_at=ranked))
    later, other = Runs(files).superseding(night(run="b", seen_at=now - timedelta(hours=1)))
    assert other is not None
    Runs(files).save(later)
    assert [one.run for one in Runs(files).nights()] == ["b"]


@pytest.mark.parametrize(
    "path",
    [
        "runs/dt=2026-11-10/run=b.json",
        "gates/green.json",
        "gates/undecided/ab.json",
        "calibrations/set=towers/judge=f/20261110T000000.000000Z.json",
    ],
)
def test_pages_are_written_again_where_something_was_saved_meanwhile(
    files: Files, path: str
) -> None:
    """By a run, a gate, an event without a verdict, or a calibration; once more is enough, and
    often is none.
    """
    Runs(files).save(night())
    written: list[bool] = []

    def write(_: StoreSnapshot) -> int:
        written.append(files.exists(path))
        if not written[-1]:
            files.write(path, b"{}")
        return len(written)

    assert render_until_stable(files, write) == 2
    assert written == [False, True]
    assert render_until_stable(files, write) == 3


def test_a_listing_of_a_moment_ago_will_do(files: Files) -> None:
    """What was saved since then was saved meanwhile; where nothing was, once is enough."""
    Runs(files).save(night(0))
    before = files.below("runs")
    seen: list[int] = []

    def write(now: StoreSnapshot) -> None:
        seen.append(len(now.runs))

    render_until_stable(files, write, before)
    Runs(files).save(night(1))
    render_until_stable(files, write, before)
    assert seen == [1, 1, 2]


def test_what_the_writing_itself_keeps_is_no_reason_to_write_again(files: Files) -> None:
    """Comparisons of calibrations are made, and kept, by whoever first shows them."""
    written: list[int] = []

    def write(_: StoreSnapshot) -> None:
        written.append(len(written))
        files.write("calibrations/drift/set=towers/judge=f/a.json", str(written).encode())
        files.write("dashboard/index.html", str(written).encode())

    render_until_stable(files, write)
    assert written == [0]


def test_a_store_that_is_never_quiet_ends_the_writing(files: Files) -> None:
    """Whoever goes on saving writes the pages too."""
    written: list[int] = []

    def write(_: StoreSnapshot) -> None:
        written.append(len(written))
        Runs(files).save(night(len(written)))

    render_until_stable(files, write)
    assert 1 < len(written) <= 20

"""Superseding: what a later run says of the earlier one, and pages that show whatever was saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.records import Source
from ragmetrics.store.files import Files
from ragmetrics.store.history import save_manifest
from ragmetrics.superseding import differing, until_settled
from tests.fakes.nights import night


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """An empty store."""
    return Files(str(tmp_path))


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


@pytest.mark.parametrize(
    "path", ["runs/dt=2026-11-10/run=b.json", "gates/green.json", "gates/undecided/ab.json"]
)
def test_pages_are_written_again_where_something_was_saved_meanwhile(
    files: Files, path: str
) -> None:
    """By a run, a gate, or an event without a verdict; once more is enough, and often is none."""
    save_manifest(files, night())
    written: list[bool] = []

    def write() -> int:
        written.append(files.exists(path))
        if not written[-1]:
            files.write(path, b"{}")
        return len(written)

    assert until_settled(files, write) == 2
    assert written == [False, True]
    assert until_settled(files, write) == 3


def test_a_store_that_is_never_quiet_ends_the_writing(files: Files) -> None:
    """Whoever goes on saving writes the pages too."""
    written: list[int] = []

    def write() -> None:
        written.append(len(written))
        save_manifest(files, night(len(written)))

    until_settled(files, write)
    assert 1 < len(written) <= 20

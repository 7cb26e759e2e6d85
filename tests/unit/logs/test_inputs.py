"""One log of many days: which rows a night has."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.logs import ReadCounts, days_of, find_inputs
from ragmetrics.records import LogRow, Rejected
from tests.fakes.logs import make_rows, write_jsonl

FIRST, SECOND = date(2026, 11, 18), date(2026, 11, 19)
Row = Mapping[str, Any] | str


def settings(path: Path, rows: list[Row], **more: Any) -> Settings:
    """Settings for one log of many days."""
    place = str(write_jsonl(path / "export.jsonl", rows))
    return make_settings({"logs": place, "split_nights": True, **more})


def at(time: str | None, name: str) -> Row:
    """A row with a time."""
    return {**make_rows(1)[0], "id": name, "timestamp": time}


def read(chosen: Settings, day: date) -> tuple[list[str], dict[str, int]]:
    """The ids, or reasons, of a night's rows, and what was skipped."""
    counts = ReadCounts()
    (logs,) = find_inputs(chosen, day).logs
    items = logs.read(counts)
    names = [item.id if isinstance(item, LogRow) else item.reason[:8] for item in items]
    return names, dict(counts.skipped)


def test_a_row_is_in_the_night_of_its_time(tmp_path: Path) -> None:
    """Midnight is in the night that begins; the rows of other days are counted."""
    rows = [
        at("2026-11-18T00:00:00Z", "a"),
        at("2026-11-18T23:59:59Z", "b"),
        at("2026-11-19T00:00:00Z", "c"),
    ]
    chosen = settings(tmp_path, rows)
    assert read(chosen, FIRST) == (["a", "b"], {"row of another day": 1})
    assert read(chosen, SECOND) == (["c"], {"row of another day": 2})
    assert days_of(chosen) == [FIRST, SECOND]


def test_days_are_those_of_the_zone(tmp_path: Path) -> None:
    """Midnight in Berlin is eleven in the evening in UTC."""
    rows = [at("2026-11-18T22:59:00Z", "a"), at("2026-11-18T23:00:00Z", "b")]
    chosen = settings(tmp_path, rows, time_zone="Europe/Berlin")
    assert read(chosen, SECOND)[0] == ["b"]
    assert days_of(chosen) == [FIRST, SECOND]


def test_a_row_without_a_time_is_counted_and_in_no_night(tmp_path: Path) -> None:
    """A log of such rows has no days."""
    timeless = settings(tmp_path, [at(None, "a")])
    assert read(timeless, FIRST) == ([], {"row without a time: its day is unknown": 1})
    with pytest.raises(InputError, match="no row has a time"):
        days_of(timeless)


def test_a_row_that_cannot_be_read_goes_with_the_row_before_it(tmp_path: Path) -> None:
    """So it is reported by one night, and not by each."""
    chosen = settings(
        tmp_path, [at("2026-11-18T08:00:00Z", "a"), "{", at("2026-11-19T08:00:00Z", "b")]
    )
    assert read(chosen, FIRST)[0] == ["a", "not JSON"]
    assert read(chosen, SECOND)[0] == ["b"]


def test_a_damaged_file_is_reported_by_every_night(tmp_path: Path) -> None:
    """Rows of any day may be missing."""
    path = write_jsonl(tmp_path / "export.jsonl.gz", [at("2026-11-18T08:00:00Z", "a")] * 200)
    path.write_bytes(path.read_bytes()[:-20])
    chosen = make_settings({"logs": str(path), "split_nights": True})
    for day in (FIRST, SECOND):
        (logs,) = find_inputs(chosen, day).logs
        broken = [item for item in logs.read() if isinstance(item, Rejected)]
        assert [item.whole_file for item in broken] == [True]

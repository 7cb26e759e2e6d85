"""The first settings of a sample: which nights of it are read."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from ragmetrics.config import load_settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline import init_settings
from tests.fakes.logs import make_rows
from tests.fakes.own_logs import (
    ROWS,
)


def test_a_place_without_logs_is_refused(tmp_path: Path) -> None:
    """As everywhere: no such log."""
    with pytest.raises(InputError, match="no such log"):
        init_settings(str(tmp_path / "none.jsonl"), tmp_path / "ragmetrics.yaml")


def test_only_the_newest_week_is_read(tmp_path: Path) -> None:
    """A bucket has the logs of a year: the rows of seven nights are enough."""
    for number in range(10, 20):
        path = tmp_path / f"2026-11-{number}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    report = init_settings(str(tmp_path), tmp_path / "ragmetrics.yaml")
    assert (report.check.files, report.check.rows) == (7, 7 * len(ROWS))


def test_the_newest_day_is_the_night(tmp_path: Path) -> None:
    """Of several days the newest is proposed, and rows a night are those of one day."""
    for day in ("2026-11-17", "2026-11-19", "2026-11-18"):
        rows = make_rows(30, night=date.fromisoformat(day))
        path = tmp_path / f"{day}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    report = init_settings(str(tmp_path), tmp_path / "ragmetrics.yaml")
    assert report.day == date(2026, 11, 19)
    assert "of 3 nights" in (tmp_path / "ragmetrics.yaml").read_text("utf-8")


@pytest.mark.parametrize(("rows", "proposed"), [(30, False), (120, True)])
def test_health_is_proposed_for_nights_that_are_large_enough(
    tmp_path: Path, rows: int, proposed: bool
) -> None:
    """In a small one its rules would hide falls that the judge's rules see."""
    for day in ("2026-11-18", "2026-11-19"):
        lines = make_rows(rows, night=date.fromisoformat(day))
        path = tmp_path / f"{day}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    report = init_settings(str(tmp_path), tmp_path / "ragmetrics.yaml")
    written = load_settings(tmp_path / "ragmetrics.yaml")
    assert ("zero_results" in written.metrics) == proposed
    assert ("zero_results" in {limit.metric for limit in report.limits}) == proposed

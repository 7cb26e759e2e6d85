"""Where the logs of a night are, by the dates in names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragmetrics.logs import night_place


@pytest.mark.parametrize(
    ("paths", "logs"),
    [
        (
            ["s3://b/x/dt=2026-11-18/a.jsonl", "s3://b/x/dt=2026-11-19/a.jsonl"],
            "s3://b/x/dt={date}/",
        ),
        (["x/2026/11/19/a.jsonl"], "x/{date:%Y/%m/%d}/"),
        (["x/year=2026/month=11/day=19/a.csv"], "x/{date:year=%Y/month=%m/day=%d}/"),
        (["x/log_20261119.csv.gz"], "x/log_{date:%Y%m%d}.csv.gz"),
        (["x/2026-11-19T01.jsonl", "x/2026-11-19T02.jsonl"], "x/{date}*.jsonl"),
        (["x/2026-11-19/rows-2026-11-19.jsonl"], "x/{date}/rows-{date}.jsonl"),
        (["x/20269919.csv"], "here"),
        (["x/a.csv"], "here"),
    ],
)
def test_dates_in_names(paths: Sequence[str], logs: str) -> None:
    """The date of a folder or file becomes {date}; digits that are no date stay."""
    assert night_place("here", paths).logs == logs

"""Memory does not grow with the night; `make bench` measures it with all metrics and more rows."""

from __future__ import annotations

from pathlib import Path

from benchmarks.scale import measure


def test_ten_times_the_rows_take_hardly_more_memory(tmp_path: Path) -> None:
    """Rows are streamed from log to score: only what is told of them is held."""
    one = ("--metrics", "context_recall")
    small, large = measure(tmp_path, 1_000, *one), measure(tmp_path, 10_000, *one)
    assert large.peak_mb <= 1.3 * small.peak_mb

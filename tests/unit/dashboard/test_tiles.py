"""Tiles: what fell stands first and is marked, and no arrow stands beside what is ok."""

from __future__ import annotations

from ragmetrics.dashboard.tiles import tiles
from tests.fakes.nights import night, summary, ten_nights


def test_what_fell_stands_first_with_its_change() -> None:
    """The mean, how far it moved, and a dot on the last night."""
    *earlier, last = ten_nights()
    first, *rest = tiles(last, earlier)
    assert (first.summary.metric, first.state, first.fell) == ("context_recall", "firing", True)
    assert first.change == "▼ 0.23"
    assert first.exact.startswith("−0.230 [")
    assert "<circle" in first.spark
    assert not any(one.fell for one in rest)


def test_a_first_night_has_no_change() -> None:
    """There is nothing to compare it with."""
    assert [one.change for one in tiles(night(), [])] == ["", ""]


def test_nights_of_another_judge_are_no_part_of_the_line() -> None:
    """Their numbers do not compare."""
    other = night(0, metrics=[summary("context_recall", 0.9, fingerprint="other")])
    (one,) = tiles(night(1, metrics=[summary("context_recall", 0.9)]), [other])
    assert 'd="M116 ' in one.spark and one.change == ""

"""Axes of the dashboard's figures: few labels that can be read, whatever the nights."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given, strategies as st

from ragmetrics.dashboard.figure_layout import LEAST_DAYS, TICKS, count_axis, days_axis

DAYS = st.sets(st.dates(date(2020, 1, 1), date(2027, 1, 1)), min_size=1, max_size=400)


@given(DAYS)
def test_labels_of_nights_stand_well_apart_and_the_newest_has_one(found: set[date]) -> None:
    """However uneven they are: as far as few labels can."""
    days = sorted(found)
    labels = [date.fromisoformat(tickval) for tickval in days_axis(days)["tickvals"]]
    assert labels[0] == days[-1]
    assert len(labels) <= TICKS + 1
    apart = (days[-1] - days[0]) / TICKS
    assert all(later - earlier >= apart for later, earlier in pairwise(labels))


def test_nights_with_gaps_lose_no_label_to_their_neighbours() -> None:
    """Two nights in a row at the end have one label, the newest's."""
    days = [date(2026, 1, 5), date(2026, 1, 6), date(2026, 2, 14), date(2026, 2, 15)]
    assert days_axis(days)["ticktext"] == ["15 Feb", "6 Jan"]


def test_few_nights_stand_to_the_right_of_a_week() -> None:
    """One night does not fill the axis."""
    day = date(2026, 1, 5)
    first, _ = days_axis([day])["range"]
    assert date.fromisoformat(first[:10]) < day - LEAST_DAYS + timedelta(days=1)


def test_a_few_rows_are_counted_in_whole_numbers() -> None:
    """No half of a row on the axis; of many, a few round numbers."""
    assert count_axis(1)["dtick"] == 1
    assert "dtick" not in count_axis(100)
    assert count_axis(0)["range"] == [0, 1]

"""Charts as inline SVG: they are there before any script."""

from __future__ import annotations

from ragmetrics.dashboard.figure_layout import histogram_figure
from ragmetrics.dashboard.pages.calibration import reliability_figure
from ragmetrics.dashboard.pages.overview import LatestNights
from ragmetrics.dashboard.svg import sparkline, svg
from ragmetrics.dashboard.trend_figure import trend_figure
from ragmetrics.dashboard.trends import trends
from tests.fakes.nights import summary, ten_nights
from tests.fakes.pages import Outline


def test_a_trend_has_its_line_its_band_and_its_limit() -> None:
    """With the days and the numbers of the axes, and the words of its labels."""
    (trend, *_) = trends(ten_nights())
    drawn = svg(trend_figure(trend), "tall")
    assert drawn.count("<svg") == 1
    assert 'stroke="var(--series)"' in drawn and 'fill="var(--series-tint)"' in drawn
    assert "19 Nov" in drawn and "limit 0.8" in drawn


def test_bars_stand_on_each_other() -> None:
    """Quarantined rows above those that were read, within the chart."""
    nights = LatestNights(ten_nights())
    drawn = svg(nights.rows_figure(), "tall")
    paths = [one["d"] or "" for one in Outline(drawn).all("path") if "Z" in (one["d"] or "")]
    assert paths and all(not path.startswith("M-") for path in paths)


def test_every_kind_of_figure_is_drawn() -> None:
    """The histogram too; nothing of it is a style that the page's policy forbids."""
    for figure, size in (
        (histogram_figure(summary("context_recall", 0.5)), "low"),
        (reliability_figure([]), "square"),
    ):
        assert "style=" not in svg(figure, size)


def test_a_sparkline_has_a_gap_where_a_night_does_not_compare() -> None:
    """And a dot on the last night where that is bad; without a number there is none."""
    assert sparkline([0.9, None, 0.8, 0.2], mark=True).count("M") == 2
    assert "<circle" in sparkline([0.9, 0.2], mark=True)
    assert "<circle" not in sparkline([0.9, 0.2])
    assert sparkline([None, None]) == ""


def test_a_label_is_text() -> None:
    """Whatever it says."""
    figure = {
        "data": [],
        "layout": {
            "margin": {"l": 1, "r": 1, "t": 1, "b": 1},
            "xaxis": {"range": [0, 1], "tickvals": [0], "ticktext": ["<b>"]},
            "yaxis": {"range": [0, 1], "nticks": 2},
            "shapes": [],
        },
    }
    assert "&lt;b&gt;" in svg(figure, "low")

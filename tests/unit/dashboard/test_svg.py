"""Charts as inline SVG: they are there before any script."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ragmetrics.dashboard.figure_layout import count_axis, frame, histogram_figure, scatter, symbols
from ragmetrics.dashboard.pages.calibration import reliability_figure
from ragmetrics.dashboard.pages.overview import LatestNights
from ragmetrics.dashboard.svg import sparkline, svg
from ragmetrics.dashboard.trend_figure import trend_figure
from ragmetrics.dashboard.trends import trends
from tests.fakes.nights import night, summary, ten_nights
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


def drawn_as(*data: dict[str, Any], top: int = 1) -> str:
    """Traces in a chart of counts up to `top`."""
    layout = frame(38, 14, 20, 26)
    layout["xaxis"] |= {"range": [0, 1], "tickvals": [0]}
    layout["yaxis"] |= count_axis(top)
    return svg({"data": list(data), "layout": layout}, "tall")


def test_nights_without_an_interval_draw_no_empty_path() -> None:
    """A path that only closes is no path."""
    few = [summary("context_recall", 0.9, low=None, high=None)]
    (trend, *_) = trends([night(n, metrics=few) for n in range(3)])
    paths = [one["d"] for one in Outline(svg(trend_figure(trend), "tall")).all("path")]
    assert paths and all((path or "").startswith("M") for path in paths)


@pytest.mark.parametrize(
    ("top", "words"),
    [
        (3, ["0", "1", "2", "3"]),
        (1, ["0", "1"]),
        (4_000, ["0", "2k", "4k"]),
        (4_000_000, ["0", "2M", "4M"]),
    ],
)
def test_counts_have_whole_steps_and_short_numbers(top: int, words: list[str]) -> None:
    """Few ones are counted by one, as Plotly does; many are told in thousands and millions."""
    numbers = re.findall(r'text-anchor="end">([^<]*)<', drawn_as(top=top))
    assert numbers == words


def test_marks_differ_by_their_shape() -> None:
    """As the legend names them: a triangle for what fired, a diamond for what resolved."""
    shapes = {
        symbol: drawn_as(scatter([0.5], [0.5], "markers", marker=symbols(symbol, 12, "red")))
        .split('fill="red" d="')[1]
        .split('"')[0]
        for symbol in ("triangle-down", "diamond")
    }
    assert re.fullmatch(r"M\d+ \d+m-6 -5h12l-6 10z", shapes["triangle-down"])
    assert re.fullmatch(r"M\d+ \d+m0 -6l6 6l-6 6l-6 -6z", shapes["diamond"])
    tick = scatter([0.5], [0.5], "markers", marker={"size": 8, "symbol": "line-ns-open"})
    assert re.search(r'class="line"[^>]* d="M\d+ \d+m0 -4v8"', drawn_as(tick))

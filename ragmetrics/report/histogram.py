"""The distribution of one metric in one night."""

from __future__ import annotations

from ragmetrics.model import Summary
from ragmetrics.report.figure_layout import SERIES, Figure, count_axis, frame, upright
from ragmetrics.report.formatting import plural
from ragmetrics.text import finite


def histogram_figure(summary: Summary) -> Figure:
    """Rows by value in ten bins, with the mean as a dotted line."""
    bins = len(summary.histogram)
    bars = {
        "type": "bar",
        "x": [round((i + 0.5) / bins, 4) for i in range(bins)],
        "y": summary.histogram,
        "width": [0.88 / bins] * bins,
        "marker": {"color": SERIES},
        "customdata": [
            f"{bin_label(i, bins)}<br>{plural(rows, 'row')}"
            for i, rows in enumerate(summary.histogram)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    layout = frame(margin={"l": 34, "r": 8, "t": 8, "b": 22})
    layout["xaxis"] |= {"range": [0, 1], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    top = max(summary.histogram, default=0)
    layout["yaxis"] |= count_axis(top)
    mean = finite(summary.mean)
    if mean is not None and 0 <= mean <= 1:
        layout["shapes"] = [upright(mean)]
    return {"data": [bars], "layout": layout}


def bin_label(index: int, bins: int) -> str:
    """`0.2 to 0.3`, the bounds of a bin."""
    return f"{index / bins:.1f} to {(index + 1) / bins:.1f}"

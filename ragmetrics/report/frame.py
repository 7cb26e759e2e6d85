"""What all figures share: colours by name, axes, and marks across the whole height.

Figures are plain dicts for Plotly, drawn by assets/charts.js. Colours are names of CSS custom
properties, which the script reads from the page: one place for light and dark. No logged text
ever enters a figure, because Plotly reads markup in texts.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ragmetrics.report.words import finite

Figure = dict[str, Any]
INK, QUIET, LINE = "var(--ink-2)", "var(--ink-3)", "var(--line)"
SERIES, BAND = "var(--series)", "var(--series-tint)"


def frame(margin: dict[str, int]) -> Figure:
    """A layout without anything that a reader can move, on the page's own ground."""
    axis = {"fixedrange": True, "zeroline": False, "tickfont": {"color": INK, "size": 11}}
    return {
        "margin": margin,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "var(--sans)", "size": 11, "color": INK},
        "showlegend": False,
        "dragmode": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": "var(--surface)",
            "bordercolor": QUIET,
            "font": {"family": "var(--sans)", "color": "var(--ink)", "size": 12},
        },
        "xaxis": {**axis, "showgrid": False, "linecolor": LINE, "showline": True},
        "yaxis": {**axis, "gridcolor": LINE},
    }


def upright(x: float | datetime) -> Figure:
    """A dotted line over the whole height."""
    place = x.isoformat() if isinstance(x, datetime) else x
    return {
        "type": "line",
        "yref": "paper",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "line": {"color": "var(--ink)", "width": 1.25, "dash": "dot"},
    }


def rounded(value: float | None) -> float | None:
    """A number as precise as a screen, or None for what cannot be drawn."""
    value = finite(value)
    return None if value is None else round(value, 4)

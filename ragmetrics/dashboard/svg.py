"""Figures as inline SVG, so that a page shows its charts before any script, in print and without.

It draws what the figures of these pages have: bars, lines, areas, marks, whiskers, straight lines,
columns and labels. Plotly then draws the same figure with hover in its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from ragmetrics.dashboard.figure_layout import Figure, Place
from ragmetrics.text import finite

SIZES = {"tall": (540, 230), "low": (360, 120), "square": (340, 340)}
"""Width and height of each kind of chart; the page scales them."""
_DAY_MS = 86_400_000
_DASHES = {"dot": "2 3", "dash": "7 4"}
_LINE = 11
_REACH = 14, 226
"""Where the axis of an interval begins and ends."""
_HIDDEN = 'aria-hidden="true" focusable="false"'
_UNITS = ((1_000_000, "M"), (1_000, "k"))


@dataclass(frozen=True)
class _Axis:
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start))


@dataclass(frozen=True)
class _Frame:
    """The area of a chart within its margins."""

    x: _Axis
    y: _Axis
    y2: _Axis

    def place(self, value: Place, axis: str, ref: str | None = None) -> float:
        """A place on an axis, or a share of the whole area where `ref` is `paper`."""
        scale: _Axis = getattr(self, axis)
        if ref == "paper":
            return round(scale.start + float(value) * (scale.end - scale.start))
        return scale(_number(value))


def svg(figure: Figure, size: str) -> Markup:
    """The figure as an SVG element of one of the `SIZES`."""
    width, height = SIZES[size]
    layout, data = figure["layout"], figure["data"]
    margin = layout["margin"]
    across, up = (margin["l"], width - margin["r"]), (height - margin["b"], margin["t"])
    frame = _Frame(
        _Axis(*_range(layout["xaxis"], _values(data, "x")), *across),
        _Axis(*_range(layout["yaxis"], _heights(data)), *up),
        _Axis(0, 1, *up),
    )
    below = [shape for shape in layout["shapes"] if shape.get("layer") == "below"]
    above = [shape for shape in layout["shapes"] if shape not in below]
    parts = [
        *_grid(frame, layout),
        *(part for shape in below for part in _shape(shape, frame)),
        *(part for trace in _stacked(data) for part in _trace(trace, frame)),
        *(part for shape in above for part in _shape(shape, frame)),
        *(_annotation(label, frame) for label in layout.get("annotations", ())),
    ]
    box = f'viewBox="0 0 {width} {height}" aria-hidden="true" focusable="false"'
    return Markup(f'<svg class="chart" {box}>{"".join(parts)}</svg>')  # noqa: S704 - escaped below


def sparkline(
    values: Sequence[float | None], *, mark: bool = False, ends: Sequence[float] = ()
) -> Markup:
    """The values as a small line, oldest first; `mark` puts a dot on the last one. The scale is
    that of the values, and has the `ends`.
    """
    known = [value for value in map(finite, values) if value is not None]
    if not known:
        return Markup("")
    least, most = min([*known, *ends]), max([*known, *ends])
    middle, span = (least + most) / 2, max(most - least, 0.05)
    frame = _Frame(
        _Axis(0, max(1, len(values) - 1), 4, 116),
        _Axis(middle - span / 2, middle + span / 2, 30, 4),
        _Axis(0, 1, 30, 4),
    )
    line = _path([(n, value) for n, value in enumerate(values)], frame)
    x, y = frame.x(len(values) - 1), frame.y(known[-1])
    dot = f'<circle cx="{x}" cy="{y}" r="3"/>' if mark and values[-1] is not None else ""
    box = 'viewBox="0 0 120 34" aria-hidden="true" focusable="false" preserveAspectRatio="none"'
    return Markup(f'<svg class="spark" {box}><path d="{line}"/>{dot}</svg>')  # noqa: S704 - numbers


def interval_bar(low: float, high: float, point: float, ends: tuple[float, float]) -> Markup:
    """An interval and its point on an axis between two ends; what is beyond is cut."""
    axis = _Axis(*ends, *_REACH)
    left, right, at = (axis(max(ends[0], min(ends[1], value))) for value in (low, high, point))
    reach, dot = f'class="reach" d="M{left} 9H{right}"', f'class="dot" d="M{at} 3V15"'
    parts = f'<path class="zero" d="M{axis(0)} 0V18"/><path {reach}/><path {dot}/>'
    return Markup(f'<svg class="span" viewBox="0 0 240 18" {_HIDDEN}>{parts}</svg>')  # noqa: S704 - numbers


def interval_axis(ends: tuple[float, float]) -> Markup:
    """The numbers of that axis, with their signs."""
    axis, step = _Axis(*ends, *_REACH), _step((ends[1] - ends[0]) / 6)
    first, last = (math.trunc(end / step + 1e-9) for end in ends)
    ticks = [(n * step, f"{n * step:+g}".replace("-", "−")) for n in range(first, last + 1)]
    words = "".join(_text(axis(at), 13, label if at else "0", "middle") for at, label in ticks)
    return Markup(f'<svg class="axis" viewBox="0 0 240 18" {_HIDDEN}>{words}</svg>')  # noqa: S704 - escaped


def _number(value: Place) -> float:
    """A number, or the days of a time."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=None).timestamp() / 86_400
    return float(value)


def _values(data: Sequence[Figure], name: str) -> list[float]:
    return [_number(one) for trace in data for one in trace[name] if one is not None]


def _heights(data: Sequence[Figure]) -> list[float]:
    """The values of the axis, with the tops of stacked bars."""
    tops = [
        base + y
        for trace in _stacked(data)
        for base, y in zip(trace["base"], trace["y"], strict=False)
    ]
    return [*tops, *_values([trace for trace in data if trace["type"] != "bar"], "y")]


def _range(axis: Mapping[str, object], values: Sequence[float]) -> tuple[float, float]:
    ends = axis.get("range")
    if isinstance(ends, list):
        return _number(ends[0]), _number(ends[1])
    return min([0.0, *values]), (max(values, default=1.0) or 1.0) * 1.08


def _stacked(data: Sequence[Figure]) -> list[Figure]:
    """The traces, bars with the height at which each begins."""
    tops: dict[object, float] = {}
    traces = []
    for trace in data:
        if trace["type"] == "bar":
            base = [tops.get(x, 0.0) for x in trace["x"]]
            tops |= {x: below + y for x, below, y in zip(trace["x"], base, trace["y"], strict=True)}
            trace = {**trace, "base": base}
        traces.append(trace)
    return [{"base": [], **trace} for trace in traces]


def _grid(frame: _Frame, layout: Figure) -> Iterator[str]:
    """Lines and numbers of both axes."""
    left, right, foot = frame.x.start, frame.x.end, frame.y.start
    for value, words in _ticks(layout["yaxis"], frame.y):
        y = frame.y(value)
        yield f'<path class="grid" d="M{left} {y}H{right}"/>'
        yield _text(left - 5, y + 4, words, "end")
    yield f'<path class="grid" d="M{left} {foot}H{right}"/>'
    for value, words in _ticks(layout["xaxis"], frame.x):
        x = frame.x(value)
        anchor = "end" if x > right - _LINE else "middle"
        yield _text(x, foot + 15, words, anchor)


def _ticks(axis: Mapping[str, object], scale: _Axis) -> list[tuple[float, str]]:
    values, words = axis.get("tickvals"), axis.get("ticktext")
    if isinstance(values, list):
        shown = words if isinstance(words, list) else [f"{one:g}" for one in values]
        return [(_number(value), str(word)) for value, word in zip(values, shown, strict=True)]
    least = (scale.high - scale.low) / int(str(axis.get("nticks", 4)))
    step = float(str(axis["dtick"])) if "dtick" in axis else _step(least)
    first = math.ceil(scale.low / step - 1e-9)
    form = str(axis.get("tickformat", "g"))
    return [
        (n * step, _label(n * step, form))
        for n in range(first, math.floor(scale.high / step + 1e-9) + 1)
    ]


def _step(least: float) -> float:
    """The smallest of 1, 2, 5 and their powers of ten that is no smaller."""
    power = 10 ** math.floor(math.log10(least)) if least > 0 else 1.0
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))


def _label(value: float, form: str) -> str:
    if form == "~s":
        size, unit = next((one for one in _UNITS if abs(value) >= one[0]), (1, ""))
        return f"{value / size:g}{unit}"
    return f"${value:g}" if form.startswith("$") else f"{value:{form.strip('~')}}"


def _trace(trace: Figure, frame: _Frame) -> Iterator[str]:
    if trace["type"] == "bar":
        yield from _bars(trace, frame)
        return
    axis = trace.get("yaxis", "y")
    points = list(zip(trace["x"], trace["y"], strict=True))
    line, marker = trace.get("line", {}), trace.get("marker", {})
    path = _path(points, frame, axis)
    if trace.get("fill") and path:
        yield f'<path fill="{_colour(trace["fillcolor"])}" d="{path}Z"/>'
    elif "lines" in trace["mode"] and path:
        yield _stroke(path, line)
    yield from _whiskers(trace, frame)
    if "markers" in trace["mode"] and path:
        places = [
            f"M{frame.place(x, 'x')} {frame.place(y, axis)}"
            for x, y in points
            if x is not None and y is not None
        ]
        yield _marks(places, marker)


def _marks(places: Sequence[str], marker: Mapping[str, Any]) -> str:
    """A mark at each place in the shape of its symbol; without one, a dot."""
    size, colour = marker.get("size", 6), _colour(marker.get("color"))
    half, side = size / 2, size * 5 / 12
    shape = {
        "triangle-down": f"m{-half:g} {-side:g}h{size:g}l{-half:g} {2 * side:g}z",
        "diamond": f"m0 {-half:g}l{half:g} {half:g}l{-half:g} {half:g}l{-half:g} {-half:g}z",
        "line-ns-open": f"m0 {-half:g}v{size:g}",
    }.get(marker.get("symbol", ""))
    path = "".join(f"{place}{shape or 'h0'}" for place in places)
    if shape is None:
        return f'<path class="dots" stroke="{colour}" stroke-width="{size}" d="{path}"/>'
    return f'<path fill="{colour}" d="{path}"/>' if shape.endswith("z") else _stroke(path, marker)


def _path(
    points: Sequence[tuple[Place | None, float | None]], frame: _Frame, axis: str = "y"
) -> str:
    """A line through the points, with a gap where one is missing."""
    runs = groupby(points, key=lambda point: point[0] is None or point[1] is None)
    drawn = [
        " ".join(
            f"{frame.place(x, 'x')} {frame.place(y, axis)}"
            for x, y in run
            if x is not None and y is not None
        )
        for missing, run in runs
        if not missing
    ]
    return "".join(f"M{run}" for run in drawn)


def _whiskers(trace: Figure, frame: _Frame) -> Iterator[str]:
    error = trace.get("error_y")
    if not error:
        return
    ends = zip(trace["x"], trace["y"], error["array"], error["arrayminus"], strict=True)
    path = "".join(
        f"M{frame.place(x, 'x')} {frame.y(y - below)}V{frame.y(y + above)}"
        for x, y, above, below in ends
        if x is not None and y is not None
    )
    if path:
        yield _stroke(path, error)


def _bars(trace: Figure, frame: _Frame) -> Iterator[str]:
    widths = (
        trace["width"] if isinstance(trace["width"], list) else [trace["width"]] * len(trace["x"])
    )
    path = ""
    for x, y, base, width in zip(trace["x"], trace["y"], trace["base"], widths, strict=True):
        half = (width / _DAY_MS if isinstance(x, str) else width) / 2
        left, right = frame.x(_number(x) - half), frame.x(_number(x) + half)
        path += f"M{left} {frame.y(base)}V{frame.y(base + y)}H{right}V{frame.y(base)}Z" if y else ""
    if path:
        yield f'<path fill="{_colour(trace["marker"]["color"])}" d="{path}"/>'


def _shape(shape: Figure, frame: _Frame) -> Iterator[str]:
    x0, x1 = (frame.place(shape[end], "x", shape.get("xref")) for end in ("x0", "x1"))
    y0, y1 = (frame.place(shape[end], "y", shape.get("yref")) for end in ("y0", "y1"))
    if shape["type"] == "line":
        yield _stroke(f"M{x0} {y0}L{x1} {y1}", shape["line"])
        return
    yield f'<path fill="{_colour(shape["fillcolor"])}" d="M{x0} {y0}V{y1}H{x1}V{y0}Z"/>'


def _annotation(label: Figure, frame: _Frame) -> str:
    x = frame.place(label["x"], "x", label.get("xref"))
    y = frame.place(label["y"], "y", label.get("yref"))
    anchor = {"left": "start", "right": "end"}.get(label.get("xanchor", ""), "middle")
    return _text(x, y - 3, label["text"], anchor, label["font"]["color"])


def _stroke(path: str, look: Mapping[str, object]) -> str:
    colour, width = _colour(look.get("color")), look.get("width", look.get("thickness", 1.5))
    dash = _DASHES.get(str(look.get("dash", "")), "")
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path class="line" stroke="{colour}" stroke-width="{width}"{dashes} d="{path}"/>'


def _text(x: float, y: float, words: str, anchor: str, colour: object = None) -> str:
    fill = f' fill="{_colour(colour)}"' if colour else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{fill}>{escape(words)}</text>'


def _colour(colour: object) -> Markup:
    return escape(str(colour or "currentColor"))

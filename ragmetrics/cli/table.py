"""The console, and tables on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import indent
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from ragmetrics.messages import columns
from ragmetrics.metrics import display_name
from ragmetrics.records import Figure
from ragmetrics.text import clean, interval, number

_LONGEST_NAME = 32
"""Longer names, such as those of segments, may be broken."""


def make_console(**options: Any) -> Console:
    """A console for plain text: texts of users are no markup, and the terminal wraps long lines."""
    return Console(highlight=False, emoji=False, markup=False, soft_wrap=True, **options)


def shown(metric: str) -> str:
    """The display name of a metric, or the names of metrics that share verdicts, `a + b`."""
    return clean(" + ".join(map(display_name, metric.split(" + "))), 300)


def print_grid(
    console: Console,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    names: Sequence[int] = (0,),
    styles: Sequence[str | None] = (),
) -> None:
    """Print a table of plain text as messages have it, with a blank line above and below.

    `names` are the columns that are no numbers, `styles` those of the rows. Where a name of
    usual length would be broken, the names of the row stand on a line of their own.
    """
    room = console.width - 2
    leading = [at for at in names if set(range(at)) <= set(names)]
    _, *lines = columns([headers, *rows], names, room)
    titles = [
        _title([row[at] for at in leading], room) if _breaks(row, leading, line) else ""
        for row, line in zip(rows, lines, strict=True)
    ]
    shown = [
        ["" if title and at in leading else cell for at, cell in enumerate(row)]
        for row, title in zip(rows, titles, strict=True)
    ]
    head, *lines = columns([headers, *shown], names, room)
    console.print(f"\n{indent(head, ' ')}")
    for title, line, style in zip_longest(titles, lines, styles):
        console.print(indent(f"{title}\n{line}" if title else line, " "), style=style)
    console.print()


def _title(names: Sequence[str], room: int) -> str:
    """The names of a row above its numbers; those that share verdicts break between names."""
    title = "  ".join(names)
    return title if len(title) <= room else title.replace(" + ", " +\n")


def _breaks(row: Sequence[str], leading: Sequence[int], line: str) -> bool:
    """Whether the line of a row breaks a name."""
    parts = [part for at in leading for part in row[at].split("\n")]
    names = [name.strip() for part in parts for name in part.split(" + ")]
    return any(name not in line for name in names if len(name) <= _LONGEST_NAME)


def figures_table(*columns: str) -> Table:
    """A table whose first column has names, and the others figures, each with a title."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left", no_wrap=not place)
    return table


def with_interval(figure: Figure | None, between: str = " ") -> str:
    """`0.912 [0.881, 0.943]`; the value alone where there is no interval."""
    if figure is None or figure.low is None:
        return number(figure.value if figure else None)
    return f"{number(figure.value)}{between}{interval(figure.low, figure.high)}"

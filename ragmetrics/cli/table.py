"""The console, and tables on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from textwrap import indent
from typing import Any

from rich.console import Console

from ragmetrics.messages import columns

_METRIC = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")
_LONGEST_NAME = 32
"""Of longer names only those of metrics are not broken."""


def make_console(**options: Any) -> Console:
    """A console for plain text: texts of users are no markup, and the terminal wraps long lines."""
    return Console(highlight=False, emoji=False, markup=False, soft_wrap=True, **options)


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
        "  ".join(row[at] for at in leading) if _breaks(row, leading, line) else ""
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


def _breaks(row: Sequence[str], leading: Sequence[int], line: str) -> bool:
    """Whether the line of a row breaks a name."""
    return any(name not in line for at in leading for name in _names(row[at]))


def _names(cell: str) -> list[str]:
    return [cell] if len(cell) <= _LONGEST_NAME else _METRIC.findall(cell)

"""The console, and tables on it.

A table that is too wide wraps names, at words. It never wraps numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_NARROWEST = 14
"""Characters that a column of names keeps, however little room there is."""
_GAP = 2
_WORDS = re.compile(r"^\s+\S+\s*|\S+\s*")
_PIECES = re.compile(r"[^_:/+-]*[_:/+-]|[^_:/+-]+")


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
    """Print a table of plain text.

    Columns in `names` are left-aligned and may wrap. The others are numbers; only their headers
    wrap. A table that is still too wide runs over the edge.
    """
    columns = [[header, *(row[at] for row in rows)] for at, header in enumerate(headers)]
    widths = _fitted(columns, names, console.width)
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0), width=_whole(widths)
    )
    for at, header in enumerate(headers):
        table.add_column(
            Text(wrap(header, widths[at])),
            justify="left" if at in names else "right",
            width=widths[at],
            no_wrap=True,
            vertical="top",
        )
    for number, row in enumerate(rows):
        cells = (Text(wrap(cell, width)) for cell, width in zip(row, widths, strict=True))
        table.add_row(*cells, style=styles[number] if styles else None)
    console.print(table, crop=False)


def wrap(text: str, width: int) -> str:
    """The text in lines of a width: between words, else within names after `_` and the like."""
    return "\n".join(
        line.rstrip() for part in text.split("\n") for line in _lines(part, width) or [""]
    )


def _lines(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for word in _WORDS.findall(text):
        if lines and len(lines[-1]) + len(word.rstrip()) <= width:
            lines[-1] += word
        elif len(word.rstrip()) <= width:
            lines.append(word)
        else:
            lines += _cut(word, width)
    return lines


def _cut(word: str, width: int) -> list[str]:
    """A word that is too long, in lines."""
    lines = [""]
    for piece in _PIECES.findall(word):
        if len(lines[-1]) + len(piece.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return lines


def _fitted(columns: Sequence[Sequence[str]], names: Sequence[int], room: int) -> list[int]:
    """The widths of the columns: as they are, or with the headers and names made narrower."""
    widths = [_longest(cells) for cells in columns]
    if _whole(widths) <= room:
        return widths
    # A header of numbers is wrapped before a name is: `questions` is longer than 1,200.
    for at in (at for at in range(len(columns)) if at not in names):
        widths[at] = max(_longest(columns[at][1:]), min(widths[at], _NARROWEST))
    while _whole(widths) > room:
        widest = max(names, key=lambda at: widths[at])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _longest(cells: Sequence[str]) -> int:
    return max((len(line) for cell in cells for line in cell.split("\n")), default=0)


def _whole(widths: Sequence[int]) -> int:
    """The width of a table: its columns, what is between them, and a space on each side."""
    return sum(widths) + _GAP * (len(widths) - 1) + 2

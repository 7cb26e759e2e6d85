"""Lays out a table in columns of a width, for a terminal.

A table that is too wide wraps names, at words. It never wraps numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

_NARROWEST = 14
"""Characters that a column of names keeps, however little room there is."""
_GAP = "  "
_WORDS = re.compile(r"^\s+\S+\s*|\S+\s*")
_PIECES = re.compile(r"[^_:/+-]*[_:/+-]|[^_:/+-]+")


def columns(rows: Sequence[Sequence[str]], names: Sequence[int], room: int) -> list[str]:
    """The rows as texts of one or more lines, of which the first, the headers, has a rule below.

    Columns in `names` are left-aligned and may wrap. The others are numbers; only their headers
    wrap. A table that is still too wide for `room` characters runs over the edge.
    """
    widths = _fitted(list(zip(*rows, strict=True)), names, room)
    wrapped = [
        [wrap(cell, width).split("\n") for cell, width in zip(row, widths, strict=True)]
        for row in rows
    ]
    headers = [cell[::-1] for cell in wrapped[0]]  # they stand on the rule
    head = "\n".join(_lines_of(headers, widths, names)[::-1])
    rest = ("\n".join(_lines_of(row, widths, names)) for row in wrapped[1:])
    return [f"{head}\n{'─' * _whole(widths)}", *rest]


def _lines_of(
    row: Sequence[Sequence[str]], widths: Sequence[int], names: Sequence[int]
) -> list[str]:
    """The lines of a row, from those of its cells."""
    return [
        _GAP.join(
            part.ljust(width) if at in names else part.rjust(width)
            for at, (part, width) in enumerate(zip(parts, widths, strict=True))
        ).rstrip()
        for parts in zip_longest(*row, fillvalue="")
    ]


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


def _fitted(cells: Sequence[Sequence[str]], names: Sequence[int], room: int) -> list[int]:
    """The widths of the columns: as they are, or with the headers and names made narrower."""
    widths = [_longest(column) for column in cells]
    if _whole(widths) <= room:
        return widths
    # A header of numbers is wrapped before a name is: `questions` is longer than 1,200.
    for at in (at for at in range(len(cells)) if at not in names):
        widths[at] = max(_longest(cells[at][1:]), min(widths[at], _NARROWEST))
    while _whole(widths) > room:
        widest = max(names, key=lambda at: widths[at])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _longest(cells: Sequence[str]) -> int:
    return max((len(line) for cell in cells for line in cell.split("\n")), default=0)


def _whole(widths: Sequence[int]) -> int:
    """The width of a table: its columns, and what is between them."""
    return sum(widths) + len(_GAP) * (len(widths) - 1)

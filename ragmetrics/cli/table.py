"""The console, and tables on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import indent
from typing import Any

from rich.console import Console

from ragmetrics.messages import columns


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

    `names` are the columns that are no numbers, `styles` those of the rows.
    """
    head, *lines = columns([headers, *rows], names, console.width - 2)
    console.print(f"\n{indent(head, ' ')}")
    for line, style in zip_longest(lines, styles):
        console.print(indent(line, " "), style=style)
    console.print()

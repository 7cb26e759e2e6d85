"""A terminal: wrapped lines, without signs that would act there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import ClassVar

from ragmetrics.messages.blocks import Block, Table
from ragmetrics.messages.table_layout import columns
from ragmetrics.messages.text_format import LONGEST, TextFormat
from ragmetrics.text import clean

WIDTH = 88


class Terminal(TextFormat):
    """Plain text as it was logged, without control characters."""

    name: ClassVar[str] = "terminal"

    def lines(self, block: Block) -> Iterator[str]:
        """The lines of a block, wrapped; a table that is too wide runs over the edge."""
        lines = super().lines(block)
        yield from lines if isinstance(block, Table) else map(_wrapped, lines)

    def escape(self, text: str) -> str:
        """A text without control characters: nothing else acts in a terminal."""
        return clean(text, LONGEST)

    def fact(self, label: str, value: str) -> str:
        """A label with its value, indented."""
        return f"  {label}: {', '.join(map(self.line, value.split(chr(10))))}"

    def link(self, label: str, address: str) -> str:
        """A link to copy."""
        return f"{label} {address}"

    def more(self, label: str, page: str) -> str:
        """The end of a list; the button below it has the address."""
        return label

    def table(self, block: Table) -> Iterator[str]:
        """A table in columns."""
        rows = [tuple(map(self.line, row)) for row in (block.headers, *block.rows)]
        yield from [self.line(block.title)] if block.title else []
        for row in columns(rows, block.names, WIDTH):
            yield from row.split("\n")


def _wrapped(line: str) -> str:
    return textwrap.fill(
        line,
        WIDTH,
        subsequent_indent="  " if line.startswith(("• ", "  ")) else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


terminal = Terminal()

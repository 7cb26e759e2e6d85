"""A terminal: wrapped lines, without signs that would act there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import ClassVar

from ragmetrics.messages.blocks import Block, Table, text_of
from ragmetrics.messages.text_format import LONGEST, TextFormat
from ragmetrics.text import clean

WIDTH = 88


class Terminal(TextFormat):
    """Plain text as it was logged, without control characters."""

    name: ClassVar[str] = "terminal"

    def render(self, blocks: Sequence[Block], room: int | None = None) -> str:
        """The blocks as text, wrapped; one blank line between them, no newline at the end."""
        shown = super().render(blocks, room)
        return "\n".join(map(_wrapped, shown.split("\n")))

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
        rows = [block.headers, *(tuple(map(self.line, row)) for row in block.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield from [text_of(block.title)] if block.title else []
        for row in rows:
            cells = (
                cell.ljust(width) if at in block.names else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            yield "  ".join(cells).rstrip()


def _wrapped(line: str) -> str:
    return textwrap.fill(
        line,
        WIDTH,
        subsequent_indent="  " if line.startswith(("• ", "  ")) else "",
        break_long_words=False,
        break_on_hyphens=False,
    )


terminal = Terminal()

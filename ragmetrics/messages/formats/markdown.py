"""Markdown, for run pages and services that read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from ragmetrics.messages.blocks import Table, Text
from ragmetrics.messages.text_format import TextFormat

_START = re.compile(r"^(?=[-+=]+(?:\s|$))|^(\d{1,9})(?=[.)](?:\s|$))")
"""What begins a list or underlines a heading at the start of a line."""
_MARKS = re.compile(r"([\\`*_\[\]<>#|~])")


class Markdown(TextFormat):
    """Markdown without HTML."""

    name: ClassVar[str] = "markdown"
    ending: ClassVar[str] = "  \n"
    bullet: ClassVar[str] = "- "

    def escape(self, text: str) -> str:
        """A text without styles, links, cells of tables and HTML."""
        return _START.sub(lambda start: f"{start[1] or ''}\\", self.inline(text))

    def inline(self, text: str) -> str:
        """The same of a text that does not begin a line."""
        return _MARKS.sub(r"\\\1", super().escape(text))

    def headline(self, text: Text) -> str:
        """The headline."""
        return f"## {self.line(text)}"

    def bold(self, text: Text) -> str:
        """A title."""
        return f"**{self.line(text)}**"

    def link(self, label: str, address: str) -> str:
        """A link."""
        return f"[{self.escape(label)}](<{address}>)"

    def table(self, block: Table) -> Iterator[str]:
        """A table, in one piece."""
        title = f"{self.bold(block.title)}\n\n" if block.title else ""
        marks = [":--" if at in block.names else "--:" for at in range(len(block.headers))]
        rows = [map(self.escape, block.headers), marks, *(map(self.line, r) for r in block.rows)]
        yield title + "\n".join(f"| {' | '.join(row)} |" for row in rows)


markdown = Markdown()

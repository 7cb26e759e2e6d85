"""The base of formats that are one text: paragraphs of lines, with signs for titles and lists.

A format says how its signs look and how it escapes; here is what every block becomes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from ragmetrics.messages.blocks import (
    Block,
    Bullets,
    Header,
    Links,
    Note,
    Section,
    Table,
    Text,
    text_of,
)
from ragmetrics.text import clean, inert

LONGEST = 4_000
"""Most characters of a line."""
CUT = "…"
_WEB = re.compile(r"https?://[^\s<>|]{1,2900}")


def is_web_address(target: str) -> bool:
    """Whether a browser can open a target, and it can stand in a link as it is."""
    return bool(_WEB.fullmatch(target))


class TextFormat:
    """Plain text. Others replace what looks different."""

    name: ClassVar[str] = "text"
    ending: ClassVar[str] = "\n"
    """What separates the lines of a paragraph,"""
    gap: ClassVar[str] = "\n\n"
    """and what separates paragraphs."""
    bullet: ClassVar[str] = "• "

    def render(self, blocks: Sequence[Block], room: int | None = None) -> str:
        """The blocks as text. Whole lines beyond `room` characters are left out."""
        paragraphs = [lines for block in blocks if (lines := list(self.lines(block)))]
        whole = self.gap.join(map(self.ending.join, paragraphs))
        return whole if room is None or len(whole) <= room else self._cut(paragraphs, room)

    def _cut(self, paragraphs: Sequence[Sequence[str]], room: int) -> str:
        """The first whole lines that leave room for the last, which says so."""
        text = ""
        for lines in paragraphs:
            for number, line in enumerate(lines):
                more = f"{line}{self.ending if number + 1 < len(lines) else self.gap}"
                if len(text) + len(more) + len(self.cut) > room:
                    return text + self.cut if len(text) + len(self.cut) <= room else ""
                text += more
        return text

    cut: ClassVar[str] = CUT
    """The last line where lines are left out."""

    def lines(self, block: Block) -> Iterator[str]:
        """The lines of a block."""
        match block:
            case Header():
                yield self.headline(block.text)
            case Note():
                yield self.small(block.text)
            case Section():
                yield from self.section(block)
            case Bullets():
                yield from self.list(block)
            case Table():
                yield from self.table(block)
            case Links():
                yield from (self.target(name, target) for name, target in block.targets)

    def line(self, text: Text) -> str:
        """A line, escaped."""
        return self.escape(text_of(text))

    def escape(self, text: str) -> str:
        """A text on one line in which nothing acts."""
        return inert(clean(text, LONGEST))

    def headline(self, text: Text) -> str:
        """The headline."""
        return self.line(text)

    def small(self, text: Text) -> str:
        """A line of small print."""
        return self.line(text)

    def bold(self, text: Text) -> str:
        """A title."""
        return self.line(text)

    def link(self, label: str, address: str) -> str:
        """A link to the web."""
        return f"{self.escape(label)}: {address}"

    def section(self, block: Section) -> Iterator[str]:
        """A paragraph: its title, its lines, and its facts as a list."""
        if block.title:
            yield f"{self.bold(block.title)} {self.line(block.beside)}".rstrip()
        yield from map(self.line, block.lines)
        yield from (self.fact(label, value) for label, value in block.facts)

    def fact(self, label: str, value: str) -> str:
        """A label with its value."""
        shown = self.ending.join(map(self.line, value.split("\n")))
        return f"{self.bullet}{self.bold(label)}: {shown}"

    def list(self, block: Bullets) -> Iterator[str]:
        """A list below its title."""
        if block.title:
            yield self.bold(block.title)
        yield from (f"{self.bullet}{self.line(line)}" for line in block.lines)
        if block.more:
            yield self.more(f"and {block.more} more", block.page)

    def more(self, label: str, page: str) -> str:
        """The end of a list that is not whole."""
        return self.link(label, page) if is_web_address(page) else label

    def table(self, block: Table) -> Iterator[str]:
        """A table: its rows as lines, each cell after its header."""
        if block.title:
            yield self.bold(block.title)
        for name, *cells in block.rows:
            named = [
                f"{self.escape(header)} {self.line(cell)}"
                for header, cell in zip(block.headers[1:], cells, strict=True)
                if text_of(cell)
            ]
            yield f"{self.bullet}{self.line(name)}: {', '.join(named)}"

    def target(self, name: str, target: str) -> str:
        """A place that can be opened, or copied."""
        if is_web_address(target):
            return self.link(f"Open the {name}", target)
        shown = self.escape(f"{name[:1].upper()}{name[1:]}: {target}")
        return shown.replace(":\u2060//", "://")  # it is to be copied, and is ours

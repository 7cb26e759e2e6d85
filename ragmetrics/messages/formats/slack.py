"""Slack's Block Kit, within Slack's limits.

Slack knows three entities and has no escape for its style marks, which `inert` replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

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
from ragmetrics.messages.formats.text import text as plain
from ragmetrics.messages.text_format import CUT, LONGEST, is_web_address
from ragmetrics.text import clean, inert

MOST_BLOCKS = 50
LONGEST_TEXT = 3_000
"""Slack's limits of blocks, and of characters in one text. It rejects a message beyond them."""
_MOST_FIELDS = 10
_HEADER = 150
"""Slack's limits on fields of a section and characters of a header."""
_SECTION = 1_500
_FIELD = 700
_SMALL = 800
"""Most characters of a section, field and line of small print: Slack rejects messages of more than
about 12,000, whatever its limits per block."""
_LONGEST_LINK = 300
_CUT_ENTITY = re.compile(r"&[a-z]*$")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
Json = dict[str, Any]


class Slack:
    """Block Kit as JSON."""

    name: ClassVar[str] = "slack"

    def render(self, blocks: Sequence[Block], room: int | None = None) -> list[Json]:
        """The blocks as Slack takes them, at most `room` of them."""
        return [made for block in blocks for made in self._of(block)][: room or MOST_BLOCKS]

    def escape(self, text: Text, limit: int = LONGEST) -> str:
        """A line for mrkdwn of at most `limit` characters, without anything that acts."""
        safe = inert(clean(text_of(text), limit)).translate(_ENTITIES)
        return safe if len(safe) <= limit else _CUT_ENTITY.sub("", safe[: limit - 1]) + CUT

    def _of(self, block: Block) -> Iterator[Json]:
        match block:
            case Header():
                yield {"type": "header", "text": _plain(clean(text_of(block.text), _HEADER))}
            case Note():
                yield _context(_mrkdwn(self.escape(block.text, _SMALL)))
            case Section():
                yield self._section(block)
            case Bullets():
                yield self._bullets(block)
            case Table():
                yield from self.render([_as_list(block)])
            case Links():
                yield from self._links(block)

    def _section(self, block: Section) -> Json:
        first = f"*{self.escape(block.title, 150)}* {self.escape(block.beside, 600)}".rstrip()
        text, _ = self._joined([first] if text_of(block.title) else [], block.lines, "")
        fields = [
            _mrkdwn(f"*{self.escape(label, 80)}*\n{self._value(value)}")
            for label, value in block.facts[:_MOST_FIELDS]
        ]
        section: Json = {"type": "section", "text": _mrkdwn(text)}
        return {**section, "fields": fields} if fields else section

    def _value(self, value: str) -> str:
        return self._joined([], value.split("\n"), "", _FIELD)[0]

    def _bullets(self, block: Bullets) -> Json:
        title = [f"*{self.escape(block.title, 150)}*"] if text_of(block.title) else []
        text, shown = self._joined(title, block.lines, "• ")
        if left := len(block.lines) - shown + block.more:
            more = f"and {left} more"
            if is_web_address(block.page) and len(block.page) <= _LONGEST_LINK:
                more = f"<{block.page.translate(_ENTITIES)}|{more}>"
            text += f"\n{more}"
        return {"type": "section", "text": _mrkdwn(text)}

    def _joined(
        self, start: list[str], lines: Sequence[Text], mark: str, room: int = _SECTION
    ) -> tuple[str, int]:
        """Lines after those of the start, as far as there is room, and how many of them."""
        shown = start
        for number, line in enumerate(lines):
            taken = sum(map(len, shown)) + len(shown)
            escaped = mark + self.escape(line, room)
            if number and taken + len(escaped) > room:
                return "\n".join(shown), number
            shown = [*shown, escaped]
        return "\n".join(shown) or "–", len(lines)

    def _links(self, block: Links) -> Iterator[Json]:
        buttons, texts = [], []
        for name, target in block.targets:
            if is_web_address(target):
                label = _plain(clean(f"Open the {name}", 75))
                buttons.append({"type": "button", "text": label, "url": target})
            else:
                texts.append(_plain(clean(f"{name[:1].upper()}{name[1:]}: {target}", 500)))
        if buttons:
            yield {"type": "actions", "elements": buttons}
        if texts:
            yield _context(*texts)


def _as_list(block: Table) -> Bullets:
    """A table as a list: Slack has none. Its lines are those of the plain text."""
    lines = [line.removeprefix(plain.bullet) for line in plain.table(block)]
    return Bullets(block.title, tuple(lines[1:] if block.title else lines))


def _plain(text: str) -> Json:
    """Text that Slack shows without interpreting it."""
    return {"type": "plain_text", "text": text, "emoji": False}


def _mrkdwn(text: str) -> Json:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _context(*texts: Json) -> Json:
    return {"type": "context", "elements": list(texts)}


slack = Slack()

"""HTML for the lists of a page, which has the styles: one item a line, and what is folded in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import ClassVar

from ragmetrics.messages.blocks import Block, Bullets, Place, Quote, Text
from ragmetrics.messages.formats.html import Html
from ragmetrics.messages.text_format import LONGEST
from ragmetrics.text import clean


class Page(Html):
    """Items of a list."""

    name: ClassVar[str] = "page"
    ending: ClassVar[str] = "\n"
    gap: ClassVar[str] = "\n"

    def render(self, blocks: Sequence[Block], room: int | None = None) -> str:
        """The blocks; a folded list belongs to the item before it."""
        return super().render(blocks, room).replace(f"</li>{self.gap}<details", "<details")

    def escape(self, text: str) -> str:
        """A text without elements and entities: nothing else acts on a page."""
        return escape(clean(text, LONGEST))

    def line(self, text: Text) -> str:
        """A line; a text of a log keeps its direction to itself, and a place is a link."""
        return "".join(map(self._piece, (text,) if isinstance(text, str) else text))

    def _piece(self, text: str) -> str:
        shown = self.escape(text)
        if isinstance(text, Place) and text.target:
            return f'<a href="{escape(text.target)}"><bdi>{shown}</bdi></a>'
        if isinstance(text, Quote):
            return f"<bdi>{shown}</bdi>"
        return f"{' ' * text[:1].isspace()}{shown}{' ' * text[-1:].isspace()}"

    def list(self, block: Bullets) -> Iterator[str]:
        """Its items; a folded list in one piece."""
        items = [f"<li>{self.line(line)}</li>" for line in block.lines]
        items += [f"<li>and {block.more} more: see the rules below.</li>"] if block.more else []
        if block.folded:
            title = f"<summary>{self.line(block.title)}</summary>"
            yield f'<details class="fold">{title}<ul>{"".join(items)}</ul></details></li>'
        else:
            yield from [f"<li>{self.bold(block.title)}</li>"] if block.title else []
            yield from items


page = Page()

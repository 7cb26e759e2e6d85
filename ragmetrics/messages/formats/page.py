"""HTML for the description list of a page, which has the styles: a term for each label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import ClassVar

from ragmetrics.messages.blocks import Place, Quote, Section, Text, text_of
from ragmetrics.messages.formats.html import Html
from ragmetrics.messages.text_format import LONGEST
from ragmetrics.text import clean

_UNBROKEN = re.compile(r"\d[\d.]* → [\d.]*\d|\d{4}-\d\d-\d\d")
"""Numbers and dates that stay on a line."""


class Page(Html):
    """Labels with their lines."""

    name: ClassVar[str] = "page"
    gap: ClassVar[str] = "\n"

    def escape(self, text: str) -> str:
        """A text without elements and entities: nothing else acts on a page."""
        return _UNBROKEN.sub(r'<span class="unbroken">\g<0></span>', escape(clean(text, LONGEST)))

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

    def section(self, block: Section) -> Iterator[str]:
        """A term with its lines."""
        label = self.escape(text_of(block.title).rstrip(":"))
        lines = "".join(f"<p>{self.line(line)}</p>" for line in (block.beside, *block.lines))
        facts = "".join(f"<p>{self.fact(name, value)}</p>" for name, value in block.facts)
        yield f"<div><dt>{label}</dt><dd>{lines}{facts}</dd></div>"


page = Page()

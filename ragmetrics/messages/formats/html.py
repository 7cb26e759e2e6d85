"""HTML for mail: styles stand in the elements, since mail clients know no others."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import ClassVar

from ragmetrics.messages.blocks import Table, Text
from ragmetrics.messages.text_format import TextFormat

_TABLE = '<table cellpadding="6" rules="rows" style="border-collapse:collapse;text-align:left">'
_NAMES = ' style="overflow-wrap:anywhere"'
"""A long name breaks, so that a narrow screen shows all columns."""


class Html(TextFormat):
    """HTML that loads nothing."""

    name: ClassVar[str] = "html"
    ending: ClassVar[str] = "<br>\n"
    gap: ClassVar[str] = "<br>\n<br>\n"
    bullet: ClassVar[str] = "&bull; "

    def escape(self, text: str) -> str:
        """A text without elements and entities."""
        return escape(super().escape(text))

    def headline(self, text: Text) -> str:
        """The headline."""
        return f"<b>{self.line(text)}</b>"

    def bold(self, text: Text) -> str:
        """A title."""
        return f"<b>{self.line(text)}</b>"

    def link(self, label: str, address: str) -> str:
        """A link."""
        return f'<a href="{escape(address)}">{self.escape(label)}</a>'

    def table(self, block: Table) -> Iterator[str]:
        """A table, in one piece."""
        if block.title:
            yield self.bold(block.title)
        head = "".join(self._cell("th", at, one, block) for at, one in enumerate(block.headers))
        rows = "".join(
            f"<tr>{''.join(self._cell('td', at, one, block) for at, one in enumerate(row))}</tr>"
            for row in block.rows
        )
        yield f"{_TABLE}<tr>{head}</tr>{rows}</table>"

    def _cell(self, tag: str, at: int, text: Text, block: Table) -> str:
        align = _NAMES if at in block.names else ' align="right"'
        scope = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{scope}{align}>{self.line(text)}</{tag}>"


html = Html()

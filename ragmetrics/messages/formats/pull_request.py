"""Markdown for comments on GitHub and GitLab, which read HTML in it.

Texts of logs are written as inline code in which each sign is a character reference. So they can
start no Markdown and no HTML, and neither host reads mentions, links or references to issues in
code. Outside code a reference does not help: mentions and links are looked for after references are
decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ragmetrics.messages.blocks import Bullets, Quote, Text
from ragmetrics.messages.formats.markdown import Markdown
from ragmetrics.text import clean

_LONGEST = 500
"""Most characters of a text of a log."""
_AT = f"&#{ord('@')};"


class PullRequest(Markdown):
    """Markdown with HTML."""

    name: ClassVar[str] = "pull_request"
    ending: ClassVar[str] = "\n"
    cut: ClassVar[str] = "… the rest is too long for a comment."

    def line(self, text: Text) -> str:
        """A line with texts of logs as code."""
        pieces = (text,) if isinstance(text, str) else text
        return "".join(
            quoted(piece) if isinstance(piece, Quote) else self._with_spaces(piece)
            for piece in pieces
        )

    def _with_spaces(self, text: str) -> str:
        """A piece of a line, with the space around it."""
        before, after = " " * text[:1].isspace(), " " * text[-1:].isspace()
        return f"{before}{self.inline(text) if before else self.escape(text)}{after}"

    def small(self, text: Text) -> str:
        """A line of small print."""
        return f"<sub>{self.line(text)}</sub>"

    def list(self, block: Bullets) -> Iterator[str]:
        """A list; one that is folded, in one piece."""
        if not block.folded:
            yield from super().list(block)
            return
        lines = "\n".join(f"- {self.line(line)}" for line in block.lines)
        yield f"<details><summary>{self.line(block.title)}</summary>\n\n{lines}\n\n</details>"


def quoted(text: str) -> str:
    """A text of a log as inline code, each sign of it as a character reference.

    An empty comment follows each `@`: GitHub makes links of e-mail addresses in HTML code too.
    """
    line = clean(text, _LONGEST)
    safe = (sign if sign.isalnum() or sign == " " else f"&#{ord(sign)};" for sign in line)
    shown = "".join(safe).replace(_AT, f"{_AT}<!---->")
    return f"<code>{shown}</code>" if line else ""


pull_request = PullRequest()

"""Plain text for a language model, which must see what is logged text and what is ours.

Texts of logs stand between ⟦ and ⟧, which no text itself contains. Nothing in them acts: no link,
no chat-template token, no invisible character.
"""

from __future__ import annotations

from typing import ClassVar

from ragmetrics.messages.blocks import Quote, Text
from ragmetrics.messages.text_format import TextFormat
from ragmetrics.text import neutralise

_MARKS = str.maketrans({"⟦": "[", "⟧": "]"})


class Agent(TextFormat):
    """Plain text with marks around texts of logs."""

    name: ClassVar[str] = "agent"
    bullet: ClassVar[str] = "- "
    cut: ClassVar[str] = "… the rest is left out: too long."

    def line(self, text: Text) -> str:
        """A line with its texts of logs marked."""
        pieces = (text,) if isinstance(text, str) else text
        return "".join(map(self._piece, pieces))

    def _piece(self, text: str) -> str:
        """A piece of a line, with the space around it."""
        inner = self.escape(text)
        if isinstance(text, Quote):
            return f"⟦{inner}⟧" if inner else ""
        return f"{' ' * text[:1].isspace()}{inner}{' ' * (text[-1:].isspace() and bool(inner))}"

    def escape(self, text: str) -> str:
        """A text on one line in which nothing acts, without our marks."""
        return super().escape(neutralise(text)).translate(_MARKS)


agent = Agent()

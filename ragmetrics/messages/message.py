"""A message to people, before a channel sends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from ragmetrics.messages.blocks import Block, Header, text_of

Tone = Literal["info", "success", "warning", "failure"]
"""How a service with more than text marks a message."""


@dataclass(frozen=True)
class Message:
    """A message: `text` is one line for notifications, `blocks` are all that it says."""

    text: str
    blocks: list[Block]
    tone: Tone = "info"
    about: tuple[str, ...] = ()
    """Keys of its alerts, where they decide on its thread."""
    opens: bool = False
    """Whether it starts the thread of its alerts."""
    broadcast: bool = False
    """Whether a message in a thread is shown in the channel too."""

    @property
    def headline(self) -> str:
        """The text of the header; without one, the line for notifications."""
        texts = (text_of(block.text) for block in self.blocks if isinstance(block, Header))
        return next(texts, self.text)

    @property
    def body(self) -> list[Block]:
        """The blocks without the header."""
        return [block for block in self.blocks if not isinstance(block, Header)]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As any dataclass, after a message of an earlier version became one of today."""
        return core_schema.no_info_before_validator_function(_of_today, handler(source))


def _of_today(stored: Any) -> Any:
    """A stored message with neutral blocks; one of today, and what is none, as it is."""
    blocks = stored.get("blocks") if isinstance(stored, dict) else None
    if not isinstance(blocks, list):
        return stored
    if not any(isinstance(block, dict) and "type" in block for block in blocks):
        return stored
    from ragmetrics.messages.earlier import from_block_kit  # nothing else reads Block Kit

    return from_block_kit(stored)

"""A message to people, before a channel sends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Tone = Literal["info", "success", "warning", "failure"]
"""How a service with more than text marks a message."""


@dataclass(frozen=True)
class Message:
    """A message: `text` is one line for notifications, `blocks` are Block Kit blocks as JSON."""

    text: str
    blocks: list[dict[str, Any]]
    tone: Tone = "info"
    about: tuple[str, ...] = ()
    """Keys of its alerts, where they decide on its thread."""
    opens: bool = False
    """Whether it starts the thread of its alerts."""
    broadcast: bool = False
    """Whether a message in a thread is shown in the channel too."""

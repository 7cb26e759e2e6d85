"""Messages as their formats show them."""

from __future__ import annotations

import json
from typing import Any

from ragmetrics.messages import FORMATS, Message


def terminal_text(message: Message) -> str:
    """The message on a terminal."""
    return str(FORMATS.find("terminal").render(message.blocks))


def slack_text(message: Message) -> str:
    """Its line for notifications, as Slack gets it."""
    return FORMATS.find("slack").escape(message.text)


def slack_blocks(message: Message) -> list[dict[str, Any]]:
    """Its blocks, as Slack gets them."""
    blocks: list[dict[str, Any]] = FORMATS.find("slack").render(message.blocks)
    return blocks


def slack_json(message: Message) -> str:
    """The same as JSON."""
    return json.dumps(slack_blocks(message), ensure_ascii=False)

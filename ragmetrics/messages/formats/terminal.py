"""Renders a Slack message for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from ragmetrics.messages.formats.slack_mrkdwn import spans
from ragmetrics.messages.message import Message

WIDTH = 88


def terminal_text(message: Message) -> str:
    """The blocks as plain text, wrapped; one blank line between them, no newline at the end."""
    return "\n\n".join("\n".join(_wrapped(block)) for block in message.blocks)


def _wrapped(block: dict[str, Any]) -> Iterator[str]:
    for line in _lines(block):
        yield textwrap.fill(
            line,
            WIDTH,
            subsequent_indent="  " if line.startswith(("• ", "  ")) else "",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _lines(block: dict[str, Any]) -> Iterator[str]:
    if "text" in block:
        yield from _plain(block["text"]).split("\n")
    for field in block.get("fields", ()):
        yield "  " + _plain(field).replace("\n", ": ", 1).replace("\n", ", ")
    for element in block.get("elements", ()):
        link = f" {element['url']}" if "url" in element else ""
        yield _plain(element.get("text", element) if link else element) + link


def _plain(text: dict[str, Any]) -> str:
    """The text of a text object without bold marks and links, with Slack's entities decoded."""
    if text["type"] == "plain_text":
        return str(text["text"])
    return "".join(one.text for one in spans(text["text"])).replace("\u2060", "")

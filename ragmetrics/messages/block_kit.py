"""The parts of Slack messages in Block Kit, within Slack's limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ragmetrics.text import clean

MOST_FIELDS = 10
"""Slack's limit on fields of a section."""

LISTED = 10
LIST_LENGTH = 1_200
Block = dict[str, Any]


def bullets(title: str, lines: Iterable[str], page: str | None = None) -> list[Block]:
    """A section of bullets; empty where there is no line.

    A long list ends with the count of the remaining lines, which links to `page` where a browser
    can open it.
    """
    lines = list(lines)
    if not lines:
        return []
    shown = f"*{title}*"
    count = 0
    for line in lines[:LISTED]:
        if len(shown) + len(line) > LIST_LENGTH:
            break
        shown += f"\n• {line}"
        count += 1
    more = f"and {len(lines) - count} more"
    if page and re.fullmatch(r"https?://[^\s<>|]{1,300}", page):
        more = f"<{page.replace('&', '&amp;')}|{more}>"
    return [section(f"{shown}\n{more}" if count < len(lines) else shown)]


def plain(text: str) -> Block:
    """Text that Slack shows without interpreting it."""
    return {"type": "plain_text", "text": text, "emoji": False}


def mrkdwn(text: str) -> Block:
    """Text with Slack's styles; text of users in it must be escaped."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def section(text: str) -> Block:
    """A paragraph."""
    return {"type": "section", "text": mrkdwn(text)}


def context(text: str) -> Block:
    """A line in small print."""
    return {"type": "context", "elements": [mrkdwn(text)]}


def links(targets: Mapping[str, str | None]) -> list[Block]:
    """Buttons for web addresses; other places, which no browser opens, as plain text to copy."""
    buttons, texts = [], []
    for name, target in targets.items():
        if target and re.fullmatch(r"https?://\S{1,2900}", target):
            buttons.append({"type": "button", "text": plain(f"Open the {name}"), "url": target})
        elif target:
            texts.append(plain(clean(f"{name.capitalize()}: {target}", 500)))
    return [
        *([{"type": "actions", "elements": buttons}] if buttons else []),
        *([{"type": "context", "elements": texts}] if texts else []),
    ]

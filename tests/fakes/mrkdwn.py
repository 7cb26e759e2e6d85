"""Parses Slack's mrkdwn as Slack does, into pieces of text with their style, for a web page.

Everything that Slack reads as markup is markup here too, so a preview shows where escaping failed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Style = Literal["", "bold", "italic", "strike", "code", "link", "mention"]

_INNER = r"[^\s{0}](?:[^{0}\n]*[^\s{0}])?"
_TOKEN = re.compile(
    r"<(?P<target>[^<>|\n]+)(?:\|(?P<label>[^<>\n]*))?>"
    r"|`(?P<code>[^`\n]+)`"
    + "".join(
        rf"|(?<![\w{sign}]){re.escape(sign)}(?P<{name}>{_INNER.format(re.escape(sign))})"
        rf"{re.escape(sign)}(?![\w{sign}])"
        for name, sign in (("bold", "*"), ("italic", "_"), ("strike", "~"))
    )
)


@dataclass(frozen=True)
class StyledText:
    """A piece of text in one style, not escaped; a link has its address."""

    text: str
    style: Style = ""
    href: str = ""


def spans(text: str) -> list[StyledText]:
    """The pieces of a mrkdwn text, in order; nested styles are not parsed."""
    found: list[StyledText] = []
    end = 0
    for match in _TOKEN.finditer(text):
        found += _plain(text[end : match.start()])
        found.append(_span(match))
        end = match.end()
    return found + _plain(text[end:])


def web(address: object) -> str:
    """The address, if it is an HTTP address; else empty."""
    return address if isinstance(address, str) and re.match(r"https?://\S+$", address) else ""


def _span(match: re.Match[str]) -> StyledText:
    target, label = match["target"], match["label"]
    if target is None:
        style: Style = next(one for one in ("code", "bold", "italic", "strike") if match[one])
        return StyledText(_decoded(match[style]), style)
    shown = _decoded(target if label is None else label)
    if target[0] in "!@#":
        return StyledText(f"@{shown.lstrip('!@#')}", "mention")
    return StyledText(shown, "link", web(_decoded(target)))


def _plain(text: str) -> list[StyledText]:
    return [StyledText(_decoded(text))] if text else []


def _decoded(text: str) -> str:
    """The text with Slack's three entities decoded, and no others."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")

"""Renders a message for other services than Slack: a title, and a body as text, Markdown or HTML.

It renders the Slack blocks. Text of users was made safe for Slack before, so it has no mention,
link or style. Here it is escaped for the output form.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ragmetrics.messages.formats.slack_mrkdwn import StyledText, spans
from ragmetrics.messages.message import Message

Form: TypeAlias = Literal["text", "markdown", "html"]
_MARKS = re.compile(r"([\\`*_\[\]<>#|~])")
_MENTION = re.compile("@(?!\u2060)")
_CUT = "…"
_BARE = 3_000
"""Most characters of a message without blocks; Slack truncates much longer ones."""
_ENDINGS: Mapping[Form, str] = {"text": "\n", "markdown": "  \n", "html": "<br>\n"}
"""Ending of a line within a paragraph; an empty line separates paragraphs."""


@dataclass(frozen=True)
class _Line:
    spans: Sequence[StyledText]
    bullet: bool = False


def title(message: Message, form: Form = "text") -> str:
    """The message's headline; where it has none, its line for notifications."""
    header = next((one["text"] for one in message.blocks if one["type"] == "header"), None)
    text = str(header["text"]) if header else html.unescape(message.text)
    return _ESCAPES[form](_unmentioned(text))


def body(message: Message, form: Form = "text", limit: int | None = None) -> str:
    """The message without its headline. Whole lines beyond `limit` characters are left out."""
    paragraphs = [
        [_line(line, form) for line in _lines(block)]
        for block in message.blocks
        if block["type"] != "header"
    ]
    lines = [line for paragraph in paragraphs for line in (*paragraph, "") if paragraph][:-1]
    return _joined(lines, _ENDINGS[form], limit)


def without_blocks(message: Message) -> Message:
    """The message as plain text for Slack, truncated where it is too long."""
    words = html.escape(body(message, "text", _BARE), quote=False)
    return replace(message, text=f"{message.text}\n\n{words}", blocks=[])


def _joined(lines: Sequence[str], ending: str, limit: int | None) -> str:
    whole = ending.join(lines)
    if limit is None or len(whole) <= limit:
        return whole
    shown, size = list[str](), len(_CUT)
    for line in lines:
        size += len(line) + len(ending)
        if size > limit:
            break
        shown.append(line)
    return ending.join([*shown, _CUT]) if limit >= len(_CUT) else ""


def _lines(block: Mapping[str, Any]) -> Iterator[_Line]:
    if "text" in block:
        for line in str(block["text"]["text"]).split("\n"):
            yield _parsed(block["text"], line)
    for field in block.get("fields", ()):
        label, _, value = str(field["text"]).partition("\n")
        yield _Line(
            [*_parsed(field, label).spans, StyledText(": "), *_parsed(field, value).spans], True
        )
    for element in block.get("elements", ()):
        if "url" in element:  # a button
            yield _Line([StyledText(str(element["text"]["text"]), "link", str(element["url"]))])
        else:
            yield _parsed(element, str(element["text"]))


def _parsed(text: Mapping[str, Any], line: str) -> _Line:
    bullet, line = line.startswith("• "), line.removeprefix("• ")
    plain = text["type"] == "plain_text"
    return _Line([StyledText(_unmentioned(line))] if plain else spans(line), bullet)


def _unmentioned(text: str) -> str:
    """The text with mentions disabled: Slack ignores them in plain text, other services do not."""
    return _MENTION.sub("@\u2060", text)


def _line(line: _Line, form: Form) -> str:
    mark = {"text": "• ", "markdown": "- ", "html": "&bull; "}[form] if line.bullet else ""
    return mark + "".join(_STYLES[form](one) for one in line.spans if one.text)


def _in_text(one: StyledText) -> str:
    return f"{one.text}: {one.href}" if one.href else one.text


def _in_markdown(one: StyledText) -> str:
    text = _for_markdown(one.text)
    if one.href:
        return f"[{text}](<{one.href}>)"
    return f"**{text}**" if one.style == "bold" else text


def _in_html(one: StyledText) -> str:
    text = html.escape(one.text)
    if one.href:
        return f'<a href="{html.escape(one.href)}">{text}</a>'
    return f"<b>{text}</b>" if one.style == "bold" else text


def _for_markdown(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)


_STYLES: Mapping[Form, Callable[[StyledText], str]] = {
    "text": _in_text,
    "markdown": _in_markdown,
    "html": _in_html,
}
_ESCAPES: Mapping[Form, Callable[[str], str]] = {
    "text": str,
    "markdown": _for_markdown,
    "html": html.escape,
}

__all__ = ["Form", "body", "title", "without_blocks"]

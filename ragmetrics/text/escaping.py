"""Makes text of logs and users safe: in Slack messages, file names and logs, and for a judge.

For a judge it stays data. A log may hold invisible characters, which can hide instructions, and the
chat-template tokens by which self-hosted servers mark turns. A server may treat such a token in the
data as its own.
"""

from __future__ import annotations

import re
import unicodedata

_LOOK_ALIKES = str.maketrans({"*": "∗", "~": "∼", "`": "ˋ", "@": "@\u2060"})
_OUTER_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_EMOJI_COLON = re.compile(r":(?=[\w+'-]+:)")
_JOINERS = "\u200c\u200d"
"""Zero-width characters that Persian, Hindi and emoji need."""

_SHORT = 300  # characters of a server's message that are shown
_INVISIBLE = re.compile(
    "["
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f"  # not the joiners between them: Persian, Hindi and emoji need these
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]+"
)
_BAR = re.compile("<(?=[|\uff5c])|(?<=[|\uff5c])(?=>)")
# A pattern that begins with one character is fast where that is rare.
_TAG = re.compile(
    r"<(?=/?(?:s|bos|eos|pad|unk|mask|sop|eop|think|thinking|tools?|tool_calls?|tool_response"
    r"|function_call|(?:start|end)_of_[a-z_]+|[a-z_]+_token|unused\d+|extra_id_\d+)>"
    r"|</?sys>>)",
    re.IGNORECASE,
)
_BRACKET = re.compile(
    r"\[(?=/?(?:inst|gmask|system_prompt|available_tools|tool_calls?|tool_results?|tool_content"
    r"|prefix|middle|suffix|img|think|model_settings)\])",
    re.IGNORECASE,
)


def clean(text: str, limit: int) -> str:
    """One line of at most `limit` characters, without control characters and bidi marks."""
    head = text[: 8 * limit]
    spaced = (" " if unicodedata.category(c) == "Cc" else c for c in head)
    visible = (c for c in spaced if c in _JOINERS or unicodedata.category(c) not in ("Cf", "Cs"))
    # Nearly all are plain.
    line = " ".join((head if head.isascii() and head.isprintable() else "".join(visible)).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def inert(text: str) -> str:
    """A line in which no service finds a mention, link, emoji or style.

    Most services have no escape for their marks, so those are replaced by look-alikes. Underscores
    inside words stay: they are no style.
    """
    line = _EMOJI_COLON.sub("∶", _OUTER_UNDERSCORE.sub("ˍ", text))
    return line.replace("://", ":\u2060//").translate(_LOOK_ALIKES)


def slug(name: str) -> str:
    """A name that is safe in file names, anchors and links."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:80] or "-"


def shorten(text: object) -> str:
    """A server's message on one line, truncated, without terminal control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)[:5_000]).split())
    return line if len(line) <= _SHORT else f"{line[:_SHORT]} ..."


def neutralise(text: str) -> str:
    """The text without invisible characters, and with every chat-template token cut by a space.

    `<|im_start|>` becomes `< |im_start| >`, `[INST]` becomes `[ INST]`. Joiners of Persian, of
    Indian scripts and of emoji stay; variation selectors of emoji are removed.
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    if "|" in text or "\uff5c" in text:
        text = _BAR.sub(r"\g<0> ", text)
    text = _TAG.sub("< ", text)
    return _BRACKET.sub("[ ", text)


# A spreadsheet runs a cell that begins with one of these signs, of either width. A tab may end a
# cell, and so may a semicolon where a comma is part of numbers. Then quotes do not hold a text
# together, and each of its lines may begin a cell.
_FORMULA = re.compile(r"(?:^|(?<=[;\t\r\n]))(?=[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r\n])")

_SAFE_FORMULA = re.compile(
    r"(?:^|(?<=[;\t\r\n]))'(?=[=+\-@\uff1d\uff0b\uff0d\uff20])|^'(?=[\t\r\n])"
)


def spreadsheet_safe(text: str) -> str:
    """The text as a cell that no spreadsheet runs as a formula: an apostrophe before its sign."""
    return _FORMULA.sub("'", text)


def without_spreadsheet_signs(text: str) -> str:
    """The text before `spreadsheet_safe`."""
    return _SAFE_FORMULA.sub("", text)

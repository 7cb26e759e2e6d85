"""Makes text of users safe in Slack messages, file names and logs."""

from __future__ import annotations

import re
import unicodedata

_SAFE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "*": "∗", "~": "∼", "`": "ˋ", "@": "@\u2060"}
)
_OUTER_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_EMOJI_COLON = re.compile(r":(?=[\w+'-]+:)")
_CUT_ENTITY = re.compile(r"&[a-z]*$")
_JOINERS = "\u200c\u200d"
"""Zero-width characters that Persian, Hindi and emoji need."""


def clean(text: str, limit: int) -> str:
    """One line of at most `limit` characters, without control characters and bidi marks."""
    spaced = (" " if unicodedata.category(c) == "Cc" else c for c in text[: 8 * limit])
    visible = (c for c in spaced if c in _JOINERS or unicodedata.category(c) not in ("Cf", "Cs"))
    line = " ".join("".join(visible).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def escape(text: str, limit: int) -> str:
    """`clean` text for mrkdwn, without mentions, links, emoji or styles.

    Slack has no escape for its style marks, so they are replaced by look-alikes. Underscores
    inside words stay: they are no style there.
    """
    line = _EMOJI_COLON.sub("∶", _OUTER_UNDERSCORE.sub("ˍ", clean(text, limit)))
    safe = line.replace("://", ":\u2060//").translate(_SAFE)
    return safe if len(safe) <= limit else _CUT_ENTITY.sub("", safe[: limit - 1]) + "…"


def slug(name: str) -> str:
    """A name that is safe in file names, anchors and links."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name)[:80] or "-"


_SHORT = 300  # characters of a server's message that are shown


def shorten(text: object) -> str:
    """A server's message on one line, truncated, without terminal control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)[:5_000]).split())
    return line if len(line) <= _SHORT else f"{line[:_SHORT]} ..."

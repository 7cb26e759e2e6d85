"""pysbd's marks: what stands for punctuation that ends no sentence, until it is put back."""

from __future__ import annotations

import re

from pysbd.lang.common import Standard

STOP = "∯"
"""pysbd's mark of a full stop that ends no sentence."""
PUNCTUATION = str.maketrans(
    {".": STOP, "。": "&ᓰ&", "．": "&ᓱ&", "！": "&ᓳ&", "!": "&ᓴ&", "?": "&ᓷ&", "？": "&ᓸ&"}
)
PUNCTUATION_AND_QUOTES = {**PUNCTUATION, ord("'"): "&⎋&"}
_MARKS = [(rule.pattern, rule.replacement) for rule in Standard.SubSymbolsRules.All]
MARKS_BETWEEN_AMPERSANDS = [mark for mark in _MARKS if mark[0].startswith("&")]
SINGLE_MARKS = [
    *(mark for mark in _MARKS if not mark[0].startswith("&")),
    *((rule.pattern, rule.replacement) for rule in Standard.ReinsertEllipsisRules.All),
]


def marked(match: re.Match[str]) -> str:
    """The match with pysbd's marks in place of ! and ?."""
    return match.group().replace("!", "&ᓴ&").replace("?", "&ᓷ&")


def unpunctuated(match: re.Match[str], table: dict[int, str] = PUNCTUATION_AND_QUOTES) -> str:
    """pysbd's replace_punctuation. Its escapes of brackets cancel each other."""
    return match.group().translate(table)


def replaced(text: str, marks: list[tuple[str, str]]) -> str:
    """The text with each mark replaced, in their order."""
    for mark, replacement in marks:
        text = text.replace(mark, replacement)
    return text

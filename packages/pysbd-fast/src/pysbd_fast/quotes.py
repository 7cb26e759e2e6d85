"""Punctuation between quotes, brackets and dashes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from pysbd.between_punctuation import BetweenPunctuation

from pysbd_fast.marks import PUNCTUATION, unpunctuated


class Quotes(BetweenPunctuation):  # type: ignore[misc]
    """Punctuation between quotes, brackets and dashes."""

    def sub_punctuation_between_single_quotes(self, txt: str) -> str:
        if "'" not in txt or not _SPACE_BEFORE_QUOTE.search(txt):
            return txt
        if _LEADING_APOSTROPHE.search(txt) and not _QUOTE_BEFORE_SPACE.search(txt):
            return txt
        keeping_quotes = partial(unpunctuated, table=PUNCTUATION)
        return _BETWEEN_SINGLE_QUOTES.sub(keeping_quotes, txt)


_SPACE_BEFORE_QUOTE = re.compile(r"'(?<=\s')")
_QUOTE_BEFORE_SPACE = re.compile(r"'\s")
_LEADING_APOSTROPHE = re.compile(BetweenPunctuation.WORD_WITH_LEADING_APOSTROPHE)
_BETWEEN_SINGLE_QUOTES = re.compile(BetweenPunctuation.BETWEEN_SINGLE_QUOTES_REGEX)


def _rule_between(mark: str, pattern: str) -> Callable[[Any, str], str]:
    """A method that replaces punctuation in the matches of a pattern, which needs the mark."""
    between = re.compile(pattern)

    def method(self: Any, txt: str) -> str:
        return between.sub(unpunctuated, txt) if mark in txt else txt

    return method


for _name, _mark, _pattern in (
    ("single_quote_slanted", "‘", "BETWEEN_SINGLE_QUOTE_SLANTED_REGEX"),
    ("double_quotes", '"', "BETWEEN_DOUBLE_QUOTES_REGEX_2"),
    ("square_brackets", "[", "BETWEEN_SQUARE_BRACKETS_REGEX_2"),
    ("parens", "(", "BETWEEN_PARENS_REGEX_2"),
    ("quotes_arrow", "«", "BETWEEN_QUOTE_ARROW_REGEX_2"),
    ("em_dashes", "--", "BETWEEN_EM_DASHES_REGEX_2"),
    ("quotes_slanted", "“", "BETWEEN_QUOTE_SLANTED_REGEX_2"),
):
    _method = _rule_between(_mark, getattr(BetweenPunctuation, _pattern))
    setattr(Quotes, f"sub_punctuation_between_{_name}", _method)

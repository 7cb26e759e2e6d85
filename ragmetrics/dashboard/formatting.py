"""Numbers and logged texts as people read them: rounded, cleaned, cut, with sentences marked."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from markupsafe import escape

from ragmetrics import text as plain
from ragmetrics.text import NO_CHANGE, NO_VALUE, digits_of, drop_words, finite, sentences, slug

LONGEST = 4_000
"""Characters of one text that are shown; a longer text is cut and says so."""
_LONGEST_SPLIT = 50_000
"""Characters up to which a text is split again to find its sentences."""
_LEAST = 160
"""Characters of a text that are shown even if there is no room."""
_MARKUP = 600
"""Approximate bytes of the markup around one text."""

Span: TypeAlias = tuple[int, int]
"""Start and end in a text."""
_CONTROLS = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_CONTROLS |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_SIGNS = {sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_SURROGATES = re.compile("[\ud800-\udfff]")
_DIGESTED = re.compile("-[0-9a-f]{16}$")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def number(value: float | None, digits: int = 3) -> str:
    """`0.912`, with a true minus sign; a dash if there is no number.

    A mean has three digits on every page, so it is the same number everywhere.
    """
    return _minus(plain.number(value, digits))


def p_value(value: float | None) -> str:
    """`0.031`, `0.58`, `0.0012`, with two digits; `< 0.0001` for smaller values."""
    value = finite(value)
    if value is None:
        return NO_VALUE
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


def signed(value: float, digits: int = 3) -> str:
    """A change with its sign: `+0.012`, `−0.231`; `no change` if it rounds to 0."""
    told = plain.signed(value, digits)
    return _minus(told) if float(told) else NO_CHANGE


def drop(value: float, low: float | None, high: float | None) -> tuple[str, str]:
    """A drop and its interval, rounded as far as that allows: `0.107`, `[0.071, 0.143]`."""
    told, ends = drop_words(value, low, high)
    return _minus(told), _minus(ends)


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """`[0.881, 0.943]`; empty if there is no interval."""
    return _minus(plain.interval(low, high, digits))


def moved(by: float, low: float | None, high: float | None) -> tuple[str, str]:
    """A change and its interval with signs, rounded as far as the interval allows: `−0.22`,
    `[−0.31, −0.13]`. Without an interval it has three digits.
    """
    low, high = finite(low), finite(high)
    if low is None or high is None:
        return signed(by), ""
    exact = digits_of(low, high)
    return signed(by, exact), _minus(plain.signed_interval(low, high, exact))


def count(value: int) -> str:
    """`12,345`."""
    return f"{value:,}"


def duration(elapsed: timedelta) -> str:
    """`4 min 12 s`."""
    seconds = max(0, round(elapsed.total_seconds()))
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {seconds % 60:02} s" if minutes else f"{seconds} s"


def clean(text: str) -> str:
    """A text for a page: control characters become visible, broken characters are replaced."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATES.sub("�", text).translate(_CONTROLS)


def brief(text: object, longest: int = 160) -> str:
    """One line of a text, cut if it is long."""
    line = " ".join(str(text)[: longest * 4].split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def one_line(text: object, longest: int = 160) -> str:
    """As `brief`, without direction marks, for places that cannot isolate them."""
    return _BIDI.sub("", clean(brief(text, longest)))


def anchor(name: str) -> str:
    """As `slug`, for a name from outside: different names have different anchors."""
    short = slug(name)
    if short == name and not _DIGESTED.search(name):
        return short
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8)
    return f"{short[:60]}-{digest.hexdigest()}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`, of at least one name."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def script_json(value: object) -> str:
    """JSON that ends no script and begins no element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return replaced(text, _SIGNS)


def replaced(text: str, signs: Mapping[str, str]) -> str:
    """The text with other signs in place of some."""
    for sign, other in signs.items():  # much faster than `translate` if a text is not ASCII
        text = text.replace(sign, other)
    return text


def _minus(text: str) -> str:
    return text.replace("-", "−")


@dataclass(frozen=True)
class Piece:
    """A part of a text that is marked, or not."""

    text: str
    marked: bool


@dataclass(frozen=True)
class MarkedText:
    """A text as a page shows it."""

    pieces: tuple[Piece, ...]
    shown: int
    length: int
    marks_beyond: int = 0
    """Marked sentences after the cut."""

    @property
    def note(self) -> str:
        """What is left out, in words."""
        if self.shown == self.length:
            return ""
        text = f"Cut: the first {self.shown:,} of {self.length:,} characters"
        if self.marks_beyond:
            text += f"; needed sentences beyond the cut: {self.marks_beyond}"
        return text + "."


@dataclass
class TextBudget:
    """Bytes that the texts of one row may still take, so that a page stays small."""

    left: int

    @property
    def empty(self) -> bool:
        """Whether no further text fits."""
        return self.left <= 0

    def passage(self, text: str, marked: Sequence[Span] = (), longest: int = LONGEST) -> MarkedText:
        """The text, cut to `longest` characters and to the bytes that are left; never empty."""
        length = self._fit(text, longest)
        pieces = []
        place = 0
        for start, end in (*marked, (len(text), len(text))):
            for stop, mark in ((start, False), (end, True)):
                if place < min(stop, length):
                    pieces.append(Piece(text[place : min(stop, length)], mark))
                place = max(place, min(stop, length))
        beyond = sum(start >= length for start, _ in marked)
        return MarkedText(tuple(pieces), length, len(text), beyond)

    def _fit(self, text: str, longest: int) -> int:
        length = min(len(text), longest)
        size = _weight(text[:length])
        while size > self.left and length > _LEAST:
            length = max(_LEAST, min(length - 1, length * max(self.left, 0) // size))
            size = _weight(text[:length])
        self.left -= size + _MARKUP
        return length


def spans(text: str, language: str | None, wanted: Sequence[int]) -> list[Span]:
    """Start and end of the wanted sentences in the text; empty if the text lacks any of them."""
    if not wanted or len(text) > _LONGEST_SPLIT:
        return []
    texts: list[Span] = []
    place = 0
    for sentence in sentences(text, language):
        start = text.find(sentence, place)
        if start < 0:
            return []
        place = start + len(sentence)
        texts.append((start, place))
    if not all(0 <= index < len(texts) for index in wanted):
        return []
    return [texts[index] for index in sorted(set(wanted))]


def _weight(text: str) -> int:
    return len(str(escape(clean(text))).encode())

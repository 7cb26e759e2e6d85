"""Numbers and logged text as people read them: rounded alike everywhere, and harmless."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from markupsafe import escape

from ragmetrics.model import NO_CHANGE, WIDE, drop_words
from ragmetrics.text import NO_VALUE, finite, sentences, slug

LONGEST = 4_000
"""Characters of one text that are shown; what is longer is cut and says so."""

_CONTROLS = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_CONTROLS |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_SURROGATES = re.compile("[\ud800-\udfff]")
_DIGESTED = re.compile("-[0-9a-f]{16}$")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def number(value: float | None, digits: int = 3) -> str:
    """`0.912`, with a true minus sign; a dash where there is no number.

    A mean has three digits wherever it stands, so that it is the same number everywhere.
    """
    value = finite(value)
    return NO_VALUE if value is None else _minus(f"{value:z.{digits}f}")


def digits(low: float | None, high: float | None) -> int:
    """Digits behind the point that an interval bears: a third one says nothing in a wide one."""
    low, high = finite(low), finite(high)
    return 2 if low is not None and high is not None and high - low >= WIDE else 3


def p_value(value: float | None) -> str:
    """`0.031`, `0.58`, `0.0012`: more digits say nothing; `< 0.0001` for what is smaller."""
    value = finite(value)
    if value is None:
        return NO_VALUE
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


def signed(value: float, digits: int = 3) -> str:
    """A change with its sign: `+0.012`, `−0.231`; `no change` for one that rounds to 0."""
    text = f"{value:+.{digits}f}"
    return _minus(text) if float(text) else NO_CHANGE


def drop(value: float, low: float | None, high: float | None) -> tuple[str, str]:
    """A drop and its interval, rounded as far as that bears it: `0.107`, `[0.071, 0.143]`."""
    told, ends = drop_words(value, low, high)
    return _minus(told), _minus(ends)


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """`[0.881, 0.943]`, or nothing where there is no interval."""
    if finite(low) is None or finite(high) is None:
        return ""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def moved(by: float, low: float | None, high: float | None) -> tuple[str, str]:
    """A change and its interval with their signs, rounded as far as that bears it: `−0.22`,
    `[−0.31, −0.13]`; without an interval, three digits.
    """
    low, high = finite(low), finite(high)
    if low is None or high is None:
        return signed(by), ""
    exact = digits(low, high)
    return signed(by, exact), _minus(f"[{low:+z.{exact}f}, {high:+z.{exact}f}]")


def count(value: int) -> str:
    """`12,345`."""
    return f"{value:,}"


def plural(value: int, noun: str) -> str:
    """`1 row`, `12,345 rows`."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def duration(elapsed: timedelta) -> str:
    """`4 min 12 s`."""
    seconds = max(0, round(elapsed.total_seconds()))
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {seconds % 60:02} s" if minutes else f"{seconds} s"


def clean(text: str) -> str:
    """Text that a page can hold: control characters are shown, broken ones replaced."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATES.sub("�", text).translate(_CONTROLS)


def brief(text: object, longest: int = 160) -> str:
    """One line of a text, cut where it is long."""
    line = " ".join(str(text)[: longest * 4].split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def one_line(text: object, longest: int = 160) -> str:
    """As `brief`, without direction marks, for places that cannot isolate them."""
    return _BIDI.sub("", clean(brief(text, longest)))


def anchor(name: str) -> str:
    """As `slug`, of a name that others chose: two names never have the same."""
    short = slug(name)
    if short == name and not _DIGESTED.search(name):
        return short
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8)
    return f"{short[:60]}-{digest.hexdigest()}"


def _minus(text: str) -> str:
    return text.replace("-", "−")


_LONGEST_SPLIT = 50_000
"""Characters up to which a text is split again to find its sentences."""


_LEAST = 160


_MARKUP = 600
"""About what the markup around one text weighs, in bytes."""


Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """A stretch of text that is marked as a whole, or not at all."""

    text: str
    marked: bool


@dataclass(frozen=True)
class MarkedText:
    """A text as it is shown."""

    pieces: tuple[Piece, ...]
    shown: int
    length: int
    marks_beyond: int = 0
    """Marked sentences that lie beyond the cut."""

    @property
    def note(self) -> str:
        """What was left out, in words."""
        if self.shown == self.length:
            return ""
        text = f"Cut: the first {self.shown:,} of {self.length:,} characters"
        if self.marks_beyond:
            text += f"; needed sentences beyond the cut: {self.marks_beyond}"
        return text + "."


@dataclass
class TextBudget:
    """Bytes that the texts of one row may take, so that a page stays small."""

    left: int

    @property
    def empty(self) -> bool:
        """Whether no further text should be begun."""
        return self.left <= 0

    def passage(self, text: str, marked: Sequence[Span] = (), longest: int = LONGEST) -> MarkedText:
        """The text, cut to so many characters and to what is left; never to nothing."""
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
    """Where the wanted sentences stand in the text; nowhere if they do not fit it."""
    if not wanted or len(text) > _LONGEST_SPLIT:
        return []
    found: list[Span] = []
    place = 0
    for sentence in sentences(text, language):
        start = text.find(sentence, place)
        if start < 0:
            return []
        place = start + len(sentence)
        found.append((start, place))
    if not all(0 <= index < len(found) for index in wanted):
        return []
    return [found[index] for index in sorted(set(wanted))]


def _weight(text: str) -> int:
    return len(str(escape(clean(text))).encode())

"""Numbers and logged text as people read them: rounded alike everywhere, and harmless."""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta

from ragmetrics.model import NO_CHANGE, WIDE, drop_words
from ragmetrics.text import NO_VALUE, finite, slug

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


def plain(text: str) -> str:
    """One line without direction marks, for places that cannot isolate them."""
    return _BIDI.sub("", clean(" ".join(text.split())))


def anchor(name: str) -> str:
    """As `slug`, of a name that others chose: two names never have the same."""
    short = slug(name)
    if short == name and not _DIGESTED.search(name):
        return short
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8)
    return f"{short[:60]}-{digest.hexdigest()}"


def _minus(text: str) -> str:
    return text.replace("-", "−")

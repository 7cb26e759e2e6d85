"""Numbers, intervals, shares and durations as text, the same in every output.

Durations in settings: `20h`, `90m`, `1h30m`, `45s`.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

NO_VALUE = "–"
NO_CHANGE = "no change"
WIDE = 0.1
"""Intervals of this width or more are shown with two digits."""
_LARGE, _SMALL, _TINY = 10, 0.0995, 0.0005
"""From the first on numbers have no digits after the point, below the second three, and below the
last they are 0."""

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PIECE = re.compile(r"(\d{1,9})([dhms])")
_LONGEST = timedelta(days=30)


def finite(value: float | None) -> float | None:
    """The number, or None if it is not finite."""
    return value if value is not None and math.isfinite(value) else None


def number(value: float | None, digits: int = 3) -> str:
    """`0.912`; a dash if there is no number."""
    return NO_VALUE if finite(value) is None else f"{value:z.{digits}f}"


def short(value: float | None) -> str:
    """A number with two significant digits: `0.64`, `0.048`, `350`; a dash if there is none."""
    value = finite(value)
    if value is None or abs(value) >= _LARGE:
        return NO_VALUE if value is None else f"{value:,.0f}"
    return number(value, 3 if _TINY <= abs(value) < _SMALL else 2)


def with_unit(value: float | None, unit: str = "") -> str:
    """A number in its unit: `2.6%` of a share of 0.026, `350 ms`; without one, as `short`."""
    if unit != "%":
        return f"{short(value)} {unit}".rstrip()
    return NO_VALUE if finite(value) is None else f"{100 * (value or 0.0):z.1f}%"


def short_change(
    before: float | None, now: float | None, *, fell: bool = False, unit: str = ""
) -> str:
    """Two numbers with as many digits: `0.88 → 0.64`, and one more where they would look alike.

    `fell` puts it in words: `fell from 0.88 to 0.64`; `is unchanged at 0.88`. With a unit:
    `0.8% → 2.6%`, `120 ms → 350 ms`.
    """
    ends = with_unit(before, unit), with_unit(now, unit)
    old, new = (None, None) if unit else (finite(before), finite(now))
    if old is not None and new is not None and (abs(old) < _LARGE) == (abs(new) < _LARGE):
        largest = max(abs(old), abs(new))
        digits = 3 if largest < _SMALL else 2 if largest < _LARGE else 0
        digits += old != new and f"{old:z.{digits}f}" == f"{new:z.{digits}f}"
        ends = f"{old:z,.{digits}f}", f"{new:z,.{digits}f}"
    if not fell:
        return " → ".join(ends)
    if ends[0] == ends[1]:
        return f"is unchanged at {ends[0]}"
    return f"{'rose' if (now or 0.0) > (before or 0.0) else 'fell'} from {ends[0]} to {ends[1]}"


def signed(value: float | None, digits: int = 3) -> str:
    """A change with its sign: `+0.012`, `-0.231`; a dash if there is no number."""
    return NO_VALUE if finite(value) is None else f"{value:+z.{digits}f}"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """`[0.881, 0.943]`; empty if there is no interval."""
    if finite(low) is None or finite(high) is None:
        return ""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def signed_interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """`[-0.310, -0.130]`, with signs; empty if there is no interval."""
    if finite(low) is None or finite(high) is None:
        return ""
    return f"[{signed(low, digits)}, {signed(high, digits)}]"


def chance(p: float | None) -> str:
    """A p-value as `0.031`, `<0.001`; a dash if there is none."""
    return "<0.001" if p is not None and p < 0.001 else number(p)


def digits_of(low: float | None, high: float | None) -> int:
    """Digits after the point: three, or two if the interval is wide."""
    low, high = finite(low), finite(high)
    return 2 if low is not None and high is not None and high - low >= WIDE else 3


def drop_words(drop: float, low: float | None, high: float | None) -> tuple[str, str]:
    """A drop and its interval: `0.107`, `[0.071, 0.143]`. A wide interval has two digits: `0.31`,
    `[0.25, 0.37]`. A drop that rounds to 0 is `no change`; an interval of zeros is left out.
    """
    digits = digits_of(low, high)
    size, zero = number(drop, digits), number(0.0, digits)
    ends = (
        ""
        if {size, number(low, digits), number(high, digits)} == {zero}
        else interval(low, high, digits)
    )
    return (NO_CHANGE if size == zero else size), ends


def drop_text(drop: float, low: float | None, high: float | None) -> str:
    """A drop in a sentence: `drop 0.107 [0.071, 0.143]`, `no change [-0.012, 0.011]`."""
    size, ends = drop_words(drop, low, high)
    return f"{'' if size == NO_CHANGE else 'drop '}{size} {ends}".rstrip()


def share(part: float, whole: float) -> str:
    """A share as `0.4%` or `71.0%`; `0%` and `100%` are exact, never rounded."""
    if not whole:
        return NO_VALUE
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "<0.1%"
    if 99.9 < percent < 100:
        return ">99.9%"
    return f"{percent:.0f}%" if percent in (0, 100) else f"{percent:.1f}%"


def read_duration(value: object) -> timedelta:
    """Read a duration. Raises ValueError if it is malformed, or longer than 30 days."""
    duration = value if isinstance(value, timedelta) else _from_text(value)
    if not timedelta(0) < duration <= _LONGEST:
        raise ValueError(f"should be longer than 0 and at most 30d, and is {value!r}")
    return duration


def _from_text(value: object) -> timedelta:
    text = value.strip() if isinstance(value, str) else ""
    if not re.fullmatch(rf"(?:{_PIECE.pattern})+", text):
        raise ValueError(f"should be a duration like 20h, 90m or 1h30m, and is {value!r}")
    return timedelta(seconds=sum(int(n) * _UNITS[unit] for n, unit in _PIECE.findall(text)))


def duration_text(duration: timedelta) -> str:
    """A duration as text, in whole seconds: `1h30m`."""
    left, text = round(duration.total_seconds()), ""
    for unit in "hms":
        count, left = divmod(left, _UNITS[unit])
        text += f"{count}{unit}" if count else ""
    return text or "0s"


Duration = Annotated[
    timedelta,
    BeforeValidator(read_duration),
    PlainSerializer(duration_text, return_type=str, when_used="json"),
]


def plural(value: int, noun: str) -> str:
    """`1 row`, `12,345 rows`."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"

"""Numbers, shares and durations as text. Durations in settings: `20h`, `90m`, `1h30m`, `45s`."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

NO_VALUE = "–"

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PIECE = re.compile(r"(\d{1,9})([dhms])")
_LONGEST = timedelta(days=30)


def finite(value: float | None) -> float | None:
    """The number, or None if it is not finite."""
    return value if value is not None and math.isfinite(value) else None


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
    found = value if isinstance(value, timedelta) else _from_text(value)
    if not timedelta(0) < found <= _LONGEST:
        raise ValueError(f"should be longer than 0 and at most 30d, and is {value!r}")
    return found


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

"""Numbers as text."""

from __future__ import annotations

import math

NO_VALUE = "–"


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

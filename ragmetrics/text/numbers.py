"""Numbers as text."""

from __future__ import annotations

import math

NO_VALUE = "–"


def finite(value: float | None) -> float | None:
    """The number, or None for what cannot be drawn."""
    return value if value is not None and math.isfinite(value) else None


def share(part: float, whole: float) -> str:
    """`0.4%`, `71.0%`, and `0%` and `100%`; never rounded to nothing or to everything."""
    if not whole:
        return NO_VALUE
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "<0.1%"
    if 99.9 < percent < 100:
        return ">99.9%"
    return f"{percent:.0f}%" if percent in (0, 100) else f"{percent:.1f}%"

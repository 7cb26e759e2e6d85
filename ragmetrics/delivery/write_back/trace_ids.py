"""Ids of OpenTelemetry as logs have them: hexadecimal, sometimes with `0x` or dashes."""

from __future__ import annotations

import re

TRACE_DIGITS, SPAN_DIGITS = 32, 16


def hex_id(text: str | None, digits: int) -> str | None:
    """The id in lower case without a prefix; None if it is no id of so many digits, or zero."""
    bare = (text or "").strip().lower().removeprefix("0x")
    if digits == TRACE_DIGITS:
        bare = bare.replace("-", "")  # some tools use UUIDs
    if re.fullmatch(rf"[0-9a-f]{{{digits}}}", bare) and bare.strip("0"):
        return bare
    return None

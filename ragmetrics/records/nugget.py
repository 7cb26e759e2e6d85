"""Nuggets: the facts that a right answer states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

IMPORTANCE = ("vital", "okay")


def _nugget(value: object) -> object:
    """The text and the importance of a nugget, without what else a tool says of it."""
    if not isinstance(value, Mapping):
        return value
    text, importance = value.get("text"), value.get("importance")
    if not isinstance(text, str) or not text.strip() or importance not in IMPORTANCE:
        raise ValueError("should have a text, and as importance vital or okay")
    return {"text": text, "importance": importance}


Nugget = Annotated[dict[str, str], BeforeValidator(_nugget)]
"""As TREC's nuggetizer writes it: `{"text": "It opened in 1889.", "importance": "vital"}`."""

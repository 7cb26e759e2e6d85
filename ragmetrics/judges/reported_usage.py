"""Reads what a server says about itself: numbers of tokens, which may be missing or nonsense.

None of it may fail a reply or spoil what is stored: what cannot be true is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_TOKENS = 10_000_000
"""More than any model takes or gives in one request."""


class Tokens(NamedTuple):
    """Tokens of one request."""

    prompt: int = 0
    cached: int = 0
    """Of the prompt's, those that the server had in its cache."""
    completion: int = 0


def tokens_of(payload: Any) -> Tokens:
    """The tokens that an answer names under `usage`; 0 for each that is missing or cannot be."""
    usage = mapping(mapping(payload).get("usage"))
    prompt = count(usage.get("prompt_tokens"))
    cached = count(mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    return Tokens(prompt, min(cached, prompt), count(usage.get("completion_tokens")))


def count(said: Any) -> int:
    """A number of tokens; 0 for what is no number, below 0 or above `MOST_TOKENS`."""
    if isinstance(said, bool) or not isinstance(said, int | float):
        return 0
    return int(said) if 0 <= said <= MOST_TOKENS else 0  # no comparison is true of NaN


def mapping(said: Any) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    return said if isinstance(said, dict) else {}

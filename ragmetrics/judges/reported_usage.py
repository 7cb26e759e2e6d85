"""Reads the numbers of tokens that a server reports.

A missing or impossible number counts as 0: it must not fail a reply or enter the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

MOST_TOKENS = 10_000_000
"""More than any model reads or writes in one request."""


class Tokens(NamedTuple):
    """Tokens of one request."""

    prompt: int = 0
    cached: int = 0
    """Tokens of the prompt that were in the server's cache."""
    completion: int = 0


def tokens_of(payload: Any) -> Tokens:
    """The tokens under `usage` of an answer; 0 for a missing or impossible number."""
    usage = mapping(mapping(payload).get("usage"))
    prompt = count(usage.get("prompt_tokens"))
    cached = count(mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    return Tokens(prompt, min(cached, prompt), count(usage.get("completion_tokens")))


def count(said: Any) -> int:
    """A number of tokens; 0 if it is not a number, below 0 or above `MOST_TOKENS`."""
    if isinstance(said, bool) or not isinstance(said, int | float):
        return 0
    return int(said) if 0 <= said <= MOST_TOKENS else 0  # false for NaN


def mapping(said: Any) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    return said if isinstance(said, dict) else {}

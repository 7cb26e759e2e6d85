"""The prompt cache of the fake judge: it caches equal beginnings of prompts, as real servers do.

    provider   from 1,024 tokens, in steps of 128, as OpenAI documents for its models
    block      from 16 tokens, in steps of 16, as vLLM does with its default block size
    off        nothing is cached

A provider reads the schema of structured output before the first message, as OpenAI documents:
requests with another schema have another beginning. A token is four characters. A prompt is in the
cache once it was answered: requests in flight at the same time find nothing of each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

CHARS_PER_TOKEN = 4
KINDS: Mapping[str, tuple[int, int]] = {"provider": (1_024, 128), "block": (16, 16)}
"""Least tokens and tokens per step, by kind of cache."""


class PromptCache:
    """The beginnings of the prompts that were answered."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def cached_tokens(
        self, messages: Sequence[Mapping[str, Any]], kind: str, schema: Any = None
    ) -> int:
        """Tokens at the beginning of a prompt that are in the cache."""
        if kind not in KINDS:
            return 0
        least, found = KINDS[kind][0], 0
        for tokens, digest in _beginnings(messages, kind, schema):
            if digest not in self._known:
                break
            found = tokens
        return found if found >= least else 0

    def add(self, messages: Sequence[Mapping[str, Any]], kind: str, schema: Any = None) -> None:
        """Cache a prompt that was answered."""
        if kind in KINDS:
            self._known.update(digest for _, digest in _beginnings(messages, kind, schema))

    def clear(self) -> None:
        """Forget all prompts."""
        self._known.clear()


def _beginnings(
    messages: Sequence[Mapping[str, Any]], kind: str, schema: Any
) -> Iterator[tuple[int, bytes]]:
    """Length in tokens and digest of each beginning of whole steps, shortest first."""
    text = "".join(message["content"] for message in messages)
    # The roles are part of a prompt, and where one message ends and the next begins.
    ends = [(message["role"], len(message["content"])) for message in messages]
    characters = KINDS[kind][1] * CHARS_PER_TOKEN
    digest = hashlib.blake2b(digest_size=12)
    if kind == "provider":
        digest.update(json.dumps(schema).encode())
    end, place = 0, 0
    for start in range(0, len(text) - characters + 1, characters):
        while place < len(ends) and end <= start + characters:
            role, length = ends[place]
            digest.update(f"{role} from {end}\0".encode())
            end, place = end + length, place + 1
        piece = text[start : start + characters]
        digest.update(piece.encode("utf-8", "surrogatepass"))
        yield (start + characters) // CHARS_PER_TOKEN, digest.copy().digest()

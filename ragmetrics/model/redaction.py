"""What was logged, within sentences about it: found there, and its hash put in its place.

Endpoints and libraries quote what they could not take, quarantine reasons name a row's keys, and
findings and gates tell of both.

A hash is keyed: without the key nobody can try out phone numbers until one fits. The key is the
secret of the environment; without one it is drawn by chance for each process.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import unicodedata
from collections.abc import Iterable, Mapping

from ragmetrics.model.manifest import Source
from ragmetrics.text import normalise

KEY = "RAGMETRICS_REDACTION_KEY"
"""The environment variable of the secret: with it a text has one hash on all nights' pages."""

_CHANCE = secrets.token_hex(32)
_LENGTH = 8
_HASH = re.compile(r"\[(?:[0-9a-f]{16}|[0-9a-f]{8})\]")
"""Ours, and those of before, which had no key."""
_OWN_KEY = re.compile(r"\b(tags|labels|gold)\.(.+)(?=: )", re.DOTALL)
"""A place in a part of a row whose keys are whatever somebody called them."""
_ENOUGH = 30
"""Characters by which a quote is known where its end was cut off."""
_DROPPED = ("Cf", "Cs")


def hashed(text: str) -> str:
    """`[3f9a1c2e5b7d9f01]`, equal for texts that are equal but for case and spaces, as long as the
    key is; nothing for none.

    What is such a hash already stays what it is.
    """
    if not text or _HASH.fullmatch(text):
        return text
    secret = (os.environ.get(KEY) or _CHANCE).encode("utf-8", "surrogateescape")
    # A key of BLAKE2 has at most 64 bytes, a secret as many as it likes.
    key = hashlib.blake2b(secret, person=b"ragmetrics").digest()
    named = normalise(text).encode("utf-8", "surrogatepass")
    return f"[{hashlib.blake2b(named, key=key, digest_size=_LENGTH).hexdigest()}]"


def hashed_quote(sentence: str) -> str:
    """A sentence with all behind its first colon as a hash: what stands there may be quoted."""
    head, colon, told = sentence.partition(": ")
    return f"{head}{colon}{hashed(told)}"


def hashed_place(reason: str) -> str:
    """`tags.[3f9a1c2e5b7d9f01]: should be a text`: why a row is in quarantine, without its key."""
    return _OWN_KEY.sub(lambda found: f"{found[1]}.{hashed(found[2])}", reason)


def redactions(source: Source | None, problems: Iterable[str]) -> dict[str, str]:
    """What may be quoted of a log that was read, and of its problems; by each what to show."""
    broken = [one.reason for one in source.broken] if source else []
    places = {one: hashed_place(one) for one in source.reasons} if source else {}
    found = {one: hashed_quote(one) for one in (*problems, *broken)} | places
    return {quote: shown for quote, shown in found.items() if quote and quote != shown}


def redact_quotes(text: str, hidden: Mapping[str, str]) -> str:
    """A text, on one line, with what is to be shown in place of such quotes; one whose end was cut
    off takes what follows with it.
    """
    if hidden:
        text = _line(text)
    for quote, shown in hidden.items():
        quoted = _line(quote)
        whole = text.replace(quoted, shown)
        place = text.find(quoted[:_ENOUGH]) if whole == text and len(quoted) > _ENOUGH else -1
        text = whole if place < 0 else text[:place] + shown
    return text


def _line(text: str) -> str:
    """As sentences are cleaned before they are kept: else a quote is not found in them again."""
    spaced = (" " if unicodedata.category(one) == "Cc" else one for one in text)
    return " ".join("".join(c for c in spaced if unicodedata.category(c) not in _DROPPED).split())

"""Redaction of logged texts inside messages: each quoted text is replaced by its hash.

Errors of endpoints and libraries quote their input, quarantine reasons name a row's keys, and
findings and gates repeat both.

The hash is keyed. Without a key, phone numbers could be found by hashing all of them.
The key comes from the environment; without it each process draws a random key.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import unicodedata
from collections.abc import Iterable, Mapping

from ragmetrics.records.manifest import Source
from ragmetrics.text import normalise

KEY = "RAGMETRICS_REDACTION_KEY"
"""Environment variable of the key. With it a text has the same hash on all nights' pages."""

_CHANCE = secrets.token_hex(32)
_LENGTH = 8
_HASH = re.compile(r"\[(?:[0-9a-f]{16}|[0-9a-f]{8})\]")
"""Hashes with a key, and the shorter hashes without a key of earlier versions."""
_OWN_KEY = re.compile(r"\b(tags|labels|gold)\.(.+)(?=: )", re.DOTALL)
"""A path into a part of a row whose keys are chosen by the user."""
_ENOUGH = 30
"""Characters by which a truncated quote is recognised."""
_DROPPED = ("Cf", "Cs")


def hashed(text: str) -> str:
    """`[3f9a1c2e5b7d9f01]`: the hash of a text, regardless of case and spaces.

    The same key gives the same hash. An empty text stays empty, and a hash stays as it is.
    """
    if not text or _HASH.fullmatch(text):
        return text
    secret = (os.environ.get(KEY) or _CHANCE).encode("utf-8", "surrogateescape")
    # A key of BLAKE2 has at most 64 bytes; a secret may be longer.
    key = hashlib.blake2b(secret, person=b"ragmetrics").digest()
    named = normalise(text).encode("utf-8", "surrogatepass")
    return f"[{hashlib.blake2b(named, key=key, digest_size=_LENGTH).hexdigest()}]"


def hashed_quote(sentence: str) -> str:
    """A sentence with the text after its first colon hashed, as that may be a quote."""
    head, colon, quote = sentence.partition(": ")
    return f"{head}{colon}{hashed(quote)}"


def hashed_place(reason: str) -> str:
    """A quarantine reason with the key hashed: `tags.[3f9a1c2e5b7d9f01]: should be a text`."""
    return _OWN_KEY.sub(lambda found: f"{found[1]}.{hashed(found[2])}", reason)


def redactions(source: Source | None, problems: Iterable[str]) -> dict[str, str]:
    """Quotes of a log and its problems, each with its redacted form."""
    broken = [one.reason for one in source.broken] if source else []
    places = {reason: hashed_place(reason) for reason in source.reasons} if source else {}
    replacements = {problem: hashed_quote(problem) for problem in (*problems, *broken)} | places
    return {quote: shown for quote, shown in replacements.items() if quote and quote != shown}


def redact_quotes(text: str, hidden: Mapping[str, str]) -> str:
    """A text on one line with its quotes redacted. A truncated quote is replaced together with the
    rest of the text.
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
    """A text cleaned like stored messages, so that quotes in them are found."""
    spaced = (" " if unicodedata.category(one) == "Cc" else one for one in text)
    return " ".join("".join(c for c in spaced if unicodedata.category(c) not in _DROPPED).split())

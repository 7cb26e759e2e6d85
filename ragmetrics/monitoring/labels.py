"""Texts as label values: one line, bounded, and no two texts alike."""

from __future__ import annotations

import hashlib

from ragmetrics.alerts.markup import clean

LONGEST = 120
_ROOM_FOR_DIGEST = 10


def label(text: str) -> str:
    """A text without controls and direction marks, of at most 120 characters.

    One that is changed by that gets a digest of what it was, so that two texts never become one
    series: Prometheus refuses a whole file for that. Quotes and backslashes are escaped where the
    file is written.
    """
    told = clean(text, LONGEST)
    if told == text:
        return told
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{clean(text, LONGEST - _ROOM_FOR_DIGEST)} ~{digest}".strip()

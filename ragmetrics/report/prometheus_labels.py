"""Texts as label values: one line, bounded, and no two texts alike."""

from __future__ import annotations

import hashlib
import re

from ragmetrics.text import clean

LONGEST = 120
_DIGEST_BYTES = 16
"""So many that nobody finds two texts of one digest, who may write what is logged."""
_ROOM_FOR_DIGEST = 2 * _DIGEST_BYTES + 2
_WITH_DIGEST = re.compile(rf"~[0-9a-f]{{{2 * _DIGEST_BYTES}}}\Z")


def label(text: str) -> str:
    """A text without controls and direction marks, of at most 120 characters.

    One that is changed by that, or ends as if it had been, gets a digest of what it was, so that
    two texts never become one series: Prometheus refuses a whole file for that. Quotes and
    backslashes are escaped where the file is written.
    """
    told = clean(text, LONGEST)
    if told == text and not _WITH_DIGEST.search(text):
        return told
    whole = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(whole, digest_size=_DIGEST_BYTES).hexdigest()
    return f"{clean(text, LONGEST - _ROOM_FOR_DIGEST)} ~{digest}".strip()

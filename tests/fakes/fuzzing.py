"""Damage for fuzzing: bytes changed here and there, and how many examples are tried.

`make fuzz` asks for many by the variable RAGMETRICS_FUZZ_EXAMPLES; `make test` tries a few.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st

EXAMPLES = int(os.environ.get("RAGMETRICS_FUZZ_EXAMPLES", "10"))

fuzzed: Callable[[Any], Any] = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
"""Marks a test that is tried with so many examples."""

NASTY = [b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b'"', b"\n", b"[" * 300, b"{" * 300, b"9" * 400]
NASTY += [b"1e400", b"NaN", b"null", b"\\ud800", b"-1", b"2026-13-45", b"\r", b",", b"\xff" * 9]

_PIECES = st.one_of(st.sampled_from(NASTY), st.binary(max_size=8))
_EDITS = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.integers(0, 12), _PIECES), min_size=1, max_size=6
)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes with pieces replaced, taken out or put in, and now and then cut short."""
    found = bytearray(data)
    for place, length, piece in draw(_EDITS):
        start = place % (len(found) + 1)
        found[start : start + length] = piece
    end = draw(st.one_of(st.none(), st.integers(0, len(found))))
    return bytes(found[:end])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["2026-11-19", "x" * 500, "\u202e", "-1", "1e400"]),
    lambda inside: (
        st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=10), inside, max_size=4)
    ),
    max_leaves=12,
)
"""Any value of JSON, with the numbers that only Python writes."""

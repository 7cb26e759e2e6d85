"""Damaged files of a store: whoever reads one goes on without it, and a night says which they were.

with collecting_damage() as found:
    ...                                 reads files
found                                   ["s3://b/store/topics/model-2026-11-19.json is ..."]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_collected: ContextVar[list[str] | None] = ContextVar("damage", default=None)


@contextmanager
def collecting_damage() -> Iterator[list[str]]:
    """Collect what `note_damage` is called with in the block, each text once."""
    found: list[str] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def note_damage(text: str) -> None:
    """Note a file that cannot be read, and what is done without it."""
    found = _collected.get()
    if found is not None and text not in found:
        found.append(text)

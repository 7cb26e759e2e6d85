"""Damaged files of a store: whoever reads one goes on without it, and a night says which they were.

with collecting_damage() as found:
    ...                                 reads files
found                                   ["s3://b/store/topics/model-2026-11-19.json is ..."]
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from ragmetrics.errors import StoreError

_Read = TypeVar("_Read")
log = logging.getLogger(__name__)
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


def unless_refused(read: Callable[[], _Read], otherwise: _Read, consequence: str) -> _Read:
    """What is read; `otherwise` where the store refuses it, which is logged and noted.

    Raises StoreError for a store that is down.
    """
    try:
        return read()
    except StoreError as error:
        if error.transient:
            raise
        log.error("%s: %s", error, consequence)
        note_damage(f"{error}: {consequence}")
        return otherwise

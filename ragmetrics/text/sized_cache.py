"""A cache of what is computed from texts, limited by its size in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizedCache(Generic[K, V]):
    """LRU cache with a limit in bytes, or in entries where each has size 1; thread-safe.

    Two threads that need a new value at the same time both compute it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._held = 0

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> V | None:
        """The value of a key, if it is cached."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: K, value: V, size: int) -> None:
        """Add a value of so many bytes, the key included."""
        with self._lock:
            if key in self._entries:  # another thread was faster
                return
            self._entries[key] = (value, size)
            self._held += size
            while self._held > self._limit:
                self._held -= self._entries.popitem(last=False)[1][1]

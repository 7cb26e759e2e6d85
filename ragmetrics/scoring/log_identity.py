"""Whether the rows of a log are those of their night, told from their times and a digest.

The digests do not depend on the order of the rows, and take no memory: they are sums of the rows'
own digests. They cover what a log says of a retrieval, and nothing that settings add.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from ragmetrics.records import LogRow

_BYTES = 16


@dataclass
class _SumOfDigests:
    """A digest of values in any order, in which a repeated value counts each time."""

    total: int = 0

    def add(self, value: object) -> None:
        """Add a value that is equal where its `repr` is."""
        data = repr(value).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=_BYTES).digest()
        self.total = (self.total + int.from_bytes(digest)) % (1 << 8 * _BYTES)

    def __str__(self) -> str:
        return f"{self.total:0{2 * _BYTES}x}" if self.total else ""


@dataclass
class LogIdentity:
    """The times of a log's rows against the span of its night, and digests of what they say."""

    span: tuple[datetime, datetime]
    paths: frozenset[str]
    """The files of the log: a row without an id is named after its place in one."""
    dated: int = 0
    outside: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    rows: _SumOfDigests = field(default_factory=_SumOfDigests)
    ids: _SumOfDigests = field(default_factory=_SumOfDigests)
    questions: _SumOfDigests = field(default_factory=_SumOfDigests)
    retrieved: _SumOfDigests = field(default_factory=_SumOfDigests)

    def add(self, row: LogRow) -> None:
        """Count a row as it was logged: without its golden reference and topic."""
        own = None if row.id.rpartition(":")[0] in self.paths else row.id
        names = (own, row.trace_id, row.span_id)
        if any(names):
            self.ids.add(names)
        self.questions.add(row.user_input)
        passages = (row.user_input, row.retrieved_contexts, row.retrieved_context_ids)
        self.retrieved.add(passages)
        self.rows.add((names, row.timestamp and row.timestamp.isoformat(), *passages, row.response))
        if row.timestamp is None:
            return
        self.dated += 1
        self.outside += not self.span[0] <= row.timestamp < self.span[1]
        self.oldest = min(self.oldest or row.timestamp, row.timestamp)
        self.newest = max(self.newest or row.timestamp, row.timestamp)

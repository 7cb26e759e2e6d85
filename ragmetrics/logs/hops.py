"""Joins the retrievals of a trace to one row: one question with all contexts that its hops found.

Rows of a trace come in any order, and traces are interleaved. So a trace stays open until the end
of the log, or until there are too many open traces, or too large ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ragmetrics.records import LogRow

MOST_HOPS = 50
"""A trace with more retrievals is a batch of questions: its rows stay as they are."""
JOINED = "hop: joined to the row of its trace"
_PER_CONTEXT = (
    "retrieved_context_ids",
    "retrieved_context_scores",
    "context_propensities",
    "retrieved_context_dates",
)
Read = tuple[LogRow, Any]
"""A row and its record."""


class Hops:
    """The open traces. Each is returned as one row, with the record of its first hop."""

    def __init__(self, most_traces: int, most_text: int) -> None:
        self._most_traces, self._most_text = most_traces, most_text
        self._open: dict[str, list[Read]] = {}
        self._held = 0
        self.joined = 0
        """Rows that became part of another one."""

    def add(self, trace: str, row: LogRow, record: Any) -> Iterator[Read]:
        """Add a hop of a trace. Returns the oldest traces if there is no room for more."""
        hops = self._open.setdefault(trace, [])
        hops.append((row, None if hops else record))
        self._held += row.size
        while len(self._open) > self._most_traces or self._held > self._most_text:
            yield from self._close(next(iter(self._open)))

    def close(self) -> Iterator[Read]:
        """Return all traces, in the order of their first rows."""
        for trace in list(self._open):
            yield from self._close(trace)

    def _close(self, trace: str) -> Iterator[Read]:
        hops = self._open.pop(trace)
        self._held -= sum(row.size for row, _ in hops)
        if 1 < len(hops) <= MOST_HOPS:
            self.joined += len(hops) - 1
            yield joined([row for row, _ in hops]), hops[0][1]
        else:
            yield from hops


def joined(rows: Sequence[LogRow]) -> LogRow:
    """The row of a trace: the first hop's, with the contexts of all hops in order.

    What the first hop lacks comes from the later ones. Ids and scores of contexts are kept if all
    hops that found something have them, and tags with several values have all of them.
    """
    hops = sorted(rows, key=lambda row: (row.hop or 0, row.timestamp is not None, row.timestamp))
    first = hops[0]
    values: dict[str, Any] = {}
    for name in LogRow.__dataclass_fields__:
        known = [value for hop in hops if (value := getattr(hop, name)) is not None]
        values[name] = known[0] if known else None
    for name in _PER_CONTEXT:
        lists = [(hop.retrieved_contexts, getattr(hop, name) or ()) for hop in hops]
        fit = all(len(contexts) == len(known) for contexts, known in lists)
        values[name] = tuple(item for _, known in lists for item in known) if fit else None
    clicks = [hop.clicked_context_ids for hop in hops if hop.clicked_context_ids is not None]
    times = [hop.retrieval_ms for hop in hops if hop.retrieval_ms is not None]
    found = any(hop.retrieved_contexts for hop in hops)
    tags: dict[str, dict[str, None]] = {}
    for hop in hops:
        for tag, value in hop.tags.items():
            tags.setdefault(tag, {})[value] = None
    return LogRow(
        **values
        | {
            "id": first.trace_id,
            "retrieved_contexts": tuple(chain(*(hop.retrieved_contexts for hop in hops))),
            "clicked_context_ids": tuple(dict.fromkeys(chain(*clicks))) if clicks else None,
            "retrieval_ms": sum(times) if times else None,
            "retrieval_error": None if found else values["retrieval_error"],
            "hop": None,
            "hop_queries": tuple((hop.hop_queries or (hop.user_input,))[0] for hop in hops),
            "hop_sizes": tuple(len(hop.retrieved_contexts) for hop in hops),
            "tags": {tag: ", ".join(several) for tag, several in tags.items()},
        },
    )

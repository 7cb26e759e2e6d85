"""Which ranks of a row users clicked."""

from __future__ import annotations

from ragmetrics.records import LogRow

NEEDS = ("retrieved_context_ids + clicked_context_ids",)


def clicked_ranks(row: LogRow) -> list[int] | str:
    """The ranks that were clicked, from 1, in rank order; or why they are not known."""
    if row.clicked_context_ids is None:
        return "no clicks in the log"
    if not row.retrieved_contexts:
        return "nothing retrieved: nothing to click"
    if row.retrieved_context_ids is None:
        return "contexts without ids"
    clicked = set(row.clicked_context_ids)
    return [rank for rank, name in enumerate(row.retrieved_context_ids, 1) if name in clicked]

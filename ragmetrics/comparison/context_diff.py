"""The contexts of a question on two sides: which were removed, added, or changed rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ragmetrics.model import LogRow, MovedContext

MOST_CONTEXTS = 20
LONGEST = 400
"""Characters of a context in the record."""

_Key = tuple[str, int]


def moved_contexts(a: LogRow, b: LogRow) -> list[MovedContext]:
    """The contexts of both rows, by rank. A context of both rows appears once, at its new rank.

    Contexts are the same where their ids are equal, if both rows have an id for each context; else
    where their texts are equal. Repeated contexts are matched in their order.
    """
    by_id = _has_ids(a) and _has_ids(b)
    old, new = _places(a, by_id), _places(b, by_id)
    found = [_context(key, old, new, a, b) for key in {**new, **old}]
    return sorted(found, key=lambda one: (one.rank_b or one.rank_a or 0, one.rank_b is None))


def _has_ids(row: LogRow) -> bool:
    ids = row.retrieved_context_ids
    return ids is not None and len(ids) == len(row.retrieved_contexts)


def _places(row: LogRow, by_id: bool) -> dict[_Key, int]:
    """The position of each context, by its id or text and its repetition number."""
    names: Sequence[str] = (
        list(map(str, row.retrieved_context_ids or ())) if by_id else row.retrieved_contexts
    )
    seen: Counter[str] = Counter()
    places: dict[_Key, int] = {}
    for place, name in enumerate(names):
        places[name, seen[name]] = place
        seen[name] += 1
    return places


def _context(
    key: _Key, old: dict[_Key, int], new: dict[_Key, int], a: LogRow, b: LogRow
) -> MovedContext:
    before, now = old.get(key), new.get(key)
    row, place = (b, now) if now is not None else (a, before or 0)
    text = row.retrieved_contexts[place]
    both = before is not None and now is not None
    return MovedContext(
        text=text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…",
        id=str(row.retrieved_context_ids[place])
        if row.retrieved_context_ids and _has_ids(row)
        else None,
        rank_a=None if before is None else before + 1,
        rank_b=None if now is None else now + 1,
        rewritten=both and a.retrieved_contexts[before or 0] != text,
    )

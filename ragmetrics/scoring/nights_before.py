"""What the nights before say of a row, for metrics that look back (`Metric.looks_back`).

The seven newest nights before are read once, at staging. A row then has in its own fields

    last_contexts   what its question retrieved when it was last asked
    score_place     the place of its best score among those of these nights: 0 lowest, 1 highest
    new_words       the share of its words that no question of these nights has

so that metrics need no store. A question takes 9 bytes a context here, beside its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import Self

import numpy as np

from ragmetrics.records import LogRow
from ragmetrics.storage import Files, RunRef, Runs, StoredPart, passing_over
from ragmetrics.text import words_of

NIGHTS = 7
_FEWEST_SCORES = 100
"""Fewer scores do not show how scores are distributed."""
_KEY_BYTES = 8


class NightsBefore:
    """The rows of some nights, newest first: lists by question, best scores, words."""

    def __init__(self, files: Files, nights: Sequence[RunRef]) -> None:
        self._lists: dict[str, bytes] = {}
        self._words: set[str] | None = set() if len(nights) >= NIGHTS else None
        scores: list[float] = []
        for night in nights:
            for shard in range(night.shards):
                with passing_over():  # rows of an old night may be removed
                    for row in _rows(StoredPart(files, night.rows(shard))):
                        self._add(row, scores)
        self._scores = np.sort(np.array(scores))

    @classmethod
    def of(cls, files: Files, day: date) -> Self:
        """The nights before a date."""
        nights = Runs(files).outlines(before=day, last=NIGHTS)
        return cls(files, [RunRef.of(night) for night in reversed(nights)])

    def _add(self, row: LogRow, scores: list[float]) -> None:
        keys = b"".join(map(bytes.fromhex, row.context_keys))
        self._lists.setdefault(row.question_key, keys)
        if row.retrieved_context_scores:
            scores.append(max(row.retrieved_context_scores))
        if self._words is not None:
            self._words.update(words_of(row.user_input))

    def told(self, row: LogRow) -> LogRow:
        """The row with what the nights before say of it; a field stays empty where they do not."""
        keys, words = self._lists.get(row.question_key), set(words_of(row.user_input))
        place = share = None
        if row.retrieved_context_scores and len(self._scores) >= _FEWEST_SCORES:
            best = max(row.retrieved_context_scores)
            ends = (np.searchsorted(self._scores, best, side) for side in ("left", "right"))
            place = float(sum(ends)) / 2 / len(self._scores)
        if words and self._words is not None:
            share = len(words - self._words) / len(words)
        last = None if keys is None else tuple(_keys(keys))
        return replace(row, last_contexts=last, score_place=place, new_words=share)


def _rows(part: StoredPart) -> Iterator[LogRow]:
    """Question, list and scores of each row. Contexts are read only where ids are missing."""
    names = ["user_input", "retrieved_context_ids", "retrieved_context_scores"]
    if part.columns(names[1:2])[names[1]].null_count:
        names.append("retrieved_contexts")
    for record in part.records(names):
        texts, ids, scores = (
            tuple(record.get(name) or ())
            for name in ("retrieved_contexts", "retrieved_context_ids", "retrieved_context_scores")
        )
        yield LogRow(
            *("", record["user_input"], texts),
            retrieved_context_ids=ids or None,
            retrieved_context_scores=scores or None,
        )


def _keys(joined: bytes) -> Sequence[str]:
    pieces = iter(joined)
    return [bytes(islice(pieces, _KEY_BYTES)).hex() for _ in range(len(joined) // _KEY_BYTES)]

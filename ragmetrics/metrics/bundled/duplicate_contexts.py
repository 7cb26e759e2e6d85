"""Contexts that repeat another context of their list."""

from __future__ import annotations

from ragmetrics.errors import InputError
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps
from ragmetrics.text import normalise

_WORDS = 4
"""Words of a shingle."""
_LONGEST = 20_000
"""Characters of a context that are compared."""


@metric(
    version=1,
    display="Duplicate contexts",
    calls="0",
    higher_is_better=False,
    unit="%",
    least_change=0.02,
)
def duplicate_contexts(row: LogRow, *, similar_from: float = 0.8) -> Steps[Score]:
    """Share of a question's contexts that repeat one of a better rank.

        duplicates = |{c_i : J(c_i, c_j) >= similar_from for a j < i}| / |C|
        J(a, b) = |S_a and S_b| / |S_a or S_b|,   S = shingles of four words

    Range [0, 1], lower is better. No judge call. Case and spaces make no difference. The first
    20,000 characters count; of a shorter text than four words, all. Fewer than two contexts: not
    applicable. Raises InputError for a `similar_from` out of (0, 1].
    Source: Broder 1997, "On the resemblance and containment of documents".
    """
    yield from ()
    if not 0 < similar_from <= 1:
        raise InputError(f"duplicate_contexts: similar_from: {similar_from} is not in (0, 1]")
    texts = [context for context in row.retrieved_contexts if context.strip()]
    if len(texts) < 2:
        return Score.not_applicable("fewer than two contexts")
    kept: list[frozenset[str]] = []
    ranks = []
    for rank, text in enumerate(texts, 1):
        shingles = _shingles(text)
        if any(_alike(shingles, other, similar_from) for other in kept):
            ranks.append(rank)
        else:
            kept.append(shingles)
    return Score(len(ranks) / len(texts), details={"repeated_ranks": ranks} if ranks else {})


def _shingles(text: str) -> frozenset[str]:
    words = normalise(text[:_LONGEST]).split()
    last = max(1, len(words) - _WORDS + 1)
    return frozenset(" ".join(words[place : place + _WORDS]) for place in range(last))


def _alike(one: frozenset[str], other: frozenset[str], least: float) -> bool:
    """Whether the resemblance reaches the least; sets of too different sizes cannot."""
    small, large = sorted((len(one), len(other)))
    if small < least * large:
        return False
    both = len(one & other)
    return both >= least * (small + large - both)

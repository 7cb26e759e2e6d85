"""The view of one question that moved, with what became of its contexts."""

from __future__ import annotations

from dataclasses import dataclass

from ragmetrics.dashboard.formatting import MarkedText, TextBudget
from ragmetrics.dashboard.row_selection import became
from ragmetrics.records import MovedContext, MovedRow, RowValue
from ragmetrics.text import plural

_BRIEF = 140
"""Characters of a context that is on both sides: readers look for the others."""


@dataclass(frozen=True)
class ShownContext:
    """A retrieved context, and what became of it."""

    context: MovedContext
    state: str
    """`left`, `came`, `moved`, `rewritten` or `stayed`."""
    word: str
    passage: MarkedText


@dataclass(frozen=True)
class ShownRow:
    """A question whose values moved far, with the metrics that moved."""

    row: MovedRow
    moved: tuple[RowValue, ...]
    contexts: tuple[ShownContext, ...]

    @property
    def more(self) -> int:
        """Contexts left out."""
        return self.row.more_contexts + len(self.row.contexts) - len(self.contexts)

    @property
    def changed(self) -> str:
        """`2 passages left, 1 came`."""
        left = sum(context.rank_b is None for context in self.row.contexts)
        came = sum(context.rank_a is None for context in self.row.contexts)
        words = [
            f"{plural(left, 'passage')} left" if left else "",
            f"{came:,} came" if came else "",
        ]
        return ", ".join(filter(None, words)) or "the same passages on both sides"


def show_row(row: MovedRow, budget: TextBudget) -> ShownRow:
    """The question, its furthest move first, with the contexts that the budget has room for."""
    shown: list[ShownContext] = []
    for context in row.contexts:
        if budget.empty and shown:
            break
        both = context.rank_a is not None and context.rank_b is not None
        longest = _BRIEF if both and not context.rewritten else len(context.text)
        passage = budget.passage(context.text, longest=longest)
        shown.append(ShownContext(context, became(context), _words(context), passage))
    moved = sorted(filter(_distance, row.values), key=_distance, reverse=True)
    return ShownRow(row, tuple(moved), tuple(shown))


def _distance(value: RowValue) -> float:
    if value.value_a is None or value.value_b is None:
        return 0.0
    return round(abs(value.value_b - value.value_a), 9)


def _words(context: MovedContext) -> str:
    """What became of a context: `came`, `up from 3 to 2`, `stayed, with another text`."""
    if context.rank_a is None or context.rank_b is None:
        return became(context)
    words = "stayed"
    if context.rank_a != context.rank_b:
        up = "up" if context.rank_b < context.rank_a else "down"
        words = f"{up} from {context.rank_a} to {context.rank_b}"
    return f"{words}, with another text" if context.rewritten else words

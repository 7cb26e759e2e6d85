"""The passages that a question needs, and where tonight's retrieval has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from ragmetrics.dashboard.figure_layout import tick_label
from ragmetrics.dashboard.formatting import MarkedText, TextBudget
from ragmetrics.dashboard.row_selection import KeptRow, became
from ragmetrics.records import LogRow, LostPassage, stage_words

_MOST = 20
_MOST_LEFT = 3
"""Contexts of the night before that are shown where nothing says which passages are needed."""


@dataclass(frozen=True)
class ExpectedPassage:
    """A passage that the question needs, or that it retrieved on the night before."""

    id: str
    rank: int | None
    """Its rank tonight; None: not retrieved."""
    told: str
    """What became of it, or why it is expected."""
    passage: MarkedText | None
    """None: no night that is read has its text."""
    needed: bool
    """Whether the question is known to need it."""


@dataclass(frozen=True)
class _Named:
    """A passage by its id, its text or both."""

    id: str
    text: str
    told: str


def expected_passages(
    kept: KeptRow, lost: Sequence[LostPassage], budget: TextBudget
) -> tuple[ExpectedPassage, ...]:
    """What the reference and the lost passages name, those that are not retrieved first; if they
    name nothing, what the night before retrieved and tonight does not.
    """
    texts = _texts(kept, lost)
    named: dict[str, _Named] = {}
    for expected in (*_lost(lost), *_referred(kept.row)):
        named.setdefault(expected.id or expected.text, expected)
    passages = list(islice(named.values() if named else _left(kept), _MOST))
    ranked = [(_rank(expected, kept.row), expected) for expected in passages]
    shown = []
    for rank, expected in sorted(ranked, key=lambda pair: pair[0] or 0):
        text = texts.get(expected.id) or expected.text
        passage = budget.passage(text) if text else None
        shown.append(ExpectedPassage(expected.id, rank, expected.told, passage, bool(named)))
    return tuple(shown)


def _texts(kept: KeptRow, lost: Sequence[LostPassage]) -> Mapping[str, str]:
    """The texts of passages by id, as they were last retrieved."""
    texts = {passage.id: passage.text for passage in lost if passage.id}
    for night in reversed(kept.earlier):
        texts |= {context.id: context.text for context in night.contexts if context.id}
    ids = kept.row.retrieved_context_ids or ()
    return texts | dict(zip(ids, kept.row.retrieved_contexts, strict=False))


def _lost(lost: Sequence[LostPassage]) -> Iterator[_Named]:
    for passage in lost:
        hop = f"lost by hop {passage.hop}: " if passage.hop else ""
        then = f"; was rank {passage.rank} on {tick_label(passage.night)}" if passage.night else ""
        words = stage_words(passage.stage, proven=passage.proven)
        yield _Named(passage.id, passage.text, f"{hop}{words}{then}")


def _referred(row: LogRow) -> Iterator[_Named]:
    """What the reference names. Ids and texts belong together if there are as many."""
    ids, texts = row.reference_context_ids or (), row.reference_contexts or ()
    if ids and len(ids) != len(texts):
        texts = ()
    for name, text in zip_longest(ids, texts, fillvalue=""):
        yield _Named(name, text, "named by the reference")


def _left(kept: KeptRow) -> Iterator[_Named]:
    if kept.earlier:
        then = kept.earlier[0]
        gone = (one for one in then.contexts if became(one) == "left")
        for context in islice(gone, _MOST_LEFT):
            told = f"was rank {context.rank_a} on {tick_label(then.date)}"
            yield _Named(context.id or "", context.text, told)


def _rank(passage: _Named, row: LogRow) -> int | None:
    """By id where both have one, else by text."""
    ids = row.retrieved_context_ids
    name, names = (
        (passage.id, ids) if passage.id and ids else (passage.text, row.retrieved_contexts)
    )
    return names.index(name) + 1 if name in names else None

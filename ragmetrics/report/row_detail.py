"""One row and why it is good or bad: its texts, with the judges' verdicts laid over them, and
what was retrieved for its question on earlier nights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ragmetrics.model import LogRow, MovedContext, Score
from ragmetrics.report.formatting import LONGEST, MarkedText, TextBudget, spans
from ragmetrics.report.judge_details import (
    Claims,
    Offered,
    Opinion,
    details,
    fitting,
    of_reference,
    of_response,
    offered_questions,
    opinions,
    relevant_to,
)
from ragmetrics.report.row_selection import EarlierNights, KeptRow, SelectionReason, became

MOST_CONTEXTS = 50
_LONGEST_QUESTION = 1_000  # it is a heading
_MOST_MOVED = 30
_WITH_TEXT = ("left", "rewritten")
_SHORT = 160
"""Characters of a context of older nights."""
GRADES = ("of no use", "of some use", "answers it")


@dataclass(frozen=True)
class Context:
    """One retrieved context with what the judges said of it."""

    rank: int
    id: str | None
    score: float | None
    """The retriever's own."""
    expected: bool
    """Whether the reference names it."""
    grade: int | None
    verdict: str
    needed: int | None
    """Sentences needed to answer; None where that is not known."""
    relevant_to: tuple[str, ...]
    """Metrics that found it relevant."""
    new: bool
    """Whether the newest of the earlier nights did not have it."""
    passage: MarkedText


@dataclass(frozen=True)
class RankChange:
    """A context that does not stand where it stood on an earlier night."""

    context: MovedContext
    became: str
    passage: MarkedText | None
    """The text of one that is gone or was rewritten; others stand among those retrieved."""


@dataclass(frozen=True)
class EarlierRetrieval:
    """Earlier nights of the question on which the same was retrieved, newest first."""

    nights: tuple[EarlierNights, ...]
    moved: tuple[RankChange, ...]
    more: int
    """Contexts left out."""


@dataclass(frozen=True)
class RowDetail:
    """All there is to see of one row."""

    key: str
    """Names the row in the address of its page."""
    why: tuple[SelectionReason, ...]
    row: LogRow
    question: MarkedText
    response: MarkedText | None
    noncommittal: bool
    offered: tuple[Offered, ...]
    stated: tuple[Claims, ...]
    reference: MarkedText | None
    referred: tuple[Claims, ...]
    contexts: tuple[Context, ...]
    more_contexts: int
    missed: tuple[str, ...]
    """Contexts that the reference names and that were not retrieved."""
    scores: Mapping[str, Score]
    nights: tuple[EarlierNights, ...]
    """Earlier ones that had the question, newest first."""
    earlier: tuple[EarlierRetrieval, ...]

    @property
    def anchor(self) -> str:
        """The fragment of the row's address: a choice to a script, a place to a browser."""
        return f"row={self.key}"

    def opinions(self, metric: str) -> list[Opinion]:
        """What each judge said of the row by one metric, where there is more than a value."""
        return opinions(self.scores[metric])


def row_details(kept: KeptRow, room: int) -> RowDetail:
    """Lay out one row in about `room` bytes of text."""
    row, budget = kept.row, TextBudget(room)
    question = budget.passage(row.user_input, longest=_LONGEST_QUESTION)
    response = budget.passage(row.response) if row.response else None
    referred = of_reference(kept.scored, budget)
    plain = row.reference and not any(not group.title for group in referred)
    contexts = _contexts(kept, budget)
    retrieved = set(row.retrieved_context_ids or ())
    missed = [one for one in dict.fromkeys(row.reference_context_ids or ()) if one not in retrieved]
    return RowDetail(
        key=kept.key,
        why=kept.why,
        row=row,
        question=question,
        response=response,
        noncommittal=details(kept.scored, "response_relevancy").get("noncommittal") is True,
        offered=offered_questions(kept.scored, budget),
        stated=of_response(kept.scored, budget),
        reference=budget.passage(row.reference or "") if plain else None,
        referred=referred,
        contexts=contexts,
        more_contexts=len(row.retrieved_contexts) - len(contexts),
        missed=tuple(missed[:20]) if row.retrieved_context_ids else (),
        scores=kept.scores,
        nights=kept.earlier,
        earlier=_alike(kept.earlier, budget),
    )


def _contexts(kept: KeptRow, budget: TextBudget) -> tuple[Context, ...]:
    row, total = kept.row, len(kept.row.retrieved_contexts)
    grades = fitting(details(kept.scored, "context_relevance").get("grades"), total)
    needed = fitting(details(kept.scored, "context_relevancy").get("needed"), total)
    ids = fitting(row.retrieved_context_ids, total)
    scores = fitting(row.retrieved_context_scores, total)
    expected, relevant = set(row.reference_context_ids or ()), relevant_to(kept.scored)
    came = kept.earlier[0].came if kept.earlier else set()
    shown: list[Context] = []
    for i, text in enumerate(row.retrieved_contexts[:MOST_CONTEXTS]):
        if budget.empty and shown:
            break
        grade = grades[i] if grades and grades[i] in (0, 1, 2) else None
        wanted = _indices(needed[i]) if needed else None
        marked = spans(text, row.language, wanted or ())
        shown.append(
            Context(
                rank=i + 1,
                id=str(ids[i]) if ids else None,
                score=scores[i] if scores else None,
                expected=bool(ids) and ids[i] in expected,
                grade=grade,
                verdict="" if grade is None else GRADES[grade],
                needed=None if wanted is None else len(wanted),
                relevant_to=tuple(relevant.get(i + 1, ())),
                new=i + 1 in came,
                passage=budget.passage(text, marked),
            )
        )
    return tuple(shown)


def _alike(earlier: Sequence[EarlierNights], budget: TextBudget) -> tuple[EarlierRetrieval, ...]:
    """The earlier nights, neighbours on which the same was retrieved together."""
    groups = [tuple(group) for _, group in groupby(earlier, lambda night: night.contexts)]
    return tuple(_then(nights, budget, newest=place == 0) for place, nights in enumerate(groups))


def _then(
    nights: tuple[EarlierNights, ...], budget: TextBudget, *, newest: bool
) -> EarlierRetrieval:
    """Some nights alike: texts that are gone as far as there is room, of the newest nights; those
    of older ones only where no id names them.
    """
    changed = nights[0].changed
    moved = []
    for one in changed[:_MOST_MOVED]:
        fate = became(one)
        told = fate in _WITH_TEXT and (newest or one.id is None) and not budget.empty
        longest = LONGEST if newest else _SHORT
        passage = budget.passage(one.text, longest=longest) if told else None
        moved.append(RankChange(one, fate, passage))
    return EarlierRetrieval(nights, tuple(moved), len(changed) - len(moved))


def _indices(values: object) -> list[int] | None:
    found = fitting(values)
    if not isinstance(values, list | tuple) or not all(type(i) is int for i in found):
        return None
    return list(found)

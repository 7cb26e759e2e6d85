"""One row as pages show it: its texts with the judges' verdicts on them, and earlier retrievals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ragmetrics.dashboard.formatting import LONGEST, MarkedText, TextBudget, spans
from ragmetrics.dashboard.row_claims import (
    Claims,
    GeneratedQuestion,
    claims_of_reference,
    claims_of_response,
    details_of,
    generated_questions,
    integers_of,
    list_of,
    numbers_of,
)
from ragmetrics.dashboard.row_selection import EarlierNight, KeptRow, became
from ragmetrics.records import MovedContext, Score
from ragmetrics.storage import ScoredRow
from ragmetrics.text import NO_VALUE, plural

_MOST_CONTEXTS = 50
_MOST_MOVED = 30
_MOST_MISSED = 20
_LONGEST_QUESTION = 1_000
"""Characters of the question, which is a heading."""
_LONGEST_OLDER = 160
"""Characters of a context from nights before the newest earlier one."""
_WITH_TEXT = ("left", "rewritten")
_SHOWN_WITH_CONTEXTS = ("context_precision", "context_relevancy_chunks")
"""Metrics whose verdicts are the grades and needed sentences, which each context shows."""


@dataclass(frozen=True)
class Opinion:
    """What one judge of a panel said of a row, or one judge that was asked several times."""

    judge: str
    value: float | None
    repeats: tuple[float | None, ...]
    problem: str
    """Why there is no value, or in a cascade the number of verdicts."""


@dataclass(frozen=True)
class Context:
    """One retrieved context with the judges' verdicts on it."""

    rank: int
    id: str | None
    score: float | None
    """The retriever's score."""
    expected: bool
    """Whether the reference names it."""
    grade: int | None
    needed: int | None
    """Number of sentences that the answer needs; None if that is not known."""
    relevant_to: tuple[str, ...]
    """Metrics that found it relevant."""
    new: bool
    """Whether the newest earlier night did not retrieve it."""
    passage: MarkedText


@dataclass(frozen=True)
class RankChange:
    """A context whose rank or text differs from an earlier night."""

    context: MovedContext
    became: str
    passage: MarkedText | None
    """The text of a context that left or was rewritten; the row shows the other texts."""


@dataclass(frozen=True)
class EarlierRetrieval:
    """Earlier nights that retrieved the same for the question, newest first."""

    nights: tuple[EarlierNight, ...]
    moved: tuple[RankChange, ...]
    more: int
    """Contexts left out."""


@dataclass(frozen=True)
class RowDetail:
    """One row with all that a page shows of it."""

    kept: KeptRow
    question: MarkedText
    response: MarkedText | None
    noncommittal: bool
    generated: tuple[GeneratedQuestion, ...]
    stated: tuple[Claims, ...]
    reference: MarkedText | None
    referred: tuple[Claims, ...]
    contexts: tuple[Context, ...]
    missed: tuple[str, ...]
    """Contexts that the reference names and that were not retrieved."""
    earlier: tuple[EarlierRetrieval, ...]

    @property
    def more_contexts(self) -> int:
        """Retrieved contexts left out."""
        return len(self.kept.row.retrieved_contexts) - len(self.contexts)

    def opinions(self, metric: str) -> list[Opinion]:
        """What each judge said of the row by one metric, if there is more than a value."""
        return _opinions(self.kept.scores[metric])


def row_detail(kept: KeptRow, room: int) -> RowDetail:
    """Lay out one row with about `room` bytes of text."""
    row, scored, budget = kept.row, kept.scored, TextBudget(room)
    question = budget.passage(row.user_input, longest=_LONGEST_QUESTION)
    response = budget.passage(row.response) if row.response else None
    referred = claims_of_reference(scored, budget)
    is_split = any(not group.title for group in referred)
    contexts = _contexts(kept, budget)
    retrieved = set(row.retrieved_context_ids or ())
    missed = [one for one in dict.fromkeys(row.reference_context_ids or ()) if one not in retrieved]
    return RowDetail(
        kept=kept,
        question=question,
        response=response,
        noncommittal=details_of(scored, "response_relevancy").get("noncommittal") is True,
        generated=generated_questions(scored, budget),
        stated=claims_of_response(scored, budget),
        reference=budget.passage(row.reference) if row.reference and not is_split else None,
        referred=referred,
        contexts=contexts,
        missed=tuple(missed[:_MOST_MISSED]) if row.retrieved_context_ids else (),
        earlier=_earlier(kept.earlier, budget),
    )


def _contexts(kept: KeptRow, budget: TextBudget) -> tuple[Context, ...]:
    row, total = kept.row, len(kept.row.retrieved_contexts)
    grades = list_of(details_of(kept.scored, "context_relevance").get("grades"), total)
    needed = list_of(details_of(kept.scored, "context_relevancy").get("needed"), total)
    ids = list_of(row.retrieved_context_ids, total)
    scores = list_of(row.retrieved_context_scores, total)
    expected, relevant = set(row.reference_context_ids or ()), _relevant_to(kept.scored)
    came = kept.earlier[0].came if kept.earlier else set()
    shown: list[Context] = []
    for i, text in enumerate(row.retrieved_contexts[:_MOST_CONTEXTS]):
        if budget.empty and shown:
            break
        wanted = _indices(needed[i]) if needed else None
        marked = spans(text, row.language, wanted or ())
        shown.append(
            Context(
                rank=i + 1,
                id=str(ids[i]) if ids else None,
                score=scores[i] if scores else None,
                expected=bool(ids) and ids[i] in expected,
                grade=grades[i] if grades and grades[i] in (0, 1, 2) else None,
                needed=None if wanted is None else len(wanted),
                relevant_to=tuple(relevant.get(i + 1, ())),
                new=i + 1 in came,
                passage=budget.passage(text, marked),
            )
        )
    return tuple(shown)


def _indices(values: object) -> list[int] | None:
    found = integers_of(values)
    return found if isinstance(values, list | tuple) and len(found) == len(values) else None


def _relevant_to(scored: ScoredRow) -> dict[int, list[str]]:
    """By rank, the metrics that found a context relevant and show that in no other way."""
    by_position: dict[int, list[str]] = {}
    for metric in scored.scores:
        if metric not in _SHOWN_WITH_CONTEXTS:
            own = details_of(scored, metric)
            places = integers_of(own.get("relevant_contexts"))
            for rank in (*integers_of(own.get("relevant_ranks")), *(place + 1 for place in places)):
                by_position.setdefault(rank, []).append(metric)
    return by_position


def _opinions(score: Score) -> list[Opinion]:
    """What each judge of a panel said of a row, or how many verdicts each of a cascade gave; for a
    single judge, its repeats.
    """
    counts = score.details.get("answered_by")
    if isinstance(counts, Mapping):
        return [
            Opinion(str(name), None, (), plural(count, "verdict"))
            for name, count in counts.items()
            if isinstance(count, int) and count
        ]
    judges = score.details.get("judges")
    if isinstance(judges, Mapping):
        return [_opinion(str(name), said) for name, said in judges.items()]
    repeats = numbers_of(score.details.get("repeats"))
    return [Opinion("repeats", None, repeats, "")] if repeats else []


def _opinion(name: str, said: object) -> Opinion:
    if not isinstance(said, Mapping):
        return Opinion(name, None, (), NO_VALUE)
    (value,) = numbers_of([said.get("value")])
    problem = "" if value is not None else str(said.get("reason") or said.get("status") or NO_VALUE)
    return Opinion(name, value, numbers_of(said.get("repeats")), problem)


def _earlier(earlier: Sequence[EarlierNight], budget: TextBudget) -> tuple[EarlierRetrieval, ...]:
    """The earlier nights; consecutive nights that retrieved the same form a group."""
    groups = [tuple(group) for _, group in groupby(earlier, lambda night: night.contexts)]
    return tuple(_retrieval(one, budget, newest=place == 0) for place, one in enumerate(groups))


def _retrieval(
    nights: tuple[EarlierNight, ...], budget: TextBudget, *, newest: bool
) -> EarlierRetrieval:
    """Nights that retrieved the same. The newest show the texts of contexts that are gone, as far
    as there is room; older nights show a text only if the context has no id.
    """
    changed = nights[0].changed
    moved = []
    for context in changed[:_MOST_MOVED]:
        fate = became(context)
        with_text = fate in _WITH_TEXT and (newest or context.id is None) and not budget.empty
        longest = LONGEST if newest else _LONGEST_OLDER
        passage = budget.passage(context.text, longest=longest) if with_text else None
        moved.append(RankChange(context, fate, passage))
    return EarlierRetrieval(nights, tuple(moved), len(changed) - len(moved))

"""One bad row and why it is bad: its texts, with the judge's verdicts laid over them.

Verdicts come from the details of scores, which any version may have written: what does not
have the expected shape is left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragmetrics.protocol import Score
from ragmetrics.records import WorstRow
from ragmetrics.report.passages import Budget, Passage, spans
from ragmetrics.report.words import NONE, number
from ragmetrics.rows import LogRow
from ragmetrics.store.parts import ScoredRow
from ragmetrics.text import sentences

MOST_CONTEXTS = 50
MOST_CLAIMS = 60
_LONGEST_QUESTION = 1_000  # it is a heading
GRADES = ("of no use", "of some use", "answers it")


@dataclass(frozen=True)
class Context:
    """One retrieved context with what the judges said of it."""

    rank: int
    id: str | None
    expected: bool
    """Whether the reference names it."""
    grade: int | None
    verdict: str
    needed: int | None
    """Sentences needed to answer; None where that is not known."""
    passage: Passage


@dataclass(frozen=True)
class Claim:
    """A sentence of the reference, or a statement of the response."""

    passage: Passage
    supported: bool


@dataclass(frozen=True)
class Offered:
    """A question that the response would answer, and how close it is to the one asked."""

    passage: Passage
    cosine: float | None


@dataclass(frozen=True)
class Evidence:
    """All there is to see of one row."""

    anchor: str
    value: float
    metric: str
    row: LogRow
    question: Passage
    response: Passage | None
    noncommittal: bool
    offered: tuple[Offered, ...]
    statements: tuple[Claim, ...]
    reference: Passage | None
    claims: tuple[Claim, ...]
    contexts: tuple[Context, ...]
    more_contexts: int
    missed: tuple[str, ...]
    """Contexts that the reference names and that were not retrieved."""
    scores: Mapping[str, Score]

    def opinions(self, metric: str) -> list[str]:
        """What each judge of a panel said of the row, and a judge's repeats, as lines."""
        details = self.scores[metric].details
        judges = details.get("judges")
        lines = [
            f"{name}: {_opinion(said)}"
            for name, said in (judges.items() if isinstance(judges, Mapping) else ())
        ]
        repeats = _fitting(details.get("repeats"), None)
        return lines or ([f"repeats: {_numbers(repeats)}"] if repeats else [])


def _opinion(said: object) -> str:
    if not isinstance(said, Mapping):
        return NONE
    value, repeats = said.get("value"), _fitting(said.get("repeats"), None)
    text = _numbers([value]) if value is not None else str(said.get("reason") or said.get("status"))
    return f"{text} (repeats: {_numbers(repeats)})" if repeats else text


def _numbers(values: Sequence[Any]) -> str:
    known = (value if isinstance(value, int | float) else None for value in values)
    return ", ".join(number(value) for value in known)


def evidence(worst: WorstRow, scored: ScoredRow, anchor: str, room: int) -> Evidence:
    """Lay out one row in about `room` bytes."""
    row, budget = scored.row, Budget(room)
    response_details = _details(scored, "response_relevancy")
    question = budget.passage(row.user_input, longest=_LONGEST_QUESTION)
    response = budget.passage(row.response) if row.response else None
    claims = _claims(row, _details(scored, "context_recall").get("attributed"), budget)
    contexts = _contexts(scored, budget)
    retrieved = set(row.retrieved_context_ids or ())
    expected = row.reference_context_ids or ()
    return Evidence(
        anchor=anchor,
        value=worst.value,
        metric=worst.metric,
        row=row,
        question=question,
        response=response,
        noncommittal=response_details.get("noncommittal") is True,
        offered=_offered(response_details, budget),
        statements=_statements(_details(scored, "faithfulness"), budget),
        reference=budget.passage(row.reference) if row.reference and not claims else None,
        claims=claims,
        contexts=contexts,
        more_contexts=len(row.retrieved_contexts) - len(contexts),
        missed=tuple(i for i in dict.fromkeys(expected) if i not in retrieved)[:20]
        if row.retrieved_context_ids
        else (),
        scores=scored.scores,
    )


def _contexts(scored: ScoredRow, budget: Budget) -> tuple[Context, ...]:
    row = scored.row
    total = len(row.retrieved_contexts)
    grades = _fitting(_details(scored, "context_relevance").get("grades"), total)
    needed = _fitting(_details(scored, "context_relevancy").get("needed"), total)
    ids = _fitting(row.retrieved_context_ids, total)
    expected = set(row.reference_context_ids or ())
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
                expected=bool(ids) and ids[i] in expected,
                grade=grade,
                verdict="" if grade is None else GRADES[grade],
                needed=None if wanted is None else len(wanted),
                passage=budget.passage(text, marked),
            )
        )
    return tuple(shown)


def _claims(row: LogRow, attributed: object, budget: Budget) -> tuple[Claim, ...]:
    """The reference's sentences with their verdicts; nothing where the two do not fit."""
    if not row.reference or len(row.reference) > 50_000:
        return ()
    found = sentences(row.reference, row.language)
    verdicts = _fitting(attributed, len(found))
    if not verdicts or not all(verdict in (True, False) for verdict in verdicts):
        return ()
    pairs = list(zip(found, verdicts, strict=True))[:MOST_CLAIMS]
    return tuple(Claim(budget.passage(text), bool(verdict)) for text, verdict in pairs)


def _statements(details: Mapping[str, Any], budget: Budget) -> tuple[Claim, ...]:
    """The response's statements with their verdicts; nothing where the two do not fit."""
    stated = _fitting(details.get("statements"), None)
    verdicts = _fitting(details.get("supported"), len(stated))
    pairs = list(zip(stated, verdicts, strict=False))[:MOST_CLAIMS]
    return tuple(Claim(budget.passage(str(text)), bool(verdict)) for text, verdict in pairs)


def _offered(details: Mapping[str, Any], budget: Budget) -> tuple[Offered, ...]:
    questions = _fitting(details.get("questions"), None)[:10]
    cosines = _fitting(details.get("cosines"), len(questions)) or [None] * len(questions)
    return tuple(
        Offered(budget.passage(str(text)), cosine if isinstance(cosine, int | float) else None)
        for text, cosine in zip(questions, cosines, strict=True)
    )


def _details(scored: ScoredRow, metric: str) -> Mapping[str, Any]:
    score = scored.scores.get(metric)
    return score.details if score and isinstance(score.details, Mapping) else {}


def _fitting(values: object, length: int | None) -> Sequence[Any]:
    """The values, if they are a list of this length; else none."""
    if not isinstance(values, list | tuple):
        return []
    return values if length in (None, len(values)) else []


def _indices(values: object) -> list[int] | None:
    found = _fitting(values, None)
    if not isinstance(values, list | tuple) or not all(type(i) is int for i in found):
        return None
    return list(found)

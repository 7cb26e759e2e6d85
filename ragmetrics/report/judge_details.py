"""What judges said of the parts of a row: statements, entities, contexts, and of the whole.

Verdicts come from the details of scores, which any version may have written: what does not
have the expected shape is left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragmetrics.model import LogRow, Score
from ragmetrics.report.formatting import MarkedText, TextBudget
from ragmetrics.storage import ScoredRow
from ragmetrics.text import NO_VALUE, sentences

MOST_CLAIMS = 60
_LONGEST_REFERENCE = 50_000
"""Characters up to which a reference is split again to find its sentences."""
_TOLD_OTHERWISE = ("context_precision", "context_relevancy_chunks")
"""Their verdicts are the grades and the needed sentences, which stand with each context."""


@dataclass(frozen=True)
class Claim:
    """A sentence, statement or entity with the verdict on it."""

    passage: MarkedText
    good: bool
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class Claims:
    """What one metric found in the response or in the reference."""

    title: str
    claims: tuple[Claim, ...]
    more: int = 0
    """Those left out."""


@dataclass(frozen=True)
class Offered:
    """A question that the response would answer, and how close it is to the one asked."""

    passage: MarkedText
    cosine: float | None


@dataclass(frozen=True)
class Opinion:
    """What one judge of a panel, or one judge asked several times, made of a row."""

    judge: str
    value: float | None
    repeats: tuple[float | None, ...]
    told: str
    """Why there is no value."""


def details(scored: ScoredRow, metric: str) -> Mapping[str, Any]:
    """The details of a row's score by a metric; none where there are none."""
    score = scored.scores.get(metric)
    return score.details if score and isinstance(score.details, Mapping) else {}


def fitting(values: object, length: int | None = None) -> Sequence[Any]:
    """The values, if they are a list (of this length); else none."""
    if not isinstance(values, list | tuple):
        return []
    return values if length in (None, len(values)) else []


def of_response(scored: ScoredRow, budget: TextBudget) -> tuple[Claims, ...]:
    """The statements of the response with the verdicts on them."""
    faithful, noisy = details(scored, "faithfulness"), details(scored, "noise_sensitivity")
    stated = fitting(faithful.get("statements"))
    verdicts = fitting(faithful.get("supported"), len(stated))
    told = [("supported" if one else "not supported", bool(one)) for one in verdicts]
    groups = [_claims("Statements", stated, told, faithful.get("reasons"), budget)]
    stated = fitting(noisy.get("statements"))
    wrong, misled = fitting(noisy.get("wrong")), fitting(noisy.get("misled"))
    if "wrong" in noisy:
        told = [_held_against_reference(n, wrong, misled) for n in range(len(stated))]
        title = "Statements compared with the reference"
        groups.append(_claims(title, stated, told, None, budget))
    return tuple(group for group in groups if group.claims)


def _held_against_reference(
    number: int, wrong: Sequence[Any], misled: Sequence[Any]
) -> tuple[str, bool]:
    if number in misled:
        return "wrong, as a context says", False
    return ("wrong", False) if number in wrong else ("correct", True)


def of_reference(scored: ScoredRow, budget: TextBudget) -> tuple[Claims, ...]:
    """The reference's sentences, statements and entities with the verdicts on them."""
    recall = details(scored, "context_recall")
    ragas = details(scored, "ragas_context_recall")
    entities = details(scored, "context_entity_recall")
    said = _sentences(scored.row)
    groups = [
        _attributed("", said, recall, budget),
        _attributed("Statements by ragas", fitting(ragas.get("statements")), ragas, budget),
    ]
    found, missing = fitting(entities.get("found")), fitting(entities.get("missing"))
    told = [("found", True)] * len(found) + [("missing", False)] * len(missing)
    groups.append(_claims("Entities", [*found, *missing], told, None, budget))
    return tuple(group for group in groups if group.claims)


def _attributed(
    title: str, said: Sequence[Any], found: Mapping[str, Any], budget: TextBudget
) -> Claims:
    verdicts = fitting(found.get("attributed"), len(said))
    if not all(verdict in (True, False) for verdict in verdicts):
        return Claims(title, ())
    told = [("supported" if one else "not supported", bool(one)) for one in verdicts]
    return _claims(title, said, told, found.get("reasons"), budget)


def _sentences(row: LogRow) -> Sequence[str]:
    if not row.reference or len(row.reference) > _LONGEST_REFERENCE:
        return ()
    return sentences(row.reference, row.language)


def _claims(
    title: str,
    texts: Sequence[Any],
    verdicts: Sequence[tuple[str, bool]],
    reasons: object,
    budget: TextBudget,
) -> Claims:
    """Texts with their verdicts; nothing where the two do not fit."""
    if not texts or len(texts) != len(verdicts):
        return Claims(title, ())
    why = fitting(reasons, len(texts)) or [""] * len(texts)
    claims = [
        Claim(budget.passage(str(text)), good, verdict, reason if isinstance(reason, str) else "")
        for text, (verdict, good), reason in zip(texts, verdicts, why, strict=True)
        if not budget.empty
    ][:MOST_CLAIMS]
    return Claims(title, tuple(claims), len(texts) - len(claims))


def offered_questions(scored: ScoredRow, budget: TextBudget) -> tuple[Offered, ...]:
    """The questions that a judge made of the response."""
    found = details(scored, "response_relevancy")
    questions = fitting(found.get("questions"))[:10]
    cosines = fitting(found.get("cosines"), len(questions)) or [None] * len(questions)
    return tuple(
        Offered(budget.passage(str(text)), cosine if isinstance(cosine, int | float) else None)
        for text, cosine in zip(questions, cosines, strict=True)
    )


def relevant_to(scored: ScoredRow) -> dict[int, list[str]]:
    """By rank, the metrics that found a context relevant, where nothing else tells it."""
    found: dict[int, list[str]] = {}
    for metric in scored.scores:
        if metric not in _TOLD_OTHERWISE:
            own = details(scored, metric)
            ranks = [rank for rank in fitting(own.get("relevant_ranks")) if type(rank) is int]
            places = [
                place for place in fitting(own.get("relevant_contexts")) if type(place) is int
            ]
            for rank in (*ranks, *(place + 1 for place in places)):
                found.setdefault(rank, []).append(metric)
    return found


def opinions(score: Score) -> list[Opinion]:
    """What each judge of a panel said of a row; of one judge, its repeats."""
    judges = score.details.get("judges")
    if isinstance(judges, Mapping):
        return [_opinion(str(name), said) for name, said in judges.items()]
    repeats = _numbers(score.details.get("repeats"))
    return [Opinion("repeats", None, repeats, "")] if repeats else []


def _opinion(name: str, said: object) -> Opinion:
    if not isinstance(said, Mapping):
        return Opinion(name, None, (), NO_VALUE)
    (value,) = _numbers([said.get("value")])
    told = "" if value is not None else str(said.get("reason") or said.get("status") or NO_VALUE)
    return Opinion(name, value, _numbers(said.get("repeats")), told)


def _numbers(values: object) -> tuple[float | None, ...]:
    return tuple(
        float(value) if isinstance(value, int | float) else None for value in fitting(values)
    )

"""The verdicts of judges on the sentences, statements and entities of one row.

They come from the details of scores, which any version may have written. Details of an unexpected
shape are left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ragmetrics.dashboard.formatting import MarkedText, TextBudget
from ragmetrics.records import LogRow
from ragmetrics.storage import ScoredRow
from ragmetrics.text import sentences

_MOST_CLAIMS = 60
_MOST_QUESTIONS = 10
_LONGEST_REFERENCE = 50_000
"""Characters up to which a reference is split again to find its sentences."""


@dataclass(frozen=True)
class Claim:
    """A sentence, statement or entity with the verdict on it."""

    passage: MarkedText
    good: bool
    verdict: str
    reason: str


@dataclass(frozen=True)
class Claims:
    """The claims that one metric found in the response or in the reference."""

    title: str
    claims: tuple[Claim, ...] = ()
    more: int = 0
    """Claims left out."""


@dataclass(frozen=True)
class GeneratedQuestion:
    """A question that the response would answer, and its similarity to the row's question."""

    passage: MarkedText
    cosine: float | None


def details_of(scored: ScoredRow, metric: str) -> Mapping[str, Any]:
    """The details of the row's score by a metric; empty if there are none."""
    score = scored.scores.get(metric)
    return score.details if score and isinstance(score.details, Mapping) else {}


def list_of(values: object, length: int | None = None) -> Sequence[Any]:
    """The values if they are a list (of this length), else an empty list."""
    if not isinstance(values, list | tuple):
        return []
    return values if length in (None, len(values)) else []


def numbers_of(values: object) -> tuple[float | None, ...]:
    """The values of a list, those that are no numbers as None; empty if it is no list."""
    return tuple(float(one) if isinstance(one, int | float) else None for one in list_of(values))


def integers_of(values: object) -> list[int]:
    """The integers among the values of a list; empty if it is no list."""
    return [one for one in list_of(values) if type(one) is int]


def claims_of_response(scored: ScoredRow, budget: TextBudget) -> tuple[Claims, ...]:
    """The statements of the response with the verdicts on them."""
    faithful, noisy = details_of(scored, "faithfulness"), details_of(scored, "noise_sensitivity")
    stated = list_of(faithful.get("statements"))
    groups = [_supported("Statements", stated, "supported", faithful, budget)]
    if "wrong" in noisy:
        stated = list_of(noisy.get("statements"))
        wrong, misled = list_of(noisy.get("wrong")), list_of(noisy.get("misled"))
        verdicts = [_correct(place, wrong, misled) for place in range(len(stated))]
        title = "Statements compared with the reference"
        groups.append(_claims(title, stated, verdicts, None, budget))
    return tuple(group for group in groups if group.claims)


def _correct(place: int, wrong: Sequence[Any], misled: Sequence[Any]) -> tuple[str, bool]:
    if place in misled:
        return "wrong, as a passage says", False
    return ("wrong", False) if place in wrong else ("correct", True)


def claims_of_reference(scored: ScoredRow, budget: TextBudget) -> tuple[Claims, ...]:
    """The sentences, statements and entities of the reference with the verdicts on them."""
    recall = details_of(scored, "context_recall")
    ragas = details_of(scored, "ragas_context_recall")
    entities = details_of(scored, "context_entity_recall")
    stated, own = list_of(ragas.get("statements")), _sentences(scored.row)
    present, missing = list_of(entities.get("found")), list_of(entities.get("missing"))
    verdicts = [("found", True)] * len(present) + [("missing", False)] * len(missing)
    groups = (
        _supported("", own, "attributed", recall, budget),
        _supported("Statements by ragas", stated, "attributed", ragas, budget),
        _claims("Entities", [*present, *missing], verdicts, None, budget),
        _nuggets(scored, budget),
    )
    return tuple(group for group in groups if group.claims)


def _nuggets(scored: ScoredRow, budget: TextBudget) -> Claims:
    known = [(nugget["text"], nugget["importance"]) for nugget in scored.row.nuggets or ()]
    support = list_of(details_of(scored, "nugget_recall").get("support"), len(known))
    words = {2: "supported", 1: "partly supported", 0: "not supported"}
    if not all(type(level) is int and level in words for level in support):
        return Claims("Nuggets")
    verdicts = [
        (f"{importance}, {words[level]}", level == 2)
        for (_, importance), level in zip(known, support, strict=False)
    ]
    return _claims("Nuggets", [text for text, _ in known], verdicts, None, budget)


def _sentences(row: LogRow) -> Sequence[str]:
    if not row.reference or len(row.reference) > _LONGEST_REFERENCE:
        return ()
    return sentences(row.reference, row.language)


def _supported(
    title: str, texts: Sequence[Any], key: str, found: Mapping[str, Any], budget: TextBudget
) -> Claims:
    """Claims that contexts support or not, by the details' `key`."""
    known = list_of(found.get(key), len(texts))
    if not all(one in (True, False) for one in known):
        return Claims(title)
    chances = numbers_of(list_of(found.get("probabilities"), len(texts)))
    verdicts = [
        (f"{'supported' if one else 'not supported'}{surely(chance, bool(one))}", bool(one))
        for one, chance in zip_longest(known, chances)
    ]
    return _claims(title, texts, verdicts, found.get("reasons"), budget)


def surely(chance: float | None, verdict: bool = True) -> str:
    """` (97%)`: the probability of a verdict by that of yes; empty if the judge gave none."""
    if chance is None or not 0 <= chance <= 1:
        return ""
    return f" ({chance if verdict else 1 - chance:.0%})"


def _claims(
    title: str,
    texts: Sequence[Any],
    verdicts: Sequence[tuple[str, bool]],
    reasons: object,
    budget: TextBudget,
) -> Claims:
    """Texts with their verdicts; none if their numbers differ."""
    if not texts or len(texts) != len(verdicts):
        return Claims(title)
    why = list_of(reasons, len(texts)) or [""] * len(texts)
    claims = [
        Claim(budget.passage(str(text)), good, verdict, reason if isinstance(reason, str) else "")
        for text, (verdict, good), reason in zip(texts, verdicts, why, strict=True)
        if not budget.empty
    ][:_MOST_CLAIMS]
    return Claims(title, tuple(claims), len(texts) - len(claims))


def generated_questions(scored: ScoredRow, budget: TextBudget) -> tuple[GeneratedQuestion, ...]:
    """The questions that a judge made from the response."""
    found = details_of(scored, "response_relevancy")
    questions = list_of(found.get("questions"))[:_MOST_QUESTIONS]
    cosines = numbers_of(list_of(found.get("cosines"), len(questions))) or (None,) * len(questions)
    return tuple(
        GeneratedQuestion(budget.passage(str(text)), cosine)
        for text, cosine in zip(questions, cosines, strict=True)
    )

"""One row as pages show it: its texts with the judges' verdicts on them, and earlier retrievals.

The verdicts come from the details of scores, which any version may have written. Details of an
unexpected shape are left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ragmetrics.dashboard.formatting import LONGEST, MarkedText, TextBudget, spans
from ragmetrics.dashboard.row_selection import EarlierNight, KeptRow, became
from ragmetrics.records import LogRow, MovedContext, Score
from ragmetrics.storage import ScoredRow
from ragmetrics.text import NO_VALUE, plural, sentences

_MOST_CONTEXTS = 50
_MOST_CLAIMS = 60
_MOST_MOVED = 30
_MOST_QUESTIONS = 10
_MOST_MISSED = 20
_LONGEST_QUESTION = 1_000
"""Characters of the question, which is a heading."""
_LONGEST_REFERENCE = 50_000
"""Characters up to which a reference is split again to find its sentences."""
_LONGEST_OLDER = 160
"""Characters of a context from nights before the newest earlier one."""
_WITH_TEXT = ("left", "rewritten")
_SHOWN_WITH_CONTEXTS = ("context_precision", "context_relevancy_chunks")
"""Metrics whose verdicts are the grades and needed sentences, which each context shows."""


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
    referred = _of_reference(scored, budget)
    is_split = any(not group.title for group in referred)
    contexts = _contexts(kept, budget)
    retrieved = set(row.retrieved_context_ids or ())
    missed = [one for one in dict.fromkeys(row.reference_context_ids or ()) if one not in retrieved]
    return RowDetail(
        kept=kept,
        question=question,
        response=response,
        noncommittal=_details(scored, "response_relevancy").get("noncommittal") is True,
        generated=_generated_questions(scored, budget),
        stated=_of_response(scored, budget),
        reference=budget.passage(row.reference) if row.reference and not is_split else None,
        referred=referred,
        contexts=contexts,
        missed=tuple(missed[:_MOST_MISSED]) if row.retrieved_context_ids else (),
        earlier=_earlier(kept.earlier, budget),
    )


def _details(scored: ScoredRow, metric: str) -> Mapping[str, Any]:
    """The details of the row's score by a metric; empty if there are none."""
    score = scored.scores.get(metric)
    return score.details if score and isinstance(score.details, Mapping) else {}


def _list(values: object, length: int | None = None) -> Sequence[Any]:
    """The values if they are a list (of this length), else an empty list."""
    if not isinstance(values, list | tuple):
        return []
    return values if length in (None, len(values)) else []


def _numbers(values: object) -> tuple[float | None, ...]:
    return tuple(float(one) if isinstance(one, int | float) else None for one in _list(values))


def _integers(values: object) -> list[int]:
    return [one for one in _list(values) if type(one) is int]


def _of_response(scored: ScoredRow, budget: TextBudget) -> tuple[Claims, ...]:
    """The statements of the response with the verdicts on them."""
    faithful, noisy = _details(scored, "faithfulness"), _details(scored, "noise_sensitivity")
    stated = _list(faithful.get("statements"))
    groups = [_supported("Statements", stated, "supported", faithful, budget)]
    if "wrong" in noisy:
        stated = _list(noisy.get("statements"))
        wrong, misled = _list(noisy.get("wrong")), _list(noisy.get("misled"))
        verdicts = [_correct(place, wrong, misled) for place in range(len(stated))]
        title = "Statements compared with the reference"
        groups.append(_claims(title, stated, verdicts, None, budget))
    return tuple(group for group in groups if group.claims)


def _correct(place: int, wrong: Sequence[Any], misled: Sequence[Any]) -> tuple[str, bool]:
    if place in misled:
        return "wrong, as a context says", False
    return ("wrong", False) if place in wrong else ("correct", True)


def _of_reference(scored: ScoredRow, budget: TextBudget) -> tuple[Claims, ...]:
    """The sentences, statements and entities of the reference with the verdicts on them."""
    recall = _details(scored, "context_recall")
    ragas = _details(scored, "ragas_context_recall")
    entities = _details(scored, "context_entity_recall")
    stated, own = _list(ragas.get("statements")), _sentences(scored.row)
    found, missing = _list(entities.get("found")), _list(entities.get("missing"))
    verdicts = [("found", True)] * len(found) + [("missing", False)] * len(missing)
    groups = (
        _supported("", own, "attributed", recall, budget),
        _supported("Statements by ragas", stated, "attributed", ragas, budget),
        _claims("Entities", [*found, *missing], verdicts, None, budget),
    )
    return tuple(group for group in groups if group.claims)


def _sentences(row: LogRow) -> Sequence[str]:
    if not row.reference or len(row.reference) > _LONGEST_REFERENCE:
        return ()
    return sentences(row.reference, row.language)


def _supported(
    title: str, texts: Sequence[Any], key: str, found: Mapping[str, Any], budget: TextBudget
) -> Claims:
    """Claims that contexts support or not, by the details' `key`."""
    known = _list(found.get(key), len(texts))
    if not all(one in (True, False) for one in known):
        return Claims(title)
    verdicts = [("supported" if one else "not supported", bool(one)) for one in known]
    return _claims(title, texts, verdicts, found.get("reasons"), budget)


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
    why = _list(reasons, len(texts)) or [""] * len(texts)
    claims = [
        Claim(budget.passage(str(text)), good, verdict, reason if isinstance(reason, str) else "")
        for text, (verdict, good), reason in zip(texts, verdicts, why, strict=True)
        if not budget.empty
    ][:_MOST_CLAIMS]
    return Claims(title, tuple(claims), len(texts) - len(claims))


def _generated_questions(scored: ScoredRow, budget: TextBudget) -> tuple[GeneratedQuestion, ...]:
    """The questions that a judge made from the response."""
    found = _details(scored, "response_relevancy")
    questions = _list(found.get("questions"))[:_MOST_QUESTIONS]
    cosines = _numbers(_list(found.get("cosines"), len(questions))) or (None,) * len(questions)
    return tuple(
        GeneratedQuestion(budget.passage(str(text)), cosine)
        for text, cosine in zip(questions, cosines, strict=True)
    )


def _contexts(kept: KeptRow, budget: TextBudget) -> tuple[Context, ...]:
    row, total = kept.row, len(kept.row.retrieved_contexts)
    grades = _list(_details(kept.scored, "context_relevance").get("grades"), total)
    needed = _list(_details(kept.scored, "context_relevancy").get("needed"), total)
    ids = _list(row.retrieved_context_ids, total)
    scores = _list(row.retrieved_context_scores, total)
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
    found = _integers(values)
    return found if isinstance(values, list | tuple) and len(found) == len(values) else None


def _relevant_to(scored: ScoredRow) -> dict[int, list[str]]:
    """By rank, the metrics that found a context relevant and show that in no other way."""
    found: dict[int, list[str]] = {}
    for metric in scored.scores:
        if metric not in _SHOWN_WITH_CONTEXTS:
            own = _details(scored, metric)
            places = _integers(own.get("relevant_contexts"))
            for rank in (*_integers(own.get("relevant_ranks")), *(place + 1 for place in places)):
                found.setdefault(rank, []).append(metric)
    return found


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
    repeats = _numbers(score.details.get("repeats"))
    return [Opinion("repeats", None, repeats, "")] if repeats else []


def _opinion(name: str, said: object) -> Opinion:
    if not isinstance(said, Mapping):
        return Opinion(name, None, (), NO_VALUE)
    (value,) = _numbers([said.get("value")])
    problem = "" if value is not None else str(said.get("reason") or said.get("status") or NO_VALUE)
    return Opinion(name, value, _numbers(said.get("repeats")), problem)


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
    for one in changed[:_MOST_MOVED]:
        fate = became(one)
        with_text = fate in _WITH_TEXT and (newest or one.id is None) and not budget.empty
        longest = LONGEST if newest else _LONGEST_OLDER
        passage = budget.passage(one.text, longest=longest) if with_text else None
        moved.append(RankChange(one, fate, passage))
    return EarlierRetrieval(nights, tuple(moved), len(changed) - len(moved))

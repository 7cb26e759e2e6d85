"""One row as pages show it: what was expected beside what was retrieved, the judges' verdicts, and
the question's scores and contexts on earlier nights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markupsafe import Markup

from ragmetrics.dashboard.figure_layout import tick_label
from ragmetrics.dashboard.formatting import MarkedText, TextBudget, number, spans
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
    surely,
)
from ragmetrics.dashboard.row_expected import ExpectedPassage, expected_passages
from ragmetrics.dashboard.row_selection import EarlierNight, KeptRow, SelectionReason, became
from ragmetrics.dashboard.svg import sparkline
from ragmetrics.metrics import display_name
from ragmetrics.records import LogRow, LostPassage, MovedContext, Score
from ragmetrics.storage import ScoredRow
from ragmetrics.text import NO_VALUE, finite, plural

_MOST_CONTEXTS = 50
_MOST_MOVED = 30
_LONGEST_QUESTION = 1_000
"""Characters of the question, which is a heading."""
_LONGEST_QUERY = 300
_SHOWN_WITH_CONTEXTS = ("context_precision", "context_relevancy_chunks")
"""Metrics whose verdicts are the grades and needed sentences, which each context shows."""
_FATES = ("left", "rewritten", "moved", "came")


@dataclass(frozen=True)
class Opinion:
    """What one judge of a panel said of a row, or one judge that was asked several times."""

    judge: str
    value: float | None
    repeats: tuple[float | None, ...]
    problem: str
    """Why there is no value, or in a cascade the number of verdicts."""


@dataclass(frozen=True)
class MetricLine:
    """The row's score by one metric, and those of its question on earlier nights."""

    metric: str
    score: Score
    before: float | None
    """On the newest earlier night that asked the question; of a question that fell, its mean."""
    chart: Markup
    """All nights as a small line; empty if there is one value at most."""
    told: str
    """The same in words."""
    opinions: tuple[Opinion, ...]


@dataclass(frozen=True)
class Context:
    """One retrieved context with the judges' verdicts on it."""

    rank: int
    id: str | None
    score: float | None
    """The retriever's score."""
    expected: bool
    """Whether it is a passage that the question needs."""
    grade: int | None
    surely: str
    """Probability of the grade in words."""
    needed: str
    """Number of sentences that the answer needs, in words; empty if that is not known."""
    relevant_to: tuple[str, ...]
    """Metrics that found it relevant."""
    new: bool
    """Whether the newest earlier night did not retrieve it."""
    passage: MarkedText


@dataclass(frozen=True)
class HopContexts:
    """What one hop of a trace asked, and what it retrieved."""

    number: int
    query: MarkedText | None
    """None for a single retrieval."""
    found: int
    contexts: tuple[Context, ...]
    """Those that are shown."""


@dataclass(frozen=True)
class EarlierRetrieval:
    """Earlier nights that retrieved the same for the question, newest first."""

    nights: tuple[EarlierNight, ...]
    moved: tuple[tuple[str, tuple[MovedContext, ...]], ...]
    """Contexts whose rank or text differs, by what became of them."""
    more: int
    """Contexts left out."""


@dataclass(frozen=True)
class RowDetail:
    """One row with all that a page shows of it."""

    kept: KeptRow
    metrics: tuple[MetricLine, ...]
    """The metric first for which the row is kept."""
    question: MarkedText
    response: MarkedText | None
    noncommittal: bool
    generated: tuple[GeneratedQuestion, ...]
    stated: tuple[Claims, ...]
    expected: tuple[ExpectedPassage, ...]
    reference: MarkedText | None
    referred: tuple[Claims, ...]
    hops: tuple[HopContexts, ...]
    earlier: tuple[EarlierRetrieval, ...]

    @property
    def more_contexts(self) -> int:
        """Retrieved contexts left out."""
        return sum(hop.found - len(hop.contexts) for hop in self.hops)

    @property
    def before(self) -> Mapping[str, float | None]:
        """The values before, by metric."""
        return {line.metric: line.before for line in self.metrics}

    @property
    def nights(self) -> str:
        """The first night of the charts: `since 10 Nov`; empty without an earlier one."""
        then = (*self.kept.earlier, *self.kept.older)
        return f"since {tick_label(then[-1].date)}" if then else ""


def row_detail(kept: KeptRow, room: int, lost: Sequence[LostPassage] = ()) -> RowDetail:
    """Lay out one row with about `room` bytes of text; `lost` are the passages that it lost."""
    row, scored, budget = kept.row, kept.scored, TextBudget(room)
    question = budget.passage(row.user_input, longest=_LONGEST_QUESTION)
    expected = expected_passages(kept, lost, budget)
    referred = claims_of_reference(scored, budget)
    is_split = any(not group.title for group in referred)
    contexts = _contexts(kept, {passage.rank for passage in expected}, budget)
    return RowDetail(
        kept=kept,
        metrics=_metrics(kept),
        question=question,
        response=budget.passage(row.response) if row.response else None,
        noncommittal=details_of(scored, "response_relevancy").get("noncommittal") is True,
        generated=generated_questions(scored, budget),
        stated=claims_of_response(scored, budget),
        expected=expected,
        reference=budget.passage(row.reference) if row.reference and not is_split else None,
        referred=referred,
        hops=_hops(row, contexts, budget),
        earlier=_earlier(kept.earlier),
    )


def leading_reasons(kept: KeptRow) -> list[SelectionReason]:
    """The reasons with a metric, those of questions that fell first."""
    return sorted((why for why in kept.why if why.metric), key=lambda why: why.kind != "fell")


def _metrics(kept: KeptRow) -> tuple[MetricLine, ...]:
    names = dict.fromkeys([*(why.metric for why in leading_reasons(kept)), *kept.scores])
    return tuple(_metric_line(kept, name) for name in names if name in kept.scores)


def _metric_line(kept: KeptRow, name: str) -> MetricLine:
    score, then = kept.scores[name], (*kept.earlier, *kept.older)
    values = [(night.date, finite(night.values.get(name))) for night in reversed(then)]
    known = [(tick_label(day), value) for day, value in values if value is not None]
    now = finite(score.value)
    drawn = known and len(known) + (now is not None) > 1
    return MetricLine(
        metric=name,
        score=score,
        before=next(
            (why.before for why in kept.why if why.kind == "fell" and why.metric == name),
            values[-1][1] if values else None,
        ),
        chart=sparkline([*(v for _, v in values), now], ends=(0, 1), mark=True)
        if drawn
        else Markup(),
        told=", ".join(f"{day} {number(value, 2)}" for day, value in known),
        opinions=tuple(_opinions(score)),
    )


def _contexts(kept: KeptRow, expected: set[int | None], budget: TextBudget) -> tuple[Context, ...]:
    row, total = kept.row, len(kept.row.retrieved_contexts)
    graded, wanted = _grades(kept.scored, total), _needed(kept.scored, total)
    ids = list_of(row.retrieved_context_ids, total) or [None] * total
    scores = list_of(row.retrieved_context_scores, total) or [None] * total
    relevant = _relevant_to(kept.scored)
    came = kept.earlier[0].came if kept.earlier else set()
    shown: list[Context] = []
    for rank, text in enumerate(row.retrieved_contexts[:_MOST_CONTEXTS], 1):
        if budget.empty and shown:
            break
        needed, words = wanted[rank - 1]
        grade, chance = graded[rank - 1]
        shown.append(
            Context(
                rank=rank,
                id=ids[rank - 1],
                score=scores[rank - 1],
                expected=rank in expected,
                grade=grade,
                surely=chance,
                needed=words,
                relevant_to=tuple(relevant.get(rank, ())),
                new=rank in came,
                passage=budget.passage(text, spans(text, row.language, needed)),
            )
        )
    return tuple(shown)


def _hops(row: LogRow, contexts: Sequence[Context], budget: TextBudget) -> tuple[HopContexts, ...]:
    """The contexts that are shown by the hop that retrieved them."""
    hops, start, shown = row.hops, 0, []
    for place, hop in enumerate(hops, 1):
        end = start + len(hop.contexts)
        query = budget.passage(hop.query, longest=_LONGEST_QUERY) if len(hops) > 1 else None
        own = tuple(contexts[start:end])
        shown.append(HopContexts(place, query, len(hop.contexts), own))
        start = end
    return tuple(shown)


def _grades(scored: ScoredRow, total: int) -> list[tuple[int | None, str]]:
    """The grade of each context and its probability in words."""
    details = details_of(scored, "context_relevance")
    grades = list_of(details.get("grades"), total) or [None] * total
    chances = list_of(details.get("probabilities"), total) or [None] * total
    graded: list[tuple[int | None, str]] = []
    for grade, levels in zip(grades, chances, strict=True):
        known = grade if grade in (0, 1, 2) else None
        of_levels = numbers_of(list_of(levels, 3))
        graded.append((known, surely(of_levels[known]) if known is not None and of_levels else ""))
    return graded


def _needed(scored: ScoredRow, total: int) -> list[tuple[list[int], str]]:
    """The needed sentences of each context, and their number in words."""
    needed = list_of(details_of(scored, "context_relevancy").get("needed"), total)
    chunks = details_of(scored, "context_relevancy_chunks").get("probabilities")
    chances = numbers_of(list_of(chunks, total)) or (None,) * total
    return [_needed_words(*pair) for pair in zip(needed or [None] * total, chances, strict=True)]


def _needed_words(values: Any, chance: float | None) -> tuple[list[int], str]:
    indices = integers_of(values)
    if not isinstance(values, list | tuple) or len(indices) != len(values):
        return [], ""
    words = plural(len(indices), "needed sentence") if indices else "no needed sentence"
    return indices, f"{words}{surely(chance, bool(indices))}"


def _relevant_to(scored: ScoredRow) -> dict[int, list[str]]:
    """By rank, the metrics that found a context relevant and show that in no other way."""
    by_rank: dict[int, list[str]] = {}
    for metric in scored.scores:
        if metric in _SHOWN_WITH_CONTEXTS:
            continue
        details = details_of(scored, metric)
        for place in integers_of(details.get("relevant_contexts")):
            by_rank.setdefault(place + 1, []).append(display_name(metric))
        chances = dict(enumerate(numbers_of(details.get("probabilities")), 1))
        for rank in integers_of(details.get("relevant_ranks")):
            told = f"{display_name(metric)}{surely(chances.get(rank))}"
            by_rank.setdefault(rank, []).append(told)
    return by_rank


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


def _earlier(earlier: Sequence[EarlierNight]) -> tuple[EarlierRetrieval, ...]:
    """The earlier nights; consecutive nights that retrieved the same form a group."""
    groups = (tuple(group) for _, group in groupby(earlier, lambda night: night.contexts))
    return tuple(map(_retrieval, groups))


def _retrieval(nights: tuple[EarlierNight, ...]) -> EarlierRetrieval:
    changed = nights[0].changed
    shown = changed[:_MOST_MOVED]
    moved = {fate: tuple(one for one in shown if became(one) == fate) for fate in _FATES}
    named = tuple((fate, contexts) for fate, contexts in moved.items() if contexts)
    return EarlierRetrieval(nights, named, len(changed) - len(shown))

"""Share of the nuggets of the right answer that the retrieved contexts support."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

from pydantic import BaseModel, Field

from ragmetrics.errors import UnreadableReply
from ragmetrics.metrics.bundled._support import SUPPORTED_FROM
from ragmetrics.metrics.definition import metric
from ragmetrics.records import (
    Data,
    Distribution,
    Lexicon,
    LogRow,
    Prompt,
    Score,
    ScoreQuestion,
    Size,
    Steps,
    ask,
    likeliest_level,
    strength,
)

PARTLY_FROM = 0.4
LEVELS = ("the contexts say none of it", "they say a part of it", "they say all of it")
Measure = Literal["vital_strict", "vital", "all_strict", "all"]


class NuggetSupport(BaseModel):
    """One verdict per nugget, in order: 0 not supported, 1 partly, 2 fully."""

    support: list[Literal[0, 1, 2]]

    @property
    def shares(self) -> Sequence[Sequence[float]]:
        """The probabilities of the levels of each nugget."""
        return [[float(level == known) for level in range(3)] for known in self.support]


class ExpectedSupport(NuggetSupport):
    """The likeliest verdicts of a decision model, with the probabilities of all levels."""

    probabilities: tuple[tuple[float, ...], ...] = Field(exclude=True)

    @property
    def shares(self) -> Sequence[Sequence[float]]:
        """The probabilities of the levels of each nugget."""
        return self.probabilities

    @property
    def strengths(self) -> Sequence[float]:
        """The expected level of each nugget as a share of the highest."""
        return list(map(strength, self.probabilities))


def _check(verdict: NuggetSupport, data: Data) -> None:
    asked, received = len(data["nuggets"]), len(verdict.support)
    if asked != received:
        raise UnreadableReply(f"support: {received} verdicts for {asked} nuggets")


def _evidence(data: Data, lexicon: Lexicon) -> list[float]:
    return [lexicon.coverage(nugget, *data["contexts"]) for nugget in data["nuggets"]]


def _baseline(data: Data, lexicon: Lexicon) -> NuggetSupport:
    found = _evidence(data, lexicon)
    return NuggetSupport(
        support=[2 if one >= SUPPORTED_FROM else 1 if one >= PARTLY_FROM else 0 for one in found]
    )


def _expect(distributions: Sequence[Distribution], data: Data) -> ExpectedSupport:
    likeliest = list(map(likeliest_level, distributions))
    return ExpectedSupport.model_validate({"support": likeliest, "probabilities": distributions})


NUGGETS = Prompt(
    name="nuggets",
    version=1,
    verdict=NuggetSupport,
    instruction="""
Check how far the retrieved contexts support each nugget, a fact that belongs to a right answer.
For each nugget, in order: 2 if the contexts, taken together, say all of it; 1 if they say a part
of it; 0 if they say none of it. Use no other knowledge. Give exactly one verdict per nugget.
""",
    examples=(
        (
            {
                "question": "When was the Eiffel Tower built?",
                "contexts": ["It was finished in 1889.", "Paris has two million people."],
                "nuggets": [
                    "The Eiffel Tower was finished in 1889.",
                    "The Eiffel Tower was built from 1887 to 1889.",
                    "The company of Gustave Eiffel built it.",
                ],
            },
            {"support": [2, 1, 0]},
        ),
    ),
    check=_check,
    sizes=lambda data: {"support": Size(len(data["nuggets"]), len(data["nuggets"]))},
    baseline=_baseline,
    evidence=_evidence,
    rubric="How much of the nugget, a fact of a right answer, the contexts, taken together, say.",
    questions=lambda data: [
        ScoreQuestion(str(number), LEVELS, by_part=True)
        for number, _ in enumerate(data["nuggets"], 1)
    ],
    expect=_expect,
)


@metric(
    version=1,
    display="Nugget recall",
    prompts=[NUGGETS],
    needs=("retrieved_contexts", "nuggets"),
    calls="1",
)
def nugget_recall(row: LogRow, measure: Measure = "vital_strict") -> Steps[Score]:
    """Share of the nuggets of the right answer that the retrieved contexts support.

        V = sum(s over vital) / |vital|,  s = 1 if fully supported, 0.5 if partly, else 0
        A = sum(s) / |nuggets|;           V_strict, A_strict: s = 1 if fully supported, else 0

    A nugget is a fact of the reference, vital if a right answer needs it and okay otherwise;
    `ragmetrics golden nuggets` cuts references into nuggets, once. `measure` is `vital_strict`, the
    main measure of TREC, or `vital`, `all`, `all_strict`.
    Range [0, 1], higher is better; one judge call per row. A decision model's value is the
    expectation by its probabilities.
    No nuggets: not applicable. No vital nugget: not applicable for V, where nuggetizer counts 0.
    Nothing retrieved: 0.0, not asked. Raises Unanswered if the reply stays unreadable: not one
    verdict per nugget.
    Source: Pradeep et al. 2025, The Great Nugget Recall (arXiv 2504.15068), and its nuggetizer
    (`calculate_nugget_scores`). There an answer is assessed, with at most ten nuggets in a request;
    here the contexts are, with all nuggets.
    """
    nuggets = row.nuggets or ()
    if not nuggets:
        return Score.not_applicable(_why_none(row))
    vital = [nugget["importance"] == "vital" for nugget in nuggets]
    if measure.startswith("vital") and not any(vital):
        return Score.not_applicable("no vital nugget: `measure: all` counts the others")
    contexts = [context for context in row.retrieved_contexts if context.strip()]
    if not contexts:
        return Score(0.0, reason="nothing retrieved")
    texts = [nugget["text"] for nugget in nuggets]
    verdict = yield from ask(NUGGETS, question=row.user_input, contexts=contexts, nuggets=texts)
    values = measures(verdict.shares, vital)
    details: dict[str, Any] = {"support": verdict.support, "measures": values}
    if isinstance(verdict, ExpectedSupport):
        rounded = [[round(chance, 6) for chance in chances] for chances in verdict.shares]
        details["probabilities"] = rounded
    return Score(values[measure], details=details)


def _why_none(row: LogRow) -> str:
    if not (row.reference or "").strip():
        return "no reference answer"
    if row.nuggets is not None:
        return "the reference states no fact: it has no nuggets"
    return "no nuggets yet: make them by `ragmetrics golden nuggets`"


def measures(shares: Sequence[Sequence[float]], vital: Sequence[bool]) -> Mapping[str, float]:
    """All measures by the probabilities of the levels of each nugget; V only with a vital one."""
    found = {}
    for name, counted in (("vital", vital), ("all", [True] * len(vital))):
        if any(counted):
            known = [chances for chances, one in zip(shares, counted, strict=True) if one]
            found[name] = fmean(chances[2] + chances[1] / 2 for chances in known)
            found[f"{name}_strict"] = fmean(chances[2] for chances in known)
    return {name: min(1.0, value) for name, value in found.items()}

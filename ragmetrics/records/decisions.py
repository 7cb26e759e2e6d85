"""Questions of decision models: what they ask, and what their probabilities mean.

A question has a distribution over its levels, worst first. A predicate has two: false and true.

    expected level = sum over levels i of i * p_i
    strength       = expected level / highest level, in [0, 1]
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from ragmetrics.errors import UnreadableReply
from ragmetrics.text import shorten

if TYPE_CHECKING:
    from ragmetrics.records.request import Data, Prompt

Distribution: TypeAlias = tuple[float, ...]
"""Probabilities of the levels of a question, which add up to 1."""

_TOLERANCE = 0.01
"""How far the sum of a distribution may be from 1, by rounding on the server."""
_MOST_LEVELS = 10
"""More is refused by every server of the documented protocols."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A statement about the data: how likely is it that it is true?

    `instructions` completes the rubric of the prompt, as in `sentence 3`; the rubric stands once
    for all questions. `context` is the index of the context that the question is about, if it is
    about one of several. `by_part`: it is true of all contexts if it is true of a part of them, so
    that contexts that are too long for the judge can be asked about in parts.
    """

    instructions: str = ""
    context: int | None = None
    by_part: bool = False

    levels: ClassVar[tuple[str, ...]] = ("false", "true")


@dataclass(frozen=True, slots=True)
class ScoreQuestion:
    """A rating: which of the levels, described worst first, fits? From 2 to 10 levels.

    All scores of a prompt have the same levels. `by_part`: contexts that are too long may be asked
    about in parts, and the answer with the highest expected level counts.
    """

    instructions: str
    levels: tuple[str, ...]
    context: int | None = None
    by_part: bool = False


@runtime_checkable
class HasStrengths(Protocol):
    """A verdict with probabilities."""

    @property
    def strengths(self) -> Sequence[float]:
        """The expected level of each item as a share of the highest: a probability, where there
        are two levels."""


Question: TypeAlias = Predicate | ScoreQuestion
_KINDS = (Predicate, ScoreQuestion)


def questions_of(prompt: Prompt[Any], data: Data) -> tuple[Question, ...]:
    """What a decision model is asked. Raises UnreadableReply for what cannot be asked."""
    if prompt.questions is None:
        raise UnreadableReply(f"{prompt.name}: has no questions for a decision model")
    try:
        asked = tuple(prompt.questions(data))
        _check(asked)
    except Exception as error:  # the code of a metric must not end a run
        raise UnreadableReply(f"{prompt.name}: the questions failed: {error!r}") from error
    return asked


def _check(asked: Sequence[Any]) -> None:
    if not all(isinstance(question, _KINDS) for question in asked):
        raise TypeError("a question is a Predicate or a ScoreQuestion")
    scales = {question.levels for question in asked if isinstance(question, ScoreQuestion)}
    if len(scales) > 1:
        raise ValueError("all scores of a prompt have the same levels")
    if not all(2 <= len(levels) <= _MOST_LEVELS for levels in scales):
        raise ValueError(f"a score has from 2 to {_MOST_LEVELS} levels")


def expected_level(distribution: Distribution) -> float:
    """The expectation of the level."""
    if len(distribution) == 2:
        return distribution[1]
    return sum(level * probability for level, probability in enumerate(distribution))


def likeliest_level(distribution: Distribution) -> int:
    """The level of the highest probability, the lower one of two that are equal."""
    return distribution.index(max(distribution))


def strength(distribution: Distribution) -> float:
    """The expected level as a share of the highest."""
    return expected_level(distribution) / (len(distribution) - 1)


def hard(distribution: Distribution) -> Distribution:
    """All of the probability on the likeliest level."""
    chosen = likeliest_level(distribution)
    return tuple(float(level == chosen) for level in range(len(distribution)))


def distributions(text: str, asked: Sequence[Question]) -> list[Distribution]:
    """Read `{"answers": [0.97, [0.1, 0.2, 0.7]]}`: a probability for each predicate, a list for
    each score.

    Raises UnreadableReply unless every option of every question has a finite probability in [0, 1],
    and those of a score add up to 1 within 0.01; they are scaled to add up exactly.
    """
    try:
        answers = json.loads(text)["answers"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise UnreadableReply(f"no answers: {error!r}") from None
    if not isinstance(answers, list) or len(answers) != len(asked):
        received = len(answers) if isinstance(answers, list) else "no"
        raise UnreadableReply(f"{received} answers to {len(asked)} questions")
    return list(map(_distribution, asked, answers))


def _distribution(question: Question, answer: Any) -> Distribution:
    if isinstance(question, Predicate):
        chance = _probability(answer)
        return (1 - chance, chance)
    if isinstance(answer, str):
        raise UnreadableReply(shorten(answer))
    if not isinstance(answer, list) or len(answer) != len(question.levels):
        raise UnreadableReply(f"not one probability for each of {len(question.levels)} levels")
    chances = [_probability(value) for value in answer]
    total = sum(chances)
    if abs(total - 1) > _TOLERANCE:
        raise UnreadableReply(f"the probabilities of a score add up to {total:.3g}")
    return tuple(chance / total for chance in chances)


def _probability(value: Any) -> float:
    if isinstance(value, str):
        raise UnreadableReply(shorten(value))
    if type(value) not in (int, float):
        raise UnreadableReply("a probability is missing, or is no number")
    if not 0 <= value <= 1:  # false for NaN
        raise UnreadableReply(f"a probability of {value!r:.20}")
    return float(value)

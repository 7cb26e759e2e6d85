"""The wire forms of decision models: bodies of requests, and answers in one form.

    POST {base_url}/decisions    {"model", "input", "questions": [...]}      OpenAI, SGLang, LiteLLM
    POST {base_url}/systemone    {"model", "state", "questions": {id: ...}}  vLLM, LiteLLM

An answer is a probability for a predicate, a list of probabilities by level for a score, REFUSED,
another text that says why there is none, or None if it is not what was asked for. Whether the
numbers are probabilities is checked where the stored reply is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ragmetrics.judges.responses import Tokens, mapping, tokens_of
from ragmetrics.records import Predicate, Question

REFUSED = "refused"
Answer: TypeAlias = float | list[float | None] | str | None
Worded: TypeAlias = tuple[str, Question]
"""What a question says, and what kind it is."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The answers to the questions of one request, in their order, and its tokens."""

    answers: Sequence[Answer]
    tokens: Tokens
    masses: Sequence[float] = ()
    """The probability of all labels together for each answer, if the protocol has it."""


class Form(Protocol):
    """One protocol."""

    path: str
    one_question: bool
    """Whether a request has one question. Requests about a row then begin equally."""

    def body(self, model: str, state: str, questions: Sequence[Worded]) -> bytes:
        """The body of a request."""
        ...

    def read(self, questions: Sequence[Worded], answer: dict[str, Any]) -> Decided:
        """The answers. Raises ValueError, LookupError or TypeError if it has no answers."""
        ...


class Decisions:
    """OpenAI's form: answers come in the order of the questions."""

    path = "/decisions"
    one_question = False

    def body(self, model: str, state: str, questions: Sequence[Worded]) -> bytes:
        """The body of a request."""
        asked = [self._question(*worded) for worded in questions]
        return body_bytes({"model": model, "input": state, "questions": asked})

    def read(self, questions: Sequence[Worded], answer: dict[str, Any]) -> Decided:
        """The answers; all are None if their number is wrong, as none can be told apart."""
        answers = answer["answers"]
        if not isinstance(answers, list):
            raise TypeError("answers are a list")
        if len(answers) != len(questions):
            answers = [None] * len(questions)
        read = [
            self._answer(question, mapping(one))
            for (_, question), one in zip(questions, answers, strict=True)
        ]
        return Decided(read, tokens_of(answer))

    @staticmethod
    def _question(words: str, question: Question) -> dict[str, Any]:
        if isinstance(question, Predicate):
            return {"type": "predicate", "instructions": words}
        labels = [{"label": str(level)} for level in range(len(question.levels))]
        return {"type": "score", "instructions": words, "levels": labels}

    @staticmethod
    def _answer(question: Question, answer: Mapping[str, Any]) -> Answer:
        if answer.get("type") == "refusal":
            return REFUSED
        if isinstance(question, Predicate):
            return _number(answer.get("probability"))
        shares = answer.get("probabilities")
        if not isinstance(shares, list) or len(shares) != len(question.levels):
            return None
        by_label = {str(mapping(one).get("label")): mapping(one) for one in shares}
        return _by_level(question, {key: one.get("probability") for key, one in by_label.items()})


class SystemOne:
    """System One's form: answers have the ids of their questions."""

    path = "/systemone"
    one_question = False

    def body(self, model: str, state: str, questions: Sequence[Worded]) -> bytes:
        """The body of a request."""
        asked = {str(n): self._question(*worded) for n, worded in enumerate(questions, 1)}
        return body_bytes({"model": model, "state": state, "questions": asked})

    def read(self, questions: Sequence[Worded], answer: dict[str, Any]) -> Decided:
        """The answers."""
        answers = answer["answers"]
        if not isinstance(answers, dict):
            raise TypeError("answers are an object")
        given = [mapping(answers.get(str(n))) for n in range(1, len(questions) + 1)]
        read = [
            self._answer(question, one) for (_, question), one in zip(questions, given, strict=True)
        ]
        masses = [_number(one.get("label_mass")) for one in given]
        known = [mass for mass in masses if mass is not None]
        return Decided(read, tokens_of(answer), known if len(known) == len(masses) else ())

    @staticmethod
    def _question(words: str, question: Question) -> dict[str, Any]:
        if isinstance(question, Predicate):
            return {"type": "noul", "instructions": words}
        labels = [str(level) for level in range(len(question.levels))]
        return {"type": "score", "instructions": words, "criteria": labels}

    @staticmethod
    def _answer(question: Question, answer: Mapping[str, Any]) -> Answer:
        if answer.get("type") == "refusal":
            return REFUSED
        if isinstance(question, Predicate):
            return _number(answer.get("noul"))
        return _by_level(question, mapping(answer.get("probabilities")))


FORMS: Mapping[str, Form] = {"decisions": Decisions(), "systemone": SystemOne()}
"""By their name in the settings, in the order in which they are tried."""


def _by_level(question: Question, shares: Mapping[str, Any]) -> Answer:
    levels = [str(level) for level in range(len(question.levels))]
    return [_number(shares[key]) for key in levels] if shares.keys() == set(levels) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -1 <= value <= 2 else None  # NaN is neither, and no JSON; what is near is told


def body_bytes(body: Mapping[str, Any]) -> bytes:
    """The JSON of a body."""
    # ASCII, so that a lone surrogate of a broken log does not fail a request.
    return json.dumps(body, separators=(",", ":")).encode("ascii")

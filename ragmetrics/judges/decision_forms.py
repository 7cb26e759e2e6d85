"""The wire forms of decision models: bodies of requests, and answers in one form.

    POST {base_url}/decisions    {"model", "input", "questions": [...]}      OpenAI, SGLang, LiteLLM
    POST {base_url}/systemone    {"model", "state", "questions": {id: ...}}  vLLM, LiteLLM
    POST {base_url}/chat/completions    {"model", "messages", "logprobs": true, "top_logprobs": 20}

An answer is a probability for a predicate, a list of probabilities by level for a score, REFUSED,
another text that says why there is none, or None if it is not what was asked for. Whether the
numbers are probabilities is checked where the stored reply is read.

A chat model is asked one question a request, which is read from one token of the reply. All
requests about a row begin with the row and end with a question, so that a server which keeps
what it has read reads the row once. The labels are `no` and `yes` for a predicate, the numbers of
its levels for a score. The probability of a label is that of the tokens that spell it, as a share
of all labels:

    p(label) = m(label) / label_mass,   label_mass = sum of m over the labels
    m(label) = sum of the probabilities of the listed tokens that spell it, in any case

A label that no listed token spells has the probability of the least likely listed token, or what
all listed tokens leave: it has at most that.

Parameters that the endpoint refuses by name are sent otherwise, as for chat (`RequestParameters`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Tokens
from ragmetrics.judges.endpoint import json_body
from ragmetrics.judges.responses import mapping, tokens_of
from ragmetrics.records import Predicate, Question
from ragmetrics.text import shorten

if TYPE_CHECKING:
    from ragmetrics.judges.request_parameters import RequestParameters

REFUSED = "refused"
WORDING = 1
"""Raised with any change of what chat models are sent: it is in the fingerprint."""
_LISTED = 20  # the most that OpenAI, vLLM and Ollama list
_SYSTEM = (
    "You judge the retrieval of a question answering system. You get its data as JSON, then one "
    "question about them. Reply with one of the allowed answers alone."
)
_PREDICATE = ("no", "yes")
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
    cut_by_reasoning: bool = False
    """Whether reasoning used all tokens of a chat model: more room may do."""


class Form(Protocol):
    """One protocol."""

    path: str
    one_question: bool
    """Whether a request has one question. Requests about a row then begin equally."""

    def body(self, model: str, state: str, questions: Sequence[Worded]) -> bytes:
        """The body of a request."""

    def read(self, questions: Sequence[Worded], answer: dict[str, Any]) -> Decided:
        """The answers. Raises ValueError, LookupError or TypeError if it has no answers, and
        JudgeRefused if the server can give none.
        """


class Decisions:
    """OpenAI's form: answers come in the order of the questions."""

    path = "/decisions"
    one_question = False

    def body(self, model: str, state: str, questions: Sequence[Worded]) -> bytes:
        """The body of a request."""
        asked = [self._question(*worded) for worded in questions]
        return json_body({"model": model, "input": state, "questions": asked})

    def read(self, questions: Sequence[Worded], answer: dict[str, Any]) -> Decided:
        """The answers; all are None if their number is wrong, as none can be told apart."""
        answers = answer["answers"]
        if not isinstance(answers, list):
            raise TypeError("answers are a list")
        if len(answers) != len(questions):
            answers = [None] * len(questions)
        pairs = zip(questions, answers, strict=True)
        read = [_answer(asked, mapping(given), "probability") for (_, asked), given in pairs]
        return Decided(read, tokens_of(answer))

    @staticmethod
    def _question(words: str, question: Question) -> dict[str, Any]:
        if isinstance(question, Predicate):
            return {"type": "predicate", "instructions": words}
        levels = [{"label": label} for label in _numbers(question)]
        return {"type": "score", "instructions": words, "levels": levels}


class SystemOne:
    """System One's form: answers have the ids of their questions."""

    path = "/systemone"
    one_question = False

    def body(self, model: str, state: str, questions: Sequence[Worded]) -> bytes:
        """The body of a request."""
        asked = {str(n): self._question(*worded) for n, worded in enumerate(questions, 1)}
        return json_body({"model": model, "state": state, "questions": asked})

    def read(self, questions: Sequence[Worded], answer: dict[str, Any]) -> Decided:
        """The answers."""
        answers = answer["answers"]
        if not isinstance(answers, dict):
            raise TypeError("answers are an object")
        given = [mapping(answers.get(str(n))) for n in range(1, len(questions) + 1)]
        pairs = zip(questions, given, strict=True)
        read = [_answer(asked, one, "noul") for (_, asked), one in pairs]
        masses = [_number(one.get("label_mass")) for one in given]
        known = [mass for mass in masses if mass is not None]
        return Decided(read, tokens_of(answer), known if len(known) == len(masses) else ())

    @staticmethod
    def _question(words: str, question: Question) -> dict[str, Any]:
        if isinstance(question, Predicate):
            return {"type": "noul", "instructions": words}
        return {"type": "score", "instructions": words, "criteria": _numbers(question)}


class Logprobs:
    """Chat completions of one token, with the probabilities of its alternatives."""

    path = "/chat/completions"
    one_question = True

    def __init__(self, parameters: RequestParameters) -> None:
        self._parameters = parameters

    def body(self, model: str, state: str, questions: Sequence[Worded]) -> bytes:
        """The body of a request."""
        ((words, question),) = questions
        text = f"{state}\n\n{words}: {_asked_of_chat(question)}"
        body = {
            "model": model,
            "messages": [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": text}],
            "max_tokens": 1,
            "temperature": 0,
            "logprobs": True,
            "top_logprobs": _LISTED,
        }
        return json_body(self._parameters.fit(body))

    def read(self, questions: Sequence[Worded], answer: dict[str, Any]) -> Decided:
        """The answer. Raises JudgeRefused if the server gives no logprobs."""
        ((_, question),) = questions
        choice = answer["choices"][0]
        tokens = mapping(choice.get("logprobs")).get("content")
        listed, used = tokens[0]["top_logprobs"] if tokens else [], tokens_of(answer)
        if not listed and used.reasoning:
            why = f"reasoning used {used.reasoning:,} tokens and left none for the answer"
            return Decided([why], used, cut_by_reasoning=True)
        if not listed and choice["message"].get("content"):
            raise JudgeRefused(
                "the endpoint returns no `top_logprobs`, which `api: logprobs` reads; "
                "`judge: openai` needs none"
            )
        labels = _PREDICATE if isinstance(question, Predicate) else _numbers(question)
        read, mass = _by_tokens(labels, listed)
        return Decided([read], used, [mass])


FORMS: Mapping[str, Form] = {"decisions": Decisions(), "systemone": SystemOne()}
"""By their name in the settings, in the order in which they are tried."""


def _numbers(question: Question) -> list[str]:
    """The labels of the levels: their numbers."""
    return [str(level) for level in range(len(question.levels))]


def _answer(question: Question, given: Mapping[str, Any], key: str) -> Answer:
    """An answer, where `key` has the probability of a predicate."""
    if given.get("type") == "refusal":
        return REFUSED
    if isinstance(question, Predicate):
        return _number(given.get(key))
    labels, shares = _numbers(question), given.get("probabilities")
    if isinstance(shares, list):
        if len(shares) != len(labels):
            return None
        labelled = [mapping(share) for share in shares]
        shares = {str(share.get("label")): share.get("probability") for share in labelled}
    by_label = mapping(shares)
    return [_number(by_label[key]) for key in labels] if by_label.keys() == set(labels) else None


def _number(value: Any) -> float | None:
    # NaN is neither, and no JSON; what is near is told
    return value if type(value) in (int, float) and -1 <= value <= 2 else None


def _asked_of_chat(question: Question) -> str:
    if isinstance(question, Predicate):
        return "is it so? Answer yes or no."
    levels = "; ".join(f"{level}: {text}" for level, text in enumerate(question.levels))
    return f"which number fits? {levels}. Answer with the number."


def _by_tokens(labels: Sequence[str], listed: Sequence[Mapping[str, Any]]) -> tuple[Answer, float]:
    """The answer by the listed tokens, and the mass of the labels; in place of an answer the reason
    if no listed token is a label.
    """
    spelt = [(str(one["token"]).strip().casefold(), _chance(one["logprob"])) for one in listed]
    masses = [math.fsum(chance for text, chance in spelt if text == label) for label in labels]
    mass = math.fsum(masses)
    if not mass:
        likeliest = spelt[0][0] if spelt else ""
        return f"the reply would begin with {shorten(likeliest)!r}: no allowed answer", 0.0
    chances = [chance for _, chance in spelt]
    least = min(*chances, max(0.0, 1.0 - math.fsum(chances)))
    filled = [one or least for one in masses]
    shares = [one / math.fsum(filled) for one in filled]
    return (shares[1] if labels is _PREDICATE else list[float | None](shares)), mass


def _chance(logprob: Any) -> float:
    """A probability by its logarithm. Raises ValueError unless it is one, within rounding."""
    if isinstance(logprob, bool) or not isinstance(logprob, int | float) or not logprob <= 0.01:
        raise ValueError("a logprob is no logarithm of a probability")
    return math.exp(logprob)

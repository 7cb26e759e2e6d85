"""Chat models as decision models: one question a request, read from one token of the reply.

    POST {base_url}/chat/completions    {"model", "messages", "logprobs": true, "top_logprobs": 20}

All requests about a row begin with the row and end with a question, so that a server which keeps
what it has read reads the row once. The labels are `no` and `yes` for a predicate, the numbers of
its levels for a score. The probability of a label is that of the tokens that spell it, as a share
of all labels:

    p(label) = m(label) / label_mass,   label_mass = sum of m over the labels
    m(label) = sum of the probabilities of the listed tokens that spell it, in any case

A label that no listed token spells has the probability of the least likely listed token, or what
all listed tokens leave: it has at most that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.decision_forms import Answer, Decided, Worded, body_bytes
from ragmetrics.judges.responses import mapping, tokens_of
from ragmetrics.records import Predicate, Question
from ragmetrics.text import shorten

WORDING = 1
"""Raised with any change of what is sent: it is in the fingerprint."""
_LISTED = 20  # the most that OpenAI, vLLM and Ollama list
_SYSTEM = (
    "You judge the retrieval of a question answering system. You get its data as JSON, then one "
    "question about them. Reply with one of the allowed answers alone."
)
_PREDICATE = ("no", "yes")


class Logprobs:
    """Chat completions of one token, with the probabilities of its alternatives."""

    path = "/chat/completions"
    one_question = True

    def body(self, model: str, state: str, questions: Sequence[Worded]) -> bytes:
        """The body of a request."""
        ((words, question),) = questions
        text = f"{state}\n\n{words}: {_asked(question)}"
        return body_bytes(
            {
                "model": model,
                "messages": [
                    {"role": "system", "content": _SYSTEM},
                    {"role": "user", "content": text},
                ],
                "max_tokens": 1,
                "temperature": 0,
                "logprobs": True,
                "top_logprobs": _LISTED,
            }
        )

    def read(self, questions: Sequence[Worded], answer: dict[str, Any]) -> Decided:
        """The answer. Raises JudgeRefused if the server gives no logprobs."""
        ((_, question),) = questions
        choice = answer["choices"][0]
        tokens = mapping(choice.get("logprobs")).get("content")
        listed = tokens[0]["top_logprobs"] if tokens else []
        if not listed and choice["message"].get("content"):
            raise JudgeRefused(
                "the endpoint returns no `top_logprobs`, which `api: logprobs` reads; "
                "`judge: openai` needs none"
            )
        read, mass = _probabilities(_labels(question), listed)
        return Decided([read], tokens_of(answer), [mass])


def _asked(question: Question) -> str:
    if isinstance(question, Predicate):
        return "is it so? Answer yes or no."
    levels = "; ".join(f"{level}: {text}" for level, text in enumerate(question.levels))
    return f"which number fits? {levels}. Answer with the number."


def _labels(question: Question) -> Sequence[str]:
    return (
        _PREDICATE
        if isinstance(question, Predicate)
        else [str(level) for level in range(len(question.levels))]
    )


def _probabilities(
    labels: Sequence[str], listed: Sequence[Mapping[str, Any]]
) -> tuple[Answer, float]:
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

"""The protocol of metrics and judges: a metric yields requests, is sent answers, returns a Score.

A metric is a generator and does no I/O, so one driver plays it against a live judge, a batch
job, a recording or a test by hand. Because metrics are deterministic, replaying one with the
answers kept so far is resuming it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
from pydantic import BaseModel

from ragmetrics.errors import Unanswered
from ragmetrics.model.prompt import Data, Prompt, V, _hash, dump_json
from ragmetrics.text import neutralise

Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]


@dataclass(frozen=True)
class Ask:
    """A request for a verdict; each `repeat` of it is a question of its own."""

    prompt: Prompt[Any]
    data: Data
    repeat: tuple[int, ...] = ()

    @cached_property
    def text(self) -> str:
        """The data as JSON, as it is sent."""
        return neutralise(dump_json(self.data))

    @cached_property
    def key(self) -> str:
        """Equal for equal requests, whatever row or night they come from."""
        return _hash(self.prompt.digest, self.text, *map(str, self.repeat))


@dataclass(frozen=True)
class Embed:
    """A request for the embedding of a text."""

    input: str

    @cached_property
    def key(self) -> str:
        """Equal for equal texts."""
        return _hash("embed", self.input)


Request: TypeAlias = Ask | Embed
Answer: TypeAlias = BaseModel | Vector | Unanswered
T = TypeVar("T")
Steps: TypeAlias = Generator[Sequence[Request], Sequence[Answer], T]


def ask(prompt: Prompt[V], **data: Any) -> Steps[V]:
    """Put one request and return its verdict; raise Unanswered where there is none."""
    (verdict,) = yield from ask_each(prompt, [data])
    return verdict


def ask_each(prompt: Prompt[V], items: Sequence[Data]) -> Steps[list[V]]:
    """Put one wave of requests and return the verdicts in order; raise the first Unanswered."""
    answers = yield [Ask(prompt, item) for item in items]
    return [_expect(prompt.verdict, answer) for answer in answers]


def ask_times(prompt: Prompt[V], times: int, **data: Any) -> Steps[list[V]]:
    """Put one request several times, each a question of its own; raise the first Unanswered."""
    answers = yield [Ask(prompt, data, (number,)) for number in range(times)]
    return [_expect(prompt.verdict, answer) for answer in answers]


def embed(text: str) -> Steps[Vector]:
    """Ask for the embedding of one text; raise Unanswered where there is none."""
    (vector,) = yield from embed_each([text])
    return vector


def embed_each(texts: Sequence[str]) -> Steps[list[Vector]]:
    """Ask for one embedding per text, in order; raise the first Unanswered."""
    answers = yield [Embed(text) for text in texts]
    return [_expect(np.ndarray, answer) for answer in answers]


def _expect(kind: type[T], answer: Answer) -> T:
    if isinstance(answer, Unanswered):
        # A copy: rows that share a request share its answer, and must not share a traceback.
        raise Unanswered(answer.status, answer.reason)
    if not isinstance(answer, kind):
        raise TypeError(f"expected {kind.__name__}, was sent {type(answer).__name__}")
    return answer

"""The protocol of metrics and judges: a metric yields requests, is sent answers, returns a Score.

A metric is a generator and does no I/O. So one driver runs it with a live judge, a batch job, a
recording or a test. A metric is deterministic: to resume it, the driver runs it again with the
stored answers.
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
    """A request for a verdict; each `repeat` is a separate request."""

    prompt: Prompt[Any]
    data: Data
    repeat: tuple[int, ...] = ()

    @cached_property
    def text(self) -> str:
        """The data as JSON, as the judge gets it."""
        return neutralise(dump_json(self.data))

    @cached_property
    def key(self) -> str:
        """Cache key: equal for equal requests of any row or night."""
        return _hash(self.prompt.digest, self.text, *map(str, self.repeat))


@dataclass(frozen=True)
class Embed:
    """A request for the embedding of a text."""

    input: str

    @cached_property
    def key(self) -> str:
        """Cache key: equal for equal texts."""
        return _hash("embed", self.input)


Request: TypeAlias = Ask | Embed
Answer: TypeAlias = BaseModel | Vector | Unanswered
T = TypeVar("T")
Steps: TypeAlias = Generator[Sequence[Request], Sequence[Answer], T]


def ask(prompt: Prompt[V], **data: Any) -> Steps[V]:
    """Send one request and return its verdict; raise Unanswered where there is none."""
    (verdict,) = yield from ask_each(prompt, [data])
    return verdict


def ask_each(prompt: Prompt[V], items: Sequence[Data]) -> Steps[list[V]]:
    """Send several requests at once and return their verdicts in order; raise the first
    Unanswered.
    """
    answers = yield [Ask(prompt, item) for item in items]
    return [_expect(prompt.verdict, answer) for answer in answers]


def ask_times(prompt: Prompt[V], times: int, **data: Any) -> Steps[list[V]]:
    """Send one request several times, each separately; raise the first Unanswered."""
    answers = yield [Ask(prompt, data, (number,)) for number in range(times)]
    return [_expect(prompt.verdict, answer) for answer in answers]


def embed(text: str) -> Steps[Vector]:
    """Request the embedding of one text; raise Unanswered where there is none."""
    (vector,) = yield from embed_each([text])
    return vector


def embed_each(texts: Sequence[str]) -> Steps[list[Vector]]:
    """Request one embedding per text, in order; raise the first Unanswered."""
    answers = yield [Embed(text) for text in texts]
    return [_expect(np.ndarray, answer) for answer in answers]


def _expect(kind: type[T], answer: Answer) -> T:
    if isinstance(answer, Unanswered):
        # A copy: rows share the answer of a shared request, but must not share a traceback.
        raise Unanswered(answer.status, answer.reason)
    if not isinstance(answer, kind):
        raise TypeError(f"expected {kind.__name__}, was sent {type(answer).__name__}")
    return answer

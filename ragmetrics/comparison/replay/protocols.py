"""The outcome of one question to a retriever: an answer, an error to retry, or no answer.

A RetryableError is temporary: the question is asked again. NoAnswer concerns one question. Where no
question can be answered, RetrieverRefused is raised.
"""

from __future__ import annotations

from typing import Any, Protocol

from ragmetrics.comparison.replay.questions import GoldenQuestion
from ragmetrics.judges import RetryableError


class NoAnswer(Exception):
    """A question has no usable answer: `kind` is the word it is counted under."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Retriever(Protocol):
    """A retriever that answers golden questions."""

    async def ask(self, question: GoldenQuestion) -> Any:
        """The answer to one question, as decoded JSON. The caller enforces the time-out.

        Raises RetryableError, NoAnswer or RetrieverRefused.
        """
        ...

    async def close(self) -> None:
        """Release its connections."""
        ...


__all__ = ["NoAnswer", "Retriever", "RetryableError"]

"""What becomes of a question that is asked: an answer, a setback, or none.

A Setback passes, and the question is asked again; NoAnswer is that question's alone; where no
question can be answered it is RetrieverRefused.
"""

from __future__ import annotations

from typing import Any, Protocol

from ragmetrics.comparison.replay.questions import Question
from ragmetrics.judges import Setback


class NoAnswer(Exception):
    """A question has no usable answer: `kind` is the word it is counted under."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Retriever(Protocol):
    """Whoever is asked."""

    async def ask(self, question: Question) -> Any:
        """The answer to one question, as decoded JSON. Time is kept by who asks.

        Raises Setback, NoAnswer or RetrieverRefused.
        """
        ...

    async def close(self) -> None:
        """Give back what it has."""
        ...


__all__ = ["NoAnswer", "Retriever", "Setback"]

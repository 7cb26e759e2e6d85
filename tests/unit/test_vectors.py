"""Vectors: what becomes of texts that cannot be embedded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ragmetrics.errors import JudgeError, Unanswered
from ragmetrics.protocol import Answer, Embed
from ragmetrics.records import Usage
from ragmetrics.vectors import Vectors
from tests.fakes.scripted import CountingEmbedder


@dataclass
class Overloaded(CountingEmbedder):
    """Texts go in one request, which is tried three times and given up with one error."""

    def __post_init__(self) -> None:
        self._error = JudgeError("overloaded", transient=True, failures={"server_error": 3})

    async def embed(self, text: str) -> None:  # type: ignore[override]
        """Never."""
        raise self._error


def test_attempts_of_texts_that_went_together_count_once() -> None:
    """Each text is given up, but no more requests are counted than were sent."""
    vectors = Vectors(Overloaded())

    async def main() -> list[Answer]:
        asked = [vectors.begin("00000000", Embed(f"text {n}"), "m") for n in range(4)]
        return [await one for one in asked]

    answers = asyncio.run(main())
    assert all(isinstance(one, Unanswered) for one in answers)
    failures = {"judge_failed": 4, "server_error": 3}
    assert vectors.tallies.usage() == Usage(requests=3, failures=failures)

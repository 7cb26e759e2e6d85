"""Vectors: what becomes of texts that cannot be embedded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ragmetrics.errors import JudgeError, Unanswered
from ragmetrics.judges import Corpus, EmbeddingClient, HashedEmbedder, ReplyCache
from ragmetrics.judges.base import Embedded
from ragmetrics.judges.embeddings import VectorChecks
from ragmetrics.judges.reply_cache import EMBEDDING
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.records import Answer, Embed
from ragmetrics.records.judging import Usage
from ragmetrics.storage import Files
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
    vectors = EmbeddingClient(Overloaded())

    async def main() -> list[Answer]:
        asked = [vectors.begin("00000000", Embed(f"text {n}"), "m") for n in range(4)]
        return [await one for one in asked]

    answers = asyncio.run(main())
    assert all(isinstance(answer, Unanswered) for answer in answers)
    failures = {"judge_failed": 4, "server_error": 3}
    assert vectors.counters.usage() == Usage(requests=3, failures=failures)


@dataclass
class OneBad(CountingEmbedder):
    """Sends for one text what a test says, for so many times, and good vectors otherwise."""

    bad: object = None
    times: int = 99
    cacheable: bool = True

    async def embed_metered(self, text: str) -> Embedded:
        """As of an endpoint that is paid for."""
        self.asked[text] += 1
        if text == "bad" and self.asked[text] <= self.times:
            return Embedded(np.asarray(self.bad, dtype=np.float32), tokens=1)
        return Embedded(np.array([len(text), 1, 2], dtype=np.float32), requests=1, tokens=1)


BAD = {
    "NaN": [1, float("nan"), 2],
    "infinity": [1, float("inf"), 2],
    "shorter": [1, 2],
    "longer": [1, 2, 3, 4],
    "zero": [0, 0, 0],
    "empty": [],
    "nested": [[1, 2, 3]],
    "a number": 7,
}
TEXTS = ["one", "three", "bad", "seven", "eleven"]


def embed_all(embedder: OneBad, files: Files) -> tuple[dict[str, Answer], Usage]:
    """What becomes of the texts, with a store; what was kept is found by the next call."""
    kept = ReplyCache(files, embedder.fingerprint, "00000000", "ffffffff")
    kept.load()
    vectors = EmbeddingClient(embedder, kept)

    async def main() -> list[Answer]:
        return [await vectors.begin("00000000", Embed(text), "m") for text in TEXTS]

    found = dict(zip(TEXTS, asyncio.run(main()), strict=True))
    kept.compact()
    kept.close()
    return found, vectors.counters.usage()


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_vector_costs_its_text_and_is_not_kept(tmp_path: Path, bad: object) -> None:
    """It is asked for twice and is unreadable, with the reason; a later run asks for it alone."""
    embedder = OneBad(bad=bad)
    found, usage = embed_all(embedder, Files(str(tmp_path)))
    answer = found.pop("bad")
    assert isinstance(answer, Unanswered)
    assert (answer.status, answer.reason[:11]) == ("unreadable", "embedding: ")
    assert {type(one) for one in found.values()} == {np.ndarray}
    assert (embedder.asked["bad"], usage.failures) == (2, {"unreadable": 2})
    healed = OneBad()
    healed.times = 0
    found, usage = embed_all(healed, Files(str(tmp_path)))
    assert {type(one) for one in found.values()} == {np.ndarray}
    assert (healed.asked, usage.answered_from_store) == ({"bad": 1}, 4)


def test_a_vector_that_is_good_the_second_time_is_taken(tmp_path: Path) -> None:
    """A server that was out of memory for a moment costs one request."""
    found, usage = embed_all(OneBad(bad=[float("nan")] * 3, times=1), Files(str(tmp_path)))
    assert {type(one) for one in found.values()} == {np.ndarray}
    assert usage.failures == {"unreadable": 1}


@pytest.mark.parametrize("bad", list(BAD.values())[:6], ids=list(BAD)[:6])
def test_a_bad_vector_that_a_store_holds_is_asked_for_again(tmp_path: Path, bad: object) -> None:
    """As stores hold them that an earlier version wrote; the good ones are used."""
    files, request = Files(str(tmp_path)), Embed("bad")
    embed_all(OneBad(bad=bad), files)
    kept = ReplyCache(files, "beef", "00000000", "ffffffff")
    vector = np.asarray(bad, dtype=np.float32)
    asyncio.run(kept.add(CachedReply("00000000" + request.key, EMBEDDING, vector)))
    kept.close()
    healed = OneBad()
    healed.times = 0
    found, usage = embed_all(healed, files)
    assert {type(one) for one in found.values()} == {np.ndarray}
    assert (healed.asked, usage.answered_from_store) == ({"bad": 1}, 4)


def test_a_first_vector_of_a_wrong_size_condemns_no_other() -> None:
    """The model's size is the one that most of its vectors have."""
    checks = VectorChecks()
    sizes = [2, 3, 3, 3, 2]
    problems = [checks.problem(np.ones(size, np.float32)) for size in sizes]
    assert [bool(problem) for problem in problems] == [False, False, False, False, True]


def test_a_text_without_words_is_not_applicable_to_our_own_embedder() -> None:
    """Hashed vectors of it are zero: that is no fault of a judge, and no 0.0."""
    vectors = EmbeddingClient(HashedEmbedder(Corpus()))
    answer = vectors.begin("00000000", Embed("?!"), "m")
    assert isinstance(answer, Unanswered)
    assert answer.status == "not_applicable"

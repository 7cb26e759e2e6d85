"""The local judge: a baseline of words and meaning, by embeddings made on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from pydantic import BaseModel

from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.errors import JudgeRefused, SettingsError
from ragmetrics.judges import Corpus
from ragmetrics.judges.factory import make_judge
from ragmetrics.judges.local import EmbeddingLexicon, LocalJudge, load_encoder, windows
from ragmetrics.judges.word_overlap import Overlap
from ragmetrics.metrics import GRADE, NEEDED
from ragmetrics.records import Ask, Prompt
from tests.fakes.local import install_sentence_transformers, need_the_extra, remove

QUESTION = "Who wrote the novel?"
ANSWER = "The book's author is Jane Austen."
OTHER = "The train left at noon."


class Toy:
    """An encoder of two meanings: texts with `rain` in them, and all others."""

    name = digest = "toy"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One axis for each meaning; `half` lies between them."""
        self.asked += texts
        axes = [(0.6, 0.8) if "half" in t else (1, 0) if "rain" in t else (0, 1) for t in texts]
        return np.array(axes, dtype=np.float32)


@pytest.fixture
def toy() -> Toy:
    """A fresh encoder."""
    return Toy()


@pytest.fixture
def judge() -> LocalJudge:
    """The judge with the extra's own model."""
    need_the_extra()
    return LocalJudge(Corpus())


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """A stand-in loaded by one test serves no other."""
    yield
    if load_encoder.cache_info().currsize > 1:
        load_encoder.cache_clear()


def ask(judge: LocalJudge, prompt: Prompt[Any], **data: Any) -> Any:
    """The judge's verdict."""
    return asyncio.run(judge.reply(Ask(prompt, data), 0)).verdict


def test_relevance_is_overlap_moved_by_nearness_from_three_fifths(toy: Toy) -> None:
    """0.4 of what the cosine exceeds 0.6 by: 0.16 more at 1, nothing at 0.6, 0.24 less at 0."""
    lexicon = EmbeddingLexicon(Corpus(), toy)
    held = Overlap(Corpus()).relevance("rain", "rain fell")
    assert held > 0.24
    assert lexicon.relevance("rain", "rain fell") == pytest.approx(held + 0.16)
    assert lexicon.relevance("rain", "rain half") == pytest.approx(held)
    assert lexicon.relevance("stay", "stay rain") == pytest.approx(held - 0.24)


def test_no_overlap_and_little_nearness_is_nothing(toy: Toy) -> None:
    """Meaning alone gives 0.16 at most, and takes no more than there is."""
    lexicon = EmbeddingLexicon(Corpus(), toy)
    assert lexicon.relevance("snow", "wind") == pytest.approx(0.16)
    assert lexicon.relevance("rain", "wind") == 0.0


def test_support_is_told_by_words_alone(toy: Toy) -> None:
    """What is about the same subject is near, whether it says so or not."""
    lexicon = EmbeddingLexicon(Corpus(), toy)
    claim, passage = "It rained in May.", "May was dry, and it rained in June."
    assert lexicon.coverage(claim, passage) == Overlap(Corpus()).coverage(claim, passage)
    assert not toy.asked


def test_nothing_said_is_nothing_relevant(toy: Toy) -> None:
    """A question or a passage without a letter or digit."""
    lexicon = EmbeddingLexicon(Corpus(), toy)
    assert lexicon.relevance("", "rain") == lexicon.relevance("?!", "rain") == 0.0
    assert lexicon.relevance("rain", "") == lexicon.relevance("rain", "\n...") == 0.0
    assert not toy.asked


def test_the_nearest_part_of_a_long_passage_counts(toy: Toy) -> None:
    """The model would not read to its end."""
    lexicon = EmbeddingLexicon(Corpus(), toy)
    assert lexicon.relevance("drains", "It is snow. " * 400 + "It rains. ") > 0.16
    assert lexicon.relevance("drains", "It is snow. " * 400) == 0.0


def test_a_text_is_embedded_once(toy: Toy) -> None:
    """A question is held against many contexts."""
    lexicon = EmbeddingLexicon(Corpus(), toy)
    for passage in ("one", "two", "one", "question"):
        lexicon.relevance("question", passage)
    assert toy.asked == ["question", "one", "two"]


@given(st.text(), st.text())
def test_relevance_is_a_share(question: str, passage: str) -> None:
    """Of any texts."""
    assert 0.0 <= EmbeddingLexicon(Corpus(), Toy()).relevance(question, passage) <= 1.0


@given(st.text(alphabet="ab .\n。", max_size=3_000))
def test_windows_hold_the_whole_text_and_fit_the_model(text: str) -> None:
    """Only blanks, and parts without a letter, are left out."""
    found = windows(text)
    assert all(len(window) <= 800 for window in found)
    assert [sign for sign in "".join(found) if sign.isalnum()] == [s for s in text if s.isalnum()]


def test_windows_end_where_sentences_do() -> None:
    """As many to a window as fit."""
    sentence = f"{'word ' * 59}end."
    assert windows(" ".join([sentence] * 5)) == [f"{sentence} {sentence}"] * 2 + [sentence]


def test_meaning_is_seen_where_no_word_is_shared(judge: LocalJudge) -> None:
    """A word count cannot tell the answer from any other sentence."""
    assert Overlap(Corpus()).coverage("Who wrote novels?", "Jane Austen was a writer.") == 0.0
    said, other = (
        judge.evidence(Ask(GRADE, {"question": QUESTION, "context": context}))
        for context in (ANSWER, OTHER)
    )
    assert said is not None
    assert other is not None
    assert said[0] > other[0]


def test_it_grades_and_picks_sentences_by_the_prompts_own_baselines(judge: LocalJudge) -> None:
    """The same prompts as every judge answers."""
    contexts = [{"1": OTHER, "2": "Jane Austen wrote the novel Emma."}]
    assert ask(judge, NEEDED, question=QUESTION, contexts=contexts).needed == [2]
    grades = [
        ask(judge, GRADE, question=QUESTION, context=context).grade
        for context in ("Jane Austen wrote the novel.", OTHER)
    ]
    assert grades == [2, 0]


def test_it_is_deterministic_and_says_what_it_is(judge: LocalJudge) -> None:
    """A second one is the same judge."""
    again = LocalJudge(Corpus())
    request = Ask(GRADE, {"question": QUESTION, "context": ANSWER})
    assert again.evidence(request) == judge.evidence(request)
    assert (again.name, again.fingerprint) == (judge.name, judge.fingerprint)
    assert judge.name == "local:all-MiniLM-L6-v2"
    assert "good for trends" in judge.note


def test_a_prompt_without_a_baseline_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by the lexical judge; it has no evidence either."""
    install_sentence_transformers(monkeypatch)
    request = Ask(Prompt(name="riddle", version=1, verdict=BaseModel, instruction="?"), {})
    judge = LocalJudge(Corpus(), "toy/words")
    assert judge.evidence(request) is None
    with pytest.raises(JudgeRefused, match="cannot answer the prompt 'riddle'"):
        asyncio.run(judge.reply(request, 0))
    asyncio.run(judge.close())


def test_the_settings_name_it_with_or_without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """`local`, or `local:MODEL` of sentence-transformers; another word for it is no judge."""
    install_sentence_transformers(monkeypatch)
    judge = make_judge(JudgeSettings(name="local:toy/words"), Corpus())
    assert isinstance(judge, LocalJudge)
    assert judge.name == "local:toy/words"
    with pytest.raises(SettingsError, match=r"should be .*\blexical, .*\blocal, "):
        make_settings({"judge": "locally"})


def test_without_the_extra_the_refusal_gives_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is judged."""
    remove(monkeypatch, "onnxruntime", "ragmetrics.judges.minilm")
    with pytest.raises(JudgeRefused, match=r'pip install "retrieval-nightly\[local\]"'):
        make_judge(JudgeSettings(name="local"), Corpus())

"""The embedded judge: weighted overlap of words, in any script, the same on every machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.corpus import Corpus, words
from ragmetrics.judges.embedded import EmbeddedJudge, Overlap
from ragmetrics.judges.embeddings import HashedEmbedder
from ragmetrics.metrics.context_recall import SUPPORT
from ragmetrics.metrics.context_relevance import GRADE
from ragmetrics.metrics.context_relevancy import NEEDED
from ragmetrics.protocol import Ask, Data, Prompt

TEXTS = st.text("abc xyz 12 äß 日本語 .,", max_size=40)
CLAIM = "The tower was opened in 1889, says the guide of Paris."
PASSAGE = "In 1889 the guide of the town was opened."


def overlap(*contexts: str) -> Overlap:
    """Overlap of words, weighted by their rarity in these contexts."""
    corpus = Corpus()
    corpus.add(contexts)
    return Overlap(corpus)


def verdict(prompt: Prompt[BaseModel], data: Data) -> BaseModel:
    """What the judge says, having seen no corpus."""
    reply = asyncio.run(EmbeddedJudge(Corpus()).reply(Ask(prompt, data), 0))
    assert reply.verdict is not None
    return reply.verdict


# Words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Invoices, INVOICED invoicing!", ["invoic", "invoic", "invoic"]),
        ("Straße ＴＯＫＹＯ", ["strass", "tokyo"]),
        ("error 1234567890 x2", ["error", "1234567890", "x2"]),
        ("snake_case-name", ["snake", "case", "name"]),
        ("日本語", ["日本", "本語"]),
        ("塔", ["塔"]),
        ("¡…!", []),
        ("", []),
    ],
)
def test_words_of_any_script(text: str, expected: list[str]) -> None:
    """Case and width fold, stems are six letters, numbers stay whole, unspaced scripts pair."""
    assert words(text) == expected


# Coverage


def test_coverage_is_the_share_of_the_claims_word_weight() -> None:
    """Of `tower opened 1889` the passage holds two words of weight 1 each, not the number's 1.5."""
    found = overlap().coverage("tower opened 1889", "the tower they opened")
    assert found == pytest.approx(2 / 3.5)


def test_rare_words_weigh_more() -> None:
    """A word that most contexts hold says less than one that few hold."""
    judge = overlap(*(f"the number {n}" for n in range(50)), "an obelisk")
    assert judge.coverage("the obelisk", "obelisk") > 0.8
    assert judge.coverage("the obelisk", "the") < 0.2


def test_a_claim_without_words_is_not_covered() -> None:
    """Nothing asked, nothing covered: 0, no division by zero."""
    assert overlap().coverage("?!", "anything") == 0.0


@given(TEXTS, TEXTS)
def test_coverage_is_in_0_1(claim: str, passage: str) -> None:
    """Whatever the texts; it is exactly 1 for a claim that stands in the passage."""
    judge = overlap(claim, passage)
    assert 0 <= judge.coverage(claim, passage) <= 1
    assert judge.coverage(claim, f"{passage} {claim}") == (1 if words(claim) else 0)


@given(TEXTS, TEXTS, TEXTS)
def test_more_text_never_covers_less(claim: str, passage: str, more: str) -> None:
    """Adding words to the passage can only help."""
    judge = overlap(passage)
    assert judge.coverage(claim, f"{passage} {more}") >= judge.coverage(claim, passage)


def test_coverage_is_equal_to_the_last_bit_in_every_process() -> None:
    """The order of sets differs between processes; numbers must not."""
    code = (
        "from ragmetrics.judges.corpus import Corpus\n"
        "from ragmetrics.judges.embedded import Overlap\n"
        f"corpus = Corpus(); corpus.add([{CLAIM!r}, {PASSAGE!r}, 'the town', 'opened in May'])\n"
        f"print(repr(Overlap(corpus).coverage({CLAIM!r}, {PASSAGE!r})))"
    )
    values = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = overlap(CLAIM, PASSAGE, "the town", "opened in May").coverage(CLAIM, PASSAGE)
    assert {float(value) for value in values} == {here}


# Verdicts


@pytest.mark.parametrize(
    ("context", "grade"),
    [
        ("The tower was opened in 1889.", 2),
        ("Towers are tall.", 0),
        ("It opened in spring; the tower is of iron.", 1),
        ("Museums close on Mondays.", 0),
    ],
)
def test_grades_by_the_share_of_the_question_covered(context: str, grade: int) -> None:
    """From 0.6 on a context answers, from 0.3 on it helps."""
    data = {"question": "Was the tower opened 1889?", "context": context}
    assert verdict(GRADE, data) == GRADE.verdict(grade=grade)


def test_needs_the_sentences_that_cover_the_question_best() -> None:
    """Of two sentences on the subject only the one that answers is needed."""
    contexts = [
        {"1": "The tower is tall.", "2": "The tower was opened in 1889."},
        {"3": "Mondays."},
    ]
    data = {"question": "When was the tower opened?", "contexts": contexts}
    assert verdict(NEEDED, data) == NEEDED.verdict(needed=[2])


def test_needs_nothing_where_nothing_covers_the_question() -> None:
    """A best of bad sentences is not needed."""
    data = {"question": "When was the tower opened?", "contexts": [{"1": "Museums close early."}]}
    assert verdict(NEEDED, data) == NEEDED.verdict(needed=[])


def test_supports_what_the_contexts_hold_together() -> None:
    """A sentence is supported by words of several contexts; one of other words is not."""
    data = {
        "question": "?",
        "contexts": ["The tower opened", "in May 1889"],
        "sentences": ["The tower opened in May 1889.", "Eiffel paid everything himself."],
    }
    assert verdict(SUPPORT, data) == SUPPORT.verdict(supported=[1, 0])


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=4))
def test_verdicts_pass_the_checks_that_replies_must_pass(question: str, texts: list[str]) -> None:
    """A baseline answers what was asked: right counts, known numbers."""
    numbered = [{str(number): text} for number, text in enumerate(texts, 1)]
    for prompt, data in (
        (GRADE, {"question": question, "context": texts[0]}),
        (NEEDED, {"question": question, "contexts": numbered}),
        (SUPPORT, {"question": question, "contexts": [question], "sentences": texts}),
    ):
        found = verdict(prompt, data)
        assert prompt.parse(found.model_dump_json(), data) == found


def test_refuses_a_prompt_without_a_baseline() -> None:
    """A metric of somebody else's may ask what words cannot tell: the run ends, saying so."""
    judge = EmbeddedJudge(Corpus())
    prompt = Prompt("tone", 1, GRADE.verdict, "Grade the tone.")
    with pytest.raises(JudgeRefused, match=r"'tone'.*choose another judge"):
        asyncio.run(judge.reply(Ask(prompt, {}), 0))


def test_says_that_it_is_a_baseline_and_is_not_kept() -> None:
    """Its numbers carry the note everywhere, and cost too little for a store."""
    judge = EmbeddedJudge(Corpus())
    assert "baseline" in judge.note
    assert not judge.keeps


# The corpus


def test_a_corpus_counts_each_distinct_context_once() -> None:
    """The same chunk retrieved a thousand times makes its words no commoner."""
    once, often = Corpus(), Corpus()
    once.add(["a tower", "a museum"])
    often.add(["a tower", "a museum"] * 500)
    assert often.documents == 2
    assert often.weight("tower") == once.weight("tower") > once.weight("a")


def test_a_corpus_travels_as_bytes() -> None:
    """Shards scored elsewhere weigh words the same."""
    corpus = Corpus()
    corpus.add(f"tower {n}" for n in range(100))
    data = corpus.to_bytes()
    read = Corpus.from_bytes(data)
    assert len(data) < 2_000
    assert read.documents == corpus.documents
    assert np.array_equal(read.counts, corpus.counts)
    assert np.array_equal(Corpus.from_bytes(Corpus().to_bytes()).counts, Corpus().counts)


# Hashed embeddings


def cosine(a: str, b: str) -> float:
    """How close two texts are, having seen no corpus."""
    embedder = HashedEmbedder(Corpus())
    first, second = (asyncio.run(embedder.embed(text)) for text in (a, b))
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def test_hashed_texts_are_close_when_they_share_words_or_parts() -> None:
    """Same words, other order: 1. Parts of words: some. Nothing shared: 0."""
    assert cosine("the tower opened", "Opened: the TOWER") == pytest.approx(1)
    assert 0.02 < cosine("towers", "tower") < 1
    assert cosine("tower", "museum") == pytest.approx(0, abs=0.01)


def test_a_text_without_words_has_a_zero_vector() -> None:
    """It is close to nothing, and no error."""
    assert not asyncio.run(HashedEmbedder(Corpus()).embed("?!")).any()

"""The lexical judge: weighted overlap of words, in any script, the same on every machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from pydantic import BaseModel

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges import Corpus, HashedEmbedder, LexicalJudge
from ragmetrics.judges.word_frequencies import words
from ragmetrics.judges.word_overlap import Overlap
from ragmetrics.metrics import GRADE, NEEDED, SUPPORT
from ragmetrics.records import Ask, Data, Prompt
from tests.fakes.plain_lexicon import PlainLexicon, vector_of

TEXTS = st.text("abc xyz 12 äß 日本語 .,", max_size=40)
CLAIM = "The tower was opened in 1889, says the guide of Paris."
PASSAGE = "In 1889 the guide of the town was opened."


def overlap(*contexts: str, questions: tuple[str, ...] = ()) -> Overlap:
    """Overlap of words, weighted by their rarity in these contexts and questions."""
    corpus = Corpus()
    for context in contexts:
        corpus.add([context])
    for question in questions:
        corpus.add([], question)
    return Overlap(corpus)


def verdict(prompt: Prompt[BaseModel], data: Data) -> BaseModel:
    """What the judge says, having seen no corpus."""
    reply = asyncio.run(LexicalJudge(Corpus()).reply(Ask(prompt, data), 0))
    assert reply.verdict is not None
    return reply.verdict


# Words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Invoices, INVOICED!", ["invoices", "invoiced"]),
        ("Straße ＴＯＫＹＯ", ["strasse", "tokyo"]),
        ("error 1234567890 x2", ["error", "1234567890", "x2"]),
        ("snake_case-name", ["snake", "case", "name"]),
        ("日本語", ["日本", "本語"]),
        ("塔", ["塔"]),
        ("서울에서", ["서울", "울에", "에서"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("¡…!", []),
        ("", []),
    ],
)
def test_words_of_any_script(text: str, expected: list[str]) -> None:
    """Case and width fold; scripts without spaces, and Korean, pair; vowel signs stay in words."""
    assert words(text) == expected


# Coverage


def test_coverage_is_the_share_of_the_claims_word_weight() -> None:
    """Of three words of one weight the passage holds two."""
    found = overlap().coverage("tower opened 1889", "the tower they opened")
    assert found == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("word", "passage", "share"),
    [
        ("towers", "tower", (3 / 4) ** 2),
        ("wohnhaus", "Hauswirt", (1 / 6) ** 2),
        ("المدينة", "مدينة", (2 / 5) ** 2),
        ("tow", "towers", 0),
        ("1889", "18890", 0),
        ("stone", "atom", 0),
    ],
)
def test_other_forms_of_a_word_count_by_their_parts(word: str, passage: str, share: float) -> None:
    """The share of its parts of four letters, its start being one, squared; in any script.

    Of the four of `towers` only the last, `wers`, is not in `tower`. Numbers and words of up to
    three letters are held whole or not at all.
    """
    assert overlap().coverage(word, passage) == pytest.approx(share)


def test_rare_words_weigh_more() -> None:
    """A word that most contexts hold says less than one that few hold."""
    judge = overlap(*(f"the number {n}" for n in range(50)), "an obelisk")
    assert judge.coverage("the obelisk", "obelisk") > 0.8
    assert judge.coverage("the obelisk", "the") < 0.2


def test_a_claim_without_words_is_not_covered() -> None:
    """Nothing asked, nothing covered: 0, no division by zero."""
    assert overlap().coverage("?!", "anything") == 0.0
    assert overlap().relevance("?!", "anything") == 0.0


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


# Relevance


def test_relevance_leaves_room_for_doubt() -> None:
    """By hand: of three words of one weight the passage holds two.

    It has 4 words and a typical context 100, so that the doubt is 1 + 4/100 words never seen.
    """
    found = overlap().relevance("tower opened 1889", "the tower they opened")
    assert found == pytest.approx(2 / (3 + 1.04))


def test_a_word_that_many_questions_hold_says_little_of_any_subject() -> None:
    """`Which` and `who` are found by counting, in whatever language is asked."""
    asked = tuple(f"which was subject{n}" for n in range(50))
    judge = overlap(questions=asked)
    subject, form = (judge.relevance("which obelisk", text) for text in ("an obelisk", "which"))
    assert subject > 4 * form > 0


def test_a_short_question_is_never_quite_answered() -> None:
    """One word found says less than five."""
    judge = overlap()
    one, five = "tower", "iron tower guide opened spring"
    assert judge.relevance(one, f"the {one}") < judge.relevance(five, f"spring: {five[:-7]}") < 1


def test_a_question_of_common_words_is_not_held_to_be_unanswered() -> None:
    """All of its words are there: the doubt is at most half as heavy as they are."""
    same = tuple(f"what is the plan number{n}" for n in range(200))
    judge = overlap(*same, questions=same)
    assert judge.relevance("what is the plan", "this is what the plan is") > 0.4


def test_a_longer_context_that_says_the_same_is_less_relevant() -> None:
    """Long ones hold more words by chance."""
    judge = overlap()
    more = " ".join(f"other{n}" for n in range(100))
    assert judge.relevance(CLAIM, PASSAGE) > judge.relevance(CLAIM, f"{PASSAGE} {more}") > 0


@given(TEXTS, TEXTS)
def test_relevance_is_in_0_1(question: str, passage: str) -> None:
    """Whatever the texts."""
    assert 0 <= overlap(passage, questions=(question,)).relevance(question, passage) < 1


@pytest.mark.process
def test_both_are_equal_to_the_last_bit_in_every_process() -> None:
    """The order of sets differs between processes; numbers must not."""
    code = (
        "from ragmetrics.judges.word_frequencies import Corpus\n"
        "from ragmetrics.judges.word_overlap import Overlap\n"
        f"corpus = Corpus(); corpus.add([{CLAIM!r}, {PASSAGE!r}, 'the town'], {CLAIM!r})\n"
        f"judge = Overlap(corpus)\n"
        f"print(judge.coverage({CLAIM!r}, {PASSAGE!r}), judge.relevance({CLAIM!r}, {PASSAGE!r}))"
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
    here = overlap(CLAIM, PASSAGE, "the town", questions=(CLAIM,))
    expected = [here.coverage(CLAIM, PASSAGE), here.relevance(CLAIM, PASSAGE)]
    assert [[float(one) for one in value.split()] for value in values] == [expected]


def test_huge_texts_take_time_in_proportion_to_their_length() -> None:
    """Ten thousand statements against a megabyte: each text is read once, each word looked up."""
    judge = overlap()
    passage = " ".join(f"word{n}" for n in range(100_000))
    assert all(judge.coverage(f"word{n} wor{n}", passage) > 0.5 for n in range(10_000))
    assert judge.relevance(passage, f"{passage} more") == 0  # it is repeated, nothing is added
    assert judge.relevance(passage, f"more {passage[:-6]}") > 0.5


# Repetitions of the question


@pytest.mark.parametrize(
    "passage",
    [
        "When was the iron tower opened to the public?",
        "WHEN was the iron tower opened -- to the public",
        "when was the iron tower opened to the public " * 20,
        "When was the iron tower opened to the public? Museums close on Mondays.",
    ],
)
def test_repeating_the_question_answers_nothing(passage: str) -> None:
    """What is left beside the question is held against it: nothing, or something else."""
    question = "When was the iron tower opened to the public?"
    data = {"question": question, "context": passage}
    assert verdict(GRADE, data) == GRADE.verdict(grade=0)


def test_an_answer_counts_beside_the_question() -> None:
    """As in a list of questions and answers."""
    question = "When was the iron tower opened to the public?"
    answer = "The iron tower was opened to the public in 1889."
    judge = overlap()
    assert judge.relevance(question, f"{question} {answer}") == judge.relevance(question, answer)
    assert judge.relevance(question, answer) > 0.4


def test_a_query_of_a_few_words_may_stand_in_an_answer() -> None:
    """`Opening hours` opens the very passage that answers it; alone it says nothing."""
    judge = overlap()
    assert judge.relevance("opening hours", "Opening hours: from nine to five.") > 0.4
    assert judge.relevance("opening hours", "Opening hours") == 0.0
    assert judge.relevance("開館時間", "開館時間：九時から五時") > 0.2


@given(TEXTS, TEXTS)
def test_repeating_the_question_never_helps(question: str, passage: str) -> None:
    """A chunk with the question put before it is no more relevant, from five words on."""
    judge, long = overlap(passage), f"one two three four five {question}"
    assert judge.relevance(long, f"{long} {passage}") <= judge.relevance(long, passage)


# Verdicts


@pytest.mark.parametrize(
    ("context", "grade"),
    [
        ("The tower was opened in 1889.", 2),
        ("Towers are tall.", 0),
        ("It opened in spring; towers of iron.", 1),
        ("Museums close on Mondays.", 0),
    ],
)
def test_grades_by_the_share_of_the_question_covered(context: str, grade: int) -> None:
    """From 0.4 on a context answers, from 0.2 on it helps."""
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
    judge = LexicalJudge(Corpus())
    prompt = Prompt("tone", 1, GRADE.verdict, "Grade the tone.")
    with pytest.raises(JudgeRefused, match=r"'tone'.*choose another judge"):
        asyncio.run(judge.reply(Ask(prompt, {}), 0))


def test_says_that_it_is_a_baseline_and_is_not_kept() -> None:
    """Its numbers carry the note everywhere, and cost too little for a store."""
    judge = LexicalJudge(Corpus())
    assert "baseline" in judge.note
    assert not judge.cacheable


# The corpus


def test_a_long_text_counts_for_no_more_than_others() -> None:
    """Its words share what those of a text of 128 words, or a question of 24, have."""
    corpus = Corpus()
    corpus.add([" ".join(f"word{n}" for n in range(1_280))], " ".join(f"ask{n}" for n in range(96)))
    assert corpus.contexts.texts == pytest.approx(0.1)
    assert corpus.contexts.counts.sum() == pytest.approx(128, rel=0.02)  # few share a slot
    assert corpus.questions.texts == pytest.approx(0.25)


def test_a_row_of_many_contexts_counts_for_no_more_than_one_of_five() -> None:
    """So nobody makes a word common by retrieving it in a thousand contexts at once."""
    five, many = Corpus(), Corpus()
    five.add([f"tower {n}" for n in range(5)])
    many.add([f"tower {n}" for n in range(1_000)])
    assert many.contexts.texts == pytest.approx(five.contexts.texts)
    assert many.weight("tower") == pytest.approx(five.weight("tower"))


def test_a_context_counts_as_often_as_it_is_retrieved_up_to_five_times() -> None:
    """What the corpus holds weighs more than what came once; a popular chunk not without end."""
    corpus = Corpus()
    for _ in range(1_000):
        corpus.add(["a tower"])
    corpus.add(["a museum"])
    assert corpus.contexts.texts == 6
    assert corpus.weight("museum") > corpus.weight("tower")


def test_questions_are_counted_apart_each_distinct_one_once() -> None:
    """A night's questions make no word common among its contexts, nor do repeats of one."""
    corpus = Corpus()
    for _ in range(500):
        corpus.add(["a tower"], "which tower")
    assert corpus.questions.texts == 1
    assert corpus.weight("which") == corpus.weight(None)
    assert corpus.subject_weight("which") < corpus.subject_weight("who")


def test_few_rows_do_not_move_the_typical_length() -> None:
    """It is that of the middle half: one text in twenty of ten thousand words is one of many."""
    corpus = Corpus()
    for n in range(400):
        corpus.add([" ".join(f"word{n}_{m}" for m in range(80))])
    before = corpus.contexts.typical_length
    for n in range(20):
        corpus.add([" ".join(f"long{n}_{m}" for m in range(10_000))])
    assert corpus.contexts.typical_length == pytest.approx(before, rel=0.01)


@pytest.mark.parametrize(
    ("question", "contexts"),
    [
        (" ".join(f"subject{n}" for n in range(300)) + " what is", ["nothing"]),
        ("what", [" ".join(f"answer{n}" for n in range(60))] * 10),
        ("what", [" ".join(f"junk{n}" for n in range(20_000))] * 10),
    ],
    ids=["questions of very many words", "contexts that hold every word", "endless contexts"],
)
def test_hostile_rows_barely_move_the_others(question: str, contexts: list[str]) -> None:
    """With one such row in twenty the relevance of honest rows moves by less than 0.01."""
    honest, attacked = Corpus(), Corpus()
    filler = [" ".join(f"filler{n}_{m}" for m in range(5 + n % 60)) for n in range(1_500)]
    rows = [
        (f"what is subject{n}?", [f"subject{n} is {one}" for one in filler[5 * n : 5 * n + 5]])
        for n in range(300)
    ]
    for asked, retrieved in rows:
        honest.add(retrieved, asked)
        attacked.add(retrieved, asked)
    for n in range(15):
        attacked.add(contexts, f"{question} {n}")
    means = [
        np.mean([Overlap(corpus).relevance(asked, found[0]) for asked, found in rows])
        for corpus in (honest, attacked)
    ]
    assert means[1] == pytest.approx(means[0], abs=0.01)


def test_a_corpus_travels_as_bytes() -> None:
    """Shards scored elsewhere weigh words the same."""
    corpus = Corpus()
    for n in range(100):
        corpus.add([f"tower {n} " * 7], f"which {n}")
    data = corpus.to_bytes()
    read = Corpus.from_bytes(data)
    assert len(data) < 3_000
    for there, here in ((read.contexts, corpus.contexts), (read.questions, corpus.questions)):
        assert (there.texts, there.typical_length) == (here.texts, here.typical_length)
        assert np.array_equal(there.counts, here.counts)
    assert Corpus.from_bytes(Corpus().to_bytes()).contexts.texts == 0


def test_word_counts_of_earlier_versions_are_read() -> None:
    """They are whole numbers, without lengths: the mean length stands in for all."""
    tables = [[4, 2, 7, 9, 3, 5], [1, 1, 7, 1]]
    data = zlib.compress(np.array([n for one in tables for n in one], dtype=np.uint32).tobytes())
    corpus = Corpus.from_bytes(data)
    assert (corpus.contexts.texts, corpus.questions.texts) == (4, 1)
    assert corpus.contexts.counts[[7, 9]].tolist() == [3, 5]
    assert corpus.contexts.lengths[2] == 4


@given(st.binary(max_size=60))
@example(np.array([0.0, 2.0, 2.0**65]).tobytes())  # a slot that no table has
def test_bytes_that_are_no_word_counts_are_said_to_be_none(data: bytes) -> None:
    """A damaged file ends in one kind of error, or in counts that can be written again."""
    for damaged in (data, b"\x02" + data, b"\x02" + zlib.compress(data), zlib.compress(data)):
        try:
            found = Corpus.from_bytes(damaged)
        except ValueError:
            continue
        assert Corpus.from_bytes(found.to_bytes()).to_bytes() == found.to_bytes()


# The same numbers as by the definitions, bit by bit

FORMS = ["tower", "towers", "Tower", "tow", "open", "opened", "reopening", "1889", "x1889", "Paris"]
FORMS += [
    "of",
    "the",
    "Türme",
    "ﬁnd",
    "塔の高さ",
    "서울에서",
    "_",
    "?",
    ". ",
    "\n",
    "aaaaaa",
    "é",
    "\u0301",
]
WRITTEN = st.lists(st.sampled_from(FORMS) | st.text(max_size=4), max_size=12).map(" ".join)


@pytest.mark.parametrize("longest", [0, 500], ids=["long queries", "short queries"])
@given(st.lists(WRITTEN, max_size=4), WRITTEN, st.lists(WRITTEN, max_size=3))
def test_the_measures_are_those_of_the_definitions(
    longest: int, contexts: list[str], question: str, passages: list[str]
) -> None:
    """For any texts, also where the passages repeat the question, and for both kinds of query."""
    corpus = Corpus()
    corpus.add(contexts, question)
    fast, plain = Overlap(corpus, longest_query=longest), PlainLexicon(corpus)
    for texts in (passages, [*passages, question], contexts):
        assert fast.coverage(question, *texts) == plain.coverage(question, *texts)
        assert fast.relevance(question, *texts) == plain.relevance(question, *texts)


@given(st.lists(WRITTEN, max_size=3), WRITTEN)
def test_the_hashed_vectors_are_those_of_the_definition(contexts: list[str], text: str) -> None:
    """Sums in another order would differ in the last bit."""
    corpus = Corpus()
    corpus.add(contexts)
    vector = HashedEmbedder(corpus).embed_at_once(text)
    assert vector.tobytes() == vector_of(text, corpus).tobytes()


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


@given(st.text(st.characters(codec="ascii")))
def test_plain_texts_have_the_words_that_any_text_has(text: str) -> None:
    """The quick way for ASCII finds what the way for all scripts finds."""
    assert words(text + " é") == [*words(text), "é"]

"""ragas_context_relevancy: ragas 0.1's count of extracted sentences; replies played by hand."""

from __future__ import annotations

import hashlib
from typing import Any

import pysbd
import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.errors import Unanswered
from ragmetrics.judges import Corpus
from ragmetrics.judges.word_overlap import Overlap
from ragmetrics.metrics.bundled.ragas_context_relevancy import EXTRACTION, ragas_context_relevancy
from ragmetrics.records import Ask, LogRow, Score, Status, Text
from ragmetrics.text import sentences
from tests.builders import end

CONTEXTS = ("The tower is tall. It opened in 1889.", "Paris is big. It rains.")
WORDS = st.sampled_from(
    [
        "tower",
        "It",
        "opened",
        "Dr.",
        "e.g.",
        "3.14",
        "U.S.",
        "(see",
        "there)",
        '"no"',
        "1.",
        "Größe",
    ]
)
BREAKS = st.sampled_from([" ", " ", " ", ". ", "? ", "!\n", ".\n\n", ".\n \n", "\n"])
TEXTS = st.lists(st.tuples(WORDS, BREAKS), max_size=25).map(
    lambda parts: "".join(map("".join, parts))
)
# What ragas 0.1.10 itself makes of these texts: `format(...).to_string()`, sha256.
AWKWARD = LogRow(
    id="row-1",
    user_input='What does "{answer}" mean, {question}?\n2nd line',
    retrieved_contexts=('Ærø: \\n "quoted" {context}', "塔は{}赤い。\n\ttab"),
)
RAGAS_TEXT = "a524b98e1165ad80"


def a_row(*contexts: str, **fields: Any) -> LogRow:
    """A row with contexts of four sentences, unless told otherwise."""
    values = {"user_input": "When did it open?", "retrieved_contexts": contexts or CONTEXTS}
    return LogRow(id="row-1", **(values | fields))


def value(reply: str, row: LogRow | None = None) -> float | None:
    """The value that a reply gives."""
    steps = ragas_context_relevancy.play(row or a_row())
    next(steps)
    return end(steps, Text(text=reply)).value


def test_asks_once_about_the_contexts_as_one_text() -> None:
    """Contexts are joined by a line break, as ragas joins them."""
    data = {"question": "When did it open?", "context": "\n".join(CONTEXTS)}
    assert next(ragas_context_relevancy.play(a_row())) == [Ask(EXTRACTION, data)]


def test_sends_the_very_words_of_ragas() -> None:
    """One user turn, equal byte by byte, braces and quotes in the data included."""
    ((request,),) = (next(ragas_context_relevancy.play(AWKWARD)),)
    (turn,) = request.prompt.messages(request.data)
    assert turn["role"] == "user"
    assert hashlib.sha256(turn["content"].encode()).hexdigest()[:16] == RAGAS_TEXT


def test_value_is_the_share_of_extracted_sentences() -> None:
    """Two of four sentences; details hold both counts."""
    steps = ragas_context_relevancy.play(a_row())
    next(steps)
    found = end(steps, Text(text="It opened in 1889. Paris is big."))
    assert found == Score(0.5, details={"extracted": 2, "sentences": 4})


# Quirks


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Insufficient Information.", 0.0),
        ("insufficient information.", 0.0),
        ("INSUFFICIENT INFORMATION.", 0.0),
        ("Insufficient Information", 0.25),
        (" Insufficient Information.", 0.25),
        ("Insufficient Information.\n", 0.25),
        ('"Insufficient Information."', 0.25),
        ("Insufficient Information. Sorry.", 0.5),
        ("", 0.0),
        (" \n", 0.0),
    ],
)
def test_only_the_exact_phrase_counts_as_none(reply: str, expected: float) -> None:
    """It is compared before it is stripped; without the stop, it is one sentence of four."""
    assert value(reply) == expected


def test_nothing_compares_the_reply_with_the_contexts() -> None:
    """Three invented sentences count like extracted ones."""
    assert value("Cats purr. Dogs bark. Fish do not.") == 0.75


def test_more_sentences_than_there_are_is_1() -> None:
    """The share is cut at 1."""
    assert value("One. Two. Three. Four. Five. Six.") == 1.0


def test_splits_by_english_rules_whatever_the_language() -> None:
    """The Hindi full stop ends no sentence: two sentences are one, and one of one is 1."""
    row = a_row("मीनार ऊँची है। वह लाल है।", language="hi")
    assert len(sentences(row.retrieved_contexts[0], "hi")) == 2
    assert value("मीनार ऊँची है।", row) == 1.0


def test_splits_the_joined_text() -> None:
    """Half sentences stay apart at the join: a line break ends a sentence."""
    assert value("One.", a_row("The tower", "is tall.")) == 0.5


@settings(deadline=None)
@given(TEXTS)
def test_counts_sentences_as_pysbd_does(text: str) -> None:
    """Our splitter stands in for `pysbd.Segmenter(language="en", clean=False)`: equal counts."""
    assert len(sentences(text, "en")) == len(pysbd.Segmenter(language="en").segment(text))


# Empty cases


@pytest.mark.parametrize("contexts", [(), ("",), (" ", "\n")])
def test_no_sentence_is_zero_and_not_asked(contexts: tuple[str, ...]) -> None:
    """ragas asks and then gives 0 whatever the reply."""
    row = a_row(retrieved_contexts=contexts)
    assert end(ragas_context_relevancy.play(row)) == Score(0.0, "no sentence retrieved")


def test_an_empty_question_is_asked_all_the_same() -> None:
    """As in ragas."""
    assert value("It rains.", a_row(user_input="")) == 0.25


def test_no_reply_leaves_the_row_unanswered() -> None:
    """Unanswered goes up to the driver, which makes it a status."""
    steps = ragas_context_relevancy.play(a_row())
    next(steps)
    with pytest.raises(Unanswered, match="no key"):
        steps.send([Unanswered(Status.JUDGE_FAILED, "no key")])


def test_any_reply_is_read() -> None:
    """JSON, prose, nothing: ragas counts whatever comes."""
    for reply in ("", "{}", "I would rather not.", "\0"):
        assert EXTRACTION.parse(reply, {}) == Text(text=reply)


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("When was it opened in 1889?", "It opened in 1889."),
        ("Where do whales sleep?", "Insufficient Information."),
    ],
)
def test_the_embedded_judge_extracts(question: str, reply: str) -> None:
    """Its baseline says which sentences cover the question, or the phrase for none."""
    assert EXTRACTION.baseline is not None
    data = {"question": question, "context": "\n".join(CONTEXTS)}
    assert EXTRACTION.baseline(data, Overlap(Corpus())).text == reply


# Properties


@settings(deadline=None)
@given(st.text())
def test_value_is_in_bounds(reply: str) -> None:
    """Whatever the judge says."""
    found = value(reply)
    assert found is not None
    assert 0 <= found <= 1


@settings(deadline=None)
@given(st.integers(0, 8))
def test_one_more_sentence_never_lowers_the_value(count: int) -> None:
    """The value only counts."""
    fewer, more = (value("It is so. " * n) or 0 for n in (count, count + 1))
    assert fewer <= more

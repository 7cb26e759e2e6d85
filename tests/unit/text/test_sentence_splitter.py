"""Sentences of logged text: what pysbd does well is kept, what hangs or harms it is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, strategies as st
from pysbd import Segmenter

from ragmetrics.text import (
    SizedCache,
    SplitCounter,
    counting_splits,
    normalise,
    sentence_splitter as module,
    sentences,
)
from ragmetrics.text.sentence_splitter import plain_sentences

HANGING = (
    "This was shown before.[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19"
    " and more",
    "..[111 111 111 111 111 111 111 111 111 111]",
    "As told.[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20] by all.",
    "Ends." + "a) b) " * 300,
    "1. 2. " * 500,
    "!" * 5000 + "x",
    "[\\a" * 2000,
)
PLAIN = ["a", "B", "7", "12", "é", "д", "中", "ن", " ", "\n", "\r", "\u2028", "\u00a0", "\\"]
STOPS = [".", "!", "?", "...", ". . . .", "…", "。", "！", "？", "؟", "।", "۔", ",", ":", "-", "--"]
QUOTES = ["(", ")", "[", "]", '"', "'", "«", "»", "“", "”"]
WORDS = ["a) ", "i. ", "1. ", "2) ", "(b)", " Dr. ", "e.g.", "U.S.", "[1, 2]", "http://x.yz"]
MARKS = ["∯", "ȸ", "♨", "☏☏", "&ᓴ&"]
PIECES = st.sampled_from([*PLAIN, *STOPS, *QUOTES, *WORDS, *MARKS])
TEXTS = st.lists(PIECES, max_size=40).map("".join)
LANGUAGES = st.sampled_from([None, "en", "de", "zh", "ja", "ar", "ru", "fr", "hi", "sk", "pt"])


@pytest.fixture
def counter() -> Iterator[SplitCounter]:
    """Counts what a test has split."""
    with counting_splits() as counter:
        yield counter


def ink(text: str) -> str:
    """Everything in the text but its white space."""
    return "".join(text.split())


# What is a sentence


@pytest.mark.parametrize("empty", [None, "", "   ", "\n\t\r\n"])
def test_no_text_has_no_sentences(empty: str | None, counter: SplitCounter) -> None:
    """None and blank text have no sentences, and are not counted as split."""
    assert sentences(empty) == ()
    assert counter.counts() == {}


def test_text_without_a_stop_is_one_sentence() -> None:
    """A chunk cut in the middle of a sentence is one sentence."""
    assert sentences("the tariff for small customers") == ("the tariff for small customers",)


def test_abbreviations_do_not_end_a_sentence() -> None:
    """Titles, initials and decimals keep their stops."""
    assert sentences(
        "Dr. Smith of the L. A. Mayer Institute paid 3.5 million. It was e.g. art."
    ) == (
        "Dr. Smith of the L. A. Mayer Institute paid 3.5 million.",
        "It was e.g. art.",
    )


def test_list_items_are_sentences() -> None:
    """Each line of a numbered list is a sentence, its number included."""
    assert sentences("1. Open the lid.\n2. Fill in water.") == (
        "1. Open the lid.",
        "2. Fill in water.",
    )


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("zh-Hans", "他走了。真的吗？是的！", ("他走了。", "真的吗？", "是的！")),
        ("ja", "これは本です。本当ですか？", ("これは本です。", "本当ですか？")),
        ("ar", "ما هذا؟ هذا كتاب.", ("ما هذا؟", "هذا كتاب.")),
        ("hi", "यह किताब है। क्या यह सच है?", ("यह किताब है।", "क्या यह सच है?")),
        ("ru", "Он жил в г. Москва. Потом уехал.", ("Он жил в г. Москва.", "Потом уехал.")),
        ("de-AT", "Am 3. Mai kam Dr. Huber. Sie ging.", ("Am 3. Mai kam Dr. Huber.", "Sie ging.")),
        ("FR_ca", "M. Dupont est parti. Il pleut.", ("M. Dupont est parti.", "Il pleut.")),
    ],
)
def test_each_language_has_its_rules(
    language: str, text: str, expected: tuple[str, ...], counter: SplitCounter
) -> None:
    """The row's language, in any spelling of its tag, decides what ends a sentence."""
    assert sentences(text, language) == expected
    assert counter.counts() == {"": 1}


@given(TEXTS, LANGUAGES)
def test_no_text_is_lost(text: str, language: str | None) -> None:
    """All characters but white space are kept, in order; no sentence is empty or unstripped."""
    found = sentences(text, language)
    assert ink("".join(found)) == ink(text)
    assert all(sentence and sentence == sentence.strip() for sentence in found)


@given(TEXTS, LANGUAGES)
def test_the_same_text_has_the_same_sentences(text: str, language: str | None) -> None:
    """Neither the cache nor what was split before matters."""
    first = sentences(text, language)
    assert sentences(text, language) == first
    assert module._split(text, module._code(language)).sentences == (first if text.strip() else ())


# What pysbd cannot take


@pytest.mark.process
def test_hanging_texts_return() -> None:
    """Texts on which pysbd runs for ever are split; in a process, as no thread can stop it."""
    code = (
        "import sys\nfrom ragmetrics.text.sentence_splitter import sentences\n"
        "print(len(sentences(sys.argv[1])))"
    )
    for text in HANGING:
        command = [sys.executable, "-W", "error", "-c", code, text]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
        assert int(done.stdout) >= 1


def test_numbered_references_are_split_as_pysbd_means_to(counter: SplitCounter) -> None:
    """The pattern that explodes has an equivalent: the text still goes to pysbd."""
    assert sentences("It was shown.[1, 2-4] Then not.") == ("It was shown.[1, 2-4]", "Then not.")
    assert sentences(HANGING[0]) == ("This was shown before.", HANGING[0][22:])
    assert counter.counts() == {"": 2}


@pytest.mark.parametrize("text", ["a) b) " * 300, "1. 2. " * 500])
def test_very_many_list_items_are_split_plainly(text: str, counter: SplitCounter) -> None:
    """pysbd's search for lists is cubic in their items."""
    sentences(text)
    assert counter.counts() == {"unsafe pattern": 1}


def test_a_table_of_contents_is_no_danger(counter: SplitCounter) -> None:
    """A list as people write them goes to pysbd."""
    text = "\n".join(f"{number}. Chapter about the matter" for number in range(1, 61))
    assert len(sentences(text)) == 60
    assert counter.counts() == {"": 1}


@pytest.mark.parametrize("mark", ["∯", "ȸ", "☏☏", "♬", "♨", "☝", "ƪƪƪ", "☉", "&ᓴ&", "&ᓰ&"])
def test_text_with_marks_of_pysbd_is_kept(mark: str, counter: SplitCounter) -> None:
    """pysbd drops or alters characters that it uses as marks; such a text is split plainly."""
    text = f"x {mark} y. Then z."
    assert sentences(text) == (f"x {mark} y.", "Then z.")
    assert counter.counts().get("", 0) == 0
    assert sum(counter.counts().values()) == 1


def test_a_text_that_pysbd_takes_for_a_pattern_is_kept(counter: SplitCounter) -> None:
    """pysbd builds patterns from the text without escaping it, and fails on a bracket."""
    assert sentences("Der b.a b(a kam. Er ging.", "de") == ("Der b.a b(a kam.", "Er ging.")
    assert counter.counts() == {"error": 1}


def test_a_long_text_is_split_by_lines(counter: SplitCounter) -> None:
    """A text of any length goes to pysbd in pieces, and reads as if it were whole."""
    text = "\n\n".join(f"Dr. No came on {day} days. He left." for day in range(1000))
    assert len(sentences(text)) == 2000
    assert counter.counts() == {"": 1}


def test_a_long_line_is_split_plainly(counter: SplitCounter) -> None:
    """A single line longer than pysbd is given at once goes to the plain splitter."""
    assert len(sentences("Dr. No came. He left. " * 1000 + "\nThe end.")) == 2001
    assert counter.counts() == {"too long": 1}


def test_an_unknown_language_is_split_plainly(counter: SplitCounter) -> None:
    """A language that pysbd lacks is counted, once for each text."""
    text = "O Sr. Silva foi. Custa 3,50."
    for _ in range(3):
        assert sentences(text, "pt-BR") == ("O Sr. Silva foi.", "Custa 3,50.")
    assert counter.counts() == {"language": 1}


# Same result as pysbd, sooner

PROSE = {
    "en": "Mr. Smith, Inc., vs. Gov. Lee et al. No. 5 is on p. 12 (fig. 3). IS it? U.S. Rep. Ray.",
    "de": "Z.B. bzw. Dr. Nr. 5 ca. 3 Uhr. Fa. Meier u.a. ging. Am 3. Jan. 2020 kam Prof. Kurz.",
    "ru": "См. рис. 5 и т.д. Ул. Мира, д. 3. Проф. Иванов. 5 тыс. руб. Он.",
    "it": "Sig. Rossi, art. 5, pag. 3. L'avv. Bianchi ecc. Vive a S. Marino.",
    "sk": "Firma s. r. o. vznikla 3. mája. Ing. Novák, č. 5. Pol. pr. n. l. bol.",
    "ar": "ص.ب. 5 م. ب. د. أحمد. نعم.",
}


@pytest.mark.parametrize("language", PROSE)
def test_hardened_pysbd_splits_as_pysbd_does(language: str, counter: SplitCounter) -> None:
    """Skipping the steps that change nothing gives pysbd's own sentences."""
    text = PROSE[language] * 3
    assert sentences(text, language) == tuple(s.strip() for s in Segmenter(language).segment(text))
    assert counter.counts() == {"": 1}


def test_a_text_that_fails_in_pysbd_fails_no_row() -> None:
    """pysbd takes a separator for a space, and then for a digit."""
    assert "".join(sentences("\x1c1. Plug. \x1c2. Wire.")) == "1. Plug.2.Wire."


# The plain splitter


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith paid 3.5 million.", "See No. 5 at example.org, e.g. there.", "Yes."],
        ["L. A. Mayer met J.R.R. Tolkien!", '"Really?"', "(He did.)", "So…", "Fine"],
        ["1. First.", "Wait... what?", "Well."],
        ["क्या?", "हाँ।", "ठीक है॥"],
        ["ما هذا؟", "نعم.", "لا۔"],
    ],
)
def test_plain_sentences_end_where_a_reader_ends_them(expected: list[str]) -> None:
    """Stops of many scripts end a sentence; abbreviations, initials and decimals do not."""
    assert plain_sentences(" ".join(expected)) == expected


def test_chinese_needs_no_space_after_a_stop() -> None:
    """Stops that are followed by no space end a sentence, with the quotes that close after them."""
    assert plain_sentences("他说：“好。”然后走了。真的吗？") == [
        "他说：“好。”",
        "然后走了。",
        "真的吗？",
    ]


def test_plain_sentences_end_at_line_breaks() -> None:
    """Every line break ends a sentence, as with pysbd."""
    assert plain_sentences("Contents\nOne\r\n\r\nTwo. Three") == [
        "Contents",
        "One",
        "Two.",
        "Three",
    ]


def test_stops_alone_stay_with_their_sentence() -> None:
    """What holds no letter or digit is no sentence of its own."""
    assert plain_sentences("Wait. . . . Go. !!") == ["Wait. . . .", "Go. !!"]


@given(TEXTS)
def test_the_plain_splitter_loses_nothing(text: str) -> None:
    """All characters but white space are kept, in order."""
    assert ink("".join(plain_sentences(text))) == ink(text)


def test_the_plain_splitter_takes_any_length() -> None:
    """Half a million stops are split: a quadratic splitter would need hours."""
    for unit in (". ", "a. ", "。", '."', "... "):
        assert plain_sentences(unit * 100_000)


# Counting and keeping


def test_each_distinct_text_is_split_once(
    monkeypatch: pytest.MonkeyPatch, counter: SplitCounter
) -> None:
    """The same text in the same language is split once, in another language again."""
    asked = []
    split = module._split
    monkeypatch.setattr(module, "_split", lambda *key: asked.append(key) or split(*key))
    for language in (None, "en", "en-GB", "de", "de"):
        sentences("One. Two.", language)
    assert asked == [("One. Two.", "en"), ("One. Two.", "de")]
    assert sum(counter.counts().values()) == 2


def test_counts_do_not_depend_on_what_was_split_before() -> None:
    """Each piece of work reports all its texts, also those that another has split."""
    for _ in range(2):
        with counting_splits() as counter:
            sentences("One. Two.")
            sentences("One. Two.")
        assert counter.counts() == {"": 1}


def test_the_texts_kept_are_bounded_in_bytes() -> None:
    """The text used longest ago is dropped first, when the bound is reached."""
    kept: SizedCache[str, str] = SizedCache(limit=3000)
    for name in "abc":
        kept.put(name, name, 1400)
        kept.get("a")
    assert kept.get("a") == "a"
    assert kept.get("b") is None


def test_threads_agree() -> None:
    """Threads that split the same texts at once come to the same sentences and counts."""
    texts = [f"Dr. No came on {day} days. He left." for day in range(50)]

    def work(_: int) -> tuple[list[tuple[str, ...]], dict[str, int]]:
        with counting_splits() as counter:
            return [sentences(text) for text in texts], counter.counts()

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert all(result == results[0] for result in results)


# The identity of a question


@pytest.mark.parametrize(
    "spelling",
    [
        "What is RAG?",
        "  what IS\n rag ",
        "What is RAG ?!",
        "Ｗｈａｔ is RAG？",
        "what\u00a0is rag...",
    ],
)
def test_spellings_of_a_question_are_one(spelling: str) -> None:
    """Case, width, white space and the last stops do not tell questions apart."""
    assert normalise(spelling) == "what is rag"


def test_different_questions_stay_different() -> None:
    """Stops within a question, and words, count."""
    assert normalise("Is 3.5 enough?") != normalise("Is 35 enough?")
    assert normalise("STRASSE?") == normalise("straße")


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    """The identity of an identity is itself."""
    assert normalise(normalise(text)) == normalise(text)


def test_a_giant_text_has_a_budget(monkeypatch: pytest.MonkeyPatch, counter: SplitCounter) -> None:
    """Its beginning goes to pysbd, the rest is split plainly: the same text always alike."""
    monkeypatch.setattr(module, "_recent", SizedCache(0))
    calls: list[int] = []
    by_pysbd = module._by_pysbd

    def counted(text: str, code: str) -> list[str]:
        calls.append(len(text))
        return by_pysbd(text, code)

    monkeypatch.setattr(module, "_by_pysbd", counted)
    monkeypatch.setattr(module, "_TEXT_BUDGET", 50_000)
    text = "\n".join(f"He came on {day} days. He left." for day in range(10_000))
    found = sentences(text)
    assert sum(calls) <= 50_000
    assert "".join(found).replace(" ", "") == ink(text)
    assert len(found) == 20_000
    assert sentences(text) == found
    assert counter.counts() == {"beyond the budget of a text": 1}


def test_lists_use_up_the_budget_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of lists near what pysbd is given at once cost it as much as pages of prose."""
    calls: list[str] = []

    def counted(text: str, code: str) -> list[str]:
        calls.append(text)
        return plain_sentences(text)

    monkeypatch.setattr(module, "_by_pysbd", counted)
    line = ("1. " + "word " * 5 + "and. ") * 240
    sentences("\n".join([line[:7_900]] * 200))
    assert 1 <= len(calls) <= 10

"""pysbd's rules in fewer passes give pysbd's own sentences, in every language that it knows."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st
from pysbd.languages import LANGUAGE_CODES
from pysbd.processor import Processor

import pysbd_fast

# fmt: off
ENDS = [". ", "? ", "! ", "...", ". . . . ", "!?", "?!", "!!", "??", "!!!", "?-", "!—",
    "\n", "\r", "。", "．", "！", "？", "؟", "،", "۔", "।", "|", "։", "።", "\u2028", "\x85"]
PAIRS = ["(", ")", "[", "]", '"', "'", "‘", "’", "“", "”", "«", "»", "--", "„", ",,", "《",
    "》", "「あ。」", "（い。）", " (a) ", '" (b) "']
LISTS = ["1. ", "2. ", "- 1. ", "10.) ", "a) ", "(b) ", "c) ", "ii) ", "iii) ", "i. ",
    "ii. "]
STOPS = ["3.14", ".5", "1.", "5. Januar", "12. Mai", "°. 5", " .jpg ", "a.b.c@d.e",
    ".[1] A", ".12 B"]
WORDS = ["Mr. ", "mr.", "MR. ", "Dr.", "e.g. ", "i.e.", "U.S. ", "U.S.A. The ", "a.m. ",
    "P.M. A ", "p. 3", "No. 5", "no. ", "art. 7", "vs. ", "Co. KG ", "'s ", "J.R.R. ",
    "J. ", "Yahoo! ", "!Kung ", "Y!J", "z.B. ", "str. ", "т. ", "ул. ", "s. r. o. ",
    "VI. ", "i.v", "I. The ", "U.K. How", "{mr} A", "ſt.", "hello", " World", "The ",
    "It ", "I'm ", "and ", "é", "&", "´", "ᓴ", " "]
# fmt: on
PROSE = {
    "en": "Mr. Smith, Inc., vs. Gov. Lee et al. No. 5 is on p. 12 (fig. 3). IS it? U.S. Rep. Ray.",
    "de": "Z.B. bzw. Dr. Nr. 5 ca. 3 Uhr. Fa. Meier u.a. ging. Am 3. Jan. 2020 kam Prof. Kurz.",
    "ru": "См. рис. 5 и т.д. Ул. Мира, д. 3. Проф. Иванов. 5 тыс. руб. Он.",
    "it": "Sig. Rossi, art. 5, pag. 3. L'avv. Bianchi ecc. Vive a S. Marino.",
    "sk": "Firma s. r. o. vznikla 3. mája. Ing. Novák, č. 5. Pol. pr. n. l. bol.",
    "ar": "ص.ب. 5 م. ب. د. أحمد. نعم.",
}
PIECES = [*ENDS, *PAIRS, *LISTS, *STOPS, *WORDS]


def by_pysbd(text: str, code: str) -> list[str]:
    """The sentences by pysbd itself."""
    rules: Any = LANGUAGE_CODES[code]
    return list(map(str, getattr(rules, "Processor", Processor)(text, rules).process()))


def texts() -> st.SearchStrategy[str]:
    """Texts of what the rules look for, and abbreviations of all languages among it."""
    known = {word for rules in LANGUAGE_CODES.values() for word in rules.Abbreviation.ABBREVIATIONS}
    shortened = st.sampled_from(sorted(known))
    forms = st.sampled_from([str, str.title, str.upper])
    abbreviation = st.tuples(shortened, forms).map(lambda word: f" {word[1](word[0])}. ")
    return st.lists(st.sampled_from(PIECES) | abbreviation, max_size=25).map("".join)


@given(texts(), st.sampled_from(sorted(LANGUAGE_CODES)))
def test_the_sentences_are_those_of_pysbd(text: str, code: str) -> None:
    """Whatever of its rules apply, and in whatever order."""
    try:
        expected = by_pysbd(text, code)
    except (re.error, IndexError, ValueError):  # pysbd cannot split it
        assume(False)
    assert pysbd_fast.split(text, code) == expected


@pytest.mark.parametrize("code", sorted(LANGUAGE_CODES))
def test_an_empty_text_has_no_sentence(code: str) -> None:
    """An empty list, in every language."""
    assert pysbd_fast.split("", code) == []


@pytest.mark.parametrize("code", sorted(LANGUAGE_CODES))
def test_prose_is_split_as_by_pysbd(code: str) -> None:
    """Prose of several languages, by the rules of each."""
    for text in PROSE.values():
        assert pysbd_fast.split(text, code) == by_pysbd(text, code)


def test_the_slowest_part_of_the_pattern_for_sentences_is_replaced() -> None:
    """It is found by its text: a new version of pysbd may have another one."""
    assert pysbd_fast._TO_NEXT_END[1] in pysbd_fast.language("en").boundaries.pattern

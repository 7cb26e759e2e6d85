"""Full stops of abbreviations, looked up from the words before full stops."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pysbd.abbreviation_replacer import AbbreviationReplacer
from pysbd.lang.common import Common
from pysbd.utils import Text

from pysbd_fast.marks import STOP

_AFTER_LETTER = re.compile(r"\.(?:(?<=^[A-Z]\.)(?=\s)|(?<=\s[A-Z]\.)(?=,?\s))")
_SEVERAL_STOPS = re.compile(Common.MULTI_PERIOD_ABBREVIATION_REGEX, re.IGNORECASE)
_LETTER_BETWEEN_STOPS = re.compile(r"\.[a-z]\.", re.IGNORECASE)
_STOP_BEFORE_STARTER = re.compile(r"∯(?<=[SKUAIVv]∯)")
_BOUNDARY = r"(U∯S|U\.S|U∯K|E∯U|E\.U|U∯S∯A|U\.S\.A|I|i.v|I.V)∯({})"
_CASELESS = re.compile("[\u0130\u0131\u017f\u212a]")
"""Letters that equal an ASCII letter in a pattern without case, but not in lower case."""


class Abbreviations(AbbreviationReplacer):  # type: ignore[misc]
    """Full stops of abbreviations."""

    text: str

    def replace(self) -> str:
        text, lang = self.text, self.lang
        if "." in text:
            if ".'s" in text:
                text = Text(text).apply(lang.PossessiveAbbreviationRule)
            if "Co." in text:
                text = Text(text).apply(lang.KommanditgesellschaftRule)
            text = _AFTER_LETTER.sub(STOP, text)
            lines = text.splitlines(keepends=True)
            text = "".join(map(self.search_for_abbreviations_in_string, lines))
            if _LETTER_BETWEEN_STOPS.search(text):
                text = _SEVERAL_STOPS.sub(lambda match: match.group().replace(".", STOP), text)
        if "∯M∯" in text or "∯m∯" in text:
            text = Text(text).apply(*lang.AmPmRules.All)
        self.text = text
        if _STOP_BEFORE_STARTER.search(text):
            self.replace_abbreviation_as_sentence_boundary()
        return self.text

    def replace_abbreviation_as_sentence_boundary(self) -> str:
        self.text = _before_starters(tuple(self.SENTENCE_STARTERS)).sub("\\1.", self.text)
        return self.text

    def search_for_abbreviations_in_string(self, text: str) -> str:
        """Replace the abbreviations that can be in the text, in pysbd's order."""
        if "." not in text:
            return text
        known = _known_abbreviations(self.lang)
        if not self._begins_word() or "{" in text or _CASELESS.search(text):
            lowered = text.lower()
            for word in known.all:
                if word in lowered:
                    text = self._replace_all(text, word)
            return text
        # An abbreviation is what a word has before a full stop.
        found = self._before_stops(text, known)
        lowered = text.lower()
        found += [(place, "") for place, word in known.others if word in lowered]
        for place, abbreviation in sorted(found):
            if abbreviation:
                text = self.scan_for_replacements(text, abbreviation, 0, [])
            else:
                text = self._replace_all(text, known.all[place])
        return text

    def _before_stops(self, text: str, known: _Known) -> list[tuple[int, str]]:
        """The abbreviations that are ASCII words, as they are in the text, and their places."""
        found, before = set[tuple[int, str]](), ". "
        for part in text.split(".")[:-1]:
            word = (before + part).rsplit(None, 1)[-1]
            found.update((place, word) for place in known.places.get(word.lower(), ()))
            before = "."  # in one word with the full stop before: no abbreviation
        return list(found)

    def _replace_all(self, text: str, word: str) -> str:
        """Replace every occurrence of an abbreviation, each form of it once.

        pysbd replaces all forms again for each occurrence: that is quadratic.
        """
        if word.isalnum() and not _CASELESS.search(text) and word + "." not in text.lower():
            return text
        occurrence, following = _finders(word)
        matches = occurrence.findall(text)
        initials = following.findall(text) if "{" in text else []
        settled: set[tuple[str, str]] = set()
        for index, match in enumerate(matches):
            step = (match, initials[index] if index < len(initials) else "")
            bare = match.strip()
            if step in settled or (bare.isalnum() and bare + "." not in text):
                continue
            replaced = self.scan_for_replacements(text, match, index, initials)
            settled = settled | {step} if replaced == text else set()
            text = replaced
        return text

    @classmethod
    def _begins_word(cls) -> bool:
        """Whether an abbreviation must begin a word, as in most languages."""
        return cls.scan_for_replacements is Abbreviations.scan_for_replacements and (
            cls.replace_period_of_abbr is Abbreviations.replace_period_of_abbr
        )

    def scan_for_replacements(self, txt: str, am: str, ind: int, char_array: list[str]) -> str:
        kinds, word = self.lang.Abbreviation, am.strip().lower()
        initial = char_array[ind] if ind < len(char_array) else ""
        if word in kinds.PREPOSITIVE_ABBREVIATIONS:
            return _replaced_after(txt, am.strip(), r"(?=(\s|:\d+))")
        if initial.isupper():
            return txt
        if word in kinds.NUMBER_ABBREVIATIONS:
            return _replaced_after(txt, am.strip(), r"(?=(\s\d|\s+\())")
        found: str = self.replace_period_of_abbr(txt, am)
        return found

    def replace_period_of_abbr(self, txt: str, abbr: str) -> str:
        following = r"(?=((\.|\:|-|\?|,)|(\s([a-z]|I\s|I'm|I'll|\d|\())))"
        return _replaced_after(txt, re.escape(abbr.strip()), following)


def _replaced_after(text: str, pattern: str, following: str) -> str:
    """The text with each full stop replaced that is between a word's pattern and `following`."""
    return _stop_after(pattern, following).sub(STOP, f" {text}")[1:]


@lru_cache(maxsize=4_096)
def _stop_after(pattern: str, following: str) -> re.Pattern[str]:
    return re.compile(rf"\.(?<=\s{pattern}\.){following}")


@cache
def _before_starters(starters: tuple[str, ...]) -> re.Pattern[str]:
    """pysbd's pattern for an abbreviation before a word that begins a sentence."""
    return re.compile(_BOUNDARY.format("|".join(rf"(?=\s{word}\s)" for word in starters)))


class _Known(NamedTuple):
    """The abbreviations of a language, stripped, in pysbd's order."""

    all: list[str]
    places: dict[str, list[int]]
    """The places of those that are ASCII words."""
    others: list[tuple[int, str]]
    """The places of the others."""


@cache
def _known_abbreviations(lang: Any) -> _Known:
    words = [one.strip() for one in lang.Abbreviation.ABBREVIATIONS]
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        if word.isascii() and word.isalnum():
            places.setdefault(word, []).append(place)
    others = [(place, word) for place, word in enumerate(words) if word not in places]
    return _Known(words, places, others)


@cache
def _finders(word: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """pysbd's two patterns for an abbreviation, cached: the cache of `re` is too small."""
    return (
        re.compile(rf"(?:^|\s|\r|\n){word}", re.IGNORECASE),
        re.compile(r"(?<={" + re.escape(word) + "} ).{1}"),
    )

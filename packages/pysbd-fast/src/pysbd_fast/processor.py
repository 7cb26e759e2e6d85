"""The order of pysbd's steps, each only where the text has what it needs."""

from __future__ import annotations

import re

from pysbd.exclamation_words import ExclamationWords
from pysbd.lang.common import Common, Standard
from pysbd.lists_item_replacer import ListItemReplacer
from pysbd.processor import Processor
from pysbd.utils import Text

from pysbd_fast import marks

# Lists. Two items of a kind make a list; the text begins with a space.
_ITEM_WITH_STOP = re.compile(
    r"\.(?:(?<=\s[a-z]\.)|(?:(?<=[\s\-⁃]\d\.)|(?<=[\s\-⁃]\d\d\.))(?=[\s)]))"
)
_ITEM_WITH_BRACKET = re.compile(r"\)(?:(?<=[\s(][a-z]\))|(?<=[ivx][ivx]\))|(?<=\d\))(?=\s))")

_STOP_BEFORE_LETTER = re.compile(r"\.(?=[a-zA-Z0-9_])")
_STOP_IN_WORD = re.compile(Standard.Abbreviation.WithMultiplePeriodsAndEmailRule.pattern)
_STOP_AFTER_SPACE = re.compile(r"\.(?<=\s\.)")
_SPACED_STOPS = re.compile(r"\.\s\.")
# It begins with what is rare, so that the search is fast.
_STOP_BEFORE_REFERENCE = re.compile(r"∯(?<=[^\d\s]∯)[\[\d]")

# Group numbers are those of pysbd. Digits and separators have one parse only, so there is no
# backtracking; the original tries every way to split digits into numbers.
_NUMBERED_REFERENCE = re.compile(
    r"(?<=[^\d\s])(\.|∯)((\[(\d+(?:,(?:\s?-\s?|\s{0,2})|\s?-\s?|\s{1,2}))*\d{1,3}\])+"
    r"|((\d{1,3}\s?)?\d{1,3}))(\s)(?=[A-Z])"
)
_CONTINUOUS_PUNCTUATION = re.compile(r"(?<=\S)[!?]{3,}+(?=\s|\Z)")
_EXCLAMATION_WORDS = re.compile(ExclamationWords.EXCLAMATION_REGEX)
_DOUBLE = re.compile(Standard.DoublePunctuationRules.DoublePunctuation)
_QUESTION_MARK_IN_QUOTES = re.compile(r"\?(?=['\"])")
_EXCLAMATION_MARK_INSIDE = re.compile(r"!(?=['\"]|,?\s[a-z])")
_ROMAN = re.compile(ListItemReplacer.ROMAN_NUMERALS_IN_PARENTHESES)
_LAST_EXCLAMATION_MARK = re.compile(r"&ᓴ&$")
_QUOTE_AT_END = re.compile(Common.QUOTATION_AT_END_OF_SENTENCE_REGEX)
_SPLIT_AT_QUOTE = re.compile(Common.SPLIT_SPACE_QUOTATION_AT_END_OF_SENTENCE_REGEX)


class FastProcessor(Processor):  # type: ignore[misc]
    """The order of pysbd's steps."""

    text: str

    def process(self) -> list[str]:
        self.text = self.text.replace("\n", "\r")
        if _may_have_list(self.text):
            self.text = ListItemReplacer(self.text).add_line_break()
        self.replace_abbreviations()
        self.replace_numbers()
        self.replace_continuous_punctuation()
        self.replace_periods_before_numeric_references()
        if _STOP_BEFORE_LETTER.search(self.text):
            self.text = _STOP_IN_WORD.sub("\\1∮\\3", self.text)
        if "°." in self.text:
            self.text = Text(self.text).apply(self.lang.GeoLocationRule)
        if _STOP_AFTER_SPACE.search(self.text):
            self.text = Text(self.text).apply(self.lang.FileFormatRule)
        found: list[str] = self.split_into_segments()
        return found

    def replace_continuous_punctuation(self) -> None:
        if "!" in self.text or "?" in self.text:
            self.text = _CONTINUOUS_PUNCTUATION.sub(marks.marked, self.text)

    def replace_periods_before_numeric_references(self) -> None:
        if _STOP_BEFORE_REFERENCE.search(self.text) or ".[" in self.text:
            self.text = _NUMBERED_REFERENCE.sub(r"∯\2\r\7", self.text)

    def check_for_parens_between_quotes(self) -> None:
        if "(" in self.text and ('"' in self.text or "”" in self.text):
            super().check_for_parens_between_quotes()

    def split_into_segments(self) -> list[str]:
        self.check_for_parens_between_quotes()
        found: list[str] = []
        for line in self.text.split("\r"):
            if line:
                for sentence in self.check_for_punctuation(self._without_ellipses(line)):
                    found += self._restored(sentence)
        return found

    def _without_ellipses(self, line: str) -> str:
        if "\n" in line:
            line = Text(line).apply(self.lang.SingleNewLineRule)
        if ".." in line or _SPACED_STOPS.search(line):
            line = Text(line).apply(*self.lang.EllipsisRules.All)
        return line

    def process_text(self, txt: str) -> list[str]:
        if txt[-1] not in self.lang.Punctuations:
            txt += "ȸ"
        if "!" in txt:
            txt = _EXCLAMATION_WORDS.sub(marks.unpunctuated, txt)
        txt = self.between_punctuation(txt)
        if "!" in txt or "?" in txt:
            if not _DOUBLE.match(txt):
                txt = txt.replace("?!", "☉").replace("!?", "☈")
                txt = txt.replace("??", "☇").replace("!!", "☄")
            txt = _QUESTION_MARK_IN_QUOTES.sub("&ᓷ&", txt)
            txt = _EXCLAMATION_MARK_INSIDE.sub("&ᓴ&", txt)
        if "(" in txt:
            txt = _ROMAN.sub(r"&✂&\1&⌬&", txt)
        found: list[str] = self.sentence_boundary_punctuation(txt)
        return found

    def sentence_boundary_punctuation(self, txt: str) -> list[str]:
        for name in ("ReplaceColonBetweenNumbersRule", "ReplaceNonSentenceBoundaryCommaRule"):
            if rule := getattr(self.lang, name, None):
                txt = Text(txt).apply(rule)
        if "&ᓴ&" in txt:
            txt = _LAST_EXCLAMATION_MARK.sub("!", txt)
        return [match.group() for match in self.lang.boundaries.finditer(txt)]

    def _restored(self, sentence: str) -> list[str]:
        """The sentences of a segment, with the characters that pysbd's marks stand for."""
        has_ampersand = "&" in sentence
        if has_ampersand:
            sentence = marks.replaced(sentence, marks.MARKS_BETWEEN_AMPERSANDS)
        if not sentence.isascii():
            sentence = marks.replaced(sentence, marks.SINGLE_MARKS)
        if _QUOTE_AT_END.search(sentence):
            found = _SPLIT_AT_QUOTE.split(sentence)
        else:
            stripped = sentence.replace("\n", "").strip()
            found = [stripped] if stripped else []
        return [one.replace("&⎋&", "'") for one in found] if has_ampersand else found


def _may_have_list(text: str) -> bool:
    """Whether a text has two list items of a kind; the rules for lists change no other text."""
    spaced = f" {text}"
    return len(_ITEM_WITH_STOP.findall(spaced)) > 1 or len(_ITEM_WITH_BRACKET.findall(spaced)) > 1

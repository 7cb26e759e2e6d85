"""pysbd's rules in fewer and faster passes over a text; the sentences are pysbd's own.

pysbd applies about a hundred patterns one after another to the text, its lines and its sentences.
Most of them cannot apply: a rule about brackets needs a bracket. Here a pattern runs only where the
text has the characters that it needs, a pattern about a full stop begins with the full stop, and
rules that cannot affect each other share a pass. Where a pattern is exponential or quadratic in
hostile text, an equivalent replaces it: see `sentence_splitter`.

Each class is put between pysbd's class for a language and pysbd's base class. So the methods that a
language overrides stay its own.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

for _category in (SyntaxWarning, DeprecationWarning):  # its old escapes break -W error
    warnings.filterwarnings("ignore", category=_category, module=r".*\bpysbd\b")

from pysbd.abbreviation_replacer import AbbreviationReplacer  # noqa: E402
from pysbd.between_punctuation import BetweenPunctuation  # noqa: E402
from pysbd.exclamation_words import ExclamationWords  # noqa: E402
from pysbd.lang.common import Common, Standard  # noqa: E402
from pysbd.languages import LANGUAGE_CODES  # noqa: E402
from pysbd.lists_item_replacer import ListItemReplacer  # noqa: E402
from pysbd.processor import Processor  # noqa: E402
from pysbd.utils import Rule, Text  # noqa: E402

LANGUAGES = frozenset(LANGUAGE_CODES)
"""The codes of the languages that pysbd knows."""
_STOP = "∯"
"""pysbd's mark of a full stop that ends no sentence."""

# Lists. Two items of a kind make a list; the text begins with a space.
_ITEM_WITH_STOP = re.compile(
    r"\.(?:(?<=\s[a-z]\.)|(?:(?<=[\s\-⁃]\d\.)|(?<=[\s\-⁃]\d\d\.))(?=[\s)]))"
)
_ITEM_WITH_BRACKET = re.compile(r"\)(?:(?<=[\s(][a-z]\))|(?<=[ivx][ivx]\))|(?<=\d\))(?=\s))")

# Full stops. Each pattern replaces the full stop alone, whatever the others replace.
_AFTER_LETTER = re.compile(r"\.(?:(?<=^[A-Z]\.)(?=\s)|(?<=\s[A-Z]\.)(?=,?\s))")
_BY_NUMBER = re.compile(
    r"\.(?:(?=\d)|(?<=\d\.)(?=\S)"
    r"|(?:(?<=\r\d\.)|(?<=^\d\.)|(?<=^\d\d\.))(?=\s\S|\)))"
)
_SEVERAL_STOPS = re.compile(Common.MULTI_PERIOD_ABBREVIATION_REGEX, re.IGNORECASE)
_LETTER_BETWEEN_STOPS = re.compile(r"\.[a-z]\.", re.IGNORECASE)
_STOP_BEFORE_LETTER = re.compile(r"\.(?=[a-zA-Z0-9_])")
_STOP_IN_WORD = re.compile(Standard.Abbreviation.WithMultiplePeriodsAndEmailRule.pattern)
_STOP_AFTER_SPACE = re.compile(r"\.(?<=\s\.)")
_SPACED_STOPS = re.compile(r"\.\s\.")
_STOP_BEFORE_REFERENCE = re.compile(r"∯[\[\d]")
_STOP_BEFORE_STARTER = re.compile(r"∯(?<=[SKUAIVv]∯)")
_BOUNDARY = r"(U∯S|U\.S|U∯K|E∯U|E\.U|U∯S∯A|U\.S\.A|I|i.v|I.V)∯({})"

# Group numbers are those of pysbd. Digits and separators have one parse only, so there is no
# backtracking; the original tries every way to split digits into numbers.
_NUMBERED_REFERENCE = re.compile(
    r"(?<=[^\d\s])(\.|∯)((\[(\d+(?:,(?:\s?-\s?|\s{0,2})|\s?-\s?|\s{1,2}))*\d{1,3}\])+"
    r"|((\d{1,3}\s?)?\d{1,3}))(\s)(?=[A-Z])"
)
_CONTINUOUS_PUNCTUATION = re.compile(r"(?<=\S)[!?]{3,}+(?=\s|\Z)")
_BRACKETS_BETWEEN_QUOTES = re.compile(Common.PARENS_BETWEEN_DOUBLE_QUOTES_REGEX)
_EXCLAMATION_WORDS = re.compile(ExclamationWords.EXCLAMATION_REGEX)
_DOUBLE = re.compile(Standard.DoublePunctuationRules.DoublePunctuation)
_QUESTION_MARK_IN_QUOTES = re.compile(r"\?(?=['\"])")
_EXCLAMATION_MARK_INSIDE = re.compile(r"!(?=['\"]|,?\s[a-z])")
_ROMAN = re.compile(ListItemReplacer.ROMAN_NUMERALS_IN_PARENTHESES)
_LAST_EXCLAMATION_MARK = re.compile(r"&ᓴ&$")
_QUOTE_AT_END = re.compile(Common.QUOTATION_AT_END_OF_SENTENCE_REGEX)
_SPLIT_AT_QUOTE = re.compile(Common.SPLIT_SPACE_QUOTATION_AT_END_OF_SENTENCE_REGEX)

_ENDS = "。．.！!?？ȸȹ☉☈☇☄"
_TO_NEXT_END = (rf"\S.*?[{_ENDS}]", rf"\S[^\n{_ENDS}]*+[{_ENDS}]")
"""The slowest part of pysbd's pattern for sentences, and its equivalent."""

_PUNCTUATION = str.maketrans(
    {".": _STOP, "。": "&ᓰ&", "．": "&ᓱ&", "！": "&ᓳ&", "!": "&ᓴ&", "?": "&ᓷ&", "？": "&ᓸ&"}
)
_PUNCTUATION_AND_QUOTES = {**_PUNCTUATION, ord("'"): "&⎋&"}
_MARKS = [(rule.pattern, rule.replacement) for rule in Standard.SubSymbolsRules.All]
_MARKS_BETWEEN_AMPERSANDS = [one for one in _MARKS if one[0].startswith("&")]
_SINGLE_MARKS = [
    *(one for one in _MARKS if not one[0].startswith("&")),
    *((rule.pattern, rule.replacement) for rule in Standard.ReinsertEllipsisRules.All),
]
_CASELESS = re.compile("[\u0130\u0131\u017f\u212a]")
"""Letters that equal an ASCII letter in a pattern without case, but not in lower case."""


@cache
def language(code: str) -> Any:
    """pysbd's rules for a language, in fewer passes."""
    rules = LANGUAGE_CODES[code]
    boundaries = rules.SENTENCE_BOUNDARY_REGEX.replace(*_TO_NEXT_END)
    changed: dict[str, Any] = {
        "Processor": _between(rules, "Processor", Processor, _Processor),
        "BetweenPunctuation": _between(rules, "BetweenPunctuation", BetweenPunctuation, _Quotes),
        "AbbreviationReplacer": _between(
            rules, "AbbreviationReplacer", AbbreviationReplacer, _Abbreviations
        ),
        "boundaries": re.compile(boundaries),
    }
    numbers = Common.Numbers.All
    if rules.Numbers.All[: len(numbers)] == numbers:
        own = rules.Numbers.All[len(numbers) :]
        changed["Numbers"] = type("Numbers", (), {"All": [Rule(_BY_NUMBER, _STOP), *own]})
    return type(rules.__name__, (rules,), changed)


def split(text: str, code: str) -> list[str]:
    """The sentences of a text as pysbd finds them, not stripped."""
    rules = language(code)
    return list(rules.Processor(text, rules).process())  # of an empty text, pysbd's Slovak is text


def _between(rules: Any, name: str, base: type, ours: type) -> type:
    own = getattr(rules, name, base)
    return ours if own is base else type(name, (own, ours), {})


class _Processor(Processor):  # type: ignore[misc]
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
            self.text = _CONTINUOUS_PUNCTUATION.sub(_marked, self.text)

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
            txt = _EXCLAMATION_WORDS.sub(_unpunctuated, txt)
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
            sentence = _replaced(sentence, _MARKS_BETWEEN_AMPERSANDS)
        if not sentence.isascii():
            sentence = _replaced(sentence, _SINGLE_MARKS)
        if _QUOTE_AT_END.search(sentence):
            found = _SPLIT_AT_QUOTE.split(sentence)
        else:
            stripped = sentence.replace("\n", "").strip()
            found = [stripped] if stripped else []
        return [one.replace("&⎋&", "'") for one in found] if has_ampersand else found


class _Abbreviations(AbbreviationReplacer):  # type: ignore[misc]
    """Full stops of abbreviations."""

    text: str

    def replace(self) -> str:
        text, lang = self.text, self.lang
        if "." in text:
            if ".'s" in text:
                text = Text(text).apply(lang.PossessiveAbbreviationRule)
            if "Co." in text:
                text = Text(text).apply(lang.KommanditgesellschaftRule)
            text = _AFTER_LETTER.sub(_STOP, text)
            lines = text.splitlines(keepends=True)
            text = "".join(map(self.search_for_abbreviations_in_string, lines))
            if _LETTER_BETWEEN_STOPS.search(text):
                text = _SEVERAL_STOPS.sub(lambda match: match.group().replace(".", _STOP), text)
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
        found = set()
        for token in [one for one in text.split() if "." in one]:
            end = token.find(".")
            while end >= 0:
                before = token[:end]
                found |= {(place, before) for place in known.places.get(before.lower(), ())}
                end = token.find(".", end + 1)
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
        return cls.scan_for_replacements is _Abbreviations.scan_for_replacements and (
            cls.replace_period_of_abbr is _Abbreviations.replace_period_of_abbr
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


class _Quotes(BetweenPunctuation):  # type: ignore[misc]
    """Punctuation between quotes, brackets and dashes."""

    def sub_punctuation_between_single_quotes(self, txt: str) -> str:
        if "'" not in txt or not _SPACE_BEFORE_QUOTE.search(txt):
            return txt
        if _LEADING_APOSTROPHE.search(txt) and not _QUOTE_BEFORE_SPACE.search(txt):
            return txt
        unpunctuated = partial(_unpunctuated, table=_PUNCTUATION)
        return _BETWEEN_SINGLE_QUOTES.sub(unpunctuated, txt)


_SPACE_BEFORE_QUOTE = re.compile(r"'(?<=\s')")
_QUOTE_BEFORE_SPACE = re.compile(r"'\s")
_LEADING_APOSTROPHE = re.compile(BetweenPunctuation.WORD_WITH_LEADING_APOSTROPHE)
_BETWEEN_SINGLE_QUOTES = re.compile(BetweenPunctuation.BETWEEN_SINGLE_QUOTES_REGEX)


def _rule_between(mark: str, pattern: str) -> Callable[[Any, str], str]:
    """A method that replaces punctuation in the matches of a pattern, which needs the mark."""
    between = re.compile(pattern)

    def method(self: Any, txt: str) -> str:
        return between.sub(_unpunctuated, txt) if mark in txt else txt

    return method


for _name, _mark, _pattern in (
    ("single_quote_slanted", "‘", "BETWEEN_SINGLE_QUOTE_SLANTED_REGEX"),
    ("double_quotes", '"', "BETWEEN_DOUBLE_QUOTES_REGEX_2"),
    ("square_brackets", "[", "BETWEEN_SQUARE_BRACKETS_REGEX_2"),
    ("parens", "(", "BETWEEN_PARENS_REGEX_2"),
    ("quotes_arrow", "«", "BETWEEN_QUOTE_ARROW_REGEX_2"),
    ("em_dashes", "--", "BETWEEN_EM_DASHES_REGEX_2"),
    ("quotes_slanted", "“", "BETWEEN_QUOTE_SLANTED_REGEX_2"),
):
    _method = _rule_between(_mark, getattr(BetweenPunctuation, _pattern))
    setattr(_Quotes, f"sub_punctuation_between_{_name}", _method)


def _may_have_list(text: str) -> bool:
    """Whether a text has two list items of a kind; the rules for lists change no other text."""
    spaced = f" {text}"
    return len(_ITEM_WITH_STOP.findall(spaced)) > 1 or len(_ITEM_WITH_BRACKET.findall(spaced)) > 1


def _marked(match: re.Match[str]) -> str:
    return match.group().replace("!", "&ᓴ&").replace("?", "&ᓷ&")


def _unpunctuated(match: re.Match[str], table: dict[int, str] = _PUNCTUATION_AND_QUOTES) -> str:
    """pysbd's replace_punctuation. Its escapes of brackets cancel each other."""
    return match.group().translate(table)


def _replaced(text: str, marks: list[tuple[str, str]]) -> str:
    for mark, replacement in marks:
        text = text.replace(mark, replacement)
    return text


def _replaced_after(text: str, pattern: str, following: str) -> str:
    """The text with each full stop replaced that is between a word's pattern and `following`."""
    return _stop_after(pattern, following).sub(_STOP, f" {text}")[1:]


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

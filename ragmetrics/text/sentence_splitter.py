"""Splits logged text into sentences, and normalises questions.

pysbd splits well, but is not safe for untrusted text. Its hazards, and the measures taken:

    .[1, 2, 3, ... 19 and more    a pattern exponential in the digits: replaced by an equivalent
    !!!!!!!!!!!! ...              a slow quadratic pattern: replaced by an equivalent
    hundreds of abbreviations     quadratic: each distinct one is replaced once, same result
    a) b) a) b) ..., 1. 2. ...    cubic in the list items: the plain splitter if they are many
    [ [ [ ..., " ( " ( ...        quadratic: the length of a call of pysbd is bounded
    its own marks, such as ∯      text changed or lost: detected, then the plain splitter
    ten million characters        a minute, with lists ten: the plain splitter above a million

No limit is a time: the same text gives the same sentences on every machine.

The plain splitter works by rules in linear time. Like pysbd it ends a sentence at every line break.
It knows the full stops of many scripts, and does not split decimals, initials, list numbers and a
few dozen common abbreviations.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import pysbd_fast
from ragmetrics.text.sized_cache import SizedCache

_NEED_SPACE = ".!?…．"
_NEED_NO_SPACE = "。！？｡؟۔।॥։።፧။።"
_STOP = re.compile(rf"([{_NEED_SPACE}{_NEED_NO_SPACE}]+)[\"'”’»›)\]}}）】〉》」』]*")
_NEXT_WORD = re.compile(r"""[\s"'“‘„«‹(\[{¿¡]*(.?)""")
_LONGEST_WORD = 12  # how far to look back for an abbreviation

_ABBREVIATIONS = frozenset(  # those before a capital; before a small letter none is needed
    "dr mr mrs ms sr prof st mt gen col lt sgt capt rev hon gov sen rep messrs vs cf viz "  # noqa: SIM905
    "exmo doç sn ing dipl bzw ca vgl hr fr frau bl sog mag mme mlle mgr sra srta dra dña av "
    "dott sig гр им ул стр рис см bl.a t.ex dvs mgl".split()
)
_BEFORE_NUMBERS = frozenset(
    "no nr nos fig p pp vol art sec ch eq abb ref č čl ст гл".split()  # noqa: SIM905
)


def plain_sentences(text: str) -> list[str]:
    """The sentences of a text in order, stripped and not empty, without loss of characters."""
    lines = text.replace("\r", "\n").split("\n")
    return [sentence for line in lines for raw in _cut(line) if (sentence := raw.strip())]


def _cut(line: str) -> list[str]:
    """The sentences of a line; a part without a letter or digit joins the one before it."""
    ends = [match.end() for match in _STOP.finditer(line) if _ends(line, match)]
    bounds: list[tuple[int, int]] = []
    begin = 0
    for end in (*ends, len(line)):
        bare = not any(map(str.isalnum, line[begin:end]))
        bounds.append((bounds.pop()[0] if bare and bounds else begin, end))
        begin = end
    return [line[first:last] for first, last in bounds]


def _ends(line: str, match: re.Match[str]) -> bool:
    """Whether this full stop ends its sentence."""
    stop = match[1]
    if any(mark in _NEED_NO_SPACE for mark in stop):
        return True
    if match.end() < len(line) and not line[match.end()].isspace():
        return False  # 3.5, example.org
    following = _NEXT_WORD.match(line, match.end())
    first = following[1] if following else ""
    return not first.islower() and not (stop == "." and _abbreviates(line, match.start(), first))


def _abbreviates(line: str, stop: int, first: str) -> bool:
    """Whether the full stop belongs to the word before it; `first` begins the next word."""
    before = line[max(0, stop - _LONGEST_WORD) : stop].strip()
    if stop <= _LONGEST_WORD and before.isdigit() and len(before) < 4:
        return True  # the number of a list item
    word = before.split()[-1].lstrip("\"'“‘„«‹([{") if before else ""
    initials = word.split(".")
    if all(len(part) == 1 and part.isalpha() for part in initials):
        return len(initials) > 1 or word.isupper()  # J.R.R. Tolkien, e.g., L. A. Mayer
    folded = word.casefold()
    return folded in _ABBREVIATIONS or (first.isdigit() and folded in _BEFORE_NUMBERS)


_LONGEST = 8_000  # characters per call of pysbd; bounds its quadratic patterns
_LIST_BUDGET = 500_000_000  # steps; about half a second
_TEXT_BUDGET = 1_000_000  # characters of prose per text for pysbd; about 6 seconds
_CACHE_BYTES = 32 * 1024 * 1024

_STEPS_PER_CHARACTER = 2_000  # steps over lists that count as one character of prose
_STEPS_PER_MICROSECOND = 300  # over lists
_LITTLE = 10_000  # microseconds that need no closer estimate

_LIST_ITEM = re.compile(
    r"(?<![^\s(])(?:[a-z][.)]|[ivx]{2,5}\))"  # a. a) (iv)
    r"|(?<![^\s\-⁃])\d{1,2}\.[\s)]|\d\)\s"  # 1. 2.) 3)
)
_LIST_MARK = re.compile("[∯♨☝]")  # pysbd's own marks, which would bypass the budget


Key = tuple[str, str]
"""pysbd's code of a language, and a text."""


class Split(NamedTuple):
    """The sentences of a text."""

    sentences: tuple[str, ...]
    reason: str | None
    """Why the plain splitter was used, if it was."""


class SplitCounter:
    """Counts the distinct texts that a piece of work needs, also those split before."""

    def __init__(self) -> None:
        self._texts: dict[str, set[int]] = {}

    def note(self, text: tuple[str, str], reason: str | None) -> None:
        """Count a text in a language; `reason` is why the plain splitter was used, if it was."""
        self._texts.setdefault(reason or "", set()).add(hash(text))

    def counts(self) -> dict[str, int]:
        """Texts by reason, in alphabetical order; those that pysbd split have an empty one."""
        return {reason: len(texts) for reason, texts in sorted(self._texts.items())}


_counter: ContextVar[SplitCounter | None] = ContextVar("split_counter", default=None)


@contextmanager
def counting_splits() -> Iterator[SplitCounter]:
    """Count the texts split inside, in this thread and its asyncio tasks.

    The counts do not depend on texts split before or concurrently.
    """
    counter = SplitCounter()
    token = _counter.set(counter)
    try:
        yield counter
    finally:
        _counter.reset(token)


def sentences(text: str | None, language: str | None = None) -> tuple[str, ...]:
    """The sentences of a text in order, stripped, without empty ones.

    `language` is a tag such as `de-AT`; without one the text is read as English.
    """
    if not text or text.isspace():
        return ()
    key = (_code(language), text)
    split = _found(key)
    if counter := _counter.get():
        counter.note(key, split.reason)
    return split.sentences


def weight(texts: Iterable[str]) -> int:
    """Upper bound of the work to split texts, in microseconds of a usual processor.

    A character of prose takes up to half a microsecond, lists take more.
    """
    return sum(len(text) // 2 + _list_time(text) for text in texts)


def normalise(text: str) -> str:
    """A question without differences of case, width, spaces and final punctuation."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split()).rstrip("?!.؟。！？ ")


class _UnfitError(Exception):
    """pysbd cannot split this text, or split it badly; the message is the counted reason."""


_recent: SizedCache[Key, Split] = SizedCache(_CACHE_BYTES)


def _found(key: Key) -> Split:
    """The sentences of a text, from the cache if this process has split it lately."""
    split = _recent.get(key)
    if split is None:
        split = _split(key[1], key[0])
        _recent.put(key, split, sum(map(sys.getsizeof, (key[1], split, *split.sentences))))
    return split


def _code(language: str | None) -> str:
    """pysbd's code for a BCP-47 tag: its first part, in lower case."""
    return (language or "").strip().replace("_", "-").split("-")[0].lower() or "en"


def _split(text: str, code: str) -> Split:
    if code not in pysbd_fast.LANGUAGES:
        return Split(tuple(plain_sentences(text)), "language")
    sentences_of: list[str] = []
    reason = None
    left = _TEXT_BUDGET
    is_small = _is_small(text)
    for piece in _pieces(text):
        try:
            left -= _work(piece) if left > 0 and not is_small else 0
            if left <= 0:
                raise _UnfitError("beyond the budget of a text")
            sentences_of += _by_pysbd(piece, code)
        except _UnfitError as unfit:
            reason = reason or str(unfit)
            sentences_of += plain_sentences(piece)
    return Split(tuple(sentences_of), reason)


def _is_small(text: str) -> bool:
    """True for most texts: they are within all limits, however many list items they have."""
    small = len(text) <= _LONGEST and _most_steps(text) <= _LIST_BUDGET
    return small and not _LIST_MARK.search(text)


def _pieces(text: str) -> list[str]:
    """A long text in pieces of whole lines: pysbd ends sentences at line breaks."""
    if len(text) <= _LONGEST:
        return [text]
    pieces: list[list[str]] = [[]]
    size = 0
    for line in text.replace("\r", "\n").split("\n"):
        if size + len(line) > _LONGEST:
            pieces.append([])
            size = 0
        pieces[-1].append(line)
        size += len(line) + 1
    return ["\n".join(lines) for lines in pieces]


def _work(text: str) -> int:
    """Work of pysbd for a piece, in characters of prose. Raises _UnfitError if it is unfit."""
    if len(text) > _LONGEST:
        raise _UnfitError("too long")
    steps = _list_cost(text)
    if _LIST_MARK.search(text) or steps > _LIST_BUDGET:
        raise _UnfitError("unsafe pattern")
    return len(text) + steps // _STEPS_PER_CHARACTER


def _by_pysbd(text: str, code: str) -> list[str]:
    try:
        pieces = pysbd_fast.split(text, code)
    except (re.error, IndexError, ValueError) as error:  # unescaped patterns, odd digits
        raise _UnfitError("error") from error
    if "".join("".join(pieces).split()) != "".join(text.split()):
        raise _UnfitError("lost text")
    return [sentence for raw in pieces if (sentence := raw.strip())]


def _list_cost(text: str) -> int:
    """Most steps of pysbd for lists: for each item it reads every later line.

    Each lettered item adds a line break before all items of its letter.
    """
    items: list[str] = _LIST_ITEM.findall(text)
    lettered = sum(item[0].isalpha() and item[-1] == ")" for item in items)
    lines = 1 + text.count("\n") + text.count("\r") + lettered**2 // 2
    return len(items) * (len(items) + lines) * len(text)


def _list_time(text: str) -> int:
    """Upper bound of the microseconds for lists."""
    most = _most_steps(text) // _STEPS_PER_MICROSECOND
    return most if most <= _LITTLE else _list_cost(text) // _STEPS_PER_MICROSECOND


def _most_steps(text: str) -> int:
    """A cheap upper bound for lists: every item has a full stop or a bracket."""
    brackets = text.count(")")
    items = text.count(".") + brackets
    lines = 1 + text.count("\n") + text.count("\r") + brackets**2 // 2
    return items * (items + lines) * len(text)

"""Logged text, cut to what a page can bear, with some of its sentences marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import escape

from ragmetrics.report.formatting import LONGEST, clean
from ragmetrics.text import sentences

_LONGEST_SPLIT = 50_000
"""Characters up to which a text is split again to find its sentences."""
_LEAST = 160
_MARKUP = 600
"""About what the markup around one text weighs, in bytes."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """A stretch of text that is marked as a whole, or not at all."""

    text: str
    marked: bool


@dataclass(frozen=True)
class MarkedText:
    """A text as it is shown."""

    pieces: tuple[Piece, ...]
    shown: int
    length: int
    marks_beyond: int = 0
    """Marked sentences that lie beyond the cut."""

    @property
    def note(self) -> str:
        """What was left out, in words."""
        if self.shown == self.length:
            return ""
        text = f"Cut: the first {self.shown:,} of {self.length:,} characters"
        if self.marks_beyond:
            text += f"; needed sentences beyond the cut: {self.marks_beyond}"
        return text + "."


@dataclass
class TextBudget:
    """Bytes that the texts of one row may take, so that a page stays small."""

    left: int

    @property
    def empty(self) -> bool:
        """Whether no further text should be begun."""
        return self.left <= 0

    def passage(self, text: str, marked: Sequence[Span] = (), longest: int = LONGEST) -> MarkedText:
        """The text, cut to so many characters and to what is left; never to nothing."""
        length = self._fit(text, longest)
        pieces = []
        place = 0
        for start, end in (*marked, (len(text), len(text))):
            for stop, mark in ((start, False), (end, True)):
                if place < min(stop, length):
                    pieces.append(Piece(text[place : min(stop, length)], mark))
                place = max(place, min(stop, length))
        beyond = sum(start >= length for start, _ in marked)
        return MarkedText(tuple(pieces), length, len(text), beyond)

    def _fit(self, text: str, longest: int) -> int:
        length = min(len(text), longest)
        size = _weight(text[:length])
        while size > self.left and length > _LEAST:
            length = max(_LEAST, min(length - 1, length * max(self.left, 0) // size))
            size = _weight(text[:length])
        self.left -= size + _MARKUP
        return length


def spans(text: str, language: str | None, wanted: Sequence[int]) -> list[Span]:
    """Where the wanted sentences stand in the text; nowhere if they do not fit it."""
    if not wanted or len(text) > _LONGEST_SPLIT:
        return []
    found: list[Span] = []
    place = 0
    for sentence in sentences(text, language):
        start = text.find(sentence, place)
        if start < 0:
            return []
        place = start + len(sentence)
        found.append((start, place))
    if not all(0 <= index < len(found) for index in wanted):
        return []
    return [found[index] for index in sorted(set(wanted))]


def _weight(text: str) -> int:
    return len(str(escape(clean(text))).encode())

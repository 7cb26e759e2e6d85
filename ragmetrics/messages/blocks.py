"""The neutral blocks of a message: what it says. A format decides how that looks.

Texts are as they were logged: each format escapes them. `Quote` marks a text of a log inside a
line, for formats that set it apart. A line is cut where it is made, by `clean`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

LISTED = 10
"""Most lines of a list,"""
LIST_LENGTH = 1_200
"""and most characters of all of them."""


class Quote(str):
    """A text of a log inside a line."""

    __slots__ = ()


class Place(Quote):
    """A text of a log that leads to a part of the page, where a format can show that."""

    target = ""

    def __new__(cls, text: str, target: str) -> Place:
        """A text with its target, such as `#tag-section`; empty: there is none."""
        place = super().__new__(cls, text)
        place.target = target
        return place


Text: TypeAlias = str | tuple[str, ...]
"""One line, or its pieces."""


@dataclass(frozen=True)
class Header:
    """The headline."""

    text: Text
    kind: Literal["header"] = "header"


@dataclass(frozen=True)
class Note:
    """A line of small print."""

    text: Text
    kind: Literal["note"] = "note"


@dataclass(frozen=True)
class Section:
    """A paragraph: a title, which `beside` follows on its line, then lines, then facts."""

    title: Text = ""
    beside: Text = ""
    lines: tuple[Text, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Labels and values; a value may have several lines."""
    kind: Literal["section"] = "section"


@dataclass(frozen=True)
class Bullets:
    """A list. `more` lines are left out, which are on `page` where a browser can open that."""

    title: Text
    lines: tuple[Text, ...]
    more: int = 0
    page: str = ""
    folded: bool = False
    """Whether readers may want to open it first, where a format can fold it."""
    kind: Literal["bullets"] = "bullets"


@dataclass(frozen=True)
class Table:
    """Rows of cells below their headers. The first column is of names, as are those in `names`;
    the others are of numbers.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[Text, ...], ...]
    names: tuple[int, ...] = (0,)
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class Links:
    """Places by their names: links where a browser can open them, else texts to copy."""

    targets: tuple[tuple[str, str], ...]
    kind: Literal["links"] = "links"


Block: TypeAlias = Annotated[
    Header | Note | Section | Bullets | Table | Links, Field(discriminator="kind")
]


def text_of(text: Text) -> str:
    """A line in one piece."""
    return text if isinstance(text, str) else "".join(text)


def bullets(
    title: str,
    lines: Iterable[Text],
    page: str | None = None,
    *,
    most: int = LISTED,
    room: int = LIST_LENGTH,
) -> list[Block]:
    """A list as long as people read; none where there is no line."""
    lines = list(lines)
    shown, taken = list[Text](), len(f"*{title}*")
    for line in lines[:most]:
        if taken + len(text_of(line)) > room:
            break
        shown.append(line)
        taken += len(f"\n• {text_of(line)}")
    more = len(lines) - len(shown)
    return [Bullets(title, tuple(shown), more=more, page=page or "")] if lines else []


def links(targets: Iterable[tuple[str, str | None]]) -> list[Block]:
    """Links to the places that there are."""
    known = tuple((name, target) for name, target in targets if target)
    return [Links(known)] if known else []


def table(
    title: str, headers: Sequence[str], rows: Iterable[Sequence[Text]], names: Sequence[int] = (0,)
) -> list[Block]:
    """A table; none where there is no row."""
    cells = tuple(map(tuple, rows))
    return [Table(title, tuple(headers), cells, tuple(names))] if cells else []


__all__ = [
    "Block",
    "Bullets",
    "Header",
    "Links",
    "Note",
    "Place",
    "Quote",
    "Section",
    "Table",
    "Text",
    "bullets",
    "links",
    "table",
    "text_of",
]

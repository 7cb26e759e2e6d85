"""Pages of a site as files: what they say, and of which elements they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from ragmetrics.dashboard.row_selection import KeptRow
from ragmetrics.records import Manifest
from ragmetrics.storage import Files
from tests.fakes.nights import FIRST, as_worst, night
from tests.fakes.page_writing import write_night, write_overview


class Site:
    """A site in a folder, with what its pages hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = Files(str(folder))

    def night(self, manifest: Manifest, rows: Sequence[KeptRow] = (), *earlier: Manifest) -> str:
        """Write a night; return its page."""
        return self.html(write_night(self.files, manifest, earlier, rows))

    def overview(self, *nights: Manifest) -> str:
        """Write the overview; return it."""
        return self.html(write_overview(self.files, nights))

    def rows(self, *rows: KeptRow) -> str:
        """The page of the rows of a night whose worst are these."""
        placed = [replace(one, place=(0, at)) for at, one in enumerate(rows)]
        self.night(night(worst=as_worst(*placed)), placed)
        return self.html(f"{FIRST}/rows.html")

    def html(self, path: str) -> str:
        """A page that was written."""
        return self.files.read(path).decode()


class Outline(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.pieces: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note a piece of text."""
        self.pieces.append(data)

    @property
    def tags(self) -> list[str]:
        """The elements by name, without the places where a long name may wrap."""
        return [tag for tag, _ in self.elements if tag != "wbr"]

    @property
    def text(self) -> str:
        """The words of the page, with single spaces."""
        return " ".join("".join(self.pieces).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of this name."""
        return [attributes for name, attributes in self.elements if name == tag]


def text(html: str) -> str:
    """The words of a page."""
    return Outline(html).text

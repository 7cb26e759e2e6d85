"""What a page is: one file with its words, its place in the navigation and its sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Literal, TypeAlias

from ragmetrics.comparison import LoadScores, cached_load, compare_with_night_before, night_before
from ragmetrics.dashboard.question_history import QuestionHistory
from ragmetrics.dashboard.redacting import redacted, redacted_history, redacted_row
from ragmetrics.dashboard.render_cache import NO_FILES, RenderCache, StoreSnapshot
from ragmetrics.dashboard.row_loader import load_rows
from ragmetrics.dashboard.row_selection import KeptRow
from ragmetrics.dashboard.templating import render_page
from ragmetrics.people import History
from ragmetrics.plugins import Kind, UnusablePlugin
from ragmetrics.records import Comparison, Manifest
from ragmetrics.scoring import load_scores
from ragmetrics.storage import FileInfo, Files, RunRef, Runs

Scope: TypeAlias = Literal["night", "site", "folder"]
INDEX = "index.html"


@dataclass(frozen=True)
class Shown:
    """What a page may show of a store. Texts are hashes where the settings hide them."""

    files: Files
    """The store. Texts that are read from it are not hidden yet: see `hide`."""
    site: Files
    nights: Sequence[Manifest]
    """The nights, oldest first: the last one complete, of the others an outline. On a page of a
    night, that night is the last one."""
    history: History = field(default_factory=History)
    now: StoreSnapshot = NO_FILES
    folder: str = ""
    """The folder of the pages, such as `2026-11-19/`; empty for those of the site."""
    links: list[tuple[str, str]] = field(default_factory=list)
    """Words and address of the other pages of the folder, which the first page links to."""
    asked: dict[date, QuestionHistory] = field(default_factory=dict)
    """The questions of the nights whose pages were just written, for a page of the site."""

    @property
    def night(self) -> Manifest:
        """The night of the page; on a page of the site, the newest night."""
        return self.nights[-1]

    @property
    def earlier(self) -> Sequence[Manifest]:
        """The nights before, oldest first."""
        return self.nights[:-1]

    @property
    def hide(self) -> bool:
        """Whether texts are hidden, as the newest night says. Its gates may be so in any case."""
        return bool(self.nights) and self.night.redacts

    @property
    def dataset(self) -> str:
        """The name of the data set; empty before the first night."""
        return self.night.dataset if self.nights else ""

    @property
    def cache(self) -> RenderCache:
        """The cache of the pages that show single files of the store."""
        return RenderCache(self.site, (self.dataset, self.hide))

    @cached_property
    def calibrations(self) -> History:
        """The calibrations of judges."""
        return redacted_history(self.history, self.hide)

    @cached_property
    def before(self) -> Manifest | None:
        """The newest night before with which this night compares."""
        return night_before(self.night, self.earlier)

    @cached_property
    def before_in_full(self) -> Manifest | None:
        """The same night with its segments. Raises StoreError."""
        if self.before is None:
            return None
        (night,) = Runs(self.files).in_full([self.before])
        return redacted(night, night.redacts or self.hide)

    @cached_property
    def rows(self) -> Sequence[KeptRow]:
        """The rows of the night to show, with their texts, scores and verdicts; none if they are no
        longer in the store.
        """
        rows = load_rows(self.files, self.night, self.earlier, self.load)
        return [redacted_row(row) for row in rows] if self.hide else rows

    @cached_property
    def comparison(self) -> Comparison | None:
        """The night compared with the one before it; None without one. Raises StoreError."""
        if self.before is None:
            return None
        found = compare_with_night_before(self.files, self.before, self.night, self.load)
        return redacted(found, self.hide) if found else None

    @cached_property
    def load(self) -> LoadScores:
        """Reads the scores of a night in one metric; those of this night and the one before once.
        Raises StoreError.
        """
        files = self.files
        return cached_load(
            lambda night, metric: load_scores(files, RunRef.of(night), metric).moved(night),
            self.night,
            self.before,
        )

    def render(self, template: str, **values: Any) -> bytes:
        """A page from the text of a template that extends `base.html`, or from a bundled template.

        It has the `values`, and as `manifest` the night. All text is escaped.
        """
        if self.nights:
            values = {"manifest": self.night, **values}
        return render_page(template, self.folder.count("/"), dataset=self.dataset, **values)


def _nothing(files: Files, night: date, text: str) -> None:
    """The page shows nothing but nights."""


@dataclass(frozen=True, eq=False)
class Page:
    """One page. Of a night, it is written with that night; of the site, after every night."""

    name: str
    """Its file is `NAME.html`."""
    title: str
    """The words of its links, at most 40 characters."""
    docs: str
    """Docstring of its module: the first sentence is what the documentation says about it."""
    render: Callable[[Shown], bytes | None]
    """The page; None: there is nothing to show, and no link leads to it."""
    scope: Scope = "night"
    """`folder`: also beside a comparison that is written into a folder without a site."""
    place: int | None = 50
    """Its place among the links of the first page, small numbers first. None: no link."""
    link: Callable[[Shown], str] | None = None
    """The words of its link where they depend on the night; empty: no link to it."""
    shows: Callable[[Shown], Sequence[FileInfo]] | None = None
    """The files of the store that it shows: it is only written again when these change."""
    compares: bool = False
    """Whether it only compares the night with earlier ones, so that it is not written again for a
    calibration or a silence that is new."""
    is_first: bool = False
    """Whether it is the first page of its scope, `index.html`, which links to the others."""
    terms: tuple[tuple[str, str], ...] = ()
    """Terms of its own, each with its definition, for the glossary."""
    sample: Callable[[Files, date, str], None] = _nothing
    """Stores what it shows besides nights, for the conformance test; each text is the one given."""

    @property
    def file(self) -> str:
        """Its path below the folder of its night or of the site."""
        return INDEX if self.is_first else f"{self.name}.html"

    @property
    def about(self) -> str:
        """What it shows, in one sentence."""
        return self.docs.strip().partition("\n")[0]

    def words(self, shown: Shown) -> str:
        """The words of the link to it; empty: no link."""
        if self.place is None:
            return ""
        return self.link(shown) if self.link else self.title


def _refusal(page: Page) -> str:
    """Why a page of another package cannot be used: it takes the place of another one."""
    if page.is_first or page.file in _TAKEN:
        return "there is already a page of that name"
    return "" if page.scope in ("night", "site") else f"no such scope: {page.scope}"


_TAKEN = (INDEX, "messages.html", "labelling.html")
PAGES: Kind[Page] = Kind("ragmetrics.pages", "ragmetrics.dashboard.pages", Page, "page", _refusal)


def used_pages() -> Iterator[Page]:
    """The bundled pages, and those of other packages that this process has loaded."""
    for name in PAGES.used_names:
        with suppress(UnusablePlugin):
            yield PAGES.find(name)

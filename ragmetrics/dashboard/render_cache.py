"""When pages are rendered: not if their files are unchanged, and again if the store has changed.

made-of.json    for the pages of gates and calibrations, a digest of the files that they show
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from ragmetrics.dashboard.templating import own_name
from ragmetrics.storage import RUNS, FileInfo, Files
from ragmetrics.version import __version__

MADE_OF = "made-of.json"
_MOST_ROUNDS = 10
_DIGESTS = TypeAdapter(dict[str, str])
T = TypeVar("T")
Beside: TypeAlias = Sequence[str | bool | None]
"""What else a page depends on: the name of the data set, and whether texts are hidden."""


@dataclass(frozen=True)
class RenderCache:
    """The pages of a site with the digests of the files that they show."""

    site: Files
    beside: Beside

    def unless_made(self, page: str, infos: Sequence[FileInfo], write: Callable[[], bool]) -> bool:
        """Write a page unless it shows these very files; return whether there is one.

        A page that was removed is written again.
        """
        known, digest = self._known(), _digest(infos, self.beside)
        if known.get(page) == digest and self.site.exists(page):
            return True
        written = write()
        if written:
            self._save({**self._known(), page: digest})
        return written

    def each_unless_made(
        self, folder: str, pages: Mapping[str, tuple[FileInfo, Callable[[], object]]]
    ) -> None:
        """Write the pages of a folder, each unless it shows this very file."""
        known, there = self._known(), {info.path for info in self.site.below(folder)}
        digests = {page: _digest([info], self.beside) for page, (info, _) in pages.items()}
        todo = [page for page in digests if page not in there or known.get(page) != digests[page]]
        for page in todo:
            _, write = pages[page]
            write()
        if todo:
            self._save({**known, **digests})

    def _save(self, known: Mapping[str, str]) -> None:
        self.site.write(MADE_OF, json.dumps(known, indent=1, sort_keys=True).encode())

    def _known(self) -> Mapping[str, str]:
        data = self.site.find(MADE_OF)
        try:
            return {} if data is None else _DIGESTS.validate_json(data)
        except ValidationError:
            return {}  # damaged: the pages are written again


def _digest(infos: Sequence[FileInfo], beside: Beside) -> str:
    """A digest of the files, of what else the page depends on, and of this version's style."""
    look = [__version__, own_name("css"), own_name("js")]
    listed = [[info.path, info.size, info.version] for info in infos]
    text = json.dumps([look, list(beside), listed])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class StoreSnapshot:
    """The files that pages show, as the store lists them at one moment."""

    runs: Sequence[FileInfo]
    gates: Sequence[FileInfo]
    """Including gates without a verdict."""
    calibrations: Sequence[FileInfo]


NO_FILES = StoreSnapshot([], [], [])


def take_snapshot(files: Files, runs: Sequence[FileInfo] | None = None) -> StoreSnapshot:
    """The files that there are now; `runs` if they are listed already."""
    calibrations = files.below("calibrations")
    return StoreSnapshot(
        runs=files.below(RUNS) if runs is None else runs,
        gates=files.glob("gates/*.json") + files.glob("gates/undecided/*.json"),
        calibrations=[one for one in calibrations if one.path.startswith("calibrations/set=")],
    )


def render_until_stable(
    files: Files, write: Callable[[StoreSnapshot], T], runs: Sequence[FileInfo] | None = None
) -> T:
    """Write pages, and write them again if the store changed meanwhile.

    If two processes write at the same time, the last one has seen what both have saved. `runs` may
    be a little old: files that are newer count as saved meanwhile.
    """
    now = take_snapshot(files, runs)
    for _ in range(_MOST_ROUNDS):
        written = write(now)
        before, now = now, take_snapshot(files)
        if now == before:
            break
    return written

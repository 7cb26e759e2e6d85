"""What the pages of all gates and all calibrations were made of, so that a night that changes none
of it writes none of them anew.

made-of.json
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from ragmetrics.report.templating import own_name
from ragmetrics.storage import RUNS, FileInfo, Files
from ragmetrics.version import __version__

MADE_OF = "made-of.json"
Beside: TypeAlias = Sequence[str | bool | None]
"""What a page depends on beside the files: its data set's name, and whether texts are hidden."""
_DIGESTS = TypeAdapter(dict[str, str])


@dataclass(frozen=True)
class RenderCache:
    """The pages of a site by what they were made of, as digests."""

    site: Files

    def unless_made(
        self,
        page: str,
        infos: Sequence[FileInfo],
        beside: Beside,
        write: Callable[[], str | None],
    ) -> str | None:
        """Write a page, unless it was made of these very files; return its path, if there is one.

        Of no file there is no page. A page that was removed is written again.
        """
        if not infos:
            return None
        known, digest = self._known(), _digest(infos, beside)
        if known.get(page) == digest and self.site.exists(page):
            return page
        written = write()
        if written:
            self._note({**self._known(), page: digest})
        return written

    def each_unless_made(
        self,
        folder: str,
        pages: Mapping[str, tuple[FileInfo, Callable[[], object]]],
        beside: Beside,
    ) -> None:
        """Write the pages of a folder, each unless it was made of this very file."""
        known, there = self._known(), {info.path for info in self.site.below(folder)}
        made = {page: _digest([info], beside) for page, (info, _) in pages.items()}
        todo = [page for page in made if page not in there or known.get(page) != made[page]]
        for page in todo:
            _, write = pages[page]
            write()
        if todo:
            self._note({**known, **made})

    def _note(self, known: Mapping[str, str]) -> None:
        self.site.write(MADE_OF, json.dumps(known, indent=1, sort_keys=True).encode())

    def _known(self) -> Mapping[str, str]:
        data = self.site.find(MADE_OF)
        try:
            return {} if data is None else _DIGESTS.validate_json(data)
        except ValidationError:
            return {}  # damaged: the pages are written again


def _digest(infos: Sequence[FileInfo], beside: Beside) -> str:
    """Of the files, of what the page depends on beside them, and of this version's look."""
    look = [__version__, own_name("css"), own_name("js")]
    listed = [[one.path, one.size, one.version] for one in infos]
    text = json.dumps([look, list(beside), listed])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


T = TypeVar("T")


_MOST_ROUNDS = 10


@dataclass(frozen=True)
class StoreSnapshot:
    """What pages are made of, as the store lists it at a moment."""

    runs: Sequence[FileInfo]
    gates: Sequence[FileInfo]
    """With those that came to no verdict."""
    calibrations: Sequence[FileInfo]


def take_snapshot(files: Files, runs: Sequence[FileInfo] | None = None) -> StoreSnapshot:
    """What there is now; `runs` where they are listed already."""
    calibrations = files.below("calibrations")
    return StoreSnapshot(
        runs=files.below(RUNS) if runs is None else runs,
        gates=files.glob("gates/*.json") + files.glob("gates/undecided/*.json"),
        calibrations=[one for one in calibrations if one.path.startswith("calibrations/set=")],
    )


def render_until_stable(
    files: Files, write: Callable[[StoreSnapshot], T], runs: Sequence[FileInfo] | None = None
) -> T:
    """Write pages of what is saved, and again where something was saved meanwhile.

    So whoever of two that write at the same time comes last has seen what both have saved. `runs`
    may be of a moment ago: what was saved since then was saved meanwhile.
    """
    now = take_snapshot(files, runs)
    for _ in range(_MOST_ROUNDS):
        written = write(now)
        before, now = now, take_snapshot(files)
        if now == before:
            break
    return written

"""The history by month: all manifests in outline, so that a year of nights is read in 12 files.

    history/2026-11.json

An outline is a manifest without segments, worst rows, histograms and settings, and without
the numbers of findings that are ok: what tells of a night among others. Beside it stands which file
it was made of, by name, size and version. A listing of the runs says what there is; what a month
does not have of it, or of another version, is read from the manifests themselves. So a month may be
missing, damaged or behind: that costs time, and no number is wrong.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any

from pydantic import ValidationError

from ragmetrics.errors import StoreError
from ragmetrics.model import Finding, Manifest, Record, explain_validation_error
from ragmetrics.storage.files import FileInfo, Files
from ragmetrics.storage.manifests import RUNS, by_date, read_manifests
from ragmetrics.storage.parallel import find_all

FOLDER = "history"
_NO_NUMBERS: Mapping[str, Any] = {
    name: Finding.model_fields[name].get_default()
    for name in (
        *("mean", "low", "high", "n", "questions", "baseline", "baseline_label"),
        *("drop_low", "drop_high", "paired", "explained", "p_value", "mde", "mix"),
    )
} | {"message": "", "mix_tags": []}
log = logging.getLogger(__name__)


class _Kept(Record):
    """An outline, and the file that it was made of."""

    path: str
    size: int
    version: str
    outline: Manifest

    @property
    def info(self) -> FileInfo:
        """The file as a listing shows it."""
        return FileInfo(self.path, self.size, self.version)


class _Month(Record):
    """The runs of a month's nights."""

    shape: str
    """Of the manifests that it was written with: one of another shape may lack what is new."""
    runs: list[_Kept]


def outline(manifest: Manifest) -> Manifest:
    """A manifest without what is shown of its own night alone; that its texts are hidden stays."""
    update = {
        "metrics": [one.model_copy(update={"histogram": []}) for one in manifest.metrics],
        "findings": [_outlined(one) for one in manifest.findings],
        "segments": [],
        "worst": [],
        "settings": {name: one for name, one in manifest.settings.items() if name == "redact"},
    }
    return manifest.model_copy(update=update)


def _outlined(finding: Finding) -> Finding:
    """A finding as it is; of a rule that found nothing that it did, without its numbers."""
    if finding.level != "ok" or finding.state != "ok" or finding.transition:
        return finding
    return finding.model_copy(update=_NO_NUMBERS)


class RunIndex:
    """The outlines of a store's manifests; what was read once is not read again.

    An outline belongs to a file of one version, so this may be kept as long as a run lasts,
    whoever else writes meanwhile.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._listed: list[FileInfo] | None = None
        self._known: dict[FileInfo, Manifest | None] = {}
        self._stored: dict[str, frozenset[FileInfo]] = {}
        """Of each month, what its file holds, as it was last read or written."""

    def listed(self, day: date | None = None) -> list[FileInfo]:
        """The runs of the store as they were listed first, those of a `day` as they are now.

        A listing of a year takes a bucket longer than all else that is read of it.
        """
        if self._listed is None:
            self._listed = self._files.below(RUNS)
        elif day:
            folder = f"{RUNS}/dt={day.isoformat()}"
            others = [one for one in self._listed if not one.path.startswith(f"{folder}/")]
            self._listed = sorted([*others, *self._files.below(folder)], key=lambda one: one.path)
        return self._listed

    def outlines(self, infos: Sequence[FileInfo]) -> list[Manifest]:
        """The outlines of these manifests, in order, without those that cannot be read."""
        if any(info not in self._known for info in infos):
            self._read(_by_month(infos))
        missing = [info for info in infos if info not in self._known]
        found = read_manifests(self._files, [info.path for info in missing])
        for info, manifest in zip(missing, found, strict=True):
            self._known[info] = outline(manifest) if manifest else None
        return [known for info in infos if (known := self._known[info])]

    def keep(self, infos: Iterable[FileInfo], of: date | None = None) -> None:
        """Write the months that tell of other runs than these, which are all there are; or only
        the month `of` a night.

        Of two that write at once each may leave out what the other has just added: readers see
        that by the listing, and the next one to write puts it in.
        """
        for month, own in _by_month(infos).items():
            if of is None or month == _month(of):
                self._keep(month, own)

    def _keep(self, month: str, infos: Sequence[FileInfo]) -> None:
        self.outlines(infos)
        kept = [
            _Kept(path=info.path, size=info.size, version=info.version, outline=known)
            for info in infos
            if info.version and (known := self._known[info])  # some stores tell no version
        ]
        now = frozenset(one.info for one in kept)
        if now != self._stored.get(month, frozenset()):
            data = _Month(shape=_shape(), runs=kept).model_dump_json(exclude_defaults=True)
            self._files.write(_path(month), data.encode())
            self._stored[month] = now

    def _read(self, months: Iterable[str]) -> None:
        new = [month for month in months if month not in self._stored]
        for month, data in zip(new, self._find(new), strict=True):
            runs = [] if data is None else self._parse(month, data)
            self._known |= {one.info: one.outline for one in runs}
            self._stored[month] = frozenset(one.info for one in runs)

    def _find(self, months: Sequence[str]) -> Sequence[bytes | None]:
        """The files of months; as if there were none where they may not be read: they only save
        reading the manifests.
        """
        try:
            return list(find_all(self._files, list(map(_path, months))))
        except StoreError as error:
            if error.transient:
                raise
            log.warning("%s: the manifests are read instead: %s", self._files.uri(FOLDER), error)
            return [None] * len(months)

    def _parse(self, month: str, data: bytes) -> list[_Kept]:
        try:
            found = _Month.model_validate_json(data)
        except ValidationError as error:
            uri = self._files.uri(_path(month))
            log.warning(
                "%s is damaged, its runs are read anew: %s", uri, explain_validation_error(error)
            )
            return []
        return found.runs if found.shape == _shape() else []


def _by_month(infos: Iterable[FileInfo]) -> dict[str, list[FileInfo]]:
    found: dict[str, list[FileInfo]] = {}
    for day, own in by_date(infos).items():
        found.setdefault(_month(day), []).extend(own)
    return found


def _month(day: date) -> str:
    return f"{day:%Y-%m}"


def _path(month: str) -> str:
    return f"{FOLDER}/{month}.json"


@cache
def _shape() -> str:
    """Of this version's manifests: their fields with their types and defaults."""
    schema = json.dumps(Manifest.model_json_schema(), sort_keys=True)
    return hashlib.blake2b(schema.encode(), digest_size=8).hexdigest()

"""Runs by reference with the rows and scores of their shards by location, and the run index:
outlines of all manifests by month, so that a year is in 12 files.

    runs/dt=DATE/run=ID.json
    history/2026-11.json

An outline is a manifest without segments, worst rows, histograms and settings, and without the
numbers of findings that are ok. Each outline names its manifest with size and version. A listing of
the runs shows which manifests exist; manifests that are missing in the index, or have another
version, are read themselves. So the index may be missing, damaged or outdated: that costs time, but
no number is wrong.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, TypeAlias

from ragmetrics.errors import StoreError
from ragmetrics.records import Finding, LogRow, LostPassages, Manifest, Record, Score
from ragmetrics.storage.file_systems import FileInfo
from ragmetrics.storage.files import Files
from ragmetrics.storage.json_records import note_damage, parse_record
from ragmetrics.storage.parts import StoredPart, row_of, score_of
from ragmetrics.storage.retry import is_missing, passing_over

RUNS = "runs"
"""The folder of the manifests."""
RowLocation: TypeAlias = tuple[int, int]
"""The shard of a row, and its position in the shard."""


class RunRef(Record):
    """A reference to one run of one night. Tasks pass it to each other."""

    date: date
    run: str
    shards: int

    def folder(self, kind: str) -> str:
        """The folder of one kind of the run's files, such as `rows/dt=2026-11-19/run=ab12`."""
        return f"{kind}/dt={self.date.isoformat()}/run={self.run}"

    @classmethod
    def of(cls, manifest: Manifest) -> RunRef:
        """The reference to a manifest's run."""
        return cls(date=manifest.date, run=manifest.run, shards=manifest.shards)

    @property
    def manifest(self) -> str:
        """The path of the run's manifest."""
        return f"{self.folder(RUNS)}.json"

    def rows(self, shard: int) -> str:
        """The path of a shard's rows."""
        return f"{self.folder('rows')}/shard-{shard:03d}.parquet"

    def key_range(self, shard: int) -> tuple[str, str]:
        """First and last question key of a shard."""
        return shard_range(shard, self.shards)

    def cheap(self, metric: str, shard: int) -> str:
        """The path of a shard's cheap scores by one metric, of active sampling."""
        return f"{self.folder('rows')}/cheap/metric={metric}/shard-{shard:03d}.parquet"

    def beside_rows(self, name: str) -> str:
        """The path of a record beside the rows: `sample`, `budget`, `reuse` or `bridge`."""
        return f"{self.folder('rows')}/{name}.json"

    def scores(self, metric: str, shard: int) -> str:
        """The path of a shard's scores by one metric."""
        return f"{self.folder('scores')}/metric={metric}/shard-{shard:03d}.parquet"


def shard_range(shard: int, shards: int) -> tuple[str, str]:
    """First and last question key of a shard of so many: equal ranges of the question hash."""
    low, high = -(-(shard << 32) // shards), -(-((shard + 1) << 32) // shards) - 1
    return f"{low:08x}", f"{high:08x}"


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row with its score by every metric of the run."""

    row: LogRow
    scores: Mapping[str, Score]


def _scores_at(
    files: Files, ref: RunRef, metrics: Sequence[str], shard: int, positions: Collection[int]
) -> dict[str, dict[int, dict[str, Any]]]:
    """Scores at some positions of a shard, by metric. A metric without its part is left out."""
    scores = {}
    for metric in metrics:
        with passing_over(is_missing):
            scores[metric] = StoredPart(files, ref.scores(metric, shard)).at(positions)
    return scores


def scored_rows(
    files: Files, ref: RunRef, metrics: Sequence[str], wanted: Mapping[int, Collection[int]]
) -> dict[RowLocation, ScoredRow]:
    """The rows at some locations, `{shard: positions}`, with their scores."""
    scored: dict[RowLocation, ScoredRow] = {}
    for shard, positions in wanted.items():
        scores = _scores_at(files, ref, metrics, shard, positions)
        part = StoredPart(files, ref.rows(shard))
        rows = part.at(positions)
        with part.reading():
            for position, record in rows.items():
                of_row = {name: score_of(of_metric[position]) for name, of_metric in scores.items()}
                scored[shard, position] = ScoredRow(row_of(record), of_row)
    return scored


def by_shard(places: Collection[RowLocation]) -> dict[int, set[int]]:
    """Group locations as `{shard: positions}`."""
    positions: dict[int, set[int]] = {}
    for shard, position in places:
        positions.setdefault(shard, set()).add(position)
    return positions


FOLDER = "history"
_NO_NUMBERS: Mapping[str, Any] = {
    name: Finding.model_fields[name].get_default()
    for name in (
        *("mean", "low", "high", "n", "questions", "baseline", "baseline_label"),
        *("drop_low", "drop_high", "paired", "explained", "p_value", "mde", "mix"),
    )
} | {"message": "", "mix_tags": []}
log = logging.getLogger(__name__)

_RUN = re.compile(r"^runs/dt=(\d{4}-\d{2}-\d{2})/run=([^/]+)\.json$")


class _Entry(Record):
    """An outline, and the manifest file that it was made from."""

    path: str
    size: int
    version: str
    outline: Manifest

    @property
    def info(self) -> FileInfo:
        """The file as in a listing."""
        return FileInfo(self.path, self.size, self.version)


class _Month(Record):
    """The runs of a month's nights."""

    shape: str
    """Digest of the manifest schema. An index with another schema may lack new fields."""
    runs: list[_Entry]


def outline(manifest: Manifest) -> Manifest:
    """A manifest without the fields that only its own pages show. The setting `redact` stays."""
    update = {
        "metrics": [metric.model_copy(update={"histogram": []}) for metric in manifest.metrics],
        "findings": [_outlined(finding) for finding in manifest.findings],
        "segments": [],
        "worst": [],
        "lost_passages": _counts(manifest.lost_passages),
        "settings": {name: one for name, one in manifest.settings.items() if name == "redact"},
    }
    return manifest.model_copy(update=update)


def _counts(lost: LostPassages | None) -> LostPassages | None:
    """What later nights compare their lost passages with."""
    return lost and lost.model_copy(update={"passages": [], "segments": [], "notes": []})


def _outlined(finding: Finding) -> Finding:
    """A finding; without its numbers if it is ok and nothing changed."""
    if finding.level != "ok" or finding.state != "ok" or finding.transition:
        return finding
    return finding.model_copy(update=_NO_NUMBERS)


class RunIndex:
    """The outlines of a store's manifests. Each is read once.

    An outline belongs to one version of a file. So the index stays valid for a whole run, even if
    other processes write.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._listed: list[FileInfo] | None = None
        self._known: dict[FileInfo, Manifest | None] = {}
        self._stored: dict[str, frozenset[FileInfo]] = {}
        """The files in the index by month, as last read or written."""

    def listed(self, day: date | None = None) -> list[FileInfo]:
        """The runs of the store as first listed; the runs of a `day` are listed again.

        Listing a year of runs in a bucket takes longer than all reads from it.
        """
        if self._listed is None:
            self._listed = self._files.below(RUNS)
        elif day:
            folder = f"{RUNS}/dt={day.isoformat()}"
            others = [one for one in self._listed if not one.path.startswith(f"{folder}/")]
            self._listed = sorted([*others, *self._files.below(folder)], key=lambda one: one.path)
        return self._listed

    def outlines(self, infos: Sequence[FileInfo]) -> list[Manifest]:
        """The outlines of these manifests, in order. Unreadable manifests are left out."""
        if any(info not in self._known for info in infos):
            self._read(_by_month(infos))
        missing = [info for info in infos if info not in self._known]
        manifests = read_manifests(self._files, [info.path for info in missing])
        for info, manifest in zip(missing, manifests, strict=True):
            self._known[info] = outline(manifest) if manifest else None
        return [known for info in infos if (known := self._known[info])]

    def keep(self, infos: Iterable[FileInfo], of: date | None = None) -> None:
        """Update the index files so that they have exactly these runs; with `of` only the month of
        that night.

        If two processes write at once, one may leave out a run of the other. Readers notice that by
        the listing, and the next write adds it.
        """
        for month, of_month in _by_month(infos).items():
            if of is None or month == _month(of):
                self._keep(month, of_month)

    def _keep(self, month: str, infos: Sequence[FileInfo]) -> None:
        self.outlines(infos)
        kept = [
            _Entry(path=info.path, size=info.size, version=info.version, outline=known)
            for info in infos
            if info.version and (known := self._known[info])  # some stores have no versions
        ]
        now = frozenset(one.info for one in kept)
        if now != self._stored.get(month, frozenset()):
            data = _Month(shape=_shape(), runs=kept).model_dump_json(exclude_defaults=True)
            self._files.write(_path(month), data.encode())
            self._stored[month] = now

    def _read(self, months: Iterable[str]) -> None:
        new = [month for month in months if month not in self._stored]
        for month, data in zip(new, self._find(new), strict=True):
            runs = self._parse(month, data)
            self._known |= {run.info: run.outline for run in runs}
            self._stored[month] = frozenset(run.info for run in runs)

    def _find(self, months: Sequence[str]) -> Sequence[bytes | None]:
        """The index files of months; None for all where one cannot be read, because the index only
        saves time.
        """
        try:
            return list(self._files.find_all(list(map(_path, months))))
        except StoreError as error:
            text = f"{self._files.uri(FOLDER)}: the manifests are read instead: {error}"
            log.warning("%s", text)
            note_damage(text)
            return [None] * len(months)

    def _parse(self, month: str, data: bytes | None) -> list[_Entry]:
        problem = "damaged, its runs are read again"
        record = parse_record(self._files, _path(month), data, _Month, problem)
        return record.runs if record and record.shape == _shape() else []


def _by_month(infos: Iterable[FileInfo]) -> dict[str, list[FileInfo]]:
    months: dict[str, list[FileInfo]] = {}
    for day, of_day in by_date(infos).items():
        months.setdefault(_month(day), []).extend(of_day)
    return months


def _month(day: date) -> str:
    return f"{day:%Y-%m}"


def _path(month: str) -> str:
    return f"{FOLDER}/{month}.json"


@cache
def _shape() -> str:
    """A digest of the manifest schema of this version: fields, types and defaults."""
    schema = json.dumps(Manifest.model_json_schema(), sort_keys=True)
    return hashlib.blake2b(schema.encode(), digest_size=8).hexdigest()


def run_name(path: str) -> str | None:
    """The name of the run whose manifest a file is; None for any other file."""
    match = _RUN.match(path)
    return match[2] if match else None


def by_date(infos: Iterable[FileInfo]) -> dict[date, list[FileInfo]]:
    """The manifests among some files, by night, oldest first."""
    dates: dict[date, list[FileInfo]] = {}
    for info in infos:
        if (match := _RUN.match(info.path)) and (day := _day(match[1])):
            dates.setdefault(day, []).append(info)
    return dict(sorted(dates.items()))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:  # such as 2026-13-45
        return None


def read_manifests(files: Files, paths: Sequence[str]) -> list[Manifest | None]:
    """The manifests in these files, in order; None for one that is missing or cannot be read.

    The latter is logged; its night can be run again.
    """
    contents = zip(paths, files.find_all(paths), strict=True)
    problem = "not a manifest, its run is left out"
    return [parse_record(files, path, data, Manifest, problem) for path, data in contents]

"""A store with a past: runs of many nights, each with small files that are as old as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from ragmetrics.config import Settings, make_settings
from ragmetrics.records import Source
from ragmetrics.scoring import Staged
from ragmetrics.storage import Files, RunRef, Runs, open_store, save_record
from tests.fakes import nights


@dataclass(frozen=True)
class AgedStore:
    """A store in a folder."""

    settings: Settings

    @property
    def files(self) -> Files:
        """Its files."""
        return open_store(self.settings)

    def add_run(
        self, day: date, run: str, *, finished: bool = True, at: datetime | None = None
    ) -> None:
        """Write a run: rows, scores and, if it is finished, its manifest. `at` is when it was
        written; None: in the morning after its night.
        """
        at = at or morning_after(day)
        below = f"dt={day}/run={run}"
        for path in (
            f"rows/{below}/staged.json",
            f"rows/{below}/shard-000.parquet",
            f"scores/{below}/metric=context_recall/shard-000.parquet",
        ):
            self.files.write(path, f"{path} of {at}".encode())
        if finished:
            self.finish(day, run, at)
        for path in self.paths(day, run):
            os.utime(path, (at.timestamp(), at.timestamp()))

    def add_gate(self, build: str, day: date = date(1970, 1, 1)) -> None:
        """Write the rows and scores of a gate's run on a build, in a store of gates."""
        self.add_run(day, build, finished=False)
        source = Source(logs=f"builds/{build}/", files=1, rows=1)
        ref = RunRef(date=day, run=build, shards=1)
        staged = Staged(ref=ref, source=source, started_at=morning_after(day))
        save_record(self.files, f"{ref.folder('rows')}/staged.json", staged)
        for path in self.paths(day, build):
            os.utime(path, (0, 0))

    def finish(self, day: date, run: str, at: datetime) -> None:
        """Write the manifest of a run."""
        number = (day - nights.FIRST).days
        Runs(self.files).save(nights.night(number, run=run, started_at=at, finished_at=at))

    def paths(self, day: date, run: str) -> list[Path]:
        """The files of a run."""
        return sorted(self._found(day, run))

    def _found(self, day: date, run: str) -> Iterator[Path]:
        root = self.files.local
        assert root is not None
        for kind in ("rows", "scores"):
            yield from (root / kind / f"dt={day}" / f"run={run}").rglob("*.*")
        yield from (root / "runs" / f"dt={day}").glob(f"run={run}.json")


def morning_after(day: date) -> datetime:
    """When the nightly of a night runs."""
    return datetime.combine(day + timedelta(days=1), time(6), UTC)


def aged_store(folder: Path, **changes: object) -> AgedStore:
    """An empty store in a folder."""
    base = {"store": str(folder / "store"), "metrics": ["context_recall"], "dataset": "helpdesk"}
    return AgedStore(make_settings({**base, **changes}))

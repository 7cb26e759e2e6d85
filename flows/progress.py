"""The progress of a run, for people: a progress artifact per metric family, and bars on a terminal.

Nothing hangs on it: where Prefect's server does not take an artifact, that is logged, and the run
goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, cast
from uuid import UUID

from prefect import get_run_logger
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.logging.handlers import PrefectConsoleHandler
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from ragmetrics.scoring import Part
from tasks.run_page import artifact_key

EVERY = 5.0
"""Seconds between two updates of one artifact; the last update comes at once."""
AGAIN = 60.0
"""Seconds until the next attempt after the server refused an update."""
_terminal = threading.Lock()
"""Locked by the run whose bars are shown: a terminal shows the bars of one night at a time."""


@dataclass(frozen=True)
class Label:
    """The name of a run for people."""

    dataset: str
    name: str
    """The date of a night, or the build of a gate."""
    kind: Literal["night", "gate", "backfill"] = "night"
    keyed: bool = True
    """False: its artifacts are on its own page alone, and stand for no other run."""

    def key(self, metrics: Sequence[str]) -> str | None:
        """The key of the artifact of a family; each kind of run has its own."""
        key = f"ragmetrics-{artifact_key(self.dataset)}-{self.kind}-progress"
        return f"{key}-{artifact_key('-'.join(metrics))}" if self.keyed else None


@dataclass
class ProgressArtifact:
    """A progress artifact of the run, which the first report makes."""

    key: str | None
    _made: UUID | None = None

    def show(self, percent: float, description: str) -> None:
        """Report progress. Raises what the client, the network and the server raise."""
        if self._made is None:
            made = create_progress_artifact(percent, key=self.key, description=description)
            self._made = cast("UUID", made)  # it is a coroutine in async flows alone
        else:
            update_progress_artifact(self._made, percent, description=description)


@dataclass
class _Family:
    """The metrics that are scored together."""

    names: tuple[str, ...]
    bar: TaskID
    artifact: ProgressArtifact
    parts: int = 0
    ended: int = 0
    failed: int = 0
    updated_at: float = 0.0

    def __str__(self) -> str:
        return " + ".join(self.names)


class Watch:
    """Counts the parts of a run as they end."""

    def __init__(self, label: Label, parts: Sequence[Part], bars: Progress) -> None:
        self._label, self._bars = label, bars
        self._silent_until = 0.0
        self._families: dict[tuple[str, ...], _Family] = {}
        for names, _ in parts:
            known = tuple(names)
            if known not in self._families:
                bar = bars.add_task(" + ".join(known), total=0)
                self._families[known] = _Family(known, bar, ProgressArtifact(label.key(known)))
            self._families[known].parts += 1
        for family in self._families.values():
            bars.update(family.bar, total=family.parts)
            self._tell(family)

    def ended(self, part: Part, *, scored: bool) -> None:
        """Count a part that ended; `scored` says whether it is complete."""
        family = self._families[tuple(part[0])]
        family.ended += 1
        family.failed += not scored
        self._bars.update(family.bar, completed=family.ended)
        if family.ended == family.parts or time.monotonic() >= family.updated_at + EVERY:
            self._tell(family)

    def _tell(self, family: _Family) -> None:
        if time.monotonic() < self._silent_until:
            return
        family.updated_at = time.monotonic()
        percent = 100.0 * family.ended / family.parts
        description = f"{family}: {family.ended} of {family.parts} shards of {self._label.name}"
        description += f", {family.failed} of them not scored" if family.failed else ""
        try:
            family.artifact.show(percent, description)
        except Exception as error:  # of the client, the network, the server: none stops a night
            self._silent_until = time.monotonic() + AGAIN
            get_run_logger().warning("progress is not shown for %.0f s: %s", AGAIN, error)


@contextmanager
def watching(label: Label, parts: Sequence[Part]) -> Iterator[Watch]:
    """Watch the parts of a run: for each family, one part per shard."""
    console = _console()
    columns = (
        TextColumn("{task.description}"),
        # Prefect's console has no styles by the names that rich has given its own.
        BarColumn(
            style="grey23", complete_style="cyan", finished_style="green", pulse_style="grey50"
        ),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    shown = console.is_terminal and _terminal.acquire(blocking=False)
    bars = Progress(
        *columns, console=console, transient=True, redirect_stdout=False, disable=not shown
    )
    try:
        with bars:
            yield Watch(label, parts, bars)
    finally:
        if shown:
            _terminal.release()


def _console() -> Console:
    """Prefect's console, so that log lines stand above the bars."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, PrefectConsoleHandler):
            return handler.console
    return Console(stderr=True)

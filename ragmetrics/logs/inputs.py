"""The inputs of a night: finds its log files and its golden set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

from ragmetrics.config import Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs.formats import ENDINGS
from ragmetrics.logs.golden import golden_set
from ragmetrics.logs.log_files import LogSet, find_logs, log_of
from ragmetrics.storage import FileInfo, Files


@dataclass(frozen=True)
class NightInputs:
    """The log files of a night and its golden set."""

    logs: tuple[LogSet, ...]
    golden: LogSet | None
    problem: str | None = None
    limit: int | None = None
    """Rows after which reading ends."""
    golden_first: bool = False
    """True for a gate: the references of the golden set replace those of the logs, and its rejected
    rows are not counted with those of the logs."""

    def log_files(self) -> list[FileInfo]:
        """All log files, in the order they are read."""
        return [info for logs in self.logs for info in logs.infos]


def find_inputs(settings: Settings, day: date) -> NightInputs:
    """Find the files of a night. Missing or refused logs become the `problem` of the night, which
    causes an alert. Raises StoreError when a bucket is down or the golden set cannot be read.
    """
    options, problem = settings.storage_options, None
    try:
        files, infos = find_logs(settings.logs, options, day=day)
        if not infos:
            problem = f"no log file at {files.uri()}"
    except StoreError as error:
        if error.transient:
            raise  # the files are unknown, which is not the same as no files
        files, infos, problem = Files("."), (), str(error)
    return NightInputs((_log_set(settings, files, infos),), golden_set(settings), problem)


def log_set(settings: Settings, place: str) -> LogSet:
    """The logs at a location. Raises InputError when there are none."""
    files, infos = find_logs(place, settings.storage_options)
    if not infos:
        raise InputError(f"{place}: no such log; names end in {ENDINGS}")
    return _log_set(settings, files, infos)


def _log_set(settings: Settings, files: Files, infos: tuple[FileInfo, ...]) -> LogSet:
    ours = log_of(settings, files, infos)
    return replace(ours, columns=settings.columns, preset=settings.preset)

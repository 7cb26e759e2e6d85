"""The inputs of a night: finds its log files and its golden set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

from ragmetrics.config import Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs.formats import ENDINGS
from ragmetrics.logs.log_files import LogSet, find_logs, log_of
from ragmetrics.model import LogRow, Rejected
from ragmetrics.storage import FileInfo, Files
from ragmetrics.text import normalise


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


def golden_set(settings: Settings) -> LogSet | None:
    """The golden set of the settings; None without one. Raises InputError for a missing file."""
    if settings.golden is None:
        return None
    files, infos = find_logs(settings.golden, settings.storage_options)
    if not infos:
        raise InputError(f"golden set {settings.golden}: no such file")
    return replace(log_of(settings, files, infos), defaults={"retrieved_contexts": []})


class GoldenSet:
    """The golden set, indexed by question and by id. It fills in the missing references of rows.

    With `first`, its references replace those of a row with an equal question.
    """

    def __init__(self, rows: LogSet | None, *, first: bool = False) -> None:
        self.rejected: list[Rejected] = []
        self.joined: set[str] = set()
        """Keys of the golden questions that were joined to rows."""
        self._first = first
        self._by_id: dict[str, LogRow] = {}
        self._by_question: dict[str, LogRow] = {}
        for item in rows.read() if rows else ():
            if isinstance(item, Rejected):
                self.rejected.append(replace(item, file=f"golden set {item.file}"))
            else:
                self._by_id[item.id] = item
                self._by_question[normalise(item.user_input)] = item

    @property
    def questions(self) -> set[str]:
        """The keys of its questions."""
        return {row.question_key for row in self._by_question.values()}

    def join(self, row: LogRow) -> tuple[LogRow, bool]:
        """The row with the references of its golden row, and True if there is a golden row.

        Questions are matched before ids, because ids that only number the rows of a log would match
        other questions.
        """
        same = self._by_question.get(normalise(row.user_input))
        found = same or self._by_id.get(row.id)
        if found is None:
            return row, False
        self.joined.add(found.question_key)
        overrules = self._first and same is not None
        references = {
            name: value
            for name in ("reference", "reference_contexts", "reference_context_ids")
            if (value := getattr(found, name)) is not None
            and (overrules or getattr(row, name) is None)
        }
        return replace(row, **references), True

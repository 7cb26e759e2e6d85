"""The golden set: reads labelled questions and joins their references to logged rows."""

from __future__ import annotations

from dataclasses import replace

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs.log_files import LogSet, find_logs, log_of
from ragmetrics.model import LogRow, Rejected
from ragmetrics.text import normalise


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

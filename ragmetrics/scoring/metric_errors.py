"""Counts the rows on which a metric's own code raised an error, to report them with the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ragmetrics.model import Score, Status


class MetricErrors:
    """Counts failed rows per metric and stores the first error of each metric."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def note(self, metric: str, row: str, score: Score) -> None:
        """Count a score if its metric failed."""
        if score.status is Status.METRIC_FAILED:
            self._rows[metric] += 1
            self._first.setdefault(metric, f"row {row}: {score.reason}")

    def add(self, notes: Mapping[str, Any]) -> None:
        """Add the counts from the notes of a part."""
        for metric, one in notes.items():
            self._rows[metric] += one["rows"]
            self._first.setdefault(metric, one["first"])

    def notes(self) -> dict[str, Any]:
        """The counts as they are stored in the notes of a part."""
        return {
            metric: {"rows": rows, "first": self._first[metric]}
            for metric, rows in self._rows.items()
        }

    def problems(self) -> list[str]:
        """The errors as sentences."""
        return [
            f"metric {metric} failed on {rows:,} row{'' if rows == 1 else 's'}, "
            f"first on {self._first[metric]}"
            for metric, rows in self._rows.items()
        ]

"""How many rows of a night each metric scored, and why it did not score the others."""

from __future__ import annotations

from dataclasses import dataclass

from ragmetrics.metrics import metrics
from ragmetrics.model import Manifest, Summary

STATUS = {
    "scored": "scored",
    "not_applicable": "not applicable",
    "unreadable": "unreadable verdict",
    "refused": "refused by the judge",
    "judge_failed": "judge failed",
    "metric_failed": "metric failed",
    "over_budget": "over budget",
    "not_sampled": "not in the sample",
}
"""Of a row in a metric; the glossary says what each means."""


@dataclass(frozen=True)
class Covered:
    """One metric's rows by status."""

    summary: Summary
    counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(self.counts)


@dataclass(frozen=True)
class Coverage:
    """The statuses that occur, in a fixed order, and a line per metric."""

    statuses: tuple[str, ...]
    lines: tuple[Covered, ...]


def coverage(manifest: Manifest) -> Coverage:
    """Rows by metric and status; a status that nobody knows here stands last."""
    found = {status for one in manifest.metrics for status, rows in one.status.items() if rows}
    statuses = (*(name for name in STATUS if name in found), *sorted(found - STATUS.keys()))
    lines = (
        Covered(one, tuple(one.status.get(s, 0) for s in statuses)) for one in manifest.metrics
    )
    return Coverage(statuses, tuple(lines))


def needs(metric: str) -> str:
    """The fields of a row that a metric cannot do without: `retrieved_contexts and reference`."""
    known = metrics().get(metric)
    *most, last = known.needs if known else ("",)
    told = f"{', '.join(most)} and {last}" if most else last
    return told.replace(" + ", " with ").replace(" | ", " or ")

"""Why rows have no usable verdict: the reasons in the judge's own words, counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ragmetrics.records import UNSETTLED, Score, Status, Summary
from ragmetrics.text import clean

_Notes: TypeAlias = Mapping[str, Mapping[str, int]]
_LONGEST = 240
"""Characters of a reason."""
_TOLD_APART = 100
"""Characters by which reasons are told apart: what follows may quote a row."""
_MOST_KEPT = 100
"""Distinct reasons of a metric that a part counts; more are not told apart."""
_MOST_SHOWN = 3
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_FAILED = frozenset(UNSETTLED) - {Status.METRIC_FAILED}
"""Statuses that the judge is the reason of; errors of a metric's own code are told apart."""


class UnansweredRows:
    """Counts the rows without a usable verdict, by metric and reason, and by judge of a panel.

    Reasons that differ in numbers only, such as seconds or ids of requests, are one.
    """

    def __init__(self) -> None:
        self._metrics: dict[str, _Reasons] = {}
        self._judges: dict[str, _Reasons] = {}

    def note(self, metric: str, score: Score) -> None:
        """Count a score if a judge gave no usable verdict."""
        if score.status in _FAILED:
            self._metrics.setdefault(metric, _Reasons()).add(score.reason)
        judges = score.details.get("judges", {}) if score.failed else {}
        for name in score.failed:
            reason = judges.get(name, {}).get("reason", "")
            self._judges.setdefault(name, _Reasons()).add(reason)

    def add(self, notes: Mapping[str, _Notes]) -> None:
        """Add the counts from the notes of a part."""
        for mine, kind in ((self._metrics, "metrics"), (self._judges, "judges")):
            for name, reasons in notes.get(kind, {}).items():
                for reason, rows in reasons.items():
                    mine.setdefault(name, _Reasons()).add(reason, rows)

    def notes(self) -> dict[str, Any]:
        """The counts as they are stored in the notes of a part."""
        return {
            "metrics": {name: one.most_common() for name, one in self._metrics.items()},
            "judges": {name: one.most_common() for name, one in self._judges.items()},
        }

    def reasons(self, metric: str) -> dict[str, int]:
        """The most frequent reasons of a metric, with their rows."""
        found = self._metrics.get(metric)
        return found.most_common(_MOST_SHOWN) if found else {}

    def problems(
        self, summaries: Sequence[Summary], most_failures: float, told: Sequence[str]
    ) -> list[str]:
        """A sentence for the metrics of which more than a share of the rows failed, for each set of
        reasons; then one for each judge of a panel. What `told` says already is left out.
        """
        alike: dict[str, list[Summary]] = {}
        for one in summaries:
            failed, asked = one.unanswered_rows
            if failed > most_failures * asked and one.unanswered and not _is_told(one, told):
                # The counts may differ: metrics ask about other rows.
                alike.setdefault(next(iter(one.unanswered)), []).append(one)
        return [_sentence(group) for group in alike.values()] + [
            f"{name}: no usable verdict on {sum(found.values()):,} row scores: {next(iter(found))}"
            for name, reasons in self._judges.items()
            if (found := reasons.most_common(_MOST_SHOWN))
            and not any(next(iter(found)) in one for one in told)
        ]


class _Reasons:
    """Counts of reasons, each shown as it was first said."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._shown: dict[str, str] = {}

    def add(self, reason: str, rows: int = 1) -> None:
        said = clean(reason, _LONGEST) or "no reason given"
        kind = _NUMBER.sub("0", said)[:_TOLD_APART]
        if kind not in self._shown and len(self._shown) >= _MOST_KEPT:
            kind = said = "other reasons"
        self._shown.setdefault(kind, said)
        self._rows[kind] += rows

    def most_common(self, most: int | None = None) -> dict[str, int]:
        return {self._shown[kind]: rows for kind, rows in self._rows.most_common(most)}


def _is_told(summary: Summary, told: Sequence[str]) -> bool:
    return any(next(iter(summary.unanswered)) in one for one in told)


def _sentence(alike: Sequence[Summary]) -> str:
    first, *others = alike
    failed, asked = first.unanswered_rows
    more = f" and {len(others)} more metric{'s' if others[1:] else ''}" if others else ""
    return f"{failed:,} of {asked:,} rows failed in {first.metric}{more}: {first.why_unanswered}"

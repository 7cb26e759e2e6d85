"""How old the retrieved documents are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from statistics import median

from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps

_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_/.]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)")
_DAY = 86_400


@metric(
    version=1,
    display="Document age",
    calls="0",
    needs=("timestamp + retrieved_context_dates | timestamp + retrieved_context_ids",),
    higher_is_better=False,
    score_range=(0.0, 100_000.0),
    unit="days",
    least_change=0.1,
)
def document_age(row: LogRow) -> Steps[Score]:
    """Median age of a question's documents when they were retrieved, in days.

        age = median over d in D of max(0, timestamp - d) / 1 day

    Range [0, 100000], lower is better: a stale index is older each night. No judge call. D are the
    retrieved_context_dates; without them, the dates in retrieved_context_ids, as in
    `news/2026-11-18/4` or `faq_20261118`. No timestamp, or no date: not applicable.
    Source: ours.
    """
    yield from ()
    if row.timestamp is None:
        return Score.not_applicable("no timestamp")
    dates = [day for day in row.retrieved_context_dates or () if day] or [*_named(row)]
    if not dates:
        return Score.not_applicable("no date of a context")
    ages = [max(0.0, (row.timestamp - day).total_seconds() / _DAY) for day in dates]
    return Score(min(median(ages), 100_000.0))


def _named(row: LogRow) -> Iterator[datetime]:
    """The dates in the ids of the contexts; the last one of each."""
    for name in row.retrieved_context_ids or ():
        if found := _DATE.findall(name):
            year, _, month, day = found[-1]
            try:
                yield datetime(int(year), int(month), int(day), tzinfo=UTC)
            except ValueError:  # the 31st of February is no date
                continue

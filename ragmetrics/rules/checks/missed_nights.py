"""Missed nights: nights before this one were expected, and have no scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from ragmetrics.records import Finding
from ragmetrics.rules.check import Sample, Tonight, check

_WEEK = timedelta(days=7)
_DAY = timedelta(days=1)
_NAMED = 3
"""Most missing nights that a message names."""
_RULE = "every night since the one before is published"


@check(
    "missed_nights",
    order=60,
    needs_rows=False,
    sample=Sample(
        "Nights are missing",
        _RULE,
        "no scores of 2026-11-17, 2026-11-18: ragmetrics backfill --first 2026-11-17 --last "
        "2026-11-18 evaluates what has logs",
    ),
)
def missed_nights(tonight: Tonight) -> Iterator[Finding]:
    """Nights before this one were expected, and have no scores.

    A finding on a night after missing ones, and on the night after, which resolves its alert.
    """
    day = tonight.manifest.date
    missing = _missing(day, [one.date for one in tonight.history])
    if missing:
        named = ", ".join(map(str, missing[:_NAMED]))
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        command = f"ragmetrics backfill --first {missing[0]} --last {missing[-1]}"
        text = f"no scores of {named}{more}: {command} evaluates what has logs"
        yield tonight.finding("breach", _RULE, text)
    elif tonight.is_open:
        yield tonight.finding("ok", _RULE, f"no night is missing before {day}")


def _missing(day: date, published: Sequence[date]) -> list[date]:
    """The days between the last published night and `day` on which a night was expected.

    A day is expected if the same day of the week before was. In the first week nights are daily if
    the last two are: nobody misses nights that were evaluated now and then.
    """
    before = set(published)
    if not before:
        return []
    last, first = max(before), min(before)
    daily = last - _DAY in before
    expected: set[date] = set()
    for ago in range(1, (day - last).days):
        one, week_before = last + ago * _DAY, last + ago * _DAY - _WEEK
        if daily if week_before < first else week_before in before | expected:
            expected.add(one)
    return sorted(expected)

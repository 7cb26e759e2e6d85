"""Missed nights: nights before this one were expected, and have no scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from ragmetrics.records import Finding
from ragmetrics.rules.night_check import Sample, Tonight, check

_WEEK = timedelta(days=7)
_DAY = timedelta(days=1)
_USUAL = 2
"""Published nights of a weekday from which the next one is expected: one may be a trial."""
_NAMED = 3
"""Most missing nights that a message names."""
_RULE = "every night since the one before is published"


@check(
    "missed_nights",
    order=60,
    needs=("earlier nights",),
    sample=Sample(
        "Nights are missing",
        _RULE,
        "no scores of 2026-11-17, 2026-11-18; for those that have logs: ragmetrics backfill "
        "--first 2026-11-17 --last 2026-11-18",
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
        text = f"no scores of {named}{more}; for those that have logs: {command}"
        yield tonight.finding("breach", _RULE, text)
    elif tonight.is_open:
        yield tonight.finding("ok", _RULE, f"no night is missing before {day}")


def _missing(day: date, published: Sequence[date]) -> list[date]:
    """The days between the last published night and `day` on which a night was expected.

    A day is expected if the same day of the week before was, and that weekday was published twice.
    So nothing is missed in the first two weeks, when it is not known which days are working days.
    """
    if not published:
        return []
    last, usual = max(published), Counter(one.weekday() for one in set(published))
    known = {*published}
    for ago in range(1, (day - last).days):
        one = last + ago * _DAY
        if one - _WEEK in known and usual[one.weekday()] >= _USUAL:
            known.add(one)
    return sorted(one for one in known if one > last)

"""Stale log: old rows in tonight's log.

A stale log looks like an unchanged night. It is told by the times of its rows, and by a digest of
them that equals an earlier night's. Without times, equal rows may be a new run of the same
questions over the same index; they are a stale log only if ids were new on each night before, or,
without ids, if the questions were: those of a golden set change on few nights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragmetrics.records import Finding, Level, Manifest, Source
from ragmetrics.rules.night_check import Limit, Sample, Tonight, check, is_for_lack_of_logs

_NEW_OF = 7
"""Nights before by which ids or questions are known to be new on each night."""


@check(
    "stale_log",
    order=50,
    severity="critical",
    halts=True,
    limit=Limit(),
    explains=is_for_lack_of_logs,
    sample=Sample(
        "The log of an earlier night",
        "at most 50% of the rows outside the night, and not the log of an earlier night",
        "all 1,240 rows are those of 2026-11-18: the log was not updated",
        level="no_data",
    ),
)
def stale_log(tonight: Tonight) -> Iterator[Finding]:
    """Tonight's rows are those of an earlier night, or most have times outside the night. Their
    scores say nothing of the night.

    A finding on a night of old rows, and on the night after, which resolves its alert.
    """
    source = tonight.manifest.source
    level, text = _judge(tonight, source)
    if source.rows and (level != "ok" or tonight.is_open):
        outside = f"at most {tonight.limit:.0%} of the rows outside the night"
        yield tonight.finding(level, f"{outside}, and not the log of an earlier night", text)


def _judge(tonight: Tonight, source: Source) -> tuple[Level, str]:
    trusted = tonight.limit < 1 and source.is_dated
    same = _equal_night(source, tonight.history)
    if same and (trusted or _is_new_traffic(source, tonight.history)):
        return (
            "no_data",
            f"all {source.rows:,} rows are those of {same.date}: the log was not updated",
        )
    if trusted and source.outside > tonight.limit * source.dated:
        return "breach", (
            f"{source.outside:,} of {source.dated:,} rows have a time outside the night of "
            f"{tonight.manifest.date}: the log is from {source.oldest:%Y-%m-%d %H:%M} to "
            f"{source.newest:%Y-%m-%d %H:%M} (UTC); `time_zone` sets the zone of nights"
        )
    within = source.rows - source.outside
    return "ok", f"{within:,} of {source.rows:,} rows have no time outside it"


def _equal_night(source: Source, earlier: Sequence[Manifest]) -> Manifest | None:
    """The newest earlier night with the same rows."""
    same = (one for one in reversed(earlier) if one.source.digest == source.digest)
    return next(same, None) if source.digest else None


def _is_new_traffic(source: Source, earlier: Sequence[Manifest]) -> bool:
    """Whether each of the nights before had ids of its own, as the ids of requests are; of a log
    without ids, whether each of a whole week had questions of its own.
    """
    others = [one.source for one in earlier if one.source.digest != source.digest]
    ids = [one.ids for one in others[-_NEW_OF:] if one.ids]
    if source.ids or ids:
        return len(ids) > 1 and len({*ids, source.ids}) == len(ids) + 1
    asked = [one.questions for one in others[-_NEW_OF:] if one.questions]
    return len(asked) == _NEW_OF and len({*asked, source.questions}) == _NEW_OF + 1

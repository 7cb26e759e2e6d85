"""Findings on the nights of the logs: old rows in tonight's log, and nights that are missing.

A stale log looks like an unchanged night. It is told by the times of its rows, and by a digest of
them that equals an earlier night's. Without times, equal rows may be a new run of the same
questions over the same index; they are a stale log only if ids were new on each night before, or,
without ids, if the questions were: those of a golden set change on few nights.

Both findings are there on the nights that have a reason, and on the night after, which resolves
their alerts.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from ragmetrics.config import AlertSettings
from ragmetrics.records import Finding, FindingKind, Level, Manifest, Severity, Source
from ragmetrics.rules.context import NightContext

_WEEK = timedelta(days=7)
_DAY = timedelta(days=1)
_NEW_OF = 7
"""Nights before by which ids or questions are known to be new on each night."""
_NAMED = 3
"""Most missing nights that a message names."""


def check_nights(settings: AlertSettings, night: NightContext) -> list[Finding]:
    """The findings on old rows and on missing nights."""
    earlier = night.history or night.earlier
    found = [_missed_nights(night.manifest, earlier)]
    if night.manifest.source.rows:  # without rows, a firing alert must not look resolved
        found.insert(0, _stale_log(settings, night.manifest, earlier))
    before = earlier[-1].findings if earlier else []
    open_keys = {finding.key for finding in before if finding.state != "ok"}
    return [finding for finding in found if finding.level != "ok" or finding.key in open_keys]


def undated(source: Source) -> str:
    """What a log without times leaves unknown; empty where most rows have one."""
    if not source.digest or _is_dated(source):
        return ""
    missing = source.rows - source.dated
    return f"{missing:,} without a time, so whether they are of this night is not known"


def _stale_log(settings: AlertSettings, manifest: Manifest, earlier: Sequence[Manifest]) -> Finding:
    source = manifest.source
    trusted = settings.max_outside < 1 and _is_dated(source)
    level: Level = "ok"
    text = f"{source.rows - source.outside:,} of {source.rows:,} rows have no time outside it"
    if (same := _equal_night(source, earlier)) and (trusted or _is_new_traffic(source, earlier)):
        level = "no_data"
        text = f"all {source.rows:,} rows are those of {same.date}: the log was not renewed"
    elif trusted and source.outside > settings.max_outside * source.dated:
        level = "breach"
        text = (
            f"{source.outside:,} of {source.dated:,} rows have a time outside the night of "
            f"{manifest.date}: their log begins on {source.oldest:%Y-%m-%d %H:%M} and ends on "
            f"{source.newest:%Y-%m-%d %H:%M} (UTC); time_zone says in which zone nights are days"
        )
    rule = f"at most {settings.max_outside:.0%} of the rows outside the night, and no earlier night"
    return _finding(manifest, "stale_log", level, rule, text)


def _is_dated(source: Source) -> bool:
    return source.rows > 0 and 2 * source.dated >= source.rows


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


def _missed_nights(manifest: Manifest, earlier: Sequence[Manifest]) -> Finding:
    missing = _missing(manifest.date, [one.date for one in earlier])
    rule = "every night since the one before is published"
    if not missing:
        text = f"no night is missing before {manifest.date}"
        return _finding(manifest, "missed_nights", "ok", rule, text, "warning")
    named = ", ".join(map(str, missing[:_NAMED]))
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    first, last = missing[0], missing[-1]
    text = (
        f"no scores of {named}{more}: ragmetrics backfill --first {first} --last {last} "
        "evaluates what has logs"
    )
    return _finding(manifest, "missed_nights", "breach", rule, text, "warning")


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


def _finding(
    manifest: Manifest,
    kind: FindingKind,
    level: Level,
    rule: str,
    text: str,
    severity: Severity = "critical",
) -> Finding:
    key = f"{manifest.dataset}/{kind}"
    return Finding(key=key, kind=kind, level=level, severity=severity, rule=rule, message=text)

"""What users said of a fall, in one line: `Users noticed: thumbs down 3.1% → 5.4% in billing.`"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragmetrics.messages.blocks import Quote, Text
from ragmetrics.metrics import display_name, find_metric
from ragmetrics.records import BUILDS, Finding, Manifest, UnwatchedDrop
from ragmetrics.text import clean

_LONGEST = 80


def users_noticed(
    causes: Sequence[Finding], falls: Sequence[UnwatchedDrop], manifest: Manifest
) -> Iterator[Text]:
    """A line for each metric of users' feedback that fell, with the place that fell most."""
    told: set[str] = set()
    for cause in causes:
        metric, means = cause.metric or "", cause.means
        if cause.drop is None or means is None or metric in told or not _is_of_users(metric):
            continue
        told.add(metric)
        places = [one for one in cause.carriers or () if one.tag != BUILDS and one.value]
        place = next((one for one in places if None not in (one.before, one.now)), None)
        if cause.segment is None and place and place.before is not None and place.now is not None:
            yield _line(manifest, metric, place.before, place.now, place.value or "")
        else:
            where = cause.segment.value if cause.segment else ""
            yield _line(manifest, metric, means.before, means.now, where)
    for fall in falls:
        if fall.metric not in told and _is_of_users(fall.metric):
            ends = (fall.means.before, fall.means.now) if fall.means else (fall.before, fall.now)
            yield _line(manifest, fall.metric, *ends, "")


def answered_notes(manifest: Manifest) -> Iterator[str]:
    """Of each metric of users' feedback, how many answered, and of whom its interval speaks."""
    for summary in manifest.metrics:
        if _is_of_users(summary.metric) and summary.scored:
            share = summary.scored / max(sum(summary.status.values()), 1)
            yield (
                f"{display_name(summary.metric)}: on {share:.1%} of rows. Its interval speaks of "
                "users who answer; if content users answer more or less often than others, it is "
                "not that of all users."
            )


def _is_of_users(metric: str) -> bool:
    """Whether users gave the values of a metric."""
    known = find_metric(metric)
    return known is not None and "feedback" in known.needs


def _line(manifest: Manifest, metric: str, before: float, now: float, place: str) -> Text:
    where = (" in ", Quote(clean(place, _LONGEST))) if place else ()
    said = "thumbs down" if _thumbs_only(manifest, metric) else "negative feedback"
    return (f"Users noticed: {said} {1 - before:.1%} → {1 - now:.1%}", *where, ".")


def _thumbs_only(manifest: Manifest, metric: str) -> bool:
    """Whether no value of the night is between the worst and the best."""
    summary = manifest.summary(metric)
    return summary is not None and not any(summary.histogram[1:-1])

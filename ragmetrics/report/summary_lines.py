"""The headline table of a night outside its page: one line per metric, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.model import Manifest, Summary
from ragmetrics.report.cards import Card, cards
from ragmetrics.report.formatting import brief, count, interval, moved, number, plain
from ragmetrics.report.night_status import LABELS
from ragmetrics.scoring import worse_segments

_NO_RULE = "no rule"
_NAME = 80


@dataclass(frozen=True)
class MetricLine:
    """One metric over all rows, rounded as on the night's page; no text of it is markup yet."""

    metric: str
    state: str
    mean: str
    interval: str
    change: str
    """Nothing on a first night."""
    change_interval: str
    against: str
    """What it is compared with: `7 nights before`, `2026-11-18`."""
    scored: str
    unscored: str


@dataclass(frozen=True)
class Low:
    """A segment that is significantly worse than all rows."""

    metric: str
    segment: str
    mean: str
    interval: str
    whole: str
    """The mean of all rows."""
    scored: str


def headline(manifest: Manifest, earlier: Sequence[Manifest], most: int = 50) -> list[MetricLine]:
    """The lines of a night, those that need a reader first, as its page has the cards."""
    return [_line(card) for card in cards(manifest, earlier)[:most]]


def lowest_segments(manifest: Manifest, most: int = 8) -> list[Low]:
    """The segments that are significantly worse than all rows, the furthest first."""
    wholes = {one.metric: one for one in manifest.metrics if one.mean is not None}
    found = [
        (one.loss(whole.mean or 0.0), one, whole)
        for one in worse_segments(manifest)
        if (whole := wholes.get(one.metric))
    ]
    found.sort(key=lambda one: (-one[0], one[1].metric, str(one[1].segment)))
    return [_low(one, whole) for _, one, whole in found[:most]]


def _line(card: Card) -> MetricLine:
    one, change, ends, against = card.summary, "", "", ""
    if card.moved:
        change, ends = moved(card.moved.by, card.moved.low, card.moved.high)
        against = plain(card.moved.label)
    done = ("scored", "not_sampled")
    unscored = sum(rows for status, rows in one.status.items() if status not in done)
    return MetricLine(
        metric=_named(one.metric),
        state=LABELS[card.state] if card.state else _NO_RULE,
        mean=_mean(one),
        interval=interval(one.low, one.high),
        change=change,
        change_interval=ends,
        against=against,
        scored=count(one.scored),
        unscored=count(unscored),
    )


def _low(one: Summary, whole: Summary) -> Low:
    return Low(
        metric=_named(one.metric),
        segment=_named(str(one.segment)),
        mean=_mean(one),
        interval=interval(one.low, one.high),
        whole=_mean(whole),
        scored=count(one.scored),
    )


def _mean(one: Summary) -> str:
    return number(one.mean)


def _named(text: str) -> str:
    return plain(brief(text, _NAME))

"""One metric over the nights: what is drawn as a line and written as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from ragmetrics.records import Finding, Manifest, Summary
from ragmetrics.report.condition import metric_states, needing_reader
from ragmetrics.report.words import finite

NIGHTS = 60
"""Nights that a trend shows; older ones stay reachable from the list of nights."""

_BELOW = re.compile(r"\bbelow -?[\d.]+$")


@dataclass(frozen=True)
class Change:
    """How far a mean moved since the last night that compares with it."""

    since: date
    by: float
    clear: bool
    """Whether the two intervals are apart."""
    worse: bool


@dataclass(frozen=True)
class Point:
    """One metric in one night; without a summary there is no number."""

    date: date
    summary: Summary | None
    broken: str = ""
    """Why the line breaks before this point."""
    drifted: bool = False
    """Whether the judge was told to have moved in this metric, this night for the first time."""
    fired: tuple[Finding, ...] = ()
    resolved: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Trend:
    """One metric over the nights, oldest first."""

    metric: str
    points: tuple[Point, ...]
    limits: tuple[float, ...]
    change: Change | None

    @property
    def latest(self) -> Summary | None:
        """The number of the newest night, if it has one."""
        return self.points[-1].summary

    @property
    def runs(self) -> list[list[Point]]:
        """Stretches of nights whose means compare and follow each other."""
        runs: list[list[Point]] = [[]]
        for point in self.points:
            if point.summary is None or point.broken:
                runs.append([])
            if point.summary is not None:
                runs[-1].append(point)
        return [run for run in runs if run]

    @property
    def breaks(self) -> list[tuple[date, Point]]:
        """Points from which on numbers do not compare with those before, and the night before."""
        pairs = pairwise(self.points)
        return [(before.date, after) for before, after in pairs if after.broken]


def scored(manifest: Manifest, metric: str) -> Summary | None:
    """The metric's summary where it has a mean."""
    summary = None if manifest.source.problem else manifest.summary(metric)
    return summary if summary is not None and finite(summary.mean) is not None else None


def trends(nights: Sequence[Manifest]) -> list[Trend]:
    """One trend per metric of the newest nights: those that need a reader first."""
    shown = nights[-NIGHTS:]
    names = dict.fromkeys(s.metric for night in reversed(shown) for s in night.metrics)
    states = metric_states(shown[-1]) if shown else {}
    return [_trend(shown, n) for n in sorted(names, key=lambda n: needing_reader(n, states))]


def change(summary: Summary, earlier: Sequence[Manifest]) -> Change | None:
    """The move since the newest earlier night with the same fingerprint."""
    for night in reversed(earlier):
        before = scored(night, summary.metric)
        if before is not None and before.fingerprint == summary.fingerprint:
            by = (summary.mean or 0.0) - (before.mean or 0.0)
            worse = summary.loss(before.mean or 0.0) > 0
            return Change(night.date, by, _apart(before, summary), worse)
    return None


def _trend(nights: Sequence[Manifest], name: str) -> Trend:
    points = []
    last: tuple[Manifest, Summary] | None = None
    for night in nights:
        summary = scored(night, name)
        broken = ""
        if summary and last and last[1].fingerprint != summary.fingerprint:
            same_judge = last[0].judge.fingerprint == night.judge.fingerprint
            broken = "metric changed" if same_judge else "judge changed"
        if summary:
            last = (night, summary)
        moved = _judge_moved(night, name)
        points.append(Point(night.date, summary, broken, moved, *_transitions(night, name)))
    latest = points[-1].summary
    since = change(latest, nights[:-1]) if latest else None
    return Trend(name, tuple(points), _limits(nights, name), since)


def _judge_moved(night: Manifest, name: str) -> bool:
    return any(
        f.kind == "judge_drift" and f.transition == "fired" and name in f.affects
        for f in night.findings
    )


def _transitions(night: Manifest, name: str) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    mine = [f for f in night.findings if f.metric == name]
    return (
        tuple(f for f in mine if f.transition == "fired"),
        tuple(f for f in mine if f.transition == "resolved"),
    )


def _limits(nights: Sequence[Manifest], name: str) -> tuple[float, ...]:
    """The thresholds of the newest night that has any; the limit of a drop is not a level."""
    for night in reversed(nights):
        limits = {
            f.limit
            for f in night.findings
            if f.metric == name and f.segment is None and f.limit is not None
            if f.kind == "metric" and f.drop is None and _BELOW.search(f.rule)
        }
        if limits:
            return tuple(sorted(limits))
    return ()


def _apart(one: Summary, other: Summary) -> bool:
    if None in (one.low, one.high, other.low, other.high):
        return False
    (_, high), (low, _) = sorted((s.low or 0.0, s.high or 0.0) for s in (one, other))
    return high < low

"""One metric over the nights: what is drawn as a line and written as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import hypot

from ragmetrics.model import ComparedMeans, Finding, Manifest, Summary, Transition
from ragmetrics.report.night_status import metric_states, needing_reader
from ragmetrics.text import finite

NIGHTS = 90
"""Most nights that are drawn; older ones stay reachable from the calendar."""
LEAST_NIGHTS = 20
TABLE_NIGHTS = 30
"""Of them, the newest stand in the table too."""
_LEAST_ROWS = 7
_DRAWN, _WRITTEN = 480, 240
"""Points on all charts together, and lines of all tables: the page stays small where metrics are
many."""

_BELOW = re.compile(r"\bbelow -?[\d.]+$")


@dataclass(frozen=True)
class TrendChange:
    """How far a mean moved since the last night that compares with it."""

    since: date
    by: float
    low: float | None
    """Of its 95% interval."""
    high: float | None
    worse: bool
    means: ComparedMeans | None = None
    """Over the questions of both nights; None where the means of all rows are compared."""

    @property
    def clear(self) -> bool:
        """Whether its interval excludes 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class TrendPoint:
    """One metric in one night; without a summary there is no number."""

    date: date
    summary: Summary | None
    broken: str = ""
    """Why the line breaks before this point."""
    drifted: bool = False
    """Whether the judge was told to have moved in this metric, this night for the first time."""
    fired: tuple[Finding, ...] = ()
    escalated: tuple[Finding, ...] = ()
    resolved: tuple[Finding, ...] = ()
    builds: tuple[str, ...] = ()
    """Index builds that the night before had not."""


@dataclass(frozen=True)
class Trend:
    """One metric over the nights, oldest first."""

    metric: str
    points: tuple[TrendPoint, ...]
    limits: tuple[float, ...]
    change: TrendChange | None
    rows: int = TABLE_NIGHTS
    """Of its table, at most."""

    @property
    def latest(self) -> Summary | None:
        """The number of the newest night, if it has one."""
        return self.points[-1].summary

    @property
    def table(self) -> tuple[TrendPoint, ...]:
        """The newest points, newest first."""
        return self.points[: -self.rows - 1 : -1]

    @property
    def is_empty(self) -> bool:
        """Whether no night has a number."""
        return all(point.summary is None for point in self.points)

    @property
    def runs(self) -> list[list[TrendPoint]]:
        """Stretches of nights whose means compare and follow each other."""
        runs: list[list[TrendPoint]] = [[]]
        for point in self.points:
            if point.summary is None or point.broken:
                runs.append([])
            if point.summary is not None:
                runs[-1].append(point)
        return [run for run in runs if run]

    @property
    def breaks(self) -> list[tuple[date, TrendPoint]]:
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
    many = max(1, len(names))
    shown = shown[-max(LEAST_NIGHTS, _DRAWN // many) :]
    rows = max(_LEAST_ROWS, min(TABLE_NIGHTS, _WRITTEN // many))
    ordered = sorted(names, key=lambda name: needing_reader(name, states))
    return [_trend(shown, name, rows) for name in ordered]


def change(manifest: Manifest, summary: Summary, earlier: Sequence[Manifest]) -> TrendChange | None:
    """The move since the newest earlier night with the same fingerprint: by the questions of both
    where enough were asked again, else by the means, as if the nights shared no question.
    """
    spoke = {(one.date, one.run) for one in earlier}
    for one in manifest.moves:
        if one.metric == summary.metric and (one.since, one.run) in spoke:
            worse = one.by < 0 if summary.higher_is_better else one.by > 0
            return TrendChange(one.since, one.by, one.low, one.high, worse, one.means)
    for night in reversed(earlier):
        before = scored(night, summary.metric)
        if before is not None and before.fingerprint == summary.fingerprint:
            by = (summary.mean or 0.0) - (before.mean or 0.0)
            worse = summary.loss(before.mean or 0.0) > 0
            return TrendChange(night.date, by, *_interval(before, summary), worse)
    return None


def _interval(before: Summary, now: Summary) -> tuple[float | None, float | None]:
    """Of the difference of two means, from the intervals of both (MOVER; Zou and Donner 2008)."""
    m, low, high = now.mean, now.low, now.high
    m0, low0, high0 = before.mean, before.low, before.high
    if m is None or low is None or high is None or m0 is None or low0 is None or high0 is None:
        return None, None
    by = m - m0
    return by - hypot(m - low, high0 - m0), by + hypot(high - m, m0 - low0)


def _trend(nights: Sequence[Manifest], name: str, rows: int) -> Trend:
    points = []
    last: tuple[Manifest, Summary] | None = None
    served: set[str] = set()
    for night in nights:
        summary = scored(night, name)
        broken = ""
        if summary and last and last[1].fingerprint != summary.fingerprint:
            same_judge = last[0].judge.fingerprint == night.judge.fingerprint
            broken = "metric changed" if same_judge else "judge changed"
        if summary:
            last = (night, summary)
        moved = _judge_moved(night, name)
        builds = set(night.source.index_builds) or served
        new = tuple(sorted(builds - served)) if served else ()
        served = builds
        points.append(
            TrendPoint(
                night.date,
                summary,
                broken,
                moved,
                fired=_told(night, name, "fired"),
                escalated=_told(night, name, "escalated"),
                resolved=_told(night, name, "resolved"),
                builds=new,
            )
        )
    latest = points[-1].summary
    since = change(nights[-1], latest, nights[:-1]) if latest else None
    return Trend(name, tuple(points), _limits(nights, name), since, rows)


def _judge_moved(night: Manifest, name: str) -> bool:
    return any(
        f.kind == "judge_drift" and f.transition == "fired" and name in f.affects
        for f in night.findings
    )


def _told(night: Manifest, name: str, transition: Transition) -> tuple[Finding, ...]:
    """The metric's alerts that have a transition."""
    return tuple(f for f in night.findings if (f.metric, f.transition) == (name, transition))


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

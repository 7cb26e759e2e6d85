"""One metric over the nights, as the overview draws it and writes it as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import hypot

from ragmetrics.dashboard.formatting import moved
from ragmetrics.dashboard.night_status import needing_reader
from ragmetrics.records import ComparedMeans, Finding, Manifest, Summary
from ragmetrics.rules import check_of
from ragmetrics.text import finite

NIGHTS = 90
"""Most nights in a chart; the calendar leads to older ones."""
LEAST_NIGHTS = 20
TABLE_NIGHTS = 30
"""Most nights in a table, the newest ones."""
_LEAST_ROWS = 7
_ALL_POINTS, _ALL_ROWS = 480, 240
"""Points of all charts together, and lines of all tables: they bound a page with many metrics."""
_BELOW = re.compile(r"\bbelow -?[\d.]+$")


@dataclass(frozen=True)
class MeanMove:
    """How far a mean moved from its baseline."""

    by: float
    low: float | None
    high: float | None
    """The ends of its 95% interval."""
    worse: bool
    label: str
    """The baseline: `7 nights before`, `2026-11-18`."""
    before: float | None
    """The baseline's mean of all rows."""
    means: ComparedMeans | None = None
    """Both means over the compared questions. None if the means of all rows are compared, or an
    older version stored no means."""
    by_rule: bool = False
    """Whether a rule measured it, or the check of metrics without a rule."""

    @property
    def words(self) -> str:
        """`−0.22 [−0.31, −0.13] compared with 7 nights before`."""
        told = " ".join(filter(None, moved(self.by, self.low, self.high)))
        return f"{told} compared with {self.label}" if self.label else told

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class TrendPoint:
    """One metric in one night; it has no summary if the night has no number."""

    date: date
    summary: Summary | None
    broken: str = ""
    """Why the line breaks before this point."""
    joined: str = ""
    """How the line goes on over a change of the judge before this point."""
    drifted: bool = False
    """Whether this night is the first that reports judge drift in this metric."""
    fired: tuple[Finding, ...] = ()
    escalated: tuple[Finding, ...] = ()
    resolved: tuple[Finding, ...] = ()
    builds: tuple[str, ...] = ()
    """Index builds that the night before did not have."""


@dataclass(frozen=True)
class Trend:
    """One metric over the nights, oldest first."""

    metric: str
    points: tuple[TrendPoint, ...]
    limits: tuple[float, ...]
    change: MeanMove | None
    rows: int = TABLE_NIGHTS
    """Most lines of its table."""

    @property
    def latest(self) -> Summary | None:
        """The newest night's number, if it has one."""
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
        """Groups of consecutive nights whose means compare."""
        runs: list[list[TrendPoint]] = [[]]
        for point in self.points:
            if point.summary is None or point.broken:
                runs.append([])
            if point.summary is not None:
                runs[-1].append(point)
        return [run for run in runs if run]

    @property
    def breaks(self) -> list[tuple[date, TrendPoint]]:
        """Each point whose number does not compare with earlier ones, and the night before it."""
        pairs = pairwise(self.points)
        return [(before.date, after) for before, after in pairs if after.broken]


def scored(manifest: Manifest, metric: str) -> Summary | None:
    """The metric's summary, if it has a mean."""
    summary = None if manifest.source.problem else manifest.summary(metric)
    return summary if summary is not None and finite(summary.mean) is not None else None


def trends(nights: Sequence[Manifest]) -> list[Trend]:
    """One trend per metric over the newest nights; metrics that need a reader come first."""
    shown = nights[-NIGHTS:]
    names = dict.fromkeys(s.metric for night in reversed(shown) for s in night.metrics)
    many = max(1, len(names))
    shown = shown[-max(LEAST_NIGHTS, _ALL_POINTS // many) :]
    rows = max(_LEAST_ROWS, min(TABLE_NIGHTS, _ALL_ROWS // many))
    ordered = sorted(names, key=needing_reader(nights[-1])) if nights else []
    return [_trend(shown, name, rows) for name in ordered]


def change(manifest: Manifest, summary: Summary, earlier: Sequence[Manifest]) -> MeanMove | None:
    """The move since the newest earlier night with the same fingerprint.

    It is over the questions of both nights if they share enough, else of the means of all rows.
    """
    known = {(one.date, one.run): one for one in earlier}
    for move in manifest.moves:
        night = known.get((move.since, move.run))
        if move.metric == summary.metric and night:
            worse = summary.loss((summary.mean or 0.0) - move.by) > 0
            then = night.summary(summary.metric)
            before = then.mean if then else None
            return MeanMove(
                move.by, move.low, move.high, worse, str(move.since), before, move.means
            )
    for night in reversed(earlier):
        then = scored(night, summary.metric)
        if then is not None and then.fingerprint == summary.fingerprint:
            before = then.mean or 0.0
            ends = _interval(then, summary)
            by, worse = (summary.mean or 0.0) - before, summary.loss(before) > 0
            return MeanMove(by, *ends, worse, str(night.date), then.mean)
    return None


def _interval(before: Summary, now: Summary) -> tuple[float | None, float | None]:
    """The interval of a difference of means, from both intervals (MOVER; Zou and Donner 2008)."""
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
        broken = joined = ""
        if summary and last and last[1].moved_by and not summary.moved_by:
            joined = f"judge changed, nights before moved by {last[1].moved_by.offset:+.3f}"
        if summary and last and last[1].fingerprint != summary.fingerprint:
            same_judge = last[0].judge.of(name).fingerprint == night.judge.of(name).fingerprint
            broken = "metric changed" if same_judge else "judge changed"
        if summary:
            last = (night, summary)
        drifted = _judge_moved(night, name)
        builds = set(night.source.index_builds) or served
        new = tuple(sorted(builds - served)) if served else ()
        served = builds
        fired, escalated, resolved = (
            _alerts(night, name, kind) for kind in ("fired", "escalated", "resolved")
        )
        alerts = (fired, escalated, resolved)
        points.append(TrendPoint(night.date, summary, broken, joined, drifted, *alerts, new))
    latest = points[-1].summary
    since = change(nights[-1], latest, nights[:-1]) if latest else None
    return Trend(name, tuple(points), _limits(nights, name), since, rows)


def _judge_moved(night: Manifest, name: str) -> bool:
    return any(
        f.transition == "fired" and name in f.affects and check_of(f).ends_comparison
        for f in night.findings
    )


def _alerts(night: Manifest, name: str, transition: str) -> tuple[Finding, ...]:
    """The metric's alerts with a transition on this night."""
    return tuple(f for f in night.findings if (f.metric, f.transition) == (name, transition))


def _limits(nights: Sequence[Manifest], name: str) -> tuple[float, ...]:
    """The limits on the mean in the newest night that has any; limits on drops are left out."""
    for night in reversed(nights):
        limits = {
            f.limit
            for f in night.findings
            if f.metric == name and f.segment is None and f.limit is not None
            if f.is_rule and f.drop is None and _BELOW.search(f.rule)
        }
        if limits:
            return tuple(sorted(limits))
    return ()

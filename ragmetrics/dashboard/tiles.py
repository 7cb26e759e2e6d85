"""Tiles: each metric with its mean, its change, its last nights as a small line, and its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ragmetrics.dashboard.cards import moved
from ragmetrics.dashboard.night_status import metric_states, needing_reader
from ragmetrics.dashboard.svg import sparkline
from ragmetrics.dashboard.trends import MeanMove, scored
from ragmetrics.metrics import unit_of
from ragmetrics.records import Manifest, Summary
from ragmetrics.text import NO_CHANGE, with_unit

SHOWN = 6
"""Tiles that stand open; the others are folded."""
SPARK_NIGHTS = 14
_FELL = ("firing", "pending", "fell")


@dataclass(frozen=True)
class Tile:
    """One metric of the newest night."""

    summary: Summary
    state: str | None
    """The state of its worst rule; None: no rule watches it."""
    move: MeanMove | None
    spark: Markup

    @property
    def fell(self) -> bool:
        """Whether an alert or a significant fall makes a reader look."""
        return self.state in _FELL

    @property
    def change(self) -> str:
        """`▼ 0.24`; `not significant`, and `no change` where it rounds to 0; empty without a night
        to compare with.
        """
        if self.move is None:
            return ""
        if not self.move.clear:
            return NO_CHANGE if self.exact.startswith(NO_CHANGE) else "not significant"
        by = with_unit(abs(self.move.by), unit_of(self.summary.metric))
        return f"{'▼' if self.move.by < 0 else '▲'} {by}"

    @property
    def exact(self) -> str:
        """The change with its interval and what it is compared with, for who points at it."""
        return self.move.words if self.move else ""


def tiles(manifest: Manifest, earlier: Sequence[Manifest]) -> list[Tile]:
    """One tile per metric: those that need a reader first, then in the manifest's order."""
    states, key = metric_states(manifest), needing_reader(manifest)
    ordered = sorted(manifest.metrics, key=lambda summary: key(summary.metric))
    return [_tile(manifest, summary, states.get(summary.metric), earlier) for summary in ordered]


def _tile(
    manifest: Manifest, summary: Summary, state: str | None, earlier: Sequence[Manifest]
) -> Tile:
    has_mean = scored(manifest, summary.metric) is not None
    move = moved(manifest, summary, earlier) if has_mean else None
    nights = [*earlier[-SPARK_NIGHTS + 1 :], manifest]
    means = [_comparable(night, summary) for night in nights]
    if not has_mean:
        return Tile(summary, "no_data", None, Markup(""))
    return Tile(summary, state, move, sparkline(means, mark=state in _FELL))


def _comparable(night: Manifest, summary: Summary) -> float | None:
    """The mean of a night that compares with the newest one."""
    then = scored(night, summary.metric)
    return then.mean if then and then.fingerprint == summary.fingerprint else None

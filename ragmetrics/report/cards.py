"""One metric in one night: what its card and its bins table say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.records import Manifest, Summary
from ragmetrics.report.condition import metric_states, needing_reader
from ragmetrics.report.histogram import bin_label
from ragmetrics.report.trends import Change, change, scored
from ragmetrics.report.words import plural, share

STATUS = {
    "scored": "scored",
    "not_applicable": "not applicable",
    "unreadable": "unreadable verdict",
    "judge_failed": "judge failed",
    "over_budget": "over budget",
}


@dataclass(frozen=True)
class Bin:
    """A tenth of the scale."""

    label: str
    rows: int
    share: str


@dataclass(frozen=True)
class Card:
    """A metric's numbers with what they rest on."""

    summary: Summary
    change: Change | None
    state: str | None
    """Of the worst rule on the metric over all rows; None where no rule watches it."""
    unscored: tuple[str, ...]
    bins: tuple[Bin, ...]

    @property
    def since(self) -> str:
        """What the change is measured against, in words."""
        if self.change is None:
            return "no earlier night to compare with"
        return f"since {self.change.since}"


def cards(manifest: Manifest, earlier: Sequence[Manifest]) -> list[Card]:
    """One card per metric: those that need a reader first, then in the manifest's order."""
    states = metric_states(manifest)
    ordered = sorted(manifest.metrics, key=lambda s: needing_reader(s.metric, states))
    return [_card(manifest, one, states.get(one.metric), earlier) for one in ordered]


def _card(
    manifest: Manifest, summary: Summary, state: str | None, earlier: Sequence[Manifest]
) -> Card:
    has_mean = scored(manifest, summary.metric) is not None
    return Card(
        summary=summary,
        change=change(summary, earlier) if has_mean else None,
        state=state,
        unscored=tuple(
            f"{plural(rows, 'row')} {STATUS.get(status, status)}"
            for status, rows in sorted(summary.status.items())
            if status != "scored" and rows
        ),
        bins=_bins(summary.histogram) if has_mean else (),
    )


def _bins(histogram: Sequence[int]) -> tuple[Bin, ...]:
    total = sum(histogram)
    return tuple(
        Bin(bin_label(i, len(histogram)), rows, share(rows, total))
        for i, rows in enumerate(histogram)
    )

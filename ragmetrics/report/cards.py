"""One metric in one night: what its card and its bins table say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.records import Finding, Manifest, Summary
from ragmetrics.report.condition import by_state, rule_state
from ragmetrics.report.figures import bin_label
from ragmetrics.report.trends import Change, change, scored
from ragmetrics.report.words import plural, share

STATUS = {
    "scored": "scored",
    "not_applicable": "not applicable",
    "unreadable": "unreadable verdict",
    "judge_failed": "judge failed",
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
    """One card per metric, in the manifest's order."""
    return [_card(manifest, summary, earlier) for summary in manifest.metrics]


def _card(manifest: Manifest, summary: Summary, earlier: Sequence[Manifest]) -> Card:
    mine = [f for f in manifest.findings if f.metric == summary.metric and f.segment is None]
    has_mean = scored(manifest, summary.metric) is not None
    return Card(
        summary=summary,
        change=change(summary, earlier) if has_mean else None,
        state=_worst(mine),
        unscored=tuple(
            f"{plural(rows, 'row')} {STATUS.get(status, status)}"
            for status, rows in sorted(summary.status.items())
            if status != "scored" and rows
        ),
        bins=_bins(summary.histogram) if has_mean else (),
    )


def _worst(findings: Sequence[Finding]) -> str | None:
    ordered = by_state([f for f in findings if f.kind == "metric" or rule_state(f) != "ok"])
    return rule_state(ordered[0]) if ordered else None


def _bins(histogram: Sequence[int]) -> tuple[Bin, ...]:
    total = sum(histogram)
    return tuple(
        Bin(bin_label(i, len(histogram)), rows, share(rows, total))
        for i, rows in enumerate(histogram)
    )

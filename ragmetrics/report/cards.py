"""One metric in one night: what its card and its bins table say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.records import Manifest, Summary
from ragmetrics.report.condition import metric_states, needing_reader
from ragmetrics.report.histogram import bin_label
from ragmetrics.report.trends import Change, change, scored
from ragmetrics.report.words import brief, number, plural, share

STATUS = {
    "scored": "scored",
    "not_applicable": "not applicable",
    "unreadable": "unreadable verdict",
    "judge_failed": "judge failed",
    "over_budget": "over budget",
    "not_sampled": "not in the sample",
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
    detects: str
    """How far it must fall to be seen; nothing where too few questions were asked to tell."""
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
        detects=detects(manifest, summary),
        unscored=tuple(
            f"{plural(rows, 'row')} {STATUS.get(status, status)}"
            for status, rows in sorted(summary.status.items())
            if status != "scored" and rows
        ),
        bins=_bins(summary.histogram) if has_mean else (),
    )


def detects(manifest: Manifest, summary: Summary) -> str:
    """The smallest change for the worse that is seen on four nights of five, in words."""
    least, against = detectable(manifest, summary)
    if least is None:
        return ""
    what = "drop" if summary.higher_is_better else "rise"
    return f"a {what} of {number(least)} or more{against} would be seen"


def detectable(manifest: Manifest, summary: Summary) -> tuple[float | None, str]:
    """The minimum detectable effect: of the comparison that a rule made over all rows, where there
    is one, else of the mean against a known level."""
    for finding in manifest.findings:
        own = finding.kind == "metric" and finding.metric == summary.metric
        if own and finding.segment is None and finding.drop is not None and finding.mde is not None:
            return finding.mde, f" against {brief(finding.baseline_label, 60)}"
    return summary.mde, ""


def _bins(histogram: Sequence[int]) -> tuple[Bin, ...]:
    total = sum(histogram)
    return tuple(
        Bin(bin_label(i, len(histogram)), rows, share(rows, total))
        for i, rows in enumerate(histogram)
    )

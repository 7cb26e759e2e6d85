"""One metric in one night: what its card and its bins table say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragmetrics.model import ComparedMeans, Manifest, Summary, mix_text, movement_text
from ragmetrics.report.figure_layout import bin_label
from ragmetrics.report.formatting import brief, number, plural
from ragmetrics.report.night_status import metric_states, needing_reader
from ragmetrics.report.night_tables import STATUS
from ragmetrics.report.trends import change, scored
from ragmetrics.text import share

MOST_DRAWN = 20
"""Metrics with their distribution: a page stays below 300 kB with twice as many."""


@dataclass(frozen=True)
class HistogramBin:
    """A tenth of the scale."""

    label: str
    rows: int
    share: str


@dataclass(frozen=True)
class MovedMean:
    """How far a mean moved against its baseline, and how sure that is."""

    by: float
    low: float | None
    high: float | None
    """Of its 95% interval."""
    worse: bool
    label: str
    """The baseline: `7 nights before`, `2026-11-18`."""
    before: float | None
    """Mean of all rows of the baseline."""
    ruled: bool
    """Whether a rule or the headline measured it."""
    means: ComparedMeans | None = None
    """Both means over the questions that it is measured on; None where it is that of all rows, or
    an older version kept none."""

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Card:
    """A metric's numbers with what they rest on."""

    summary: Summary
    moved: MovedMean | None
    state: str | None
    """Of the worst rule on the metric over all rows; None where no rule watches it."""
    mix: str
    """What of its move is another mix of tags, in words; empty where that is nothing."""
    detects: str
    """How far it must fall to be seen; nothing where too few questions were asked to tell."""
    moves: str
    """How far its judge moves from night to night; nothing where that is nothing."""
    unscored: tuple[str, ...]
    bins: tuple[HistogramBin, ...]
    """Empty where the page has no room for more distributions."""

    @property
    def not_scored(self) -> int:
        """Rows that should have a score and have none."""
        counts = self.summary.status.items()
        return sum(rows for status, rows in counts if status not in ("scored", "not_sampled"))


def cards(manifest: Manifest, earlier: Sequence[Manifest]) -> list[Card]:
    """One card per metric: those that need a reader first, then in the manifest's order."""
    states = metric_states(manifest)
    ordered = sorted(manifest.metrics, key=lambda s: needing_reader(s.metric, states))
    return [
        _card(manifest, one, states.get(one.metric), earlier, drawn=place < MOST_DRAWN)
        for place, one in enumerate(ordered)
    ]


def _card(
    manifest: Manifest,
    summary: Summary,
    state: str | None,
    earlier: Sequence[Manifest],
    *,
    drawn: bool,
) -> Card:
    has_mean = scored(manifest, summary.metric) is not None
    return Card(
        summary=summary,
        moved=moved(manifest, summary, earlier) if has_mean else None,
        state=state,
        mix=_mix(manifest, summary.metric) if has_mean else "",
        detects=detects(manifest, summary),
        moves=movement_text(summary.movement) if has_mean else "",
        unscored=tuple(
            f"{plural(rows, 'row')} {STATUS.get(status, status)}"
            for status, rows in sorted(summary.status.items())
            if status != "scored" and rows
        ),
        bins=_bins(summary.histogram) if has_mean and drawn else (),
    )


def moved(manifest: Manifest, summary: Summary, earlier: Sequence[Manifest]) -> MovedMean | None:
    """The move that a drop rule or the headline measured, question by question; without one, that
    since the newest earlier night that compares. None where there is no such night.
    """
    sign = -1 if summary.higher_is_better else 1
    for found in _measured(manifest, summary.metric):
        ends = (sign * one if one is not None else None for one in (found.low, found.high))
        low, high = sorted(ends, key=lambda one: (one is None, one or 0.0))
        label, worse = brief(found.label, 60), found.by > 0
        return replace(found, by=sign * found.by, low=low, high=high, worse=worse, label=label)
    since = change(manifest, summary, earlier)
    if since is None:
        return None
    then = next((one.summary(summary.metric) for one in earlier if one.date == since.since), None)
    before, day = then.mean if then else None, str(since.since)
    return MovedMean(since.by, since.low, since.high, since.worse, day, before, False, since.means)


def _measured(manifest: Manifest, metric: str) -> Iterator[MovedMean]:
    """Drops, whose signs are not turned yet."""
    for one in manifest.findings:
        own = one.kind == "metric" and one.metric == metric and one.segment is None
        if own and one.drop is not None and (label := one.baseline_label):
            ends = one.drop_low, one.drop_high
            yield MovedMean(one.drop, *ends, False, label, one.baseline, True, one.means)
    for fall in manifest.falls:
        if fall.metric == metric:
            ends = fall.low, fall.high
            yield MovedMean(fall.drop, *ends, True, fall.label, fall.before, True, fall.means)


def _mix(manifest: Manifest, metric: str) -> str:
    """Of the first rule over all rows that held like against like."""
    for one in manifest.findings:
        own = one.kind == "metric" and one.metric == metric and one.segment is None
        if own and one.mix is not None and one.drop is not None:
            told = mix_text(one.drop + one.mix, one.mix, one.mix_tags)
            return f"like for like: {told}" if told else ""
    return ""


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


def _bins(histogram: Sequence[int]) -> tuple[HistogramBin, ...]:
    total = sum(histogram)
    return tuple(
        HistogramBin(bin_label(i, len(histogram)), rows, share(rows, total))
        for i, rows in enumerate(histogram)
    )

"""One metric in one night: the content of its card, and of the table of its distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ragmetrics.dashboard.formatting import brief
from ragmetrics.dashboard.night_status import metric_states, needing_reader
from ragmetrics.dashboard.night_tables import STATUS
from ragmetrics.dashboard.trends import MeanMove, change, scored
from ragmetrics.metrics import unit_of
from ragmetrics.records import Finding, Manifest, Summary, mix_text, movement_text
from ragmetrics.text import plural, with_unit

MOST_DRAWN = 20
"""Metrics with a distribution. A page with twice as many metrics stays below 300 kB."""


@dataclass(frozen=True)
class Card:
    """A metric's numbers with their evidence."""

    summary: Summary
    moved: MeanMove | None
    state: str | None
    """The state of the worst rule on the metric over all rows; None if no rule watches it."""
    mix: str
    """The part of the move that is due to another mix of tags; empty if there is none."""
    detects: str
    """The smallest drop that is detected; empty if there are too few questions to say."""
    moves: str
    """How far the judge moves from night to night; empty if it does not."""
    unscored: tuple[str, ...]
    bins: tuple[int, ...]
    """Rows in each tenth of the scale. Empty if the page has no room for more distributions."""

    @property
    def not_scored(self) -> int:
        """Rows that should have a score and have none."""
        counts = self.summary.status.items()
        return sum(rows for status, rows in counts if status not in ("scored", "not_sampled"))


def cards(manifest: Manifest, earlier: Sequence[Manifest]) -> list[Card]:
    """One card per metric: those that need attention first, then in the manifest's order."""
    states, key = metric_states(manifest), needing_reader(manifest)
    ordered = sorted(manifest.metrics, key=lambda summary: key(summary.metric))
    return [
        _card(manifest, summary, states.get(summary.metric), earlier, drawn=place < MOST_DRAWN)
        for place, summary in enumerate(ordered)
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
        detects=_detects(manifest, summary),
        moves=movement_text(summary.movement) if has_mean else "",
        unscored=tuple(
            f"{plural(rows, 'row')} {summary.status_text(status, STATUS.get(status, status))}"
            for status, rows in sorted(summary.status.items())
            if status != "scored" and rows
        ),
        bins=tuple(summary.histogram) if has_mean and drawn else (),
    )


def moved(manifest: Manifest, summary: Summary, earlier: Sequence[Manifest]) -> MeanMove | None:
    """The move that a drop rule or the check of unwatched metrics measured, question by question;
    without one, the move since the newest earlier night that compares. None if no night does.
    """
    for move, rise in _measured(manifest, summary):
        sign = 1 if rise else -1
        ends = (sign * one if one is not None else None for one in (move.low, move.high))
        low, high = sorted(ends, key=lambda one: (one is None, one or 0.0))
        return replace(move, by=sign * move.by, low=low, high=high)
    return change(manifest, summary, earlier)


def _measured(manifest: Manifest, summary: Summary) -> Iterator[tuple[MeanMove, bool]]:
    """The metric's measured drops, as moves whose `by` is the drop, and whether it is a rise."""
    metric = summary.metric
    for rule in _rules(manifest, metric):
        if rule.drop is not None and (label := brief(rule.baseline_label or "", 60)):
            ends, before = (rule.drop_low, rule.drop_high), rule.baseline
            worse = rule.drop > 0
            move = MeanMove(rule.drop, *ends, worse, label, before, rule.means, by_rule=True)
            yield move, rule.rise
    for fall in manifest.falls:
        if fall.metric == metric:
            ends, label = (fall.low, fall.high), brief(fall.label, 60)
            worse = fall.drop > 0
            move = MeanMove(fall.drop, *ends, worse, label, fall.before, fall.means, by_rule=True)
            yield move, not summary.higher_is_better


def _mix(manifest: Manifest, metric: str) -> str:
    """What the first rule over all rows says about the mix of tags."""
    for rule in _rules(manifest, metric):
        if rule.mix is not None and rule.drop is not None:
            words = mix_text(rule.drop + rule.mix, rule.mix, rule.mix_tags)
            return f"like for like: {words}" if words else ""
    return ""


def _rules(manifest: Manifest, metric: str) -> Iterator[Finding]:
    """The findings of rules on the metric over all rows."""
    for finding in manifest.findings:
        if finding.is_rule and finding.metric == metric and finding.segment is None:
            yield finding


def _detects(manifest: Manifest, summary: Summary) -> str:
    """The smallest change for the worse that is found with a probability of 80%, in words."""
    least, compared = detectable(manifest, summary)
    if least is None:
        return ""
    what = {True: "drop", False: "rise", None: "change"}[summary.higher_is_better]
    return f"smallest detectable {what} {with_unit(least, unit_of(summary.metric))}{compared}"


def detectable(manifest: Manifest, summary: Summary) -> tuple[float | None, str]:
    """The minimum detectable effect, and the baseline of a rule's comparison over all rows. Without
    such a rule it is that of the mean compared with a known level.
    """
    for rule in _rules(manifest, summary.metric):
        if rule.drop is not None and rule.mde is not None:
            return rule.mde, f" compared with {brief(rule.baseline_label, 60)}"
    return summary.mde, ""

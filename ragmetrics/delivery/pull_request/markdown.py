"""Reports of a comparison or a gate for a pull request, and what they conclude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragmetrics.messages import (
    FORMATS,
    SIGNS,
    Block,
    comparison_report,
    gate_report,
    is_web_address,
)
from ragmetrics.metrics import display_name
from ragmetrics.records import Comparison, Gate, MetricChange, build_words
from ragmetrics.text import clean

COMMENT_LIMIT = 60_000
"""Most characters of a report; GitHub takes 65,536 in a comment."""
Conclusion = Literal["passed", "failed", "inconclusive"]
_GATE: dict[str, Conclusion] = {
    "promote": "passed",
    "hold": "failed",
    "inconclusive": "inconclusive",
}


@dataclass(frozen=True)
class CheckResult:
    """What a pull request shows."""

    conclusion: Conclusion
    title: str
    """One line of plain text."""
    markdown: str
    """The whole report."""
    link: str = ""
    """Address of a page with the whole result; empty: there is none."""

    @classmethod
    def without(cls, reason: str) -> CheckResult:
        """The result where nothing could be computed, so that an older comment does not stay."""
        title = "ragmetrics: the comparison ended without a result"
        return cls("failed", title, f"## {title}\n\n{reason}\n")


def drop_conclusion(change: MetricChange, max_drop: float) -> Conclusion:
    """Whether a metric dropped by more than a limit.

        failed          the drop is above the limit, and significant (adjusted p below 5%)
        passed          the whole 95% interval of the drop is at the limit or below it
        inconclusive    anything else: there are too few questions to tell

    A metric that could not be compared is inconclusive. Where lower is better, a rise is a drop.
    """
    if change.significantly_worse(max_drop):
        return "failed"
    if change.low is None or change.high is None:
        return "inconclusive"
    largest = -change.low if change.higher_is_better else change.high
    return "passed" if largest <= max_drop else "inconclusive"


def comparison_result(comparison: Comparison, max_drop: float, link: str = "") -> CheckResult:
    """The check of a comparison: failed if a metric, or one in a segment, dropped significantly by
    more than `max_drop`; inconclusive if some metric may have, or if there is no metric at all.
    """
    by_metric = {one.metric: drop_conclusion(one, max_drop) for one in comparison.metrics}
    worse = comparison.significantly_worse(max_drop)
    if worse:
        conclusion: Conclusion = "failed"
        most = max(worse, key=lambda one: one.loss or 0.0)
        where = f" of {most.segment}" if most.segment else ""
        much = f"by {most.loss or 0.0:.3f}, more than {max_drop:g}"
        summary = f"{display_name(most.metric)}{where} got worse {much}"
        summary += f" (and {len(worse) - 1} more)" if len(worse) > 1 else ""
    elif open_ones := [name for name, one in by_metric.items() if one == "inconclusive"]:
        conclusion = "inconclusive"
        names = ", ".join(map(display_name, open_ones))
        summary = f"too few questions to rule out a drop of {max_drop:g}: {names}"
    elif not comparison.metrics:
        conclusion, summary = "inconclusive", "there is no metric to compare"
    else:
        conclusion, summary = "passed", f"no metric got worse by more than {max_drop:g}"
    title = f"Retrieval {conclusion}"
    shown = link if is_web_address(link) else ""
    heading = f"{SIGNS[conclusion]} {title}"
    blocks = comparison_report(comparison, heading, summary, by_metric, worse, shown)
    return _result(conclusion, f"{title}: {summary}", blocks, link)


def gate_result(gate: Gate, link: str = "") -> CheckResult:
    """The check of a gate: promote is passed, hold is failed."""
    against = f" against {gate.serving}" if gate.serving else ""
    title = f"Index {build_words(gate.build)}{against}: {gate.verdict}"
    shown = link if is_web_address(link) else ""
    return _result(_GATE[gate.verdict], title, gate_report(gate, "builds", shown), link)


def _result(conclusion: Conclusion, title: str, blocks: Sequence[Block], link: str) -> CheckResult:
    markdown: str = FORMATS.find("pull_request").render(blocks, COMMENT_LIMIT)
    web = link if is_web_address(link) else ""
    return CheckResult(conclusion, clean(title, 300), f"{markdown}\n", web)

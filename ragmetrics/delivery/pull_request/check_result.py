"""The result of a check on a pull request: passed, failed or inconclusive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragmetrics.records import MetricChange

Conclusion = Literal["passed", "failed", "inconclusive"]


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

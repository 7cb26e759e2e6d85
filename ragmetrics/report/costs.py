"""What a night cost: who was asked what by which metric, and what its budget let be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.records import BudgetReport, Limits, Manifest, Usage
from ragmetrics.report.words import NONE, plural, share


@dataclass(frozen=True)
class Cost:
    """What one metric asked of one judge."""

    metric: str
    judge: str
    usage: Usage

    @property
    def cached(self) -> str:
        """The share of the prompts that the endpoint had in its cache."""
        return cached_share(self.usage)


def costs(manifest: Manifest) -> Sequence[Cost]:
    """One line per metric and judge, in the manifest's order; none where nothing was paid for."""
    lines = [
        Cost(metric, judge, usage)
        for metric, of in manifest.usage_by_metric.items()
        for judge, usage in of.items()
        if usage.requests or usage.answered_from_store or usage.shared
    ]
    return lines if any(line.usage.prompt_tokens for line in lines) else []


def cached_share(usage: Usage) -> str:
    """`78%`; nothing where the endpoint says nothing of it."""
    return share(usage.cached_tokens, usage.prompt_tokens) if usage.cached_tokens else ""


def money(usd: float | None) -> str:
    """`$12.34`, in more digits below a dollar; a dash where no price is known."""
    if usd is None:
        return NONE
    return f"${usd:,.2f}" if usd >= 1 or not usd else f"${usd:.4f}"


def limits(one: Limits) -> str:
    """A budget in words: `1,000 requests, $2.50`."""
    found = [
        plural(one.max_requests, "request") if one.max_requests is not None else "",
        plural(one.max_tokens, "token") if one.max_tokens is not None else "",
        money(one.max_usd) if one.max_usd is not None else "",
    ]
    return ", ".join(filter(None, found))


def spent(usage: Usage) -> str:
    """What was spent in words: `950 requests, 160,000 tokens, $0.09`."""
    tokens = usage.prompt_tokens + usage.completion_tokens
    told = f"{plural(usage.requests, 'request')}, {plural(tokens, 'token')}"
    return told if usage.usd is None else f"{told}, {money(usage.usd)}"


def budget(report: BudgetReport) -> str:
    """In a sentence, what the budget let be judged."""
    if report.share == 1 and not report.rows_over:
        return "enough for all questions"
    return f"enough for {report.share:.1%} of the questions; {plural(report.rows_over, 'row')} over"

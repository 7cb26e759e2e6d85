"""Prints requests, tokens and cost: estimated before a run, and used by a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from ragmetrics.cli.table import print_grid, shown
from ragmetrics.dashboard import (
    budget_lines,
    cached_text,
    certain_text,
    cost_lines,
    limits_text,
    money_text,
    sample_lines,
    unknown_text,
    usage_text,
)
from ragmetrics.records import BudgetReport, Manifest, Usage
from ragmetrics.text import clean, share

if TYPE_CHECKING:
    from ragmetrics.scoring import Estimate

_COUNTS = {
    "asked": "requests",
    "known": "answered_from_store",
    "shared": "shared",
    "in": "prompt_tokens",
    "cached": "cached_tokens",
    "out": "completion_tokens",
}
_FREE = "Requests: no paid requests"

ByMetric = Mapping[str, Mapping[str, Usage]]


def print_usage(console: Console, by_metric: ByMetric, usage: Usage) -> None:
    """Print a line of requests and tokens, after a table if several metrics cost money."""
    if not any(by_metric.values()) and usage == Usage():
        console.print(_FREE)
        return
    if len(by_metric) > 1 and usage.prompt_tokens:
        _print_table(console, by_metric)
    asked = f"Requests: {usage.requests:,}, reused from cache: {usage.answered_from_store:,}"
    if usage.shared:
        asked += f", shared by equal ones: {usage.shared:,}"
    if usage.prompt_tokens or usage.completion_tokens:
        of_them = f" ({cached_text(usage)})" if usage.cached_tokens else ""
        asked += f"; tokens: {usage.prompt_tokens:,} in{of_them}, {usage.completion_tokens:,} out"
        asked += f" ({usage.reasoning_tokens:,} reasoning)" if usage.reasoning_tokens else ""
    console.print("; ".join(filter(None, (asked, money_text(usage, by_metric)))))
    if unknown := unknown_text(usage):
        console.print(f"Of it {unknown}", style="yellow")
    for name in dict.fromkeys(name for of in by_metric.values() for name in of):
        own = sum((of[name] for of in by_metric.values() if name in of), Usage())
        if certain := certain_text(own):
            console.print(f"Cascade: {clean(name, 200)} was {certain}")
    if usage.hedged:
        console.print(f"Sent a second time, because they took long: {usage.hedged:,}")
    if usage.failures:
        text = ", ".join(f"{clean(kind, 60)} {n:,}" for kind, n in usage.failures.items())
        console.print(f"Failed attempts (most were retried): {text}")


def _print_table(console: Console, by_metric: ByMetric) -> None:
    """Print requests and tokens of each metric and judge; columns of zeros are left out."""
    lines = cost_lines(by_metric)
    counts = {
        name: field
        for name, field in _COUNTS.items()
        if field == "requests" or any(getattr(line.usage, field) for line in lines)
    }
    priced = any(line.usage.usd or line.known_usd for line in lines)
    rows = []
    for line in lines:
        label = f"  {clean(line.label, 60)}" if line.is_part else shown(line.label)
        cells = [f"{getattr(line.usage, field):,}" for field in counts.values()]
        rows.append([label, *cells, *([line.money] if priced else [])])
    print_grid(console, ["metric", *counts, *(["money"] if priced else [])], rows)


def print_budget(console: Console, report: BudgetReport) -> None:
    """Print the budget, its use, and the share of questions that was judged."""
    spent, judged, over = budget_lines(report)
    console.print(spent)
    console.print(judged, style="yellow" if over else None)


def print_sample(console: Console, manifest: Manifest) -> None:
    """Print the sample of a run: judged rows, their cost, and the cost of all rows."""
    lines, warning = sample_lines(manifest)
    for line in lines:
        console.print(line)
    if warning:
        console.print(warning, style="yellow")


def print_labelled(console: Console, usage: Usage | None) -> None:
    """Print the cost of judging the labelled set for judge drift, if there was any."""
    if usage is not None:
        console.print(f"Labelled set (not in the figures above): {usage_text(usage)}")


def print_estimate(console: Console, estimate: Estimate) -> None:
    """Print the requests and the cost of a run that is not done."""
    total, plan = estimate.total, estimate.plan
    console.print(f"Rows: {estimate.rows:,}; nothing was sent")
    if not estimate.by_metric:
        console.print(_FREE)
        return
    _print_table(console, estimate.by_metric)
    if estimate.also:
        console.print(estimate.also[0].upper() + estimate.also[1:])
    least = "at least " if estimate.at_least else "about " if estimate.about else ""
    least = "at most " if estimate.at_most else least
    text = f"A run would send {least}{total.requests:,} requests: "
    text += f"{total.prompt_tokens:,} tokens in, {total.completion_tokens:,} out"
    console.print("; ".join(filter(None, (text, money_text(total, estimate.by_metric)))))
    console.print(
        f"In the store already: {total.answered_from_store:,}; "
        f"shared with an equal request: {total.shared:,}"
    )
    if estimate.at_most:
        console.print(
            "Upper bound: no night of this cascade is in the store, so its earlier judges count as "
            "certain of nothing that they were not asked before"
        )
    if estimate.at_least:
        names = ", ".join(map(shown, estimate.at_least))
        console.print(f"Lower bound; follow-up requests cannot be estimated for: {names}")
    if estimate.sample and estimate.whole:
        for group in estimate.sample.groups:
            names = ", ".join(map(shown, group.metrics))
            console.print(f"Sample: {group.judged:,} of {group.rows:,} rows by {names}")
        console.print(f"All rows would need {usage_text(estimate.whole)}")
    if plan:
        part = share(plan.share, 1)
        console.print(
            f"The budget ({limits_text(plan.limits)}) is enough for {part} of the questions"
        )

"""What the command line prints of requests, tokens and money: before a run, and after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from ragmetrics.cli.table import print_grid
from ragmetrics.model import BudgetReport, Manifest, Usage
from ragmetrics.report import (
    budget_text,
    cached_share,
    cost_lines,
    limits_text,
    money_text,
    narrowed_text,
    sample_cost_text,
    sample_text,
    too_wide,
    usage_text,
    was_over,
)
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
_FREE = "Requests: none that costs anything"

ByMetric = Mapping[str, Mapping[str, Usage]]


def print_usage(console: Console, by_metric: ByMetric, usage: Usage) -> None:
    """What was asked: a line, and where several metrics asked and paid, a table before it."""
    if not any(by_metric.values()) and usage == Usage():
        console.print(_FREE)
        return
    if len(by_metric) > 1 and usage.prompt_tokens:
        _print_table(console, by_metric)
    asked = f"Requests: {usage.requests:,}, reused from cache: {usage.answered_from_store:,}"
    if usage.shared:
        asked += f", shared by equal ones: {usage.shared:,}"
    if usage.prompt_tokens or usage.completion_tokens:
        of_them = f" ({cached_share(usage)} cached)" if usage.cached_tokens else ""
        asked += f"; tokens: {usage.prompt_tokens:,} in{of_them}, {usage.completion_tokens:,} out"
    told = "; ".join(filter(None, (asked, money_text(usage, by_metric))))
    console.print(told, markup=False, soft_wrap=True)
    if usage.failures:
        told = ", ".join(f"{clean(kind, 60)} {n:,}" for kind, n in usage.failures.items())
        console.print(f"Failed attempts (most were retried): {told}", markup=False)


def _print_table(console: Console, by_metric: ByMetric) -> None:
    """Requests, and tokens in and out, of each metric and judge: the columns that say something."""
    lines = cost_lines(by_metric)
    counts = {
        name: field
        for name, field in _COUNTS.items()
        if field == "requests" or any(getattr(one.usage, field) for one in lines)
    }
    priced = any(one.usage.usd or one.known_usd for one in lines)
    rows = []
    for one in lines:
        label = f"  {clean(one.label, 60)}" if one.is_part else clean(one.label, 300)
        cells = [f"{getattr(one.usage, field):,}" for field in counts.values()]
        rows.append([label, *cells, *([one.money] if priced else [])])
    print_grid(console, ["metric", *counts, *(["money"] if priced else [])], rows)


def print_budget(console: Console, report: BudgetReport) -> None:
    """What the budget was, what it let be judged, and what of it was spent."""
    console.print(
        f"Budget: {limits_text(report.limits)}; spent: {usage_text(report.spent)}", soft_wrap=True
    )
    style = "yellow" if was_over(report) else None
    console.print(f"  {budget_text(report)}", style=style, soft_wrap=True)


def print_sample(console: Console, manifest: Manifest) -> None:
    """Of a sampled run, how many rows were judged, what that cost and what all would have cost."""
    report = manifest.sample
    if report is None:
        return
    told = f"Sample: {sample_text(report, manifest.source.rows)}; {sample_cost_text(report)}"
    console.print(told, markup=False, soft_wrap=True)
    if by := narrowed_text(manifest.metrics):
        told = f"  intervals are narrower than those of the judged rows alone: {by}"
        console.print(told, markup=False, soft_wrap=True)
    if wide := too_wide(report, manifest.metrics):
        console.print(f"  intervals {wide}", markup=False, style="yellow", soft_wrap=True)


def print_labelled(console: Console, usage: Usage | None) -> None:
    """What judging the labelled set for judge drift cost, where it was paid for."""
    if usage is not None:
        told = f"Labelled set, in no other figure: {usage_text(usage)}"
        console.print(told, markup=False, soft_wrap=True)


def print_estimate(console: Console, estimate: Estimate) -> None:
    """What a run would ask for and cost."""
    total, plan = estimate.total, estimate.plan
    console.print(f"Rows: {estimate.rows:,}; nothing was sent")
    if not estimate.by_metric:
        console.print(_FREE)
        return
    _print_table(console, estimate.by_metric)
    least = "at least " if estimate.at_least else "about " if estimate.about else ""
    told = f"Would ask for {least}{total.requests:,} requests, "
    told += f"{total.prompt_tokens:,} tokens in, {total.completion_tokens:,} out"
    told = "; ".join(filter(None, (told, money_text(total, estimate.by_metric))))
    console.print(told, markup=False, soft_wrap=True)
    console.print(
        f"Known already: {total.answered_from_store:,}; "
        f"asked once though wanted more often: {total.shared:,}",
        soft_wrap=True,
    )
    if estimate.at_least:
        names = ", ".join(estimate.at_least)
        console.print(
            f"Lower bound; follow-up requests cannot be estimated for: {names}", soft_wrap=True
        )
    if estimate.sample and estimate.whole:
        for group in estimate.sample.groups:
            names = ", ".join(group.metrics)
            told = f"Sample: {group.judged:,} of {group.rows:,} rows by {names}"
            console.print(told, markup=False, soft_wrap=True)
        told = f"All rows would ask for {usage_text(estimate.whole)}"
        console.print(told, markup=False, soft_wrap=True)
    if plan:
        part = share(plan.share, 1)
        told = f"The budget ({limits_text(plan.limits)}) is for {part} of the questions"
        console.print(told, soft_wrap=True)

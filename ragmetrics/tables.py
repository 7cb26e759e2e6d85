"""What the command line prints for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import TYPE_CHECKING, TypeVar

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import track as rich_track
from rich.table import Table

from ragmetrics.alerts.markup import clean
from ragmetrics.alerts.terminal import render
from ragmetrics.protocol import Status
from ragmetrics.records import BudgetReport, Manifest, Summary, Usage
from ragmetrics.registry import Metric
from ragmetrics.report.costs import budget, cached_share, limits, money, spent

if TYPE_CHECKING:
    from ragmetrics.checking import CheckReport
    from ragmetrics.estimates import Estimate
    from ragmetrics.night import NightResult

T = TypeVar("T")
_EXAMPLES = 10


@contextmanager
def progress(
    console: Console, what: str, *, quiet: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(what, total=None)

        def advance(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        yield advance


def track(items: Sequence[T], what: str, console: Console) -> Iterator[T]:
    """The items, with a bar on a terminal."""
    hidden = not console.is_terminal
    yield from rich_track(items, what, console=console, transient=True, disable=hidden)


def print_summary(console: Console, manifest: Manifest) -> None:
    """Means with intervals, then all that stands behind them."""
    source = manifest.source
    table = _table("metric", "mean", "95% interval", "scored", "questions", "not scored")
    for one in manifest.metrics:
        rest = [f"{n:,} {status}" for status, n in one.status.items() if status != Status.SCORED]
        table.add_row(
            one.metric,
            number(one.mean),
            interval(one),
            f"{one.scored:,}",
            f"{one.questions:,}",
            ", ".join(rest),
        )
    console.print(table)
    _print_panel(console, manifest)
    print_source(console, source.rows, source.quarantined, source.reasons)
    _print_skipped(console, source.skipped)
    for broken in source.broken:
        console.print(f"Broken file {broken.file}: {broken.reason}", markup=False, style="red")
    console.print(f"Judge: {manifest.judge.name} ({manifest.judge.fingerprint})", markup=False)
    if manifest.judge.note:
        console.print(f"Note: {manifest.judge.note}", markup=False, style="yellow")
    _print_usage(console, manifest.usage_by_metric, manifest.usage)
    if manifest.budget:
        _print_budget(console, manifest.budget)
    if manifest.splits:
        counts = ", ".join(f"{n:,} {reason}" for reason, n in manifest.splits.items())
        console.print(f"Texts split by the plain splitter: {counts}", markup=False)


def _print_usage(
    console: Console, by_metric: Mapping[str, Mapping[str, Usage]], usage: Usage
) -> None:
    """What was asked: a line, and where several metrics asked and paid, a table before it."""
    if len(by_metric) > 1 and usage.prompt_tokens:
        console.print(_usage_table(by_metric))
    asked = f"Requests: {usage.requests:,}, answered from the store: {usage.answered_from_store:,}"
    if usage.shared:
        asked += f", shared by equal ones: {usage.shared:,}"
    if usage.prompt_tokens or usage.completion_tokens:
        of_them = f" ({cached_share(usage)} cached)" if usage.cached_tokens else ""
        asked += f"; tokens: {usage.prompt_tokens:,} in{of_them}, {usage.completion_tokens:,} out"
    if usage.usd is not None:
        asked += f"; {money(usage.usd)}"
    console.print(asked, soft_wrap=True)
    if usage.failures:
        told = ", ".join(f"{clean(kind, 60)} {n:,}" for kind, n in usage.failures.items())
        console.print(f"Came to nothing, and most asked again: {told}", markup=False)


_COUNTS = {
    "asked": "requests",
    "known": "answered_from_store",
    "shared": "shared",
    "in": "prompt_tokens",
    "cached": "cached_tokens",
    "out": "completion_tokens",
}


def _usage_table(by_metric: Mapping[str, Mapping[str, Usage]]) -> Table:
    """Requests, and tokens in and out, of each metric and judge: the columns that say something."""
    lines = []
    for metric, of in by_metric.items():
        told = [name for name, one in of.items() if any(getattr(one, n) for n in _COUNTS.values())]
        main = max(told, key=lambda name: of[name].requests, default="")
        for name in sorted(told, key=lambda name: name != main):
            lines.append((metric if name == main else f"  {clean(name, 30)}", of[name]))
    counts = {
        name: field
        for name, field in _COUNTS.items()
        if field == "requests" or any(getattr(one, field) for _, one in lines)
    }
    priced = any(one.usd for _, one in lines)
    table = _table("metric", *counts, *(["money"] if priced else []), numbers=True)
    for label, one in lines:
        cells = [f"{getattr(one, field):,}" for field in counts.values()]
        table.add_row(escape(label), *cells, *([money(one.usd)] if priced else []))
    return table


def _print_budget(console: Console, report: BudgetReport) -> None:
    """What the budget was, what it let be judged, and what of it was spent."""
    console.print(f"Budget: {limits(report.limits)}; spent: {spent(report.spent)}", soft_wrap=True)
    over = report.share < 1 or report.rows_over
    console.print(f"  {budget(report)}", style="yellow" if over else None, soft_wrap=True)


def print_estimate(console: Console, estimate: Estimate) -> None:
    """What a run would ask for and cost."""
    total, plan = estimate.total, estimate.plan
    console.print(f"Rows: {estimate.rows:,}; nothing was sent")
    console.print(_usage_table(estimate.by_metric))
    least = "at least " if estimate.at_least else ""
    told = f"Would ask for {least}{total.requests:,} requests, "
    told += f"{total.prompt_tokens:,} tokens in, {total.completion_tokens:,} out"
    if total.prompt_tokens:
        known = total.usd is not None
        told += f"; {money(total.usd)}" if known else "; money not known: a price is not set"
    console.print(told, soft_wrap=True)
    console.print(
        f"Known already: {total.answered_from_store:,}; "
        f"asked once though wanted more often: {total.shared:,}",
        soft_wrap=True,
    )
    if estimate.at_least:
        names = ", ".join(estimate.at_least)
        console.print(f"May ask for more, nobody can tell how they go on: {names}", soft_wrap=True)
    if plan:
        console.print(
            f"The budget ({limits(plan.limits)}) is for {plan.share:.1%} of the questions",
            soft_wrap=True,
        )


def _print_panel(console: Console, manifest: Manifest) -> None:
    """What each judge of a panel makes of it, how they agree, and how steady they are."""
    panel = manifest.judge.panel
    if panel:
        table = _table("metric", "agreement", *(escape(clean(name, 60)) for name in panel))
        for one in (one for one in manifest.metrics if one.judges):
            cells = [
                number(judge.mean) + (f" ({judge.failed:,} failed)" if judge.failed else "")
                for judge in one.judges
            ]
            table.add_row(one.metric, number(one.agreement), *cells)
        console.print(table)
    spreads = {one.metric: one.spread for one in manifest.metrics if one.spread is not None}
    if spreads:
        steady = ", ".join(f"{metric} {spread:.3f}" for metric, spread in spreads.items())
        console.print(f"Spread over repeats: {steady}")
    for problem in manifest.problems:
        console.print(f"Problem: {clean(problem, 300)}", markup=False, style="red")


def print_source(console: Console, rows: int, quarantined: int, reasons: dict[str, int]) -> None:
    """How many rows were read, and why the others were not."""
    console.print(f"Rows: {rows:,}, quarantined: {quarantined:,}")
    for reason, count in list(reasons.items())[:_EXAMPLES]:
        console.print(f"  {count:,}  {clean(reason, 300)}", markup=False)


def _print_skipped(console: Console, skipped: dict[str, int]) -> None:
    """What a preset passed over, as it is no retrieval."""
    if skipped:
        console.print(f"Skipped: {sum(skipped.values()):,}")
    for reason, count in skipped.items():
        console.print(f"  {count:,}  {clean(reason, 300)}", markup=False)


def print_check(console: Console, report: CheckReport) -> None:
    """What a check of logs found."""
    console.print(f"Files: {report.files:,}")
    print_source(console, report.rows, report.quarantined, dict(report.reasons.most_common()))
    for place in list(report.examples.values())[:_EXAMPLES]:
        console.print(f"    first at {clean(place, 300)}", markup=False)
    _print_skipped(console, dict(report.skipped.most_common()))
    for broken in report.broken:
        console.print(f"Broken file {broken}", markup=False, style="red")
    fields = _table("field", "rows with it")
    for name, count in report.filled.most_common():
        fields.add_row(name, f"{count:,}")
    console.print(fields)
    table = _table("metric", "rows with what it needs")
    for name, count in report.runnable.items():
        table.add_row(name, f"{count:,}" if count else "none: see `ragmetrics metrics`")
    console.print(table)


def print_metrics(console: Console, metrics: Sequence[Metric]) -> None:
    """The metrics there are: what each measures, how, from what and at what price."""
    for metric in metrics:
        text = f"[bold]{escape(metric.name)}[/bold]  {escape(metric.title)}"
        console.print(text, soft_wrap=True)
        console.print(indent(metric.formula, "    "), markup=False, style="cyan", soft_wrap=True)
        facts = f"    needs: {', '.join(metric.needs)}\n    judge calls per row: {metric.calls}\n"
        console.print(facts, markup=False, soft_wrap=True)
    console.print("One of them in full: ragmetrics metrics NAME")


def print_metric(console: Console, metric: Metric) -> None:
    """All there is to know of one metric."""
    console.print(metric.name, style="bold")
    console.print(metric.description, markup=False, soft_wrap=True)
    console.print(f"\nNeeds: {', '.join(metric.needs)}", markup=False, soft_wrap=True)
    console.print(f"Judge calls per row: {metric.calls}", markup=False, soft_wrap=True)


def print_nights(console: Console, results: Sequence[NightResult]) -> None:
    """One line per night: the means that rules watch, and what fired."""
    findings = [one for result in results for one in result.manifest.findings]
    watched = list(dict.fromkeys(one.metric for one in findings if one.kind == "metric"))
    names = [name for name in watched if name]
    table = _table("night", "rows", *names, "alerts")
    for result in results:
        manifest = result.manifest
        means = [number(one.mean) if (one := manifest.summary(name)) else "" for name in names]
        told = [
            f"{one.transition}: {escape(one.rule)}" for one in manifest.findings if one.transition
        ]
        style = "bold red" if any("fired" in one for one in told) else None
        table.add_row(
            manifest.date.isoformat(),
            f"{manifest.source.rows:,}",
            *means,
            "\n".join(told),
            style=style,
        )
    console.print(table)
    if note := results[-1].manifest.judge.note:
        console.print(f"Judge {note}", markup=False)


def print_messages(console: Console, results: Sequence[NightResult]) -> None:
    """The Slack messages of the nights, as they read there."""
    for result in results:
        delivery = result.delivery
        if delivery.message is None:
            continue
        said = "sent" if delivery.sent else "not sent: SLACK_WEBHOOK_URL is not set"
        if delivery.errors:
            said = f"not delivered, kept for the next run: {delivery.errors[0]}"
        console.rule(escape(f"Slack message of {result.manifest.date} ({said})"), align="left")
        console.print(render(delivery.message), markup=False, soft_wrap=True)
        console.print()


def number(value: float | None) -> str:
    """Three digits, or a dash where there is none."""
    return "–" if value is None else f"{value:.3f}"


def interval(one: Summary) -> str:
    """The interval in brackets."""
    return "–" if one.low is None else f"[{number(one.low)}, {number(one.high)}]"


def _table(*columns: str, numbers: bool = False) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number_of, name in enumerate(columns):
        last = number_of == len(columns) - 1 and number_of > 1 and not numbers
        first = number_of == 0
        left = first or last
        # Folded, where there is no room: a number cut short is another number.
        table.add_column(name, justify="left" if left else "right", no_wrap=first, overflow="fold")
    return table

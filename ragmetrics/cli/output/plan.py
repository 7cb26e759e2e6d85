"""Prints what a night cost, and what each way to an interval would cost."""

from __future__ import annotations

from rich.console import Console

from ragmetrics.cli.table import print_grid, shown
from ragmetrics.dashboard import money
from ragmetrics.scoring import CostPlan
from ragmetrics.text import NO_VALUE


def print_plan(console: Console, plan: CostPlan) -> None:
    """Print a table of the metrics and their ways, the sums, and what is not known yet."""
    paid = "no price is set" if plan.usd is None else money(plan.usd)
    of = f"the last {plan.nights} nights" if plan.nights > 1 else "this night"
    console.print(
        f"Night of {plan.night}: {paid}; for ±{plan.half_width:g} of each mean, from {of}"
    )
    if not plan.metrics:
        console.print("No metric sent a request to a paid judge: there is nothing to plan")
        return
    lines = _lines(plan)
    if len(plan.metrics) > 1:
        totals = [(way, plan.total(way)) for way in plan.way_names]
        known = [(way, "", "", money(usd)) for way, usd in totals if usd is not None]
        lines += [("all metrics" if not place else "", *one) for place, one in enumerate(known)]
    print_grid(console, ("metric", "way", "rows", "±", "money"), lines, names=(0, 1))
    if plan.knows_cascade:
        console.print("cascade: ± of its own mean, which may differ from that of its last judge")
    for needs, ways in _missing(plan).items():
        console.print(f"{', '.join(ways)}: not known yet: needs {needs}")
    if plan.free:
        shared = ", ".join(map(shown, plan.free))
        console.print(f"No extra cost (shared verdicts, or no paid judge): {shared}")


def _lines(plan: CostPlan) -> list[tuple[str, str, str, str, str]]:
    """The last night and each way, metric by metric."""
    lines = []
    for metric in plan.metrics:
        name, judged = shown(metric.metric), f"{metric.judged:,}"
        lines.append((name, "last night", judged, _width(metric.half_width), money(metric.usd)))
        for way in metric.ways:
            rows = NO_VALUE if way.rows is None else f"{way.rows:,}"
            lines.append(("", way.name, rows, _width(way.half_width), money(way.usd)))
    return lines


def _width(half_width: float | None) -> str:
    return NO_VALUE if half_width is None else f"{half_width:.3f}"


def _missing(plan: CostPlan) -> dict[str, list[str]]:
    """What is missing, and the ways that need it; with the metric where not all need it."""
    needing: dict[tuple[str, str], list[str]] = {}
    for metric in plan.metrics:
        for way in metric.ways:
            if way.needs:
                needing.setdefault((way.needs, way.name), []).append(shown(metric.metric))
    missing: dict[str, list[str]] = {}
    for (needs, name), metrics in needing.items():
        of = "" if len(metrics) == len(plan.metrics) else f" of {', '.join(metrics)}"
        missing.setdefault(needs, []).append(f"{name}{of}")
    return missing

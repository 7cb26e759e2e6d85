"""Prints what people would say, and which labels were used."""

from __future__ import annotations

from rich.console import Console

from ragmetrics.cli.table import shown
from ragmetrics.records import FEWEST_LABELS, LabelReport, Manifest
from ragmetrics.text import clean

_REASONS = 10


def print_people(console: Console, manifest: Manifest) -> None:
    """Print what people would say of each metric; nothing without labels."""
    if manifest.labels is None:
        return
    for metric in manifest.metrics:
        if metric.people and metric.mean is not None:
            console.print(f"{shown(metric.metric)}: {metric.people.text(metric.mean)}")
    for name, rows in manifest.labels.lacking.items():
        console.print(f"{shown(name)}: {rows:,} labelled rows; people's mean needs {FEWEST_LABELS}")


def print_label_report(console: Console, report: LabelReport) -> None:
    """Print how many labels were read, and why others were not, or are not used."""
    empty = f", {report.empty:,} rows without a value" if report.empty else ""
    console.print(f"{report.labels:,} labels at {clean(report.place, 200)}{empty}")
    for name, rows in report.rows.items():
        console.print(f"  {shown(name)}: {rows:,} labelled rows are used")
    for what, counts in (("not read", report.rejected), ("not used", report.unused)):
        for reason, count in list(counts.items())[:_REASONS]:
            first = report.first.get(reason) if what == "not read" else None
            where = f" (first: {clean(first, 200)})" if first else ""
            console.print(f"  {count:,} {what}: {clean(reason, 200)}{where}")
    if report.problem:
        console.print(f"Problem: {clean(report.problem, 300)}", style="red")

"""What growing chunks do to the metrics: the numbers and the picture of docs/how-to/chunk-size.md.

    python -m scripts.chunk_size LOG [--judge J] [--out docs/images/chunk-size.png]

LOG holds each question twice, retrieved from an index of small chunks and from one of large ones,
with the size in `meta.chunk_size` and labels as docs/how-to/calibrating.md has them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import defaultdict
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright
from plotly.subplots import make_subplots
from rich.console import Console
from rich.table import Table

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.people.calibration.labelled_sets import AskedRow, read_sets
from ragmetrics.stats import mean_interval

METRICS = ("context_relevancy", "context_relevancy_chunks", "context_recall")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
COLOURS = ("#3b6fb6", "#d08a2e")


class Estimate(NamedTuple):
    """A mean with its interval."""

    mean: float
    low: float
    high: float


Means = dict[int, dict[str, Estimate]]
"""By chunk size, smallest first, and metric."""


def by_judge(log: Path, judge: str) -> Means:
    """The metrics as a judge sees them."""
    sizes = _sizes(log)
    values: dict[tuple[int, str], list[tuple[str, float]]] = defaultdict(list)
    result = ragmetrics.evaluate(log, METRICS, judge)
    for record in result.records():
        if record["value"] is not None:
            size, question = sizes[record["id"]]
            values[size, record["metric"]].append((question, record["value"]))
    return _estimates(values)


def by_labels(log: Path) -> Means:
    """The same metrics with the labels in place of a judge."""
    sizes = _sizes(log)
    values: dict[tuple[int, str], list[tuple[str, float]]] = defaultdict(list)
    (labelled,) = read_sets(make_settings({}), [str(log)])
    for row in labelled.rows:
        size, question = sizes[row.labelled.row.id]
        for metric, value in _of_row(row).items():
            values[size, metric].append((question, value))
    return _estimates(values)


def _of_row(row: AskedRow) -> dict[str, float]:
    (needed,) = row.questions["context_relevancy"]
    (support,) = row.questions["context_recall"]
    ends = [0, *accumulate(len(context) for context in needed.ask.data["contexts"])]
    chunks = [max(needed.labels[a:b], default=0.0) for a, b in pairwise(ends)]
    return {
        "context_relevancy": sum(needed.labels) / len(needed.labels),
        "context_relevancy_chunks": sum(chunks) / len(chunks),
        "context_recall": sum(label == 1 for label in support.labels) / len(support.labels),
    }


def _sizes(log: Path) -> dict[str, tuple[int, str]]:
    """Chunk size and question of each row."""
    rows = (json.loads(line) for line in log.read_text(encoding="utf-8").splitlines())
    return {row["id"]: (row["meta"]["chunk_size"], row["user_input"]) for row in rows}


def _estimates(values: dict[tuple[int, str], list[tuple[str, float]]]) -> Means:
    means: Means = {}
    for (size, metric), scored in sorted(values.items()):
        mean = mean_interval([value for _, value in scored], [question for question, _ in scored])
        if mean is None or mean.low is None or mean.high is None:
            raise ValueError(f"{metric}: too few rows of chunk size {size}")
        means.setdefault(size, {})[metric] = Estimate(mean.mean, mean.low, mean.high)
    return means


def print_table(title: str, means: Means) -> None:
    """The numbers as text."""
    table = Table("metric", *(f"{size} characters" for size in means), title=title)
    for metric in METRICS:
        cells = (found[metric] for found in means.values())
        table.add_row(metric, *(f"{c.mean:.3f} [{c.low:.3f}, {c.high:.3f}]" for c in cells))
    Console().print(table)


def figure(panels: dict[str, Means]) -> go.Figure:
    """Side by side: one group of bars per metric, one bar per size."""
    drawn = make_subplots(1, len(panels), subplot_titles=list(panels), shared_yaxes=True)
    for column, means in enumerate(panels.values(), 1):
        for (size, estimates), colour in zip(means.items(), COLOURS, strict=True):
            bars = [estimates[metric] for metric in METRICS]
            drawn.add_bar(
                name=f"{size} characters",
                x=list(METRICS),
                y=[bar.mean for bar in bars],
                text=[f"{bar.mean:.2f}" for bar in bars],
                textposition="inside",
                insidetextanchor="start",
                marker_color=colour,
                showlegend=column == 1,
                error_y={
                    "array": [bar.high - bar.mean for bar in bars],
                    "arrayminus": [bar.mean - bar.low for bar in bars],
                    "thickness": 1.5,
                },
                row=1,
                col=column,
            )
    drawn.update_layout(
        template="plotly_white",
        barmode="group",
        width=1100,
        height=440,
        font={"size": 14},
        margin={"l": 50, "r": 20, "t": 70, "b": 40},
        legend={"orientation": "h", "x": 0, "y": 1.2, "title": {"text": "Chunks of "}},
    )
    drawn.update_yaxes(range=[0, 1])
    return drawn


def take(drawn: go.Figure, picture: Path) -> None:
    """Draw a figure in headless Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1120, "height": 460})
        page.set_content(drawn.to_html(include_plotlyjs=True, config={"staticPlot": True}))
        page.wait_for_selector(".main-svg")
        page.locator(".plotly-graph-div").screenshot(path=picture)
        browser.close()


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--judge", default="lexical")
    parser.add_argument("--out", type=Path, default=Path("docs/images/chunk-size.png"))
    told = parser.parse_args()
    panels = {
        "by the labels": by_labels(told.log),
        f"by the judge {told.judge}": by_judge(told.log, told.judge),
    }
    for title, means in panels.items():
        print_table(title, means)
    take(figure(panels), told.out)


if __name__ == "__main__":
    main()

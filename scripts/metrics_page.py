"""Writes docs/reference/metrics.md from the metrics' docstrings; a test holds the two together.

python -m scripts.metrics_page
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.metrics import Metric, bundled_metrics

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "metrics.md"

_HEAD = """\
# Metrics

Every metric is one file in `ragmetrics/metrics/bundled/`; this page is made of their docstrings by
`python -m scripts.metrics_page`. `ragmetrics metrics` lists the same, and those that other packages
add: [third-party metrics](../how-to/third-party-metrics.md). What ragas and DeepEval call the same
thing: [migrating](../how-to/migrating-from-ragas.md).

A row has a value or a status that says why not. Means are over scored rows only.

| status | meaning |
|---|---|
| `not_applicable` | the metric has no meaning for the row |
| `unreadable` | the judge's reply could not be read, even when asked again; or a vector is bad |
| `refused` | the judge, or a content filter before it, declined to answer, twice |
| `judge_failed` | the judge gave no answer |
| `metric_failed` | the metric's own code raised an error; the run's problems say which, and where |
| `over_budget`, `not_sampled` | the row was not to be judged |

`unreadable`, `refused`, `judge_failed` and `metric_failed` count together as rows without a
verdict: in the alert on `max_judge_failures`, and in what a rerun of the night asks again.

Parameters are set as `metrics: [{ndcg: {k: 10}}]` in the settings.
"""


def page() -> str:
    """The whole page."""
    everything = list(bundled_metrics().values())
    twins = [one for one in everything if one.name.startswith("ragas_")]
    unasked = [one for one in everything if not one.prompts]
    chosen = [one for name in DEFAULT_METRICS for one in everything if one.name == name]
    rest = [one for one in everything if one not in (*twins, *unasked, *chosen)]
    groups = {
        "Scored by default": chosen,
        "Further metrics by a judge": rest,
        "By ids or by text, without a judge": unasked,
        "Twins of ragas, for continuity": twins,
    }
    tables = [_table(title, group) for title, group in groups.items()]
    sections = [_section(one) for group in groups.values() for one in group]
    return "\n".join([_HEAD, *tables, *sections])


def _table(title: str, group: Sequence[Metric]) -> str:
    lines = [f"## {title}", "", "| metric | what it says | needs | judge calls per row |"]
    lines.append("|---|---|---|---|")
    for metric in group:
        needs = ", ".join(f"`{need}`" for need in metric.needs).replace("|", "\\|")
        name = f"[`{metric.name}`](#{metric.name})"
        lines.append(f"| {name} | {metric.title} | {needs} | {metric.calls} |")
    return "\n".join([*lines, ""])


def _section(one: Metric) -> str:
    return f"## {one.name}\n\n```text\n{one.description}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

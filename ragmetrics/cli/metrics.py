"""`ragmetrics metrics`: the list of metrics, or one of them in full."""

from __future__ import annotations

from typing import Annotated

import typer

from ragmetrics.cli.options import JsonFlag, out, print_json
from ragmetrics.cli.output import summary as tables

_FIELDS = ("name", "title", "formula", "needs", "calls", "higher_is_better", "description")
"""Fields of a metric that `--json` prints."""


def metrics(
    name: Annotated[str | None, typer.Argument(help="Show one metric in full.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the metrics: what each measures, its formula and fields."""
    from ragmetrics.metrics import metrics as all_metrics, select

    chosen = select([name]) if name else list(all_metrics().values())
    if as_json:
        print_json([{field: getattr(metric, field) for field in _FIELDS} for metric in chosen])
    elif name:
        tables.print_metric(out, chosen[0])
    else:
        tables.print_metrics(out, chosen)

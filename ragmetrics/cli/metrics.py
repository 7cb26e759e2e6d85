"""`ragmetrics metrics`: the list of metrics, or one of them in full."""

from __future__ import annotations

from typing import Annotated

import typer

from ragmetrics.cli.options import JsonFlag, out, print_json
from ragmetrics.cli.output import summary as tables


def metrics(
    name: Annotated[str | None, typer.Argument(help="Show one metric in full.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the metrics: what each measures, its formula and fields."""
    from ragmetrics.metrics import metrics as all_metrics, select

    chosen = select([name]) if name else list(all_metrics().values())
    if as_json:
        records = [
            {
                "name": m.name,
                "title": m.title,
                "formula": m.formula,
                "needs": list(m.needs),
                "calls": m.calls,
                "higher_is_better": m.higher_is_better,
                "description": m.description,
            }
            for m in chosen
        ]
        print_json(records)
    elif name:
        tables.print_metric(out, chosen[0])
    else:
        tables.print_metrics(out, chosen)

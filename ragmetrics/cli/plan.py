"""`ragmetrics plan`: what a night costs, and what the same intervals would cost otherwise."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ragmetrics.cli.options import (
    JsonFlag,
    SettingsFlag,
    StoreArgument,
    StoreFlag,
    one_store,
    out,
    print_json,
    settings_here,
)
from ragmetrics.cli.output.plan import print_plan
from ragmetrics.storage import Runs, open_store

HalfWidthFlag = Annotated[
    float,
    typer.Option("--half-width", metavar="H", help="Half the width of the interval of each mean."),
]
NightsFlag = Annotated[
    int, typer.Option("--nights", min=1, max=30, help="How many of the last nights to look at.")
]


def plan(
    place: StoreArgument = None,
    half_width: HalfWidthFlag = 0.02,
    nights: NightsFlag = 7,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Print the cost of the last night, and that of an interval.

    An interval has a price for each way to get it.
    """
    from ragmetrics.scoring import plan_costs

    chosen = settings_here(settings, one_store(place, store))
    files = open_store(chosen)
    costs = plan_costs(Runs(files).nights(last=nights), half_width, chosen, files)
    if as_json:
        totals = {way: costs.total(way) for way in costs.way_names}
        print_json({**asdict(costs), "night": str(costs.night), "totals": totals})
        return
    print_plan(out, costs)

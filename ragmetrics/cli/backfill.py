"""`ragmetrics backfill`: scores and publishes past nights, the oldest first."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from ragmetrics.cli.options import (
    JsonFlag,
    StoreFlag,
    date_option,
    err,
    out,
    print_json,
    settings_here,
    stoppable,
)
from ragmetrics.cli.output import summary as tables
from ragmetrics.config import Settings
from ragmetrics.storage import open_store
from ragmetrics.text import plural

SettingsFlag = Annotated[
    Path, typer.Option("--settings", help="The settings file of the nightly flow.")
]
_FIRST = "The first night; default: with `split_nights`, the first day of the log."
FirstFlag = Annotated[date | None, date_option("--first", _FIRST)]
LastFlag = Annotated[
    date | None, date_option("--last", "The last night; default: yesterday in `time_zone`.")
]
AtOnceFlag = Annotated[
    int, typer.Option("--at-once", help="How many nights are scored at the same time.")
]
AlertsFlag = Annotated[
    bool,
    typer.Option("--alerts", help="Send alerts for each night as if it were the current one."),
]
AgainFlag = Annotated[
    bool, typer.Option("--again", help="Republish nights that are already published.")
]


def backfill(
    first: FirstFlag = None,
    last: LastFlag = None,
    settings: SettingsFlag = Path("ragmetrics.yaml"),
    at_once: AtOnceFlag = 2,
    alerts: AlertsFlag = False,
    again: AgainFlag = False,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Score and publish past nights. Exit code 1 if a night fails, 2 without a log."""
    from ragmetrics.pipeline import BackfillShort, run_backfill

    chosen = settings_here(settings, store)
    if chosen.runner.is_cluster:
        err.print(
            f"runner: {chosen.runner.name} is used by python -m flows.backfill only: this command "
            "scores on this machine",
        )
    with stoppable(), tables.progress(err, "nights", quiet=as_json) as bar:
        done = run_backfill(
            chosen,
            first,
            last,
            at_once=at_once,
            alerts=alerts,
            again=again,
            tell=lambda night, count, total: bar(str(night.date), count, total),
        )
    if as_json:
        print_json({"nights": [asdict(night) | {"date": str(night.date)} for night in done.nights]})
    else:
        out.print(str(done))
        _print_firing(chosen)
    try:
        done.check()
    except BackfillShort as short:
        err.print(str(short), style="red")
        raise typer.Exit(1) from None


def _print_firing(settings: Settings) -> None:
    """Print how many alerts fire after the newest night, and how to see why."""
    from ragmetrics.delivery import list_alerts

    book = list_alerts(open_store(settings), settings.alerts.remind_days)
    firing = [alert for alert in book.open if alert.state.state == "firing"]
    if firing:
        text = f"{plural(len(firing), 'alert')} firing after the night of {book.night}"
        out.print(f"{text}: ragmetrics alerts list, ragmetrics dashboard --open", style="red")

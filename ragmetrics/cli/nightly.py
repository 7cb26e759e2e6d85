"""`ragmetrics nightly`: one night in this process, for those who run it without Prefect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console

from ragmetrics.cli.options import (
    DateFlag,
    JsonFlag,
    SettingsFlag,
    StoreFlag,
    date_or_yesterday,
    err,
    out,
    print_json,
    settings_here,
    stoppable,
)
from ragmetrics.cli.output.summary import print_messages, print_summary
from ragmetrics.storage import open_store
from ragmetrics.text import clean

if TYPE_CHECKING:
    from ragmetrics.config import Settings
    from ragmetrics.pipeline import NightResult

_ROOM = 20_000
"""Most characters of what happened in a night: those of 30 lines."""


def nightly(
    date: DateFlag = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Score a night, publish its dashboard and send alerts.

    It needs no Prefect. Exit code 1 if an alert fires, or if something could not be scored, sent or
    shown. A repeated run continues: no request is paid twice and no message is sent twice.
    """
    from ragmetrics.pipeline import CoverageShort, run_night

    chosen = settings_here(settings, store)
    try:
        with stoppable():
            result = run_night(chosen, date_or_yesterday(date, chosen))
    except CoverageShort as error:
        if error.result:
            _show(chosen, error.result, as_json)
        err.print(str(error), style="red")
        raise typer.Exit(1) from None
    _show(chosen, result, as_json)
    if is_firing(result):
        err.print("An alert is firing: ragmetrics alerts list", style="red")
        raise typer.Exit(1)


def _show(settings: Settings, result: NightResult, as_json: bool) -> None:
    if as_json:
        print_json(result.manifest.model_dump(mode="json"))
    else:
        print_night(out, settings, result)


def print_night(console: Console, settings: Settings, result: NightResult) -> None:
    """Print the scores of a night, its messages, and where the dashboard is."""
    from ragmetrics.dashboard import find_night_status
    from ragmetrics.delivery import dashboard_link
    from ragmetrics.messages import FORMATS

    print_summary(console, result.manifest)
    status = find_night_status(result.manifest)
    console.print(clean(status.sentence, 1_000), style=None if status.state == "ok" else "bold")
    if result.delivery.message is None and status.blocks:  # a message says these itself
        console.print(FORMATS.find("terminal").render(status.blocks, _ROOM))
    print_messages(console, [result])
    for report in result.write_back:
        console.print(clean(str(report), 2_000))
    link = dashboard_link(settings, open_store(settings), result.manifest)
    console.print(f"Dashboard: {link}")


def is_firing(result: NightResult) -> bool:
    """Whether an alert fires."""
    return any(finding.state == "firing" for finding in result.manifest.findings)

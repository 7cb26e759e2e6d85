"""`ragmetrics write-back`: sends the scores of a night to tracing tools."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from typing import Annotated

import typer

from ragmetrics.cli.options import (
    JsonFlag,
    SettingsFlag,
    StoreFlag,
    date_option,
    out,
    print_json,
    settings_here,
    stoppable,
)
from ragmetrics.text import clean

_LONGEST = 2_000


def write_back(
    date: Annotated[
        dt.date | None, date_option("--date", "The night; default: all that wait.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="Only this one, such as langfuse.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="With --date: send also what was sent before.")
    ] = False,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Send the scores of a night to the tools of `write_back:`.

    Nothing is sent twice. Without --date it sends what waits because a tool was down. With --date,
    scores that a tool refused are tried again. Exit code 1 if scores still wait or are refused.
    """
    from ragmetrics.errors import InputError
    from ragmetrics.pipeline import send_scores

    if again and not date:
        raise InputError("--again: name the night with --date")
    chosen = settings_here(settings, store)
    with stoppable():
        reports = send_scores(chosen, date, target, again=again)
    if as_json:
        records = [asdict(report) | {"night": report.night.isoformat()} for report in reports]
        print_json({"targets": records})
    elif not reports:
        out.print("Nothing waits.")
    else:
        for report in reports:
            out.print(clean(str(report), _LONGEST))
    if any(report.waiting or report.problem or report.refused for report in reports):
        raise typer.Exit(1)

"""`ragmetrics prune`: removes old runs, rows and replies from a store."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from ragmetrics.cli.options import (
    JsonFlag,
    SettingsFlag,
    StoreArgument,
    StoreFlag,
    err,
    one_store,
    out,
    print_json,
    settings_here,
)
from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.table import print_grid
from ragmetrics.errors import InputError
from ragmetrics.storage import open_store

KeepFlag = Annotated[
    str,
    typer.Option("--keep", metavar="DAYS", help="Keep nights and replies this long; at least 60d."),
]
KeepRowsFlag = Annotated[
    str,
    typer.Option(
        "--keep-rows",
        metavar="DAYS",
        help="Keep the logged rows of nights this long; at least 14d.",
    ),
]
YesFlag = Annotated[bool, typer.Option("--yes", help="Remove them. Without it, only list them.")]


def prune(
    place: StoreArgument = None,
    keep: KeepFlag = "400d",
    keep_rows: KeepRowsFlag = "90d",
    yes: YesFlag = False,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Remove old nights, logged rows, replaced runs and replies; without --yes, list them only."""
    from ragmetrics.pipeline import Retention, find_prunable, prune as remove

    retention = Retention(_days("--keep", keep), _days("--keep-rows", keep_rows))
    files = open_store(settings_here(settings, one_store(place, store)))
    if not files.exists("runs"):
        raise InputError(f"{files.uri()}: not a store: it has no runs")
    found = find_prunable(files, retention, datetime.now(UTC))
    if yes:
        with tables.progress(err, "removing", quiet=as_json) as bar:
            remove(files, found, lambda done, total: bar("removing", done, total))
    if as_json:
        kinds = {one.kind: {"files": len(one.files), "bytes": one.size} for one in found}
        print_json({"store": files.uri(), "removed": yes, "kinds": kinds})
        return
    if not found:
        out.print(f"{files.uri()}: nothing to remove")
        return
    lines = [(one.kind, f"{len(one.files):,}", f"{one.size / 1e6:,.1f}") for one in found]
    print_grid(out, ("removed" if yes else "would be removed", "files", "MB"), lines)
    if not yes:
        out.print("Nothing is removed yet: add --yes")


def _days(name: str, text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,6})d", text.strip())
    if match is None:
        raise InputError(f"{name} {text}: should be a number of days, such as 400d")
    return timedelta(days=int(match[1]))

"""`ragmetrics batches`: lists the open batches of the batch judge, and cancels them."""

from __future__ import annotations

import asyncio
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
from ragmetrics.config import with_overrides
from ragmetrics.errors import InputError
from ragmetrics.judges import open_batches
from ragmetrics.storage import open_store


def batches(
    place: StoreArgument = None,
    cancel: Annotated[
        str | None,
        typer.Option("--cancel", metavar="ID", help="Cancel this batch, or `all`."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="URL of the endpoint; default: OpenAI's.")
    ] = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """List the batches with unread answers, or cancel them."""
    chosen = settings_here(settings, one_store(place, store))
    files = open_store(chosen)
    # One of the panel may be the batch judge; without settings, the key of any OpenAI judge.
    judge = next((one for one in chosen.panel if one.waits), None)
    judge = judge or with_overrides(chosen, "openai-batch").panel[0]
    judge = judge.model_copy(update={"base_url": base_url}) if base_url else judge
    opened = asyncio.run(open_batches(files, judge, cancel))
    if not opened and not files.exists(""):
        raise InputError(f"{files.uri()}: there is no such store")
    if cancel not in (None, "all", *(one.batch for one in opened)):
        raise InputError(f"no batch {cancel!r} in the records of {files.uri()}")
    if as_json:
        print_json({"batches": [asdict(one) for one in opened]})
        return
    for record in opened:
        name = record.batch or "(not submitted)"
        out.print(f"{name}  {record.requests} requests  {record.created_at}  {record.state}")
    if not opened:
        out.print("no open batch")

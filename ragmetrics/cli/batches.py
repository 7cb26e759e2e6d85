"""`ragmetrics batches`: lists the open batches of the batch judge, and cancels them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Annotated, Any

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
from ragmetrics.config import JudgeSettings, api_key, judged_by
from ragmetrics.errors import InputError
from ragmetrics.judges import BatchRecord, all_batches
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
    """List the batches whose answers are not read yet, with their state; or cancel one or all."""
    chosen = settings_here(settings, one_store(place, store))
    files = open_store(chosen)
    records = list(all_batches(files))
    if not records and not files.exists(""):
        raise InputError(f"{files.uri()}: there is no such store")
    # One of the panel may be the batch judge; without settings, the key of any OpenAI judge.
    judge = next((one for one in chosen.panel if one.waits), None)
    judge = judge or judged_by(chosen, "openai-batch").panel[0]
    judge = judge.model_copy(update={"base_url": base_url}) if base_url else judge
    found = asyncio.run(_states(judge, records, cancel)) if records else []
    if cancel not in (None, "all", *(one["batch"] for one in found)):
        raise InputError(f"no batch {cancel!r} in the records of {files.uri()}")
    if as_json:
        print_json({"batches": found})
        return
    for one in found:
        name = one["batch"] or "(not submitted)"
        out.print(f"{name}  {one['requests']} requests  {one['created_at']}  {one['state']}")
    if not found:
        out.print("no open batch")


async def _states(
    judge: JudgeSettings, records: Sequence[BatchRecord], cancel: str | None
) -> list[dict[str, Any]]:
    from ragmetrics.judges import BatchApi, find_access, make_client

    access = find_access(judge, judge.base_url, api_key(judge.api_key_env, os.environ))
    api = BatchApi(make_client(access, judge))
    try:
        return [await _one(api, record, cancel) for record in records]
    finally:
        await api.close()


async def _one(api: Any, record: BatchRecord, cancel: str | None) -> dict[str, Any]:
    from ragmetrics.judges import ENDED, counted

    # A run that was killed before it could store the id has a batch all the same.
    name = record.batch or (await api.find(record) if record.sent_at else None)
    batch = await api.look(name) if name else None
    if batch is not None and cancel in ("all", name) and batch.status not in ENDED:
        batch = await api.cancel(name)
    return {
        "batch": name,
        "requests": len(record.requests),
        "created_at": record.created_at.isoformat(timespec="seconds"),
        "state": counted(batch) if batch is not None else "unknown to the endpoint",
    }

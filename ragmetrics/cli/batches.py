"""`ragmetrics batches`: what the batch judge has at work, and how to stop it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ragmetrics.config import JudgeSettings, api_key, judged_by, load_settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.judges import BatchRecord, all_batches
from ragmetrics.storage import Files

out = Console(highlight=False, emoji=False)


def batches(
    store: Annotated[str, typer.Argument(help="The store that the runs use; local or s3://.")],
    cancel: Annotated[
        str | None, typer.Option("--cancel", metavar="ID", help="Stop this batch; `all`: each one.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="The endpoint, where it is not OpenAI's.")
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", help="A ragmetrics.yaml: its judge's key and endpoint."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """List the batches whose answers are still waited for, with their state; stop one or all."""
    chosen = load_settings(settings) if settings else make_settings({})
    files = Files(store, chosen.storage_options)
    records = list(all_batches(files))
    if not records and not files.exists(""):
        raise InputError(f"{files.uri()}: there is no such store")
    # One of the panel may be the batch judge; without settings, the key of any OpenAI judge.
    judge = next((one for one in chosen.panel if one.name == "openai-batch"), None)
    judge = judge or judged_by(chosen, "openai-batch", base_url=base_url).panel[0]
    told = asyncio.run(_told(judge, records, cancel)) if records else []
    if cancel not in (None, "all", *(one["batch"] for one in told)):
        raise InputError(f"no batch {cancel!r} on record in {files.uri()}")
    if as_json:
        sys.stdout.write(json.dumps({"batches": told}) + "\n")
        return
    for one in told:
        out.print(
            f"{one['batch'] or '(not handed in)'}  {one['requests']} requests  "
            f"{one['created_at']}  {one['state']}",
            markup=False,
            soft_wrap=True,
        )
    if not told:
        out.print("no batch on record")


async def _told(
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

    # One that was killed before it could write the id down has a batch all the same.
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

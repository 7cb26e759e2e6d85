"""`ragmetrics prune`: removes old runs, rows and replies from a store."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

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
from ragmetrics.storage import Files, open_store

if TYPE_CHECKING:
    from ragmetrics.pipeline import PrunePlan, Removed

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
    """Remove old nights, logged rows, replaced runs and replies.

    Without --yes, it only lists them. The settings say what is needed for longer: pinned runs,
    labels, a golden set.
    """
    from ragmetrics.pipeline import find_prunable, prune as remove

    chosen = settings_here(settings, one_store(place, store))
    files = open_store(chosen)
    if not files.exists("runs"):
        raise InputError(f"{files.uri()}: not a store: it has no runs")
    plan, done = find_prunable(chosen, keep, keep_rows), None
    if yes:
        with tables.progress(err, "removing", quiet=as_json) as bar:
            done = remove(files, plan, lambda done, total: bar("removing", done, total))
    if as_json:
        print_json(_as_json(files, plan, done))
    else:
        _print(files, plan, done)


def _as_json(files: Files, plan: PrunePlan, done: Removed | None) -> dict[str, Any]:
    kinds = {kind.kind: {"files": len(kind.files), "bytes": kind.size} for kind in plan.kinds}
    report = {"store": files.uri(), "removed": done is not None, "kinds": kinds}
    logs = {"left": done.left, "logs": list(done.logs)} if done else {}
    return report | {"needed": plan.needed} | logs


def _print(files: Files, plan: PrunePlan, done: Removed | None) -> None:
    reasons = Counter(plan.needed.values())
    for reason, count in reasons.items():
        first = next(run for run, why in plan.needed.items() if why == reason)
        more = f" and {count - 1:,} more" if count > 1 else ""
        out.print(f"kept: run {first}{more}: {reason}", markup=False)
    if not plan.files:
        out.print(f"{files.uri()}: nothing to remove", markup=False)
        return
    lines = [(kind.kind, f"{len(kind.files):,}", f"{kind.size / 1e6:,.1f}") for kind in plan.kinds]
    print_grid(out, ("removed" if done else "would be removed", "files", "MB"), lines)
    if done is None:
        out.print("Nothing is removed yet: add --yes")
        return
    if done.left:
        out.print(f"{done.left:,} files changed meanwhile, and stay")
    out.print(f"What was removed is listed in {', '.join(map(files.uri, done.logs))}", markup=False)

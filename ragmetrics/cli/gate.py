"""`ragmetrics gate`: may an index build serve? `emit-build`: the same, left to Prefect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragmetrics.cli.options import JsonFlag, err, out, print_json, settings_here
from ragmetrics.cli.progress import progress_reporter
from ragmetrics.config import Settings
from ragmetrics.errors import StoreError
from ragmetrics.model import Gate, make_index_build

BuildFlag = Annotated[str, typer.Option("--build", help="The new index build.")]
AgainstFlag = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="The build that serves; default: the last promoted, or what the newest night names.",
    ),
]
LogsFlag = Annotated[
    str | None,
    typer.Option(
        "--logs", help="The new build's log: a file, folder or glob; default: gate: logs: says."
    ),
]
SettingsFlag = Annotated[
    Path | None,
    typer.Option("--settings", help="Default: ragmetrics.yaml, where there is one."),
]
_EXIT_CODES = {"promote": 0, "hold": 1, "inconclusive": 2}


def gate(
    build: BuildFlag,
    against: AgainstFlag = None,
    logs: LogsFlag = None,
    settings: SettingsFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare an index build with the one that serves: exit code 0 promote, 1 hold, 2 neither.

    It is scored in this process: `runner:` of the settings is for Prefect's flows, and not used.
    """
    from ragmetrics.cli.output.gate import print_gate
    from ragmetrics.comparison import run_gate

    chosen = settings_here(settings)
    asked = make_index_build(
        {"dataset": chosen.dataset, "build": build, "serving": against, "logs": logs}
    )
    with progress_reporter(err, "staging", quiet=as_json) as progress:
        found = run_gate(chosen, asked, progress)
    found = _told(chosen, found)
    _show(chosen)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        print_gate(out, found)
    raise typer.Exit(_EXIT_CODES[found.verdict])


def emit_build(
    build: BuildFlag,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Whose index it is; default: settings.")
    ] = None,
    logs: Annotated[
        str | None,
        typer.Option("--logs", help="Where its log is, as the flow's worker reaches it."),
    ] = None,
    against: AgainstFlag = None,
    settings: SettingsFlag = None,
    api_url: Annotated[
        str | None, typer.Option("--api-url", help="Prefect's API; default: PREFECT_API_URL.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Tell Prefect that an index build is there: the index-build flow gates it."""
    from ragmetrics.pipeline import built_event, events_api, post_event

    asked = make_index_build(
        {
            "dataset": dataset or settings_here(settings).dataset,
            "build": build,
            "serving": against,
            "logs": logs,
        }
    )
    api, event = events_api(api_url), built_event(asked)
    post_event(event, api)
    if as_json:
        print_json(event)
    else:
        told = f"{event['event']} of build {asked.build} ({asked.dataset}): event {event['id']}"
        out.print(told, markup=False, soft_wrap=True)


def _told(settings: Settings, gate: Gate) -> Gate:
    """Tell of a gate that is news; return it with what became of that."""
    from ragmetrics.alerts import Unconfirmed
    from ragmetrics.comparison import notify_gate

    try:
        return notify_gate(settings, gate)
    except (Unconfirmed, StoreError) as error:
        text = f"{error}; the same command tries again"
        err.print(text, style="yellow", markup=False, soft_wrap=True)
        return gate


def _show(settings: Settings) -> None:
    """Refresh the dashboard; the verdict stands where that fails."""
    from ragmetrics.report import refresh_builds
    from ragmetrics.storage import open_store

    try:
        refresh_builds(open_store(settings))
    except StoreError as error:
        text = f"the dashboard does not show it: {error}"
        err.print(text, style="yellow", markup=False, soft_wrap=True)

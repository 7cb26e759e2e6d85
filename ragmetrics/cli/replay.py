"""`ragmetrics replay`: the golden questions asked of a new index build, and the log of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragmetrics.cli.options import (
    GoldenFlag,
    JsonFlag,
    SettingsFlag,
    StoreFlag,
    err,
    out,
    print_json,
    settings_here,
    stoppable,
)
from ragmetrics.cli.progress import progress_reporter
from ragmetrics.errors import InputError

if TYPE_CHECKING:
    from ragmetrics.records import ReplayReport


def replay(
    build: Annotated[str, typer.Option("--build", help="The index build to ask.")],
    settings: SettingsFlag = None,
    golden: GoldenFlag = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="Where to write the log: a folder or .jsonl file, local or s3://; "
            "default: `gate: logs` of the settings.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, help="Ask at most this many questions, as a trial; needs --out."
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Ask all questions again, also those with an answer.")
    ] = False,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask an index build the golden questions, and write its log. A rerun continues it."""
    from ragmetrics.comparison import run_replay as run
    from ragmetrics.records import ReplayIncomplete

    chosen = settings_here(settings, store)
    if golden:
        chosen = chosen.model_copy(update={"golden": golden})
    if limit and not output:
        raise InputError(
            "--limit writes a log of a part of the questions: name its place with --out"
        )
    try:
        with (
            stoppable("The same command, without --again, continues"),
            progress_reporter(err, "asking", quiet=as_json) as progress,
        ):
            replayed = run(chosen, build, output, progress, limit=limit, again=again)
    except ReplayIncomplete as error:
        _print(error.replayed, as_json, written=False)
        err.print(f"ragmetrics: {error}", style="red")
        raise typer.Exit(1) from None
    _print(replayed, as_json)


def _print(replayed: ReplayReport, as_json: bool, *, written: bool = True) -> None:
    if as_json:
        print_json({**replayed.model_dump(mode="json"), "written": written})
        return
    lines = [
        f"Log: {replayed.place}" if written else "No log is written",
        f"Rows: {replayed.rows:,} of {replayed.questions:,} questions "
        f"({replayed.found:,} found, {replayed.asked:,} asked now), "
        f"{replayed.empty:,} without contexts",
    ]
    if replayed.unreadable:
        lines.append(f"Golden rows without a question: {replayed.unreadable:,}")
    if replayed.setbacks:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in replayed.setbacks.items())
        lines.append(f"Failed attempts: {counts}")
    if written and replayed.failed:
        lines.append(f"Not answered: {replayed.failure_text}")
    for line in lines:
        out.print(line)

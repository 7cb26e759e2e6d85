"""`ragmetrics backfill`: past nights scored and published, the oldest first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragmetrics.cli.options import INTERRUPTED, JsonFlag, date_of, err, out, print_json
from ragmetrics.cli.output import summary as tables
from ragmetrics.config import CLUSTERS, load_settings


def backfill(
    first: Annotated[str, typer.Option("--first", metavar="DATE", help="The first night.")],
    last: Annotated[
        str | None, typer.Option("--last", metavar="DATE", help="Default: yesterday in UTC.")
    ] = None,
    settings: Annotated[
        Path, typer.Option("--settings", help="The settings of the nightly.")
    ] = Path("ragmetrics.yaml"),
    at_once: Annotated[int, typer.Option("--at-once", help="Nights scored at a time.")] = 2,
    alerts: Annotated[
        bool, typer.Option("--alerts", help="Tell of each night as if it were tonight.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Republish nights that are already published.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Score and publish past nights; exit code 1 where some could not be done, 2 without a log."""
    from ragmetrics.pipeline import BackfillShort, PastNight, run_backfill

    chosen = load_settings(settings)
    if chosen.runner.name in CLUSTERS:
        err.print(
            f"runner: {chosen.runner.name} is for the flow, python -m flows.backfill: this command "
            "scores on this machine, in processes of its own",
            markup=False,
            soft_wrap=True,
        )
    try:
        with tables.progress(err, "nights", quiet=as_json) as bar:

            def tell(one: PastNight, done: int, of: int) -> None:
                bar(str(one.date), done, of)

            done = run_backfill(
                chosen,
                date_of(first),
                date_of(last) if last else None,
                at_once=at_once,
                alerts=alerts,
                again=again,
                tell=tell,
            )
    except KeyboardInterrupt:
        err.print("Stopped. The same command goes on where it was", markup=False)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json({"nights": [_record(one) for one in done.nights]})
    else:
        out.print(str(done), markup=False, soft_wrap=True)
    try:
        done.check()
    except BackfillShort as short:
        err.print(str(short), style="red", markup=False, soft_wrap=True)
        raise typer.Exit(1) from None


def _record(one: Any) -> dict[str, str]:
    return {"date": str(one.date), "outcome": one.outcome, "reason": one.reason}

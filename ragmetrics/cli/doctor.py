"""`ragmetrics doctor`: whether a night would work: logs, store, judges, Slack and Prefect."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ragmetrics.cli.options import (
    DateFlag,
    JsonFlag,
    SettingsFlag,
    StoreFlag,
    date_or_yesterday,
    out,
    print_json,
    settings_file,
    settings_here,
)
from ragmetrics.text import clean

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "bold red"}


def doctor(
    date: DateFlag = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask",
            help="Also send each judge and embedder a request of one token, and each judge ten "
            "questions with an obvious answer.",
        ),
    ] = False,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Check whether a night would work. It sends no message, and without --ask it costs nothing.

    It reads the first rows of the night's logs, writes and removes a file in the store, and asks
    judges, Slack and Prefect whether they know the keys. Exit code 1 if a check failed.
    """
    from ragmetrics.pipeline import examine

    chosen = settings_here(settings, store)
    checks = []
    night, file = date_or_yesterday(date, chosen), settings_file(settings)
    for check in examine(chosen, night, ask=ask, file=str(file or "")):
        checks.append(check)
        if not as_json:
            first, *rest = check.text.splitlines()
            text = f"{check.state:8} {check.name}: {clean(first, 1_000)}"
            out.print(text, style=_COLOURS[check.state])
            for line in rest:
                out.print(f"         {clean(line, 1_000)}")
    if as_json:
        print_json({"checks": [asdict(check) for check in checks]})
    if any(one.state == "failed" for one in checks):
        raise typer.Exit(1)

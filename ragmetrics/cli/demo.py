"""`ragmetrics demo`: the bundled nights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragmetrics.cli.options import err, out
from ragmetrics.cli.output import summary as tables
from ragmetrics.config import load_settings


def demo(
    directory: Annotated[
        Path, typer.Option("--dir", help="Folder for the demo's logs and store.")
    ] = Path("ragmetrics-demo"),
) -> None:
    """Run ten bundled nights, one with a damaged index build. It needs no key and no network."""
    from ragmetrics.pipeline import NIGHTS, run_night, unpack_demo

    settings = load_settings(unpack_demo(directory))
    results = []
    for day in tables.track(NIGHTS, "nights", err):
        results.append(run_night(settings, day))
    tables.print_nights(out, results)
    tables.print_messages(out, results)
    out.print(f"Dashboard: {Path(settings.store) / 'dashboard' / 'index.html'}")

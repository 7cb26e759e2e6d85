"""`ragmetrics demo`: the bundled nights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from ragmetrics.cli.options import err, out
from ragmetrics.cli.output import summary as tables
from ragmetrics.config import load_settings

if TYPE_CHECKING:
    from ragmetrics.pipeline import NightResult


def demo(
    directory: Annotated[
        Path, typer.Option("--dir", help="Folder for the demo's logs and store.")
    ] = Path("ragmetrics-demo"),
) -> None:
    """Run ten bundled nights, one with a damaged index build. It needs no key and no network."""
    from ragmetrics.pipeline import NIGHTS, run_night, unpack_demo

    settings = load_settings(unpack_demo(directory))
    days = track(NIGHTS, "nights", console=err, transient=True, disable=not err.is_terminal)
    results = [run_night(settings, day) for day in days]
    print_demo(results, Path(settings.store))


def print_demo(results: Sequence[NightResult], store: Path) -> None:
    """Print what a team would have seen of the nights, and what to do next."""
    tables.print_nights(out, results)
    tables.print_messages(out, results)
    out.print("Open the dashboard in a browser. Then your own log: ragmetrics init my-logs/")
    out.print(f"Dashboard: {store.resolve() / 'dashboard' / 'index.html'}")

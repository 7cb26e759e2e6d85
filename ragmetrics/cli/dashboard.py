"""`ragmetrics dashboard`: rewrites the dashboard of a store, serves it, or prints one night."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from ragmetrics.cli.options import (
    SettingsFlag,
    StoreArgument,
    StoreFlag,
    err,
    one_store,
    out,
    settings_here,
)
from ragmetrics.errors import InputError
from ragmetrics.storage import Files, open_store

OutFlag = Annotated[
    str | None, typer.Option("--out", help="Folder to write the site to; default: the store.")
]
OpenFlag = Annotated[
    bool,
    typer.Option(
        "--open",
        help="Serve the site on this machine until Ctrl-C and open it in the "
        "browser. The site of a bucket is written to a temporary folder.",
    ),
]
PortFlag = Annotated[
    int, typer.Option(min=0, max=65535, help="Port for --open; default: a free one.")
]
SummaryFlag = Annotated[
    datetime | None,
    typer.Option(
        formats=["%Y-%m-%d"],
        metavar="DATE",
        help="Print one night's summary as one HTML page, for e-mail, and write nothing.",
    ),
]


def dashboard(
    place: StoreArgument = None,
    output: OutFlag = None,
    open_it: OpenFlag = False,
    port: PortFlag = 0,
    summary: SummaryFlag = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
) -> None:
    """Rewrite the dashboard of a store."""
    from ragmetrics.dashboard import rebuild_dashboard

    files = open_store(settings_here(settings, one_store(place, store)))
    if not any(map(files.exists, ("runs", "calibrations", "gates"))):
        raise InputError(f"{files.uri()}: not a store: it has no runs")
    if summary:
        if output or open_it:
            raise InputError("--summary writes no site: remove --out and --open")
        _print_summary(files, summary)
        return
    with ExitStack() as stack:
        if open_it and not output and files.local is None:
            output = stack.enter_context(TemporaryDirectory(prefix="ragmetrics-"))
        site = Files(output) if output else files.at("dashboard")
        if open_it and site.local is None:
            raise InputError(
                f"{site.uri()}: cannot be served from this machine; set --out to a folder"
            )
        if open_it and output:
            _check_only_a_site(site)
        if open_it and not err.is_terminal:
            err.print("Rewriting the site …")
        with err.status("Rewriting the site …") as shown:

            def tell(night: int, nights: int) -> None:
                shown.update(f"Rewriting the site: night {night:,} of {nights:,} …")

            first = site.uri(rebuild_dashboard(files, site, tell))
        out.print(first)
        if open_it and site.local:
            _serve(site.local, port)


def _check_only_a_site(folder: Files) -> None:
    """Refuse a folder that has other files: whoever opens the site could read them."""
    if not folder.exists("index.html") and folder.local and any(folder.local.glob("*")):
        raise InputError(
            f"{folder.uri()}: has other files, and --open would serve them too; "
            "set --out to an empty folder"
        )


def _serve(folder: Path, port: int) -> None:
    from ragmetrics.cli.serve import serve

    def tell(address: str) -> None:
        out.print(address)
        err.print("Press Ctrl-C to stop.")

    serve(folder, tell, port)


def _print_summary(files: Files, night: datetime) -> None:
    from ragmetrics.dashboard import night_summary

    page = night_summary(files, night.date()).decode()
    # In ASCII the page is the same for a terminal or pipe of any encoding.
    sys.stdout.write(page.encode("ascii", "xmlcharrefreplace").decode())

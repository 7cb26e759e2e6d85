"""`ragmetrics dashboard`: the site of a store written anew, served here, or one night in short."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from ragmetrics.cli.options import err, out
from ragmetrics.errors import InputError
from ragmetrics.storage import Files


def dashboard(
    store: Annotated[str, typer.Argument(help="The store: a folder or s3:// address.")],
    output: Annotated[
        str | None, typer.Option("--out", help="Where the site goes; default: into the store.")
    ] = None,
    open_it: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Serve it on this machine until Ctrl-C, and open the browser; a bucket's is "
            "written into a temporary folder.",
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of --open; default: one that is free.")
    ] = 0,
    summary: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="DATE",
            help="Only print that night on one page of HTML, for e-mail.",
        ),
    ] = None,
) -> None:
    """Rewrite the dashboard of a store."""
    from ragmetrics.report import rebuild_dashboard

    files = Files(store)
    if not any(map(files.exists, ("runs", "calibrations", "gates"))):
        raise InputError(f"{store}: not a store: there are no runs in it")
    if summary:
        if output or open_it:
            raise InputError("--summary writes no site: leave out --out and --open")
        _print_summary(files, summary)
        return
    with ExitStack() as stack:
        if open_it and not output and files.local is None:
            output = stack.enter_context(TemporaryDirectory(prefix="ragmetrics-"))
        site = Files(output) if output else files.at("dashboard")
        if open_it and site.local is None:
            raise InputError(f"{site.uri()}: cannot be served from here; give --out a folder")
        if open_it and not err.is_terminal:
            err.print("Rewriting the site …")
        with err.status("Rewriting the site …") as shown:

            def tell(night: int, nights: int) -> None:
                shown.update(f"Rewriting the site: night {night:,} of {nights:,} …")

            first = site.uri(rebuild_dashboard(files, site, tell))
        out.print(first, soft_wrap=True)
        if open_it and site.local:
            _serve(site.local, port)


def _serve(folder: Path, port: int) -> None:
    from ragmetrics.cli.serve import serve

    def tell(address: str) -> None:
        out.print(address, soft_wrap=True)
        err.print("Ctrl-C ends it.")

    serve(folder, tell, port)


def _print_summary(files: Files, night: datetime) -> None:
    from ragmetrics.report import night_summary

    page = night_summary(files, night.date()).decode()
    # A terminal or a pipe of another encoding has the same page all the same.
    sys.stdout.write(page.encode("ascii", "xmlcharrefreplace").decode())

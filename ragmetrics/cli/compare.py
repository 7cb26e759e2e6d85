"""`ragmetrics compare`: is B worse than A, by how much, where and by which questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragmetrics.cli.options import (
    BaseUrlFlag,
    GoldenFlag,
    JsonFlag,
    MetricsFlag,
    ModelFlag,
    PresetFlag,
    err,
    names_of,
    out,
    print_json,
    settings_here,
)
from ragmetrics.cli.output import summary as tables

if TYPE_CHECKING:
    from ragmetrics.config import Settings
    from ragmetrics.model import Comparison

_SIDES = "a log (file, folder, glob), a date, the id of a run, or build:NAME"
SideA = Annotated[str, typer.Argument(metavar="A", help=f"What was before: {_SIDES}.")]
SideB = Annotated[str, typer.Argument(metavar="B", help="What is now: the same.")]
ByFlag = Annotated[
    str | None,
    typer.Option("--by", help="Tags, separated by commas: compare each of their values too."),
]
JudgeFlag = Annotated[
    str | None, typer.Option("--judge", help="Of logs: embedded, local, openai, recorded:PATH.")
]
RowsFlag = Annotated[
    int, typer.Option("--rows", min=0, help="Most questions shown per metric that moved.")
]
FailFlag = Annotated[
    float | None,
    typer.Option(
        "--fail-on-drop",
        min=0.0,
        help="Exit code 1 where B is worse by more than this, and significantly.",
    ),
]
StoreFlag = Annotated[
    str | None, typer.Option("--store", help="Where runs and replies are; default: settings.")
]
PageFlag = Annotated[
    bool, typer.Option("--page", help="Write it as a page into the store's dashboard too.")
]
SiteFlag = Annotated[
    Path | None,
    typer.Option("--site", help="Write the page into this folder, in place of the dashboard."),
]
SettingsFlag = Annotated[
    Path | None, typer.Option("--settings", help="Default: ragmetrics.yaml, where there is one.")
]


def compare(
    a: SideA,
    b: SideB,
    by: ByFlag = None,
    metrics: MetricsFlag = None,
    judge: JudgeFlag = None,
    model: ModelFlag = None,
    base_url: BaseUrlFlag = None,
    golden: GoldenFlag = None,
    preset: PresetFlag = None,
    rows: RowsFlag = 5,
    fail_on_drop: FailFlag = None,
    page: PageFlag = False,
    site: SiteFlag = None,
    store: StoreFlag = None,
    settings: SettingsFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare two logs, nights, runs or index builds: paired by question where they share them."""
    from ragmetrics.cli.output.comparison import print_comparison
    from ragmetrics.pipeline import compare as compare_sides

    chosen = settings_here(settings)
    with tables.progress(err, "staging", quiet=as_json) as progress:
        found = compare_sides(
            a,
            b,
            by=names_of(by),
            metrics=names_of(metrics),
            judge=judge,
            model=model,
            base_url=base_url,
            golden=golden,
            preset=preset,
            settings=chosen,
            store=store,
            rows=rows,
            progress=progress,
        )
    if as_json:
        print_json(found.as_json())
    else:
        print_comparison(out, found)
    if page or site:
        place = _write_page(found, (a, b), chosen, store, site)
        (err if as_json else out).print(f"Page: {place}", markup=False, soft_wrap=True)
    if not found.compared:
        err.print("ragmetrics: no metric could be compared", style="red")
        raise typer.Exit(2)
    if fail_on_drop is not None:
        _fail(found, fail_on_drop)


def _write_page(
    found: Comparison,
    sides: tuple[str, str],
    settings: Settings,
    store: str | None,
    site: Path | None,
) -> str:
    """Write a comparison as a page; return where it is."""
    from ragmetrics.alerts import page_link
    from ragmetrics.report import compare_path, redacted, write_comparison
    from ragmetrics.storage import Files, open_store

    path, found = compare_path(*sides), redacted(found, settings.redact)
    if site:
        files = Files(str(site))
        return files.uri(write_comparison(files, path, found))
    named = settings.model_copy(update={"store": store}) if store else settings
    files = open_store(named)
    return page_link(named, files, write_comparison(files.at("dashboard"), path, found))


def _fail(found: Any, limit: float) -> None:
    """End with exit code 1 where something dropped significantly, 2 where nobody can say."""
    from ragmetrics.cli.output.comparison import print_lost

    lost = found.significantly_worse(limit)
    print_lost(err, lost, limit)
    if lost:
        raise typer.Exit(1)
    if found.undecided:
        names = ", ".join(one.metric for one in found.undecided)
        text = f"ragmetrics: nothing says whether these dropped: {names}; --metrics leaves them out"
        err.print(text, style="red", markup=False, soft_wrap=True)
        raise typer.Exit(2)

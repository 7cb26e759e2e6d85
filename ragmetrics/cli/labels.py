"""`ragmetrics labels`: which labels of people are used, and which rows are worth one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragmetrics.cli.options import (
    JsonFlag,
    NightFlag,
    SettingsFlag,
    StoreFlag,
    group,
    out as console,
    print_json,
    settings_here,
    suggestions_option,
    suggestions_page,
)
from ragmetrics.cli.output.labels import print_label_report, print_people
from ragmetrics.cli.table import print_grid
from ragmetrics.text import clean

if TYPE_CHECKING:
    from ragmetrics.records import LabelSuggestion

app = group("Check the rows that people labelled, and name more to label.")


@app.command("check")
def check(
    place: Annotated[
        str | None,
        typer.Argument(metavar="[PLACE]", help="Labels; default: `labels:` in the settings."),
    ] = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Show which labels the newest night uses, why it leaves out others, and the means by people.

    Exit code: 0 if all labels are used, 1 if some cannot be read, 2 for wrong input.
    """
    from ragmetrics.people import check_labels

    report, night = check_labels(settings_here(settings, store), place)
    if as_json:
        people = {
            metric.metric: metric.people.model_dump(mode="json") if metric.people else None
            for metric in (night.metrics if night else ())
        }
        known = night.date.isoformat() if night else None
        print_json({"night": known, "labels": report.model_dump(mode="json"), "people": people})
    else:
        print_label_report(console, report)
        if night is None:
            console.print("The store has no night yet, so no label is joined with a score.")
        else:
            console.print(f"Night {night.date}:")
            print_people(console, night)
    if report.rejected or report.problem:
        raise typer.Exit(1)


_Rows = Annotated[
    int, typer.Option("--rows", metavar="N", min=1, max=1_000, help="Rows to suggest.")
]
_Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="NAME", help="What to label; may be repeated."),
]


@app.command("suggest")
def suggest(
    out: Annotated[Path | None, suggestions_option("rows")] = None,
    rows: _Rows = 20,
    metric: _Metrics = None,
    night: NightFlag = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Draw rows to label, more often those whose labels would narrow the interval most.

    By default context_relevance and context_recall are labelled, where they are scored. The file
    has the texts of the rows, also with `redact: true`; give it to the people who label, and no
    others.
    """
    from ragmetrics.people import suggest_labels

    chosen = settings_here(settings, store)
    page = suggestions_page(out, chosen)
    suggested = suggest_labels(chosen, None if page else out, night, metric or (), rows)
    if page:
        from ragmetrics.dashboard import write_label_page

        write_label_page(page, suggested.rows)
    shown = [] if chosen.redact else suggested.rows
    if as_json:
        print_json(
            {
                "night": suggested.night.isoformat(),
                "uniform": suggested.uniform,
                "suggestions": [row.model_dump(mode="json") for row in shown],
            }
        )
        return
    _print_rows(shown)
    how = "uniformly" if suggested.uniform else "by the judge's uncertainty"
    console.print(f"{len(suggested.rows):,} rows of night {suggested.night}, drawn {how}")
    if out:
        console.print(_next_step(out, bool(chosen.labels)))


def _next_step(out: Path, has_labels: bool) -> str:
    place = "the folder of" if has_labels else "a folder, and name that in"
    fill = "fill it in, and put it"
    if out.suffix == ".html":
        fill = "open it, label the rows, and put the file that it saves"
    return f"Written: {out}. Next: {fill} into {place} `labels:`."


def _print_rows(rows: Sequence[LabelSuggestion]) -> None:
    lines = [
        (clean(row.id, 40), clean(row.user_input, 80), f"{row.sampling_weight:.2f}") for row in rows
    ]
    if lines:
        print_grid(console, ("id", "question", "weight"), lines, names=(0, 1))

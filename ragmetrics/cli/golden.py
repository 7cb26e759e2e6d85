"""`ragmetrics golden`: what is stale in the golden set, and which questions it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragmetrics.cli.options import (
    BaseUrlFlag,
    JsonFlag,
    ModelFlag,
    NightFlag,
    SettingsFlag,
    StoreFlag,
    date_option,
    group,
    out as console,
    print_json,
    settings_here,
    stoppable,
    suggestions_option,
    suggestions_page,
)
from ragmetrics.cli.table import print_grid
from ragmetrics.config import with_overrides
from ragmetrics.errors import InputError
from ragmetrics.text import clean, plural

if TYPE_CHECKING:
    from ragmetrics.passages import CutNuggets
    from ragmetrics.records import Anchor, GoldenCheck, Suggestion

app = group("Check and repair the golden set, and add live questions.")

PassagesFlag = Annotated[
    str | None,
    typer.Option(
        "--passages",
        metavar="PLACE",
        help="All passages of the new index, with ids and texts: a file, a folder or s3://; "
        "default: what the night retrieved.",
    ),
]
_OUT = typer.Option("--out", metavar="FILE", help="Write the new golden set (.jsonl).")
OnFlag = Annotated[date | None, date_option("--on", "The day; default: today in UTC.")]
_SHOWN = 40
_WIDEST = 60


@app.command("check")
def check(
    night: NightFlag = None,
    passages: PassagesFlag = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Name what is stale: lost, edited, moved and duplicate passages; questions that tell nothing.

    Exit code: 0 if nothing is, 1 if something is or cannot be read, 2 for wrong input.
    """
    from ragmetrics.passages import check_golden_set

    chosen = settings_here(settings, store)
    report = check_golden_set(chosen, night, passages)
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _print_check(report)
    if report.has_findings:
        raise typer.Exit(1)


@app.command("anchor")
def anchor(
    out: Annotated[Path | None, _OUT] = None,
    night: NightFlag = None,
    passages: PassagesFlag = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Find the passages of the labels by their texts, and write the ids that they have now.

    A label whose passage is not found stays as it is, and is named. Exit code: 1 if there is one.
    """
    from ragmetrics.passages import anchor_golden_set
    from ragmetrics.records import NEEDS_REVIEW

    chosen = settings_here(settings, store)
    report = anchor_golden_set(chosen, out, night, passages)
    if as_json:
        print_json({"anchors": [one.model_dump(mode="json") for one in report]})
    else:
        _print_anchors(report)
        if out:
            console.print(f"Written: {out}")
        else:
            console.print("Nothing is written without --out FILE.")
    if any(one.status in NEEDS_REVIEW for one in report):
        raise typer.Exit(1)


@app.command("suggest")
def suggest(
    out: Annotated[Path | None, suggestions_option("suggestions")] = None,
    count: Annotated[
        int, typer.Option("--count", metavar="N", min=1, help="Most questions to suggest.")
    ] = 20,
    night: NightFlag = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Propose live questions: of topics without a golden one, that fall or swing, that fail.

    Each has the passages that answered it. Confirm them in the file, then run `golden add`.
    """
    from ragmetrics.passages import suggest_golden_questions

    chosen = settings_here(settings, store)
    page = suggestions_page(out, chosen)
    suggested = suggest_golden_questions(chosen, None if page else out, night, count)
    if page:
        from ragmetrics.dashboard import write_labelling_page

        write_labelling_page(page, suggested)
    if as_json:
        print_json({"suggestions": [one.model_dump(mode="json") for one in suggested]})
        return
    if not chosen.redact:
        _print_suggestions(suggested)
    if not suggested:
        console.print("No question to suggest: every topic has golden questions, and none fails.")
    elif out:
        console.print(f"Written: {out}. Next: confirm the good ones, then `ragmetrics golden add`.")


@app.command("nuggets")
def nuggets(
    out: Annotated[Path | None, _OUT] = None,
    review: Annotated[
        Path | None,
        typer.Option(
            "--review",
            metavar="FILE",
            help="Write a page (.html) to review the nuggets that nobody has reviewed.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", min=1, help="Most references to cut now.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="The judge that cuts: a language model.")
    ] = None,
    model: ModelFlag = None,
    base_url: BaseUrlFlag = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
) -> None:
    """Cut right answers into nuggets, the vital and okay facts that Nugget recall looks for.

    A judge cuts each once, within `budget:`; if it stops, the same command continues. Exit code 1:
    an answer could not be cut.
    """
    from ragmetrics.passages import cut_golden_nuggets

    chosen = with_overrides(settings_here(settings, store), judge, model, base_url)
    if out is None and review is None:
        raise InputError("nothing would be written: name a file by --out or --review")
    if review is not None and review.suffix != ".html":
        raise InputError(f"--review {review}: the name should end in .html")
    with stoppable():
        found = cut_golden_nuggets(chosen, out, count)
    _print_nuggets(found)
    if out is not None:
        console.print(f"Written: {out}")
    if review is not None and found.reviews:
        from ragmetrics.dashboard import write_label_page

        write_label_page(review, found.reviews)
        console.print(
            f"Written: {review}, {plural(len(found.reviews), 'question')} to review. "
            "Next: download the file there, then `ragmetrics golden add`."
        )
    elif review is not None:
        console.print("No nugget to review")
    if found.failed:
        raise typer.Exit(1)


@app.command("add")
def add(
    suggestions: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Suggestions with `yes` in `confirmed`, or reviewed nuggets."
        ),
    ],
    out: Annotated[Path, _OUT],
    on: OnFlag = None,
    settings: SettingsFlag = None,
) -> None:
    """Write the golden set with the confirmed suggestions, or with the reviewed nuggets.

    Nights from that day on use the new questions.
    """
    from ragmetrics.passages import add_to_golden_set

    chosen = settings_here(settings)
    added = add_to_golden_set(chosen, suggestions, out, on)
    console.print(
        f"Written: {out}, {len(added.records):,} questions: {added.added:,} added, {added.known:,} "
        f"confirmed that were there already, {added.unconfirmed:,} not confirmed"
        + (f"; nuggets of {added.reviewed:,} reviewed" if added.reviewed else "")
    )


@app.command("retire")
def retire(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Ids of golden questions.")],
    out: Annotated[Path, _OUT],
    on: OnFlag = None,
    settings: SettingsFlag = None,
) -> None:
    """Write the golden set with questions that nights from that day on do not use."""
    from ragmetrics.passages import retire_golden_questions

    chosen = settings_here(settings)
    retire_golden_questions(chosen, ids, out, on)
    console.print(f"Written: {out}, {len(set(ids)):,} questions retired")


def _print_check(report: GoldenCheck) -> None:
    retired = f", {report.retired:,} not in use" if report.retired else ""
    console.print(
        f"{report.questions:,} golden questions{retired}; passages of {clean(report.passages, 200)}"
    )
    if report.unreadable:
        console.print(f"{report.unreadable:,} rows of the golden set cannot be read", style="red")
    for reason, count in report.problems.items():
        console.print(f"{count:,} {'row' if count == 1 else 'rows'}: {clean(reason, 300)}")
    _print_anchors(report.anchors)
    if report.duplicates:
        console.print("Duplicate passages: the question names one, retrieval may bring the other")
        lines = [
            (clean(copy.context_id, _WIDEST), _names(copy.same_as), f"{len(copy.questions):,}")
            for copy in report.duplicates[:_SHOWN]
        ]
        print_grid(console, ("label", "same text", "questions"), lines, names=(0, 1))
    if report.constant:
        first = report.constant[0]
        values = Counter(one.value for one in report.constant)
        console.print(
            f"{len(report.constant):,} questions had the same {first.metric} in all "
            f"{max(one.builds for one in report.constant):,} index builds before, so they showed "
            "no difference: "
            + ", ".join(f"{count:,} always {value:.2f}" for value, count in sorted(values.items()))
        )


def _print_nuggets(found: CutNuggets) -> None:
    later = f", {found.later:,} left for later" if found.later else ""
    console.print(
        f"{plural(found.cut, 'right answer')} cut, {found.known:,} had nuggets already{later}"
    )
    for reason, times in found.failed.items():
        console.print(f"{times:,} could not be cut: {clean(reason, 300)}", style="red")


def _print_anchors(anchors: Sequence[Anchor]) -> None:
    """Print the number of labels of each status, and those that a person should look at."""
    from ragmetrics.records import STATUS_WORDS

    counts = Counter(one.status for one in anchors)
    lines = [(status, f"{counts[status]:,}", words) for status, words in STATUS_WORDS.items()]
    shown = [line for line in lines if line[1] != "0"]
    print_grid(console, ("status", "labels", "meaning"), shown, names=(0, 2))
    stale = [one for one in anchors if one.status not in ("same", "not_asked")]
    if not stale:
        return
    questions: dict[tuple[str, ...], list[str]] = {}
    for label in stale:
        share = "–" if label.share is None else f"{label.share:.0%}"
        line = (label.status, clean(label.context_id, _WIDEST), _names(label.to) or "–", share)
        questions.setdefault(line, []).append(label.id)
    rows = [(*line, _names(ids)) for line, ids in questions.items()]
    headers = ("status", "label", "is now under", "of its text", "questions")
    print_grid(console, headers, rows[:_SHOWN], names=(0, 1, 2, 4))
    if len(rows) > _SHOWN:
        console.print(f"... and {len(rows) - _SHOWN:,} more: --json lists all")


def _names(ids: Sequence[str]) -> str:
    return ", ".join(clean(one, _WIDEST) for one in ids)


def _print_suggestions(found: Sequence[Suggestion]) -> None:
    rows = [(clean(one.user_input, 80), clean(one.why, 120), f"{one.asked:,}") for one in found]
    if rows:
        print_grid(console, ("question", "why", "asked"), rows, names=(0, 1))

"""`ragmetrics compare`: whether a log, night or build is worse than another, where and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ragmetrics.cli.options import (
    JUDGE_NAME,
    BaseUrlFlag,
    GoldenFlag,
    JsonFlag,
    MetricsFlag,
    ModelFlag,
    PresetFlag,
    SettingsFlag,
    StoreFlag,
    date_option,
    err,
    names_of,
    out,
    print_json,
    print_settings_file,
    settings_here,
)
from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.output.costs import print_usage
from ragmetrics.cli.table import print_grid
from ragmetrics.messages import FORMATS, comparison_story, contribution
from ragmetrics.metrics import display_name
from ragmetrics.records import ComparedSide, Comparison, MetricChange
from ragmetrics.text import clean, number, plural, signed, signed_interval

if TYPE_CHECKING:
    from ragmetrics.config import Settings

_SIDES = "a log (file, folder, glob), a date, the id of a run, or build:NAME"
SideA = Annotated[str, typer.Argument(metavar="BEFORE", help=f"The side before: {_SIDES}.")]
SideB = Annotated[
    str | None, typer.Argument(metavar="[AFTER]", help="The side after, in the same forms.")
]
SplitFlag = Annotated[
    date | None,
    date_option(
        "--split",
        "Compare the rows of one log before this day with those from it on, in place of "
        "BEFORE and AFTER.",
    ),
]
ByFlag = Annotated[
    str | None,
    typer.Option(
        "--by",
        help="Tags, separated by commas: also compare the rows of each tag value. Without it: the "
        "tags that a night shows, only what got worse, and no segment fails.",
    ),
]
JudgeFlag = Annotated[
    str | None, typer.Option("--judge", help=f"{JUDGE_NAME}, for logs that are not scored yet.")
]
RowsFlag = Annotated[
    int,
    typer.Option(
        "--rows", min=0, help="Show at most this many questions for each metric that moved."
    ),
]
FailFlag = Annotated[
    float | None,
    typer.Option(
        "--fail-on-drop",
        min=0.0,
        help="Exit with code 1 if a metric is significantly worse, by more than this.",
    ),
]
PageFlag = Annotated[
    bool,
    typer.Option("--page", help="Also write the comparison as a page of the store's dashboard."),
]
SiteFlag = Annotated[
    Path | None,
    typer.Option("--site", help="Write the page to this folder instead of the dashboard."),
]


def compare(
    a: SideA,
    b: SideB = None,
    split: SplitFlag = None,
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
    """Compare two logs, nights, runs or index builds.

    With --split they are two parts of one log. Questions of both sides are compared pair by pair.
    """
    from ragmetrics.pipeline import compare as compare_sides

    chosen = settings_here(settings)
    with tables.progress(err, "staging", quiet=as_json) as progress:
        comparison = compare_sides(
            a,
            b,
            split=split,
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
        print_json(comparison.as_json())
    else:
        print_comparison(out, comparison)
        print_settings_file(settings)
    if page or site:
        sides = (a, b) if b else (comparison.a.name, comparison.b.name)
        place = _write_page(comparison, sides, chosen, store, site)
        (err if as_json else out).print(f"Page: {place}")
    if not comparison.compared:
        err.print("ragmetrics: no metric could be compared", style="red")
        raise typer.Exit(2)
    if fail_on_drop is not None:
        _fail(comparison, fail_on_drop)


def _write_page(
    comparison: Comparison,
    sides: tuple[str, str],
    settings: Settings,
    store: str | None,
    site: Path | None,
) -> str:
    """Write a comparison as a page; return its address."""
    from ragmetrics.dashboard import compare_path, redacted, write_comparison
    from ragmetrics.delivery import page_link
    from ragmetrics.storage import Files, open_store

    path, comparison = compare_path(*sides), redacted(comparison, settings.redact)
    if site:
        files = Files(str(site))
        return files.uri(write_comparison(files, path, comparison))
    named = settings.model_copy(update={"store": store}) if store else settings
    files = open_store(named)
    return page_link(named, files, write_comparison(files.at("dashboard"), path, comparison))


def _fail(comparison: Any, limit: float) -> None:
    """Exit with code 1 if a metric dropped significantly, 2 if that is undecided."""
    lost = comparison.significantly_worse(limit)
    print_lost(err, lost, limit)
    if lost:
        raise typer.Exit(1)
    if comparison.undecided:
        names = ", ".join(display_name(change.metric) for change in comparison.undecided)
        err.print(f"ragmetrics: undecided: {names}; choose others with --metrics", style="red")
        raise typer.Exit(2)


_HEADERS = ("before", "after", "change [95%]")
_DETECTABLE = "smallest detectable drop"
_MOST_SEGMENTS = 20
_TEXT = 200


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print what fell, where and why, the sides, and the changes by segment and by question."""
    story = comparison_story(comparison)
    worse = bool(comparison.significantly_worse())
    style = "bold red" if worse else "bold" if comparison.compared else "yellow"
    console.print(story.headline, style=style)
    if story.blocks:
        console.print(FORMATS.find("terminal").render(story.blocks))
    for name, side in (("Before", comparison.a), ("After", comparison.b)):
        console.print(f"{name}: {_side(side)}")
    lines = [
        (display_name(change.metric), *_numbers(change), number(change.mde))
        for change in comparison.compared
    ]
    if lines:
        headers = ("metric", *_HEADERS, _DETECTABLE)
        print_grid(console, headers, lines, styles=_styles(comparison.compared))
        _print_questions(console, comparison.compared)
        console.print("Lines with ▼ or ▲ stay significant after correcting for all comparisons.")
    _print_segments(console, comparison)
    _print_moved(console, comparison)
    for change in comparison.metrics:
        if change.difference is None:
            text = f"Not compared: {display_name(change.metric)}: {clean(change.reason, 300)}"
            console.print(text, style="red")
    for notice in (*comparison.problems, *comparison.notices):
        text = f"Note: {clean(notice, 300)}"
        console.print(text, style="yellow")
    _print_judges(console, comparison)
    print_usage(console, {}, comparison.usage)


def print_lost(console: Console, lost: Sequence[MetricChange], limit: float) -> None:
    """Print the drops for which `--fail-on-drop` fails."""
    for change in lost:
        of = f" of {clean(str(change.segment), 80)}" if change.segment else ""
        fell = "fell" if change.higher_is_better else "rose"
        much = f"by {number(change.loss)}, more than {limit:g}"
        console.print(
            f"{display_name(change.metric)}{of} {fell} significantly, {much}", style="bold red"
        )


def _side(side: ComparedSide) -> str:
    bad = f", {side.quarantined:,} quarantined" if side.quarantined else ""
    rows = f"{plural(side.rows, 'row')} of {clean(side.dataset, 80)}{bad}"
    return f"{clean(side.name, _TEXT)}, {rows}"


def _print_questions(console: Console, changes: Sequence[MetricChange]) -> None:
    """Print how many questions the means are over."""
    counts: dict[str, list[str]] = {}
    for change in changes:
        paired = f"{change.questions:,} in pairs"
        separate = f"{change.questions_a or 0:,} before and {change.questions_b or 0:,} after"
        name = display_name(change.metric)
        counts.setdefault(paired if change.paired else separate, []).append(name)
    most = max(counts, key=lambda text: len(counts[text]))
    rest = [f"{text} ({', '.join(names)})" for text, names in counts.items() if text != most]
    console.print(f"Questions, each counted once: {'; '.join([most, *rest])}")


def _numbers(one: MetricChange) -> tuple[str, ...]:
    """The cells of a change, also of a change that could not be tested."""
    return number(one.mean_a), number(one.mean_b), _change(one)


def _change(one: MetricChange) -> str:
    if one.difference is None:
        return "–"
    mark = "▼ " if one.significantly_worse() else "▲ " if one.significantly_better else ""
    return f"{mark}{signed(one.difference)} {signed_interval(one.low, one.high)}"


def _styles(changes: Sequence[MetricChange]) -> list[str | None]:
    return ["bold red" if change.significantly_worse() else None for change in changes]


def _print_segments(console: Console, comparison: Comparison) -> None:
    """A table per tag: what is significantly worse first, then what contributes most to a loss."""
    whole = {change.metric: change for change in comparison.metrics}
    by_tag: dict[str, list[MetricChange]] = {}
    for change in comparison.segments:
        if change.segment:
            by_tag.setdefault(change.segment.tag, []).append(change)
    for tag, changes in by_tag.items():
        changes.sort(key=lambda one: (not one.significantly_worse(), -contribution(one, whole)))
        worse = [change for change in changes if change.significantly_worse()]
        shown = (changes if comparison.segments_asked else worse)[:_MOST_SEGMENTS]
        if not shown:
            continue
        lines = [(_value(one), display_name(one.metric), *_numbers(one)) for one in shown]
        headers = (clean(tag, 40), "metric", *_HEADERS)
        print_grid(console, headers, lines, names=(0, 1), styles=_styles(shown))
        if left := len(changes) - len(shown):
            console.print(f"and {left:,} that contribute less to a loss: --json has them all")


def _value(one: MetricChange) -> str:
    return clean(one.segment.value, 60) if one.segment else ""


def _print_moved(console: Console, found: Comparison) -> None:
    for metric, moved in groupby(found.moved, key=lambda one: one.metric):
        console.print(f"Moved furthest by {display_name(metric)}:")
        for row in moved:
            text = clean(row.user_input, _TEXT) or "(its row is no longer in the store)"
            line = f"  {row.value_a:.3f} → {row.value_b:.3f}  {text}"
            console.print(line)


def _print_judges(console: Console, comparison: Comparison) -> None:
    """Who judged; once where both sides have the same judge."""
    judges = {"before": comparison.a.judge, "after": comparison.b.judge}
    if comparison.a.judge == comparison.b.judge:
        judges = {"": comparison.b.judge}
    for side, judge in judges.items():
        name = f"{clean(judge.title, _TEXT)} ({clean(judge.fingerprint, 40)})"
        console.print(f"{f'Judge {side}'.rstrip()}: {name}")
        if judge.note:
            console.print(f"Note: {clean(judge.note, 300)}", style="yellow")

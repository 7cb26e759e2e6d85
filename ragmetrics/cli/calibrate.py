"""`ragmetrics calibrate`: compares a judge with labelled rows, and prints how well they agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ragmetrics.cli.options import (
    JUDGE_NAME,
    BaseUrlFlag,
    JsonFlag,
    MetricsFlag,
    ModelFlag,
    err,
    names_of,
    out,
    print_json,
    settings_file,
    settings_here,
)
from ragmetrics.cli.output.summary import progress
from ragmetrics.cli.table import figures_table, with_interval
from ragmetrics.config import with_overrides
from ragmetrics.errors import InputError
from ragmetrics.records import (
    ATTACK_WORDS,
    FIGURES,
    Agreement,
    AttackResult,
    Calibration,
    Drift,
    Figure,
    FigureName,
    GoldRank,
    MetricCalibration,
    MetricDrift,
    Status,
)
from ragmetrics.text import clean, number

LabelledSets = Annotated[
    list[str],
    typer.Argument(
        help="Labelled sets: files, folders or globs; local or s3://. Or night:DATE of the store."
    ),
]
JudgeFlag = Annotated[
    str | None,
    typer.Option(
        "--judge",
        help=f"{JUDGE_NAME}, or `labels`: verdicts in the rows; default: that of the settings, "
        "else lexical.",
    ),
]
LimitFlag = Annotated[
    int | None, typer.Option("--limit", min=1, help="Read at most this many rows of each set.")
]
AttacksFlag = Annotated[
    int,
    typer.Option(
        "--attacks",
        min=0,
        help="Irrelevant contexts of each set to attack, with 5 requests each; 0: none.",
    ),
]
FitFlag = Annotated[
    bool,
    typer.Option(
        "--fit", help="Fit the judge's strengths to the labels, for `judge: calibration:`."
    ),
]
StoreFlag = Annotated[
    str | None,
    typer.Option("--store", help="Store for replies and results; default: that of the settings."),
]
SettingsFlag = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        help="The settings file: its judge and its store; default: ragmetrics.yaml, if it exists.",
    ),
]
_SHORT: dict[FigureName, str] = {
    "auc": "AUC",
    "auc_within": "within row",
    "kappa": "kappa",
    "kappa_quadratic": "quadratic",
    "alpha": "α",
    "spearman": "Spearman",
}
"""The figures of a segment; a terminal has no room for more."""
_STRENGTHS = {
    "evidence": "the strengths that the judge gives",
    "verdict": "its verdicts: this judge gives no strengths",
}


def calibrate(
    labelled: LabelledSets,
    metrics: MetricsFlag = None,
    judge: JudgeFlag = None,
    model: ModelFlag = None,
    base_url: BaseUrlFlag = None,
    limit: LimitFlag = None,
    attacks: AttacksFlag = 20,
    fit: FitFlag = False,
    store: StoreFlag = None,
    settings: SettingsFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare a judge with labelled rows: agreement, reliability. Exit code 1 on drift."""
    from ragmetrics.dashboard import refresh_dashboard
    from ragmetrics.people import calibrate, calibrate_replies, load_history
    from ragmetrics.records import calibrations_json
    from ragmetrics.storage import Files

    chosen = settings_here(settings)
    files = None
    if store or settings_file(settings):
        files = Files(store or chosen.store, chosen.storage_options)
    names = names_of(metrics)
    if fit and (files is None or judge == "labels"):
        raise InputError("--fit needs a store, by --store or --settings, and a judge that is asked")
    with progress(err, "judging", quiet=as_json) as bar:
        if judge == "labels":
            found = calibrate_replies(chosen, labelled, names, limit, files=files)
        else:
            judged = with_overrides(chosen, judge, model, base_url)
            found = calibrate(
                judged, labelled, names, limit, files=files, progress=bar, attacks=attacks, fit=fit
            )
    history = load_history(files) if files else None
    drifts = [history.drift_to(one) if history else None for one in found]
    if as_json:
        print_json(calibrations_json(found, drifts))
    else:
        for calibration, drift in zip(found, drifts, strict=True):
            print_calibration(out, calibration, drift)
    if files:
        refresh_dashboard(files)
    if any(one.incomplete for one in found) or any(drift and drift.drifted for drift in drifts):
        raise typer.Exit(1)


def print_calibration(console: Console, calibration: Calibration, drift: Drift | None) -> None:
    """Print the calibration of a judge on a set: figures with intervals, then the details."""
    who = clean(calibration.judge.name, 100)
    console.rule(f"{calibration.name}, judge {who}", align="left")
    if calibration.refused:
        console.print(
            f"Not calibrated. The judge refuses: {clean(calibration.refused, 300)}",
            style="red",
        )
        return
    if calibration.metrics:
        _show(console, _figures(calibration.metrics))
    for measured in calibration.metrics:
        if measured.overall:
            _print_details(console, measured, measured.overall)
    if calibration.fit:
        console.print(f"Fitted: set `judge: {{calibration: {calibration.fit}}}` to use it.")
    _print_gold(console, calibration.gold)
    _print_attacks(console, calibration.attacks)
    for metric, reason in calibration.skipped.items():
        console.print(f"Not calibrated: {metric}: {reason}")
    _print_source(console, calibration)
    if drift:
        print_drift(console, drift)


def print_drift(console: Console, drift: Drift) -> None:
    """Print the changes since the calibrations before."""
    who = "the same judge" if drift.same_fingerprint else "with changed settings or prompts"
    console.print(f"Since {drift.earlier:%Y-%m-%d %H:%M} UTC ({who}), later less earlier:")
    if not drift.metrics:
        console.print("No data: no verdict to compare.")
        return
    table = figures_table("metric", "units", "changed", "kappa, quadratic", "AUC", "")
    for metric in drift.metrics:
        table.add_row(
            metric.metric,
            f"{metric.units:,}",
            with_interval(metric.changed, "\n"),
            with_interval(metric.figures.get("kappa_quadratic"), "\n"),
            with_interval(metric.figures.get("auc"), "\n"),
            f"{metric.state}{_since(metric, drift)}",
            style="bold red" if metric.drifted else None,
        )
    _show(console, table)


def _since(one: MetricDrift, drift: Drift) -> str:
    """A note if a metric was compared with an older calibration than the others."""
    return "" if one.earlier in (None, drift.earlier) else f", since {one.earlier:%Y-%m-%d}"


def _figures(measured: Sequence[MetricCalibration]) -> Table:
    table = figures_table("", *(calibrated.metric for calibrated in measured))
    shown = [one.overall for one in measured]
    table.add_row("units", *(f"{one.units:,}" if one else "0" for one in shown))
    table.add_row("rows, questions", *(_counts(one) for one in shown))
    table.add_row("positive labels", *(f"{one.positive:.1%}" if one else "–" for one in shown))
    for name, title in FIGURES.items():
        figures = [one.figures.get(name) if one else None for one in shown]
        if any(figures):
            # The interval stands below, so that four metrics fit into 80 columns.
            table.add_row(title, *(with_interval(figure, "\n") for figure in figures))
    table.add_row("no verdict", *(_unanswered(one) for one in measured))
    return table


def _print_details(console: Console, measured: MetricCalibration, overall: Agreement) -> None:
    ranked = _STRENGTHS[measured.strengths]
    console.print(f"{measured.metric}: AUC, Spearman and reliability are of {ranked}.")
    if measured.thresholds:
        first, second = measured.thresholds
        console.print(f"Thresholds that fit these labels: `thresholds: [{first}, {second}]`")
    if measured.cascade_thresholds:
        first, second = measured.cascade_thresholds
        console.print(
            f"In a cascade: `thresholds: [{first}, {second}]`; certain of {measured.certain:.1%}"
        )
    elif measured.thresholds:
        console.print(
            "In a cascade: no thresholds; these labels do not show that it is certain of any "
            "context (that takes 59 contexts beyond a score, and 29 of other grades)"
        )
    if measured.not_fitted:
        console.print(f"Not fitted: {measured.not_fitted}")
    if measured.error_after_fit:
        before, after = overall.figures.get("calibration_error"), measured.error_after_fit
        console.print(f"Calibration error: {with_interval(before)}; fitted: {with_interval(after)}")
    _show(console, _confusion(overall))
    if overall.reliability:
        _show(console, _reliability(overall))
    if measured.segments:
        _show(console, _segments(measured.segments))


def _confusion(overall: Agreement) -> Table:
    confusion = overall.confusion
    table = figures_table("label", *(f"verdict {value:g}" for value in confusion.verdicts))
    for label, counts in zip(confusion.labels, confusion.counts, strict=True):
        table.add_row(f"{label:g}", *(f"{count:,}" for count in counts))
    return table


def _reliability(overall: Agreement) -> Table:
    table = figures_table("judged", "units", "positive labels")
    for bar in overall.reliability:
        share = Figure(value=bar.observed, low=bar.observed_low, high=bar.observed_high)
        table.add_row(f"{bar.low:.1f}–{bar.high:.1f}", f"{bar.n:,}", with_interval(share))
    return table


def _segments(segments: Sequence[Agreement]) -> Table:
    table = figures_table("segment", "units", *_SHORT.values())
    for agreement in segments:
        figures = map(agreement.figures.get, _SHORT)
        values = (number(figure.value if figure else None) for figure in figures)
        table.add_row(clean(str(agreement.segment), 60), f"{agreement.units:,}", *values)
    return table


def _print_gold(console: Console, gold: Sequence[GoldRank]) -> None:
    for rank in gold:
        figure = f"{with_interval(rank.spearman)} ({rank.rows:,} rows)"
        console.print(f"Spearman of {rank.metric} with gold {clean(rank.gold, 60)}: {figure}")


def _print_attacks(console: Console, attacks: Sequence[AttackResult]) -> None:
    if not any(attack.contexts for attack in attacks):
        return
    console.print("Irrelevant contexts whose grade an attack raised:")
    table = figures_table("attack", "contexts", "lifted")
    for result in attacks:
        words, contexts = ATTACK_WORDS[result.attack], f"{result.contexts:,}"
        table.add_row(words, contexts, with_interval(result.lifted))
    _show(console, table)


def _print_source(console: Console, calibration: Calibration) -> None:
    rejected, usage = sum(calibration.rejected.values()), calibration.usage
    console.print(f"Rows: {calibration.rows:,}, rejected: {rejected:,}")
    for reason, count in calibration.rejected.items():
        console.print(f"  {count:,}  {clean(reason, 300)}")
    for broken in calibration.broken:
        console.print(f"Broken file {broken.file}: {broken.reason}", style="red")
    judge = calibration.judge
    console.print(f"Judge: {clean(judge.name, 300)} ({judge.fingerprint})")
    if judge.note:
        console.print(f"Note: {judge.note}", style="yellow")
    reused = f"{usage.answered_from_store:,}"
    console.print(f"Requests: {usage.requests:,}, reused from cache: {reused}")


def _unanswered(measured: MetricCalibration) -> str:
    rest = [
        f"{count:,} {status}"
        for status, count in measured.status.items()
        if status != Status.SCORED
    ]
    return ", ".join(rest) or "0"


def _counts(one: Agreement | None) -> str:
    return f"{one.rows:,}, {one.questions:,}" if one else "0, 0"


def _show(console: Console, table: Table) -> None:
    console.print(table, soft_wrap=False)

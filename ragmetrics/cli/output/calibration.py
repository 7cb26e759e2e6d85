"""What `ragmetrics calibrate` prints for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragmetrics.cli.output.summary import number
from ragmetrics.model import (
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
from ragmetrics.text import clean

_SHORT: dict[FigureName, str] = {
    "auc": "AUC",
    "auc_within": "within row",
    "kappa": "kappa",
    "kappa_quadratic": "quadratic",
    "alpha": "α",
    "spearman": "Spearman",
}
"""Those shown by segment, where a terminal has less room."""
_STRENGTHS = {
    "evidence": "the strengths that the judge gives",
    "verdict": "its verdicts: this judge gives no strengths",
}


def print_calibration(console: Console, calibration: Calibration, drift: Drift | None) -> None:
    """One judge on one set: figures with intervals, then what stands behind them."""
    who = escape(clean(calibration.judge.name, 100))
    console.rule(f"{calibration.name}, judge {who}", align="left")
    if calibration.refused:
        console.print(
            f"Not calibrated, it refuses: {clean(calibration.refused, 300)}",
            markup=False,
            style="red",
            soft_wrap=True,
        )
        return
    if calibration.metrics:
        console.print(_figures(calibration.metrics))
    for one in calibration.metrics:
        if one.overall:
            _print_details(console, one, one.overall)
    _print_gold(console, calibration.gold)
    _print_attacks(console, calibration.attacks)
    for metric, reason in calibration.skipped.items():
        console.print(f"Not calibrated: {metric}: {reason}", markup=False)
    _print_source(console, calibration)
    if drift:
        print_drift(console, drift)


def print_drift(console: Console, drift: Drift) -> None:
    """What changed since the calibrations before."""
    who = "the same judge" if drift.same_fingerprint else "its settings or prompts have changed"
    console.print(f"Since {drift.earlier:%Y-%m-%d %H:%M} UTC ({who}), later less earlier:")
    if not drift.metrics:
        console.print("No data: no verdict to compare.")
        return
    table = _table("metric", "units", "changed", "kappa, quadratic", "AUC", "")
    for one in drift.metrics:
        table.add_row(
            one.metric,
            f"{one.units:,}",
            _told(one.changed, "\n"),
            _told(one.figures.get("kappa_quadratic"), "\n"),
            _told(one.figures.get("auc"), "\n"),
            f"{one.state}{_since(one, drift)}",
            style="bold red" if one.drifted else None,
        )
    console.print(table)


def _since(one: MetricDrift, drift: Drift) -> str:
    """Where a metric was compared with an older calibration than the others."""
    return "" if one.earlier in (None, drift.earlier) else f", since {one.earlier:%Y-%m-%d}"


def _figures(measured: Sequence[MetricCalibration]) -> Table:
    table = _table("", *(one.metric for one in measured))
    shown = [one.overall for one in measured]
    table.add_row("units", *(f"{one.units:,}" if one else "0" for one in shown))
    table.add_row("rows, questions", *(_counts(one) for one in shown))
    table.add_row("positive labels", *(f"{one.positive:.1%}" if one else "–" for one in shown))
    for name, title in FIGURES.items():
        found = [one.figures.get(name) if one else None for one in shown]
        if any(found):
            # The interval below, so that four metrics fit a terminal of 80 columns.
            table.add_row(title, *(_told(one, "\n") for one in found))
    errors = [number(one.calibration_error if one else None) for one in shown]
    table.add_row("calibration error", *errors)
    table.add_row("no verdict", *(_unanswered(one) for one in measured))
    return table


def _print_details(console: Console, measured: MetricCalibration, overall: Agreement) -> None:
    ranked = _STRENGTHS[measured.strengths]
    console.print(
        f"{measured.metric}: AUC, Spearman and reliability are of {ranked}.", soft_wrap=True
    )
    console.print(_confusion(overall))
    if overall.reliability:
        console.print(_reliability(overall))
    if measured.segments:
        console.print(_segments(measured.segments))


def _confusion(overall: Agreement) -> Table:
    found = overall.confusion
    table = _table("label", *(f"verdict {value:g}" for value in found.verdicts))
    for label, counts in zip(found.labels, found.counts, strict=True):
        table.add_row(f"{label:g}", *(f"{count:,}" for count in counts))
    return table


def _reliability(overall: Agreement) -> Table:
    table = _table("judged", "units", "positive labels")
    for one in overall.reliability:
        share = Figure(value=one.observed, low=one.observed_low, high=one.observed_high)
        table.add_row(f"{one.low:.1f}–{one.high:.1f}", f"{one.n:,}", _told(share))
    return table


def _segments(segments: Sequence[Agreement]) -> Table:
    table = _table("segment", "units", *_SHORT.values())
    for one in segments:
        values = (figure.value if (figure := one.figures.get(name)) else None for name in _SHORT)
        segment = escape(clean(str(one.segment), 60))
        table.add_row(segment, f"{one.units:,}", *(number(value) for value in values))
    return table


def _print_gold(console: Console, gold: Sequence[GoldRank]) -> None:
    for one in gold:
        console.print(
            f"Spearman of {one.metric} with gold {clean(one.gold, 60)}: {_told(one.spearman)} "
            f"({one.rows:,} rows)",
            markup=False,
            soft_wrap=True,
        )


def _print_attacks(console: Console, attacks: Sequence[AttackResult]) -> None:
    if not any(one.contexts for one in attacks):
        return
    console.print("Irrelevant contexts that got a higher grade by an attack:")
    table = _table("attack", "contexts", "lifted")
    for one in attacks:
        table.add_row(ATTACK_WORDS[one.attack], f"{one.contexts:,}", _told(one.lifted))
    console.print(table)


def _print_source(console: Console, calibration: Calibration) -> None:
    rejected, usage = sum(calibration.rejected.values()), calibration.usage
    console.print(f"Rows: {calibration.rows:,}, rejected: {rejected:,}")
    for reason, count in calibration.rejected.items():
        console.print(f"  {count:,}  {clean(reason, 300)}", markup=False)
    for broken in calibration.broken:
        console.print(f"Broken file {broken.file}: {broken.reason}", markup=False, style="red")
    judge = calibration.judge
    console.print(f"Judge: {clean(judge.name, 300)} ({judge.fingerprint})", markup=False)
    if judge.note:
        console.print(f"Note: {judge.note}", markup=False, style="yellow")
    console.print(f"Requests: {usage.requests:,}, reused from cache: {usage.answered_from_store:,}")


def _unanswered(measured: MetricCalibration) -> str:
    rest = [
        f"{count:,} {status}"
        for status, count in measured.status.items()
        if status != Status.SCORED
    ]
    return ", ".join(rest) or "0"


def _counts(one: Agreement | None) -> str:
    return f"{one.rows:,}, {one.questions:,}" if one else "0, 0"


def _told(figure: Figure | None, between: str = " ") -> str:
    if figure is None or figure.low is None:
        return number(figure.value if figure else None)
    return f"{number(figure.value)}{between}[{number(figure.low)}, {number(figure.high)}]"


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="right" if place else "left", no_wrap=not place)
    return table

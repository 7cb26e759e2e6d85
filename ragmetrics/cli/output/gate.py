"""What the command line prints of a gate."""

from __future__ import annotations

from rich.console import Console

from ragmetrics.cli.output.summary import number, print_source
from ragmetrics.cli.table import print_grid
from ragmetrics.model import Gate, MetricVerdict, drop_words, movement_text
from ragmetrics.text import clean

_STYLES = {"promote": "bold green", "hold": "bold red", "inconclusive": "bold yellow"}
_QUESTIONS = 3


def print_gate(console: Console, gate: Gate) -> None:
    """The metrics of both builds, what fell, and the verdict with its reasons."""
    against = f" against {gate.serving}" if gate.serving else ""
    console.print(f"Build {gate.build}{against} ({gate.dataset})", markup=False)
    if gate.metrics:
        headers = ("metric", "before", "after", "drop [95%]", "below", "limit", "questions")
        styles = [_STYLES[one.verdict] if one.verdict == "hold" else None for one in gate.metrics]
        print_grid(console, headers, [_line(one) for one in gate.metrics], styles=styles)
    _print_fallen(console, gate)
    print_source(console, gate.source.rows, gate.quarantined, gate.source.reasons)
    if gate.missing:
        why = ", ".join(f"{count:,} {reason}" for reason, count in gate.missing_why.items())
        console.print(f"Questions that cannot be compared: {gate.missing:,} ({why})", markup=False)
    for told in dict.fromkeys(movement_text(one.movement) for one in gate.metrics):
        if told:
            console.print(f"Note: {told}", markup=False, style="yellow")
    for problem in gate.problems:
        console.print(f"Problem: {clean(problem, 300)}", markup=False, style="red")
    console.print(f"Judge: {gate.judge.name} ({gate.judge.fingerprint})", markup=False)
    if gate.judge.note:
        console.print(f"Note: {gate.judge.note}", markup=False, style="yellow")
    console.print(gate.verdict.upper(), style=_STYLES[gate.verdict])
    for reason in gate.reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)


def _print_fallen(console: Console, gate: Gate) -> None:
    """Of a held build, the questions that fell furthest by the metrics that hold it."""
    for metric in (one.metric for one in gate.metrics if one.verdict == "hold"):
        console.print(f"Fell furthest by {metric}:", markup=False)
        for one in [fallen for fallen in gate.fallen if fallen.metric == metric][:_QUESTIONS]:
            text = f"  {one.before:.3f} → {one.after:.3f}  {clean(one.user_input, 200)}"
            console.print(text, markup=False, soft_wrap=True)


def _line(one: MetricVerdict) -> tuple[str, ...]:
    told = ("–",) if one.drop is None else drop_words(one.drop, one.low, one.high)
    means = number(one.before), number(one.after), " ".join(told).rstrip()
    return one.metric, *means, number(one.upper), f"{one.max_drop:g}", f"{one.questions:,}"

"""`ragmetrics init`: the first settings file, from a sample of a team's own log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.prompt import Prompt

from ragmetrics.cli.options import BY_DEFAULT, JsonFlag, err, out, print_json
from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.table import print_grid
from ragmetrics.text import clean

if TYPE_CHECKING:
    from ragmetrics.pipeline import InitReport, Question

SampleArgument = Annotated[
    str,
    typer.Argument(
        metavar="SAMPLE_LOG", help="A file, a folder or a glob of your own logs; or s3://..."
    ),
]


def init(
    sample: SampleArgument,
    settings: Annotated[Path, typer.Option("--settings", help="The file to write.")] = BY_DEFAULT,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing; take the likeliest answer.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a first settings file for your own logs. It asks at most four questions.

    It reads the sample, recognises its layout, measures the variance of its scores with the
    lexical judge, and writes rules whose limits fit it. Nothing is sent anywhere.
    """
    from ragmetrics.pipeline import init_settings

    asked = not (yes or as_json) and sys.stdin.isatty()
    report = init_settings(sample, settings, _ask if asked else None, overwrite=force)
    if as_json:
        print_json(report.as_json())
        return
    for line in report.found:
        out.print(clean(line, 1_000))
    tables.print_check(out, report.check)
    _print_rules(report)
    _print_next(report)


def _ask(question: Question) -> str:
    """The answer of the person at the terminal."""
    options = list(question.options) or None
    return Prompt.ask(
        clean(question.text, 1_000), console=err, choices=options, default=question.default
    )


def _print_rules(report: InitReport) -> None:
    """Print the limits of the rules and what they can see."""
    from ragmetrics.rules import blind_text

    lines = [
        (
            rule.metric,
            f"{rule.mean:.3f}",
            "–" if rule.least is None else f"{rule.least:g}",
            f"{min(rule.max_drop, rule.max_share * rule.mean):.2g}",
            f"{rule.detects:.2g}",
            f"{rule.false_alarms:.2g}" if rule.false_alarms >= 0.001 else "under 0.001",
        )
        for rule in report.limits
    ]
    if lines:
        headers = ("rule", "mean", "min", "max drop", "finds a drop of", "false alarms a year")
        print_grid(out, headers, lines)
    able = [rule.metric for rule in report.limits if rule.sees]
    for rule in report.limits:
        if not rule.sees:
            text = blind_text(rule.metric, rule.mean, rule.detects, able)
            out.print(f"Warning: {text}.", style="yellow")


def _print_next(report: InitReport) -> None:
    """Print the next two commands."""
    option = "" if report.path == BY_DEFAULT else f" --settings {report.path}"
    out.print(f"Wrote {report.path}. Next:")
    out.print(f"  ragmetrics nightly --date {report.day}{option}")
    out.print(f"  ragmetrics dashboard --open{option}")

"""`ragmetrics init`: the first settings file, from a sample of a team's own log."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragmetrics.cli.options import BY_DEFAULT, JsonFlag, out, print_json
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


_MOST_SHOWN = 40
"""Keys of a log that are shown with a value."""


def init(
    sample: SampleArgument,
    settings: Annotated[
        Path, typer.Option("--settings", help="The file to write, or to complete.")
    ] = BY_DEFAULT,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing; take the likeliest answer, and say which.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a first settings file for your own logs. It asks at most six questions.

    It reads the sample, recognises its layout, measures the variance of its scores with the
    lexical judge, and writes rules whose limits fit it. A file that exists is completed. Nothing is
    sent anywhere.
    """
    from ragmetrics.pipeline import init_settings

    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    asks = terminal and not (yes or as_json)
    report = init_settings(sample, settings, _Dialogue() if asks else None, overwrite=force)
    if as_json:
        print_json(report.as_json())
        return
    for line in report.found:
        out.print(clean(line, 1_000))
    tables.print_check(out, report.check)
    _print_rules(report)
    _print_next(report)


class _Dialogue:
    """Asks the person at the terminal. The keys of the log are shown once, with their numbers."""

    def __init__(self) -> None:
        self._shown = False

    def __call__(self, question: Question) -> str:
        """An answer: one of the options, or its number; Enter takes the default."""
        keys = [*question.samples]
        if keys and not self._shown:
            self._show(question)
        text = clean(question.text, 1_000)
        while True:
            answer = self._prompt(text, question.default)
            if answer.isdecimal() and 0 < int(answer) <= len(keys):
                return keys[int(answer) - 1]
            if answer and (answer in question.options or not question.options):
                return answer
            known = "a number or a key of the list" if keys else ", ".join(question.options)
            out.print(f"Please answer with {known}.")

    def _prompt(self, text: str, default: str) -> str:
        shown = f"{text} [{clean(default, 200)}]" if default else text
        answer = str(typer.prompt(shown, default=default, show_default=False, prompt_suffix=": "))
        return answer.strip()

    def _show(self, question: Question) -> None:
        """Print the keys of the log with a value of each: both are texts of the log."""
        self._shown = True
        pairs = [*question.samples.items()][:_MOST_SHOWN]
        lines = [
            (str(number), clean(key, 40), clean(value, 40))
            for number, (key, value) in enumerate(pairs, 1)
        ]
        print_grid(out, ("", "key of the log", "such as"), lines, names=(0, 1, 2))


def _print_rules(report: InitReport) -> None:
    """Print the limits of the rules and what they can see."""
    from ragmetrics.metrics import display_name
    from ragmetrics.rules import blind_text

    lines = [
        (
            display_name(rule.metric),
            f"{rule.mean:.3f}",
            "–" if rule.least is None else f"{rule.least:g}",
            f"{min(rule.max_drop, (rule.max_share or math.inf) * rule.mean):.2g}",
            f"{rule.detects:.2g}",
            f"{rule.false_alarms:.2g}" if rule.false_alarms >= 0.001 else "under 0.001",
        )
        for rule in report.limits
    ]
    if lines:
        headers = ("rule", "mean", "min", "max drop", "detectable", "false alarms a year")
        print_grid(out, headers, lines)
        out.print("detectable: the smallest detectable drop of a night (with a probability of 80%)")
    able = [display_name(rule.metric) for rule in report.limits if rule.sees]
    for rule in report.limits:
        if not rule.sees:
            text = blind_text(display_name(rule.metric), rule.mean, rule.detects, able)
            out.print(f"Warning: {text}.", style="yellow")


def _print_next(report: InitReport) -> None:
    """Print the next commands: the nights before, the newest night, and the pages."""
    option = "" if report.path == BY_DEFAULT else f" --settings {report.path}"
    out.print(f"{'Completed' if report.completed else 'Wrote'} {report.path}. Next:")
    if report.before:
        first, last = report.before
        out.print(f"  ragmetrics backfill --first {first} --last {last}{option}")
    out.print(f"  ragmetrics nightly --date {report.day}{option}")
    out.print(f"  ragmetrics dashboard --open{option}")

"""`ragmetrics pull-request`: compares or gates, and shows the result in a pull request."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragmetrics.cli.options import err, out, settings_here
from ragmetrics.errors import InputError, RagmetricsError

if TYPE_CHECKING:
    from ragmetrics.delivery import CheckResult

_EXIT_CODES = {"passed": 0, "failed": 1, "inconclusive": 2}
_FAILS = {"failed": ("failed",), "inconclusive": ("failed", "inconclusive"), "never": ()}
Command = Literal["compare", "gate"]
FailOn = Literal["failed", "inconclusive", "never"]


def pull_request(
    command: Annotated[Command, typer.Argument(help="What to run: compare or gate.")],
    arguments: Annotated[
        str,
        typer.Option(
            help="Its arguments in one text, such as 'before.jsonl after.jsonl --by section'."
        ),
    ] = "",
    max_drop: Annotated[
        float,
        typer.Option(min=0.0, help="For compare: the largest drop of a metric that passes."),
    ] = 0.05,
    name: Annotated[
        str, typer.Option(help="Name of the check; a pull request has one comment for each name.")
    ] = "ragmetrics",
    link: Annotated[str, typer.Option(help="Address of the page with the whole result.")] = "",
    comment: Annotated[bool, typer.Option(help="Write the comment.")] = True,
    check: Annotated[bool, typer.Option(help="Set the check.")] = True,
    fail_on: Annotated[
        FailOn, typer.Option(help="The results for which the exit code is not 0.")
    ] = "failed",
    report: Annotated[
        Path | None, typer.Option(help="Also write the report to this file, in Markdown.")
    ] = None,
) -> None:
    """Compare or gate, and show the result in a pull request.

    In GitHub Actions and GitLab CI it writes the job's summary, one comment that later runs change,
    and a check. Elsewhere it prints the report. Exit code: 1 failed, 2 inconclusive with
    `--fail-on inconclusive`, else 0.
    """
    result = _result(command, _words(arguments), max_drop, link)
    _write_summary(result, report)
    _publish(result, name, comment=comment, check=check)
    raise typer.Exit(_EXIT_CODES[result.conclusion] if result.conclusion in _FAILS[fail_on] else 0)


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise InputError(f"--arguments: {error}") from None


def _hides(arguments: list[str]) -> bool:
    """Whether the settings of the command keep questions out of messages."""
    named = [
        argument.partition("=")[2] or following
        for argument, following in pairwise([*arguments, ""])
        if argument == "--settings" or argument.startswith("--settings=")
    ]
    return settings_here(Path(named[-1]) if named else None).redacts_messages


def _result(command: Command, arguments: list[str], max_drop: float, link: str) -> CheckResult:
    """Run the command in a process of its own, whose output is one JSON object."""
    from ragmetrics.dashboard import redacted
    from ragmetrics.delivery import CheckResult, comparison_result, gate_result
    from ragmetrics.records import Comparison, Gate

    try:
        hide = _hides(arguments)
    except RagmetricsError as error:
        err.print(f"ragmetrics: {error}", style="red")
        return CheckResult.without("The settings cannot be read. The job's log says why.")
    # -P: the working folder is the checkout of a pull request, whose modules must not be imported.
    done = subprocess.run(  # noqa: S603 - no shell; the words are arguments of our own command
        [sys.executable, "-P", "-m", "ragmetrics", command, *arguments, "--json"],
        stdout=subprocess.PIPE,
        check=False,
    )
    try:
        found = json.loads(done.stdout)
        if command == "gate":
            return gate_result(redacted(Gate.model_validate(found), hide), link)
        comparison = redacted(Comparison.model_validate(found), hide)
        return comparison_result(comparison, max_drop, link)
    except ValueError:
        return CheckResult.without(f"Its exit code is {done.returncode}. The job's log says why.")


def _write_summary(result: CheckResult, report: Path | None) -> None:
    """Write the job's summary and outputs where GitHub wants them; else print the report.

    Raises InputError if the report cannot be written.
    """
    if report:
        try:
            report.write_text(result.markdown, encoding="utf-8")
        except OSError as error:
            raise InputError(f"--report {report}: {error.strerror}") from None
    lines = f"conclusion={result.conclusion}\n"
    if report:
        lines += f"report={report}\n"
    summary, outputs = (os.environ.get(f"GITHUB_{one}") for one in ("STEP_SUMMARY", "OUTPUT"))
    if not summary:
        out.print(result.markdown, markup=False)
    for path, text in ((summary, result.markdown), (outputs, lines)):
        if path:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(text)


def _publish(result: CheckResult, name: str, *, comment: bool, check: bool) -> None:
    """Comment and check. Where that is refused, as for a fork, the verdict counts all the same."""
    from ragmetrics.delivery import find_host

    if not (comment or check):
        return
    try:
        host = find_host(os.environ)
    except InputError as error:
        err.print(f"ragmetrics: {error}", style="yellow")
        return
    if host is None:
        return
    for wanted, publish in ((comment, host.comment), (check, host.check)):
        if wanted:
            try:
                publish(result, name)
            except RagmetricsError as error:
                err.print(f"ragmetrics: not shown in the pull request: {error}", style="yellow")

"""The command line. Results go to stdout, progress to stderr; `--json` prints one object alone.

Exit codes: 0 fine, 1 findings, 2 usage or input error, 130 Ctrl-C; as in sysexits.h, 70 for an
unexpected error, with its traceback, and 74 where stdout could not be written. A reader that goes
away (`| head`) does not change the exit code.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ragmetrics.cli.streams import durable_streams
from ragmetrics.errors import RagmetricsError
from ragmetrics.scoring import collect_seldom
from ragmetrics.version import __version__

_INTERRUPTED = 130
_BROKE = 70
_UNPRINTED = 74

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Start": {
        "demo": "Run ten bundled nights, one with a damaged index build.",
        "init": "Write a first settings file for your own logs.",
        "check": "Check which rows can be read, and which metrics scored.",
        "score": "Score logs: the mean of each metric, with its interval.",
        "compare": "Compare two logs, nights, runs or index builds.",
    },
    "Every night": {
        "doctor": "Check whether a night would work.",
        "nightly": "Score a night, publish its dashboard and send alerts.",
        "backfill": "Score and publish past nights.",
        "dashboard": "Rewrite the dashboard of a store.",
        "alerts": "List, acknowledge and snooze alerts, and preview messages.",
        "mcp": "Answer an agent's questions about the store, over stdio.",
    },
    "Index builds": {
        "gate": "Compare two logs, or index builds: pass or fail.",
        "replay": "Ask an index build the golden questions, and write its log.",
        "whatif": "Ask variants of the retriever the questions that fell.",
        "pull-request": "Compare or gate, and show the result in a pull request.",
        "emit-build": "Send Prefect the event of a new index build.",
    },
    "Judges and people": {
        "calibrate": "Compare a judge with labelled rows: agreement, reliability.",
        "labels": "Check the rows that people labelled, and name more to label.",
        "golden": "Check and repair the golden set, and add live questions.",
        "learn": "Fit the learned judge to the verdicts in the store.",
        "plan": "Print the cost of the last night, and that of an interval.",
        "prompts": "Export, check and translate the prompts that judges get.",
        "metrics": "List the metrics: what each measures, its formula and fields.",
    },
    "Upkeep": {
        "batches": "List the batches with unread answers, or cancel them.",
        "prune": "Remove old nights, logged rows, replaced runs and replies.",
        "write-back": "Send the scores of a night to the tools of `write_back:`.",
        "schema": "Print the JSON Schema of ragmetrics.yaml, for editors.",
    },
}
"""The commands in groups, each with the first sentence of its help, which fits a line.

A command `NAME` is the function, or the group `app`, of the module `NAME`. It is imported when it
is needed: most of them need libraries that take a second to import.
"""
COMMANDS = {name: text for group in GROUPS.values() for name, text in group.items()}
_MODULES = {"emit-build": "gate", "pull-request": "pull_request", "write-back": "write_back"}


class Commands(dict[str, Any]):
    """The commands by name, each imported by the first look-up."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COMMANDS))

    def __getitem__(self, name: str) -> Any:
        command = super().__getitem__(name)
        if command is None:
            command = self[name] = _load(name)
        return command

    def get(self, name: str, default: Any = None) -> Any:
        """The command of a name."""
        return self[name] if name in self else default  # noqa: SIM401

    def items(self) -> Any:
        """All commands by name."""
        return {name: self[name] for name in self}.items()


def _load(name: str) -> Any:
    """The command of a name. A group is a Typer of its own; any other is a function."""
    module = import_module(f"ragmetrics.cli.{_MODULES.get(name, name)}")
    if group := getattr(module, "app", None):
        return typer.main.get_group(group)
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    one.command(name)(getattr(module, name.replace("-", "_")))
    return typer.main.get_command(one)


class _Commands(TyperGroup):
    """The commands. Their errors do not reach click, which ends with exit code 1 on some of them,
    as if the reader of the output had gone away.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.commands = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return list(self.commands)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Leave out `--show-completion`: few copy it, and its text takes two lines."""
        for parameter in self.params:
            parameter.hidden |= parameter.name == "show_completion"  # type: ignore[attr-defined]
        super().format_options(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands in groups, a line each. No blank line: all fit 40 lines."""
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            formatter.write_heading(title)
            with formatter.indentation():
                formatter.write_dl([(name.ljust(width), text) for name, text in group.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (EOFError, OSError) as error:
            raise RuntimeError(f"the command broke: {error}") from error


app = typer.Typer(
    name="ragmetrics",
    cls=_Commands,
    help="Find out from the logs of a RAG product whether its retrieval got worse.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line, and end with its exit code."""
    collect_seldom()
    with durable_streams() as stdout:
        code = _run()
        stdout.flush()
        unprinted = stdout.problem
        if unprinted and not isinstance(unprinted, BrokenPipeError):
            text = f"ragmetrics: the output could not be written: {unprinted.strerror}"
            _complain(text)
            code = _UNPRINTED if code in (0, 1, 2) else code
    gc.freeze()  # the end of a process searches the rest for cycles, for a twentieth of `score`
    sys.exit(code)


def _run() -> int:
    """The exit code. An error of input is printed as one line, any other with its traceback."""
    try:
        app(prog_name="ragmetrics")
    except SystemExit as ended:
        return int(ended.code or 0)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except RagmetricsError as error:
        _complain(f"ragmetrics: {error}")
        return 2
    except ImportError as error:
        from retrieval_nightly import replaced

        if said := replaced():
            _complain(f"ragmetrics: {said}\n{error}")
        else:
            traceback.print_exc()
        return _BROKE
    except BaseException:  # panics of some libraries are no Exception
        traceback.print_exc()
        return _BROKE
    return 0


def _complain(text: str) -> None:
    from ragmetrics.cli.options import err

    err.print(text, style="red")

"""The command lines of flows: their arguments and exit codes. Prefect is not imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ragmetrics.cli import err
from ragmetrics.errors import RagmetricsError


def parser_of(flow: str, about: str | None) -> argparse.ArgumentParser:
    """The parser of `python -m flows.FLOW`, which has the settings file as an argument."""
    parser = argparse.ArgumentParser(prog=f"python -m flows.{flow}", description=about)
    parser.add_argument("--settings", default="ragmetrics.yaml", help="default: %(default)s")
    return parser


def exit_code(run: Callable[[], int], short: type[RagmetricsError] | None = None) -> int:
    """What `run` returns; after an error, which is printed, 1 for a `short` result, else 2."""
    try:
        return run()
    except RagmetricsError as error:
        err.print(str(error), style="red")
        return 1 if short and isinstance(error, short) else 2

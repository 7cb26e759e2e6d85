"""What the commands share: their flags, where they print, and how they read names and settings."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ragmetrics.config import Settings, load_settings, make_settings
from ragmetrics.errors import InputError

out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)
_BY_DEFAULT = Path("ragmetrics.yaml")
INTERRUPTED = 130
"""The exit code by which shells tell of a command that was stopped by Ctrl-C."""

Logs = Annotated[list[str], typer.Argument(help="Files, folders or globs; local or s3://.")]
ConfigFlag = Annotated[
    Path | None,
    typer.Option("--settings", help="A ragmetrics.yaml; its logs and store are not used."),
]
GoldenFlag = Annotated[
    str | None, typer.Option("--golden", help="Golden set: references joined by id or question.")
]
PresetFlag = Annotated[
    str | None,
    typer.Option("--preset", help="Who wrote the logs: ragas, otel ... (docs/presets.md)."),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
MetricsFlag = Annotated[
    str | None, typer.Option("--metrics", help="Names, separated by commas; default: settings.")
]
ModelFlag = Annotated[str | None, typer.Option("--model", help="The judge's model.")]
BaseUrlFlag = Annotated[
    str | None, typer.Option("--base-url", help="Any OpenAI-compatible endpoint.")
]


def names_of(metrics: str | None) -> list[str] | None:
    """The metrics named on the command line; None where none is."""
    return None if metrics is None else [name.strip() for name in metrics.split(",")]


def date_of(text: str) -> dt.date:
    """The date named on the command line; InputError for what is none."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r}: should be a date like 2026-11-19") from None


def settings_at(path: Path | None) -> Settings:
    """The settings of a file; without one, the defaults and the environment's."""
    return load_settings(path) if path else make_settings({})


def settings_here(path: Path | None) -> Settings:
    """The settings named, or `ragmetrics.yaml` of the folder, which the flows use by default."""
    return settings_at(path or (_BY_DEFAULT if _BY_DEFAULT.exists() else None))


def print_json(told: Any) -> None:
    """One JSON object and nothing else: in ASCII, which every terminal and file takes."""
    sys.stdout.write(json.dumps(told) + "\n")

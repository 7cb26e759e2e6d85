"""What the commands share: flags, consoles, and how names and settings are read."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ragmetrics.cli.table import make_console
from ragmetrics.config import Settings, check_not_future, load_settings, make_settings, night_before
from ragmetrics.errors import InputError

out, err = make_console(), make_console(stderr=True)


def date_of(text: str) -> dt.date:
    """The date of the command line. Raises InputError for any other text."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r}: should be a date like 2026-11-19") from None


def date_option(name: str, about: str) -> Any:
    """An option whose value is a date."""
    return typer.Option(name, metavar="DATE", parser=date_of, help=about)


def group(about: str) -> typer.Typer:
    """A command of several commands."""
    return typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None)


BY_DEFAULT = Path("ragmetrics.yaml")
INTERRUPTED = 130
"""The exit code that shells use for a command stopped by Ctrl-C."""
JUDGE_NAME = "Name of a judge (docs/reference/settings.md lists them)"

Logs = Annotated[list[str], typer.Argument(help="Files, folders or globs; local or s3://.")]
ConfigFlag = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        help="The settings file; default: ragmetrics.yaml, if it exists. Its `logs` and `store` "
        "are not used.",
    ),
]
GoldenFlag = Annotated[
    str | None,
    typer.Option(
        "--golden",
        help="Golden set: a file with right answers. Rows are matched by id or question.",
    ),
]
PresetFlag = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="The tool that wrote the logs, such as ragas or otel (docs/how-to/presets.md).",
    ),
]
SettingsFlag = Annotated[
    Path | None,
    typer.Option("--settings", help="The settings file; default: ragmetrics.yaml, if it exists."),
]
StoreFlag = Annotated[
    str | None,
    typer.Option(
        "--store", help="The store, a folder or s3:// address; default: that of the settings."
    ),
]
StoreArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[STORE]",
        help="The store, a folder or s3:// address; default: that of the settings.",
    ),
]
DateFlag = Annotated[
    dt.date | None, date_option("--date", "The night; default: yesterday in `time_zone`.")
]
NightFlag = Annotated[dt.date | None, date_option("--night", "The night; default: the newest.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
MetricsFlag = Annotated[
    str | None,
    typer.Option("--metrics", help="Metrics, separated by commas; default: those of the settings."),
]
ModelFlag = Annotated[str | None, typer.Option("--model", help="The judge's model.")]
BaseUrlFlag = Annotated[
    str | None,
    typer.Option("--base-url", help="URL of an OpenAI-compatible endpoint; default: OpenAI's."),
]


def names_of(metrics: str | None) -> list[str] | None:
    """The metrics of the command line; None if there are none."""
    return None if metrics is None else [name.strip() for name in metrics.split(",")]


def date_or_yesterday(day: dt.date | None, settings: Settings) -> dt.date:
    """The night of the command line; without one, yesterday in the zone of the nights.

    Raises InputError for a night in the future.
    """
    if day is None:
        return night_before(dt.datetime.now(dt.UTC), settings.time_zone)
    check_not_future(day, settings.time_zone)
    return day


@contextmanager
def stoppable(continues: str = "The same command continues") -> Iterator[None]:
    """End a command that is stopped by Ctrl-C with a sentence on how it continues."""
    try:
        yield
    except KeyboardInterrupt:
        err.print(f"Stopped. {continues}")
        raise typer.Exit(INTERRUPTED) from None


def settings_file(path: Path | None) -> Path | None:
    """The settings file that is named, else `ragmetrics.yaml` if the current folder has it."""
    return path or (BY_DEFAULT if BY_DEFAULT.exists() else None)


def settings_here(path: Path | None, store: str | None = None) -> Settings:
    """The settings of a file; without one, those of `ragmetrics.yaml` in the current folder.

    Without either, the defaults and the environment variables. `store` is a store in place of
    theirs.
    """
    file = settings_file(path)
    settings = load_settings(file) if file else make_settings({})
    return settings.model_copy(update={"store": store}) if store else settings


def suggestions_option(what: str) -> Any:
    """The file of suggestions."""
    about = f"Write the {what}: .csv, .jsonl, or .html for a labelling page."
    return typer.Option("--out", metavar="FILE", help=about)


def suggestions_page(out: Path | None, settings: Settings) -> Path | None:
    """The file of suggestions, if it is a labelling page.

    Raises InputError for a file of no known kind, and for texts that must not be printed.
    """
    if out is not None and out.suffix not in (".csv", ".jsonl", ".html"):
        raise InputError(f"--out {out}: the name should end in .csv, .jsonl or .html")
    if settings.redact and out is None:
        raise InputError("`redact:` is on, so questions are not printed: name a file by --out")
    return out if out is not None and out.suffix == ".html" else None


def print_settings_file(path: Path | None) -> None:
    """Print which settings file was read, if any: for commands that also work without."""
    if file := settings_file(path):
        out.print(f"Settings: {file}")


def one_store(argument: str | None, option: str | None) -> str | None:
    """The store that a command names as its argument or with --store."""
    if argument and option and argument != option:
        raise InputError(f"two stores: {argument} and --store {option}")
    return argument or option


def print_json(record: Any) -> None:
    """Print one JSON object. It is ASCII, which every terminal can show."""
    sys.stdout.write(json.dumps(record) + "\n")

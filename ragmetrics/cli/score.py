"""`ragmetrics score`: scores logs and prints means with intervals, or estimates the cost."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from ragmetrics.cli.options import (
    INTERRUPTED,
    JUDGE_NAME,
    BaseUrlFlag,
    GoldenFlag,
    JsonFlag,
    Logs,
    MetricsFlag,
    ModelFlag,
    PresetFlag,
    err,
    names_of,
    out,
    print_json,
    print_settings_file,
    settings_here,
)
from ragmetrics.cli.output import costs as cost_tables, summary as tables
from ragmetrics.config import Settings, with_overrides
from ragmetrics.errors import InputError, RagmetricsError

JudgeFlag = Annotated[
    str | None,
    typer.Option("--judge", help=f"{JUDGE_NAME}; default: that of the settings, else lexical."),
]
OutFlag = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Write the scores of each row to this file: .parquet, .jsonl or .csv."
    ),
]
RecordFlag = Annotated[
    Path | None,
    typer.Option(
        "--record", help="Record the judge's replies in this file, for --judge recorded:PATH."
    ),
]
LimitFlag = Annotated[
    int | None, typer.Option("--limit", min=1, help="Read at most this many rows.")
]
StoreFlag = Annotated[
    str | None,
    typer.Option(
        "--store", help="Store of the replies of paid judges; default: that of the settings."
    ),
]
DryFlag = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print how many requests would be sent and what they cost; send nothing."
    ),
]
SettingsFlag = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        help="The settings file; default: ragmetrics.yaml, if it exists. Its `logs` are not used.",
    ),
]


def score(
    logs: Logs,
    metrics: MetricsFlag = None,
    judge: JudgeFlag = None,
    model: ModelFlag = None,
    base_url: BaseUrlFlag = None,
    golden: GoldenFlag = None,
    preset: PresetFlag = None,
    output: OutFlag = None,
    record: RecordFlag = None,
    limit: LimitFlag = None,
    store: StoreFlag = None,
    dry_run: DryFlag = False,
    settings: SettingsFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Score logs: the mean of each metric, with its interval."""
    from ragmetrics.cli.export import check_name, export

    chosen = settings_here(settings)
    what: dict[str, Any] = {
        "rows": logs,
        "metrics": names_of(metrics),
        "judge": judge,
        "model": model,
        "base_url": base_url,
        "golden": golden,
        "preset": preset,
        "settings": chosen,
        "limit": limit,
        "store": store or chosen.store,
    }
    if dry_run:
        if output or record:
            raise InputError("--dry-run scores nothing; remove --out and --record")
        _estimate(what, as_json)
        return
    if output:
        inputs = [*logs, golden or chosen.golden or logs[0]]
        check_name(output, inputs, chosen.storage_options, record)
    paid = with_overrides(chosen, judge, model, base_url).is_paid
    stored = f"Replies are stored in {what['store']}" if paid else ""
    result = _evaluate(what, record, as_json, stored)
    if output:
        export(result.records(), output)
    _print(result, chosen, as_json, settings)


def _print(result: Any, settings: Settings, as_json: bool, file: Path | None) -> None:
    """Print the result. Exit with code 1 if rows or scores are missing."""
    from ragmetrics.pipeline import RowsLost

    manifest = result.manifest
    if as_json:
        print_json(result.as_json())
    else:
        tables.print_summary(out, manifest)
        print_settings_file(file)
    lost = RowsLost.sentence(settings, manifest.source)
    if lost:
        err.print(lost, style="bold red")
    if lost or manifest.source.broken or result.unscored() or manifest.problems:
        raise typer.Exit(1)


def _estimate(what: dict[str, Any], as_json: bool) -> None:
    from ragmetrics.pipeline import estimate

    expected = estimate(**what)
    if as_json:
        print_json(expected.as_json())
    else:
        cost_tables.print_estimate(out, expected)


def _print_answered(what: dict[str, Any]) -> None:
    """Print the scores of the rows whose replies are stored: no request is sent any more."""
    from ragmetrics.pipeline import RowsLost, evaluate

    with (
        suppress(KeyboardInterrupt, RagmetricsError),  # it was stopped: this is an extra
        warnings.catch_warnings(category=RowsLost, action="ignore"),
    ):
        result = evaluate(**what, until=datetime.now(UTC))
        if any(metric.scored for metric in result.manifest.metrics):
            err.print("What the rows answered so far give:")
            tables.print_summary(out, result.manifest)


@contextmanager
def _stoppable() -> Iterator[None]:
    """End at SIGTERM as at Ctrl-C: `timeout` and schedulers send it."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _evaluate(what: dict[str, Any], record: Path | None, as_json: bool, stored: str) -> Any:
    """Score, and print where the replies are `stored`, also if the command is stopped."""
    from ragmetrics.pipeline import RowsLost, evaluate

    try:
        with (
            _stoppable(),
            warnings.catch_warnings(category=RowsLost, action="ignore"),  # the command prints it
            tables.progress(err, "scoring", quiet=as_json) as progress,
        ):
            result = evaluate(**what, record=record, progress=progress)
    except KeyboardInterrupt:
        rest = f"{stored}: the same command continues" if stored else "Nothing is stored"
        err.print(f"Stopped. {rest}")
        if stored and not as_json:
            _print_answered(what)
        raise typer.Exit(INTERRUPTED) from None
    usage = result.manifest.usage
    if stored and usage.requests > sum(usage.failures.values()):
        err.print(stored)
    return result

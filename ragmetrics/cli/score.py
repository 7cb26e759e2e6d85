"""`ragmetrics score`: logs in, means with their intervals out; or what that would cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragmetrics.cli.options import (
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
    settings_at,
)
from ragmetrics.cli.output import costs as cost_tables
from ragmetrics.cli.output import summary as tables
from ragmetrics.config import judged_by
from ragmetrics.errors import InputError

JudgeFlag = Annotated[
    str | None,
    typer.Option("--judge", help="embedded (default), local, openai, openai-batch, recorded:PATH."),
]
OutFlag = Annotated[
    Path | None, typer.Option("--out", help="Scores row by row: .parquet, .jsonl or .csv.")
]
RecordFlag = Annotated[
    Path | None,
    typer.Option("--record", help="Keep the judge's replies, for --judge recorded:PATH."),
]
LimitFlag = Annotated[int | None, typer.Option("--limit", min=1, help="Read only so many rows.")]
StoreFlag = Annotated[
    str | None,
    typer.Option("--store", help="Where replies of paid judges are kept; default: settings."),
]
DryFlag = Annotated[
    bool, typer.Option("--dry-run", help="Print what it would ask for and cost; nothing is sent.")
]
SettingsFlag = Annotated[
    Path | None, typer.Option("--settings", help="A ragmetrics.yaml; its logs are not used.")
]

_INTERRUPTED = 130  # as shells tell of a command that was stopped by Ctrl-C


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
    """Score logs and print the mean of each metric with its interval."""
    from ragmetrics.scoring import is_paid

    chosen = settings_at(settings)
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
            raise InputError("--dry-run scores nothing that --out or --record could keep")
        _estimate(what, as_json)
        return
    if output:
        from ragmetrics.cli.export import check_name

        golden_set = golden or chosen.golden
        read = [*logs, golden_set] if golden_set else logs
        check_name(output, read, chosen.storage_options, record)
    keeps = is_paid(judged_by(chosen, judge, model, base_url))
    kept = f"Replies are kept in {what['store']}" if keeps else ""
    result = _evaluate(what, record, as_json, kept)
    if output:
        from ragmetrics.cli.export import export

        export(result.records(), output)
    if as_json:
        print_json(result.as_json())
    else:
        tables.print_summary(out, result.manifest)
    if result.manifest.source.broken or result.unscored() or result.manifest.problems:
        raise typer.Exit(1)


def _estimate(what: dict[str, Any], as_json: bool) -> None:
    from ragmetrics.pipeline import estimate

    expected = estimate(**what)
    if as_json:
        print_json(expected.as_json())
    else:
        cost_tables.print_estimate(out, expected)


def _evaluate(what: dict[str, Any], record: Path | None, as_json: bool, kept: str) -> Any:
    """Score, and say where the replies are `kept`, also where the command is stopped."""
    from ragmetrics.pipeline import evaluate

    try:
        with tables.progress(err, "scoring", quiet=as_json) as progress:
            result = evaluate(**what, record=record, progress=progress)
    except KeyboardInterrupt:
        goes_on = f"{kept}: the same command goes on where it was" if kept else "nothing is kept"
        err.print(f"Stopped. {goes_on}", markup=False, soft_wrap=True)
        raise typer.Exit(_INTERRUPTED) from None
    usage = result.manifest.usage
    if kept and usage.requests > sum(usage.failures.values()):
        err.print(kept, markup=False, soft_wrap=True)
    return result

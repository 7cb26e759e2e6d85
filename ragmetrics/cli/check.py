"""`ragmetrics check`: what of a log can be read and scored."""

from __future__ import annotations

import typer

from ragmetrics.cli.options import (
    ConfigFlag,
    GoldenFlag,
    JsonFlag,
    Logs,
    PresetFlag,
    out,
    print_json,
    print_settings_file,
    settings_here,
)
from ragmetrics.cli.output import summary as tables
from ragmetrics.config import with_overrides


def check(
    logs: Logs,
    golden: GoldenFlag = None,
    preset: PresetFlag = None,
    settings: ConfigFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Check which rows can be read, and which metrics scored."""
    from ragmetrics.pipeline import check_logs

    chosen = with_overrides(settings_here(settings), preset=preset)
    if golden:
        chosen = chosen.model_copy(update={"golden": golden})
    report = check_logs(chosen, logs)
    if as_json:
        print_json(report.as_json())
    else:
        tables.print_check(out, report)
        print_settings_file(settings)
    if report.quarantined or report.broken or not report.rows:
        raise typer.Exit(1)

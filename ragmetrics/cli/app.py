"""The command line. Results go to stdout, progress to stderr; `--json` prints one object alone.

Exit codes: 0 fine, 1 findings, 2 usage or input error, 130 Ctrl-C; as in sysexits.h 70 for an
unexpected error, with its traceback, and 74 where stdout could not be written. A reader that went
away (`| head`) changes none of them.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ragmetrics.cli import (
    alerts as cli_alerts,
)
from ragmetrics.cli import (
    backfill as cli_backfill,
)
from ragmetrics.cli import (
    batches as cli_batches,
)
from ragmetrics.cli import (
    compare as cli_compare,
)
from ragmetrics.cli import (
    dashboard as cli_dashboard,
)
from ragmetrics.cli import (
    gate as cli_gate,
)
from ragmetrics.cli import (
    prompts as cli_prompts,
)
from ragmetrics.cli import (
    replay as cli_replay,
)
from ragmetrics.cli import (
    score as cli_score,
)
from ragmetrics.cli.options import (
    INTERRUPTED,
    BaseUrlFlag,
    ConfigFlag,
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
from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.streams import durable_streams
from ragmetrics.config import judged_by, load_settings, with_preset
from ragmetrics.errors import RagmetricsError
from ragmetrics.scoring import collect_seldom
from ragmetrics.version import __version__

_BROKE = 70
_UNPRINTED = 74


class _Commands(TyperGroup):
    """The commands, whose errors are not for click: it takes some for a reader or user that went
    away, and ends with exit code 1.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (EOFError, OSError) as error:
            raise RuntimeError(f"the command broke: {error}") from error


app = typer.Typer(
    name="ragmetrics",
    cls=_Commands,
    help="Tells whether retrieval got worse, where and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(cli_prompts.app, name="prompts")
app.add_typer(cli_alerts.app, name="alerts")
app.command()(cli_score.score)
app.command()(cli_compare.compare)
app.command()(cli_backfill.backfill)
app.command()(cli_batches.batches)
app.command()(cli_replay.replay)
app.command()(cli_dashboard.dashboard)
app.command()(cli_gate.gate)
app.command()(cli_gate.emit_build)


@app.command()
def demo(
    directory: Annotated[
        Path, typer.Option("--dir", help="Where the demo's logs and store go.")
    ] = Path("ragmetrics-demo"),
) -> None:
    """Run ten bundled nights, one by a damaged index build: no key, no server, no network."""
    from ragmetrics.pipeline import NIGHTS, run_night, unpack_demo

    settings = load_settings(unpack_demo(directory))
    results = []
    for day in tables.track(NIGHTS, "nights", err):
        results.append(run_night(settings, day))
    tables.print_nights(out, results)
    tables.print_messages(out, results)
    out.print(f"Dashboard: {Path(settings.store) / 'dashboard' / 'index.html'}", soft_wrap=True)


@app.command()
def check(
    logs: Logs,
    golden: GoldenFlag = None,
    preset: PresetFlag = None,
    settings: ConfigFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Validate logs: rows, quarantine reasons, and which metrics can run on them."""
    from ragmetrics.pipeline import check_logs

    chosen = with_preset(settings_at(settings), preset)
    if golden:
        chosen = chosen.model_copy(update={"golden": golden})
    report = check_logs(chosen, logs)
    if as_json:
        print_json(report.as_json())
    else:
        tables.print_check(out, report)
    if report.quarantined or report.broken or not report.rows:
        raise typer.Exit(1)


@app.command()
def calibrate(
    labelled: Annotated[
        list[str], typer.Argument(help="Labelled sets: files, folders or globs; local or s3://.")
    ],
    metrics: MetricsFlag = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="embedded (default), local, openai, recorded:PATH, or labels: those in the rows."
        ),
    ] = None,
    model: ModelFlag = None,
    base_url: BaseUrlFlag = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Read only so many rows a set.")] = None,
    attacks: Annotated[
        int,
        typer.Option(
            min=0, help="Irrelevant contexts a set to attack: 5 requests each; 0 for none."
        ),
    ] = 20,
    store: Annotated[
        str | None, typer.Option(help="Where replies and results are kept; default: settings.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="A ragmetrics.yaml: its judge and its store.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare a judge with labelled rows: agreement, AUC, reliability; exit code 1 on drift."""
    from ragmetrics.calibration import calibrate, calibrate_replies, load_history
    from ragmetrics.cli.output import calibration as calibration_tables
    from ragmetrics.model import calibrations_json
    from ragmetrics.report import refresh_dashboard
    from ragmetrics.storage import Files

    chosen = settings_at(settings)
    files = None
    if store or settings:
        files = Files(store or chosen.store, chosen.storage_options)
    names = names_of(metrics)
    with tables.progress(err, "judging", quiet=as_json) as progress:
        if judge == "labels":
            found = calibrate_replies(chosen, labelled, names, limit, files=files)
        else:
            judged = judged_by(chosen, judge, model, base_url)
            found = calibrate(
                judged, labelled, names, limit, files=files, progress=progress, attacks=attacks
            )
    history = load_history(files) if files else None
    drifts = [history.drift_to(one) if history else None for one in found]
    if as_json:
        told = calibrations_json(found, drifts)
        print_json(told)
    else:
        for one, drift in zip(found, drifts, strict=True):
            calibration_tables.print_calibration(out, one, drift)
    if files:
        refresh_dashboard(files)
    if any(one.incomplete for one in found) or any(one and one.drifted for one in drifts):
        raise typer.Exit(1)


@app.command()
def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric, to read all about it.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the metrics: what each measures, its formula, what it needs and asks."""
    from ragmetrics.metrics import metrics as all_metrics
    from ragmetrics.metrics import select

    chosen = select([name]) if name else list(all_metrics().values())
    if as_json:
        records = [
            {
                "name": m.name,
                "title": m.title,
                "formula": m.formula,
                "needs": list(m.needs),
                "calls": m.calls,
                "higher_is_better": m.higher_is_better,
                "description": m.description,
            }
            for m in chosen
        ]
        print_json(records)
    elif name:
        tables.print_metric(out, chosen[0])
    else:
        tables.print_metrics(out, chosen)


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line, and end with its exit code."""
    collect_seldom()
    with durable_streams() as stdout:
        code = _run()
        stdout.flush()
        unprinted = stdout.problem
        if unprinted and not isinstance(unprinted, BrokenPipeError):
            text = f"ragmetrics: what was found could not be printed: {unprinted.strerror}"
            err.print(text, style="red", markup=False, soft_wrap=True)
            code = _UNPRINTED if code in (0, 1, 2) else code
    sys.exit(code)


def _run() -> int:
    """The exit code; errors meant for people are printed as one line, others with a traceback."""
    try:
        app(prog_name="ragmetrics")
    except SystemExit as ended:
        return int(ended.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except RagmetricsError as error:
        err.print(f"ragmetrics: {error}", style="red", markup=False, soft_wrap=True)
        return 2
    except BaseException:  # some libraries' panics are no Exception
        traceback.print_exc()
        return _BROKE
    return 0

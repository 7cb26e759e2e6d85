"""The command line. Results go to stdout, progress to stderr; `--json` prints one object alone.

Exit codes: 0 fine, 1 findings, 2 usage or input error, 130 Ctrl-C; as in sysexits.h, 70 for an
unexpected error, with its traceback, and 74 where stdout could not be written. A reader that goes
away (`| head`) does not change the exit code.
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
    backfill as cli_backfill,
    batches as cli_batches,
    calibrate as cli_calibrate,
    compare as cli_compare,
    dashboard as cli_dashboard,
    doctor as cli_doctor,
    gate as cli_gate,
    nightly as cli_nightly,
    prompts as cli_prompts,
    prune as cli_prune,
    replay as cli_replay,
    schema as cli_schema,
    score as cli_score,
    whatif as cli_whatif,
)
from ragmetrics.cli.options import (
    INTERRUPTED,
    ConfigFlag,
    GoldenFlag,
    JsonFlag,
    Logs,
    PresetFlag,
    err,
    out,
    print_json,
    settings_at,
)
from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.streams import durable_streams
from ragmetrics.config import load_settings, with_preset
from ragmetrics.errors import RagmetricsError
from ragmetrics.scoring import collect_seldom
from ragmetrics.version import __version__

_BROKE = 70
_UNPRINTED = 74
_LONGEST_SUMMARY = 200


class _Commands(TyperGroup):
    """The commands. Their errors do not reach click, which ends with exit code 1 on some of them,
    as if the reader of the output had gone away.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, each with its whole first sentence."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        lines = [
            (name, one.get_short_help_str(limit=_LONGEST_SUMMARY))
            for name, one in commands
            if one and not one.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(lines)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (EOFError, OSError) as error:
            raise RuntimeError(f"the command broke: {error}") from error


app = typer.Typer(
    name="ragmetrics",
    cls=_Commands,
    help="Evaluate the retrieval of a RAG product from its logs: whether it got "
    "worse, where and why.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(cli_prompts.app, name="prompts")
app.add_typer(cli_alerts.app, name="alerts")
app.command()(cli_doctor.doctor)
app.command()(cli_score.score)
app.command()(cli_compare.compare)
app.command()(cli_nightly.nightly)
app.command()(cli_backfill.backfill)
app.command()(cli_batches.batches)
app.command()(cli_calibrate.calibrate)
app.command()(cli_replay.replay)
app.command()(cli_whatif.whatif)
app.command()(cli_dashboard.dashboard)
app.command()(cli_prune.prune)
app.command()(cli_gate.gate)
app.command()(cli_gate.emit_build)
app.command()(cli_schema.schema)


@app.command()
def demo(
    directory: Annotated[
        Path, typer.Option("--dir", help="Folder for the demo's logs and store.")
    ] = Path("ragmetrics-demo"),
) -> None:
    """Run ten bundled nights, one with a damaged index build. It needs no key and no network."""
    from ragmetrics.pipeline import NIGHTS, run_night, unpack_demo

    settings = load_settings(unpack_demo(directory))
    results = []
    for day in tables.track(NIGHTS, "nights", err):
        results.append(run_night(settings, day))
    tables.print_nights(out, results)
    tables.print_messages(out, results)
    out.print(f"Dashboard: {Path(settings.store) / 'dashboard' / 'index.html'}")


@app.command()
def check(
    logs: Logs,
    golden: GoldenFlag = None,
    preset: PresetFlag = None,
    settings: ConfigFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Check logs: how many rows can be read, why others cannot, and which metrics can be scored."""
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
def metrics(
    name: Annotated[str | None, typer.Argument(help="Show one metric in full.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the metrics: what each one measures, its formula, and the fields that it needs."""
    from ragmetrics.metrics import metrics as all_metrics, select

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
            text = f"ragmetrics: the output could not be written: {unprinted.strerror}"
            err.print(text, style="red")
            code = _UNPRINTED if code in (0, 1, 2) else code
    sys.exit(code)


def _run() -> int:
    """The exit code. An error of input is printed as one line, any other with its traceback."""
    try:
        app(prog_name="ragmetrics")
    except SystemExit as ended:
        return int(ended.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except RagmetricsError as error:
        err.print(f"ragmetrics: {error}", style="red")
        return 2
    except BaseException:  # panics of some libraries are no Exception
        traceback.print_exc()
        return _BROKE
    return 0

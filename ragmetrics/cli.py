"""The command line. Results go to stdout, progress to stderr; `--json` prints one object alone.

Exit codes: 0 fine, 1 findings, 2 usage or input error.
"""

from __future__ import annotations

import json
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ragmetrics import __version__, cli_batches, cli_prompts, tables
from ragmetrics.errors import InputError, RagmetricsError
from ragmetrics.settings import Settings, judged_by, load_settings, make_settings, with_preset

app = typer.Typer(
    name="ragmetrics",
    help="Tells whether retrieval got worse, where and why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(cli_prompts.app, name="prompts")
app.command()(cli_batches.batches)
out = Console(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, emoji=False)

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


@app.command()
def demo(
    directory: Annotated[
        Path, typer.Option("--dir", help="Where the demo's logs and store go.")
    ] = Path("ragmetrics-demo"),
) -> None:
    """Run ten bundled nights, one by a damaged index build: no key, no server, no network."""
    from ragmetrics.demo import NIGHTS, unpack
    from ragmetrics.night import run_night

    settings = load_settings(unpack(directory))
    results = []
    for day in tables.track(NIGHTS, "nights", err):
        results.append(run_night(settings, day))
    tables.print_nights(out, results)
    tables.print_messages(out, results)
    out.print(f"Dashboard: {Path(settings.store) / 'dashboard' / 'index.html'}", soft_wrap=True)


@app.command()
def score(
    logs: Logs,
    metrics: Annotated[str | None, typer.Option(help="Names, separated by commas.")] = None,
    judge: Annotated[
        str | None, typer.Option(help="embedded (default), local, openai, openai-batch or recorded:PATH.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The judge's model.")] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Any OpenAI-compatible endpoint.")
    ] = None,
    golden: GoldenFlag = None,
    preset: PresetFlag = None,
    output: Annotated[
        Path | None, typer.Option("--out", help="Scores row by row: .parquet, .jsonl or .csv.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Keep the judge's replies, for --judge recorded:PATH.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Read only so many rows.")] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Where replies of judges over a network are kept; default: settings."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what it would ask for and cost; nothing is sent."),
    ] = False,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="A ragmetrics.yaml; its logs are not used.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Score logs and print the mean of each metric with its interval."""
    from ragmetrics.budget import is_paid
    from ragmetrics.evaluation import estimate, evaluate
    from ragmetrics.export import check_name, export

    chosen = _settings(settings)
    store = store or chosen.store
    if dry_run:
        expected = estimate(
            logs,
            _names(metrics),
            judge,
            model=model,
            base_url=base_url,
            golden=golden,
            preset=preset,
            settings=chosen,
            limit=limit,
            store=store,
        )
        if as_json:
            sys.stdout.write(json.dumps(expected.as_json(), ensure_ascii=False) + "\n")
        else:
            tables.print_estimate(out, expected)
        return
    if output:
        golden_set = golden or chosen.golden
        read = [*logs, golden_set] if golden_set else logs
        check_name(output, read, chosen.storage_options, record)
    with tables.progress(err, "scoring", quiet=as_json) as progress:
        result = evaluate(
            logs,
            _names(metrics),
            judge,
            model=model,
            base_url=base_url,
            golden=golden,
            preset=preset,
            settings=chosen,
            record=record,
            limit=limit,
            store=store,
            progress=progress,
        )
    if is_paid(judged_by(chosen, judge, model, base_url)):
        err.print(f"Replies are kept in {store}", markup=False, soft_wrap=True)
    if output:
        export(result.records(), output)
    if as_json:
        sys.stdout.write(json.dumps(result.as_json(), ensure_ascii=False) + "\n")
    else:
        tables.print_summary(out, result.manifest)
    if result.manifest.source.broken or result.unscored() or result.manifest.problems:
        raise typer.Exit(1)


@app.command()
def check(
    logs: Logs,
    golden: GoldenFlag = None,
    preset: PresetFlag = None,
    settings: ConfigFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Validate logs: rows, quarantine reasons, and which metrics can run on them."""
    from ragmetrics.checking import check_logs

    chosen = with_preset(_settings(settings), preset)
    if golden:
        chosen = chosen.model_copy(update={"golden": golden})
    report = check_logs(chosen, logs)
    if as_json:
        sys.stdout.write(json.dumps(report.as_json(), ensure_ascii=False) + "\n")
    else:
        tables.print_check(out, report)
    if report.quarantined or report.broken or not report.rows:
        raise typer.Exit(1)


@app.command()
def calibrate(
    labelled: Annotated[
        list[str], typer.Argument(help="Labelled sets: files, folders or globs; local or s3://.")
    ],
    metrics: Annotated[str | None, typer.Option(help="Names, separated by commas.")] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="embedded (default), local, openai, recorded:PATH, or labels: those in the rows."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The judge's model.")] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Any OpenAI-compatible endpoint.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Read only so many rows a set.")] = None,
    store: Annotated[
        str | None, typer.Option(help="Where replies and results are kept; default: settings.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="A ragmetrics.yaml: its judge and its store.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Hold a judge against labelled rows: agreement, AUC, reliability; exit code 1 on drift."""
    from ragmetrics import calibration, calibration_tables
    from ragmetrics.publish import refresh_dashboard
    from ragmetrics.store.files import Files

    chosen = _settings(settings)
    files = None
    if store or settings:
        files = Files(store or chosen.store, chosen.storage_options)
    names = _names(metrics)
    with tables.progress(err, "judging", quiet=as_json) as progress:
        if judge == "labels":
            found = calibration.calibrate_replies(chosen, labelled, names, limit, files=files)
        else:
            judged = judged_by(chosen, judge, model, base_url)
            found = calibration.calibrate(
                judged, labelled, names, limit, files=files, progress=progress
            )
    history = refresh_dashboard(files) if files else None
    drifts = [history.drift_to(one) if history else None for one in found]
    if as_json:
        told = calibration.as_json(found, drifts)
        sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    else:
        for one, drift in zip(found, drifts, strict=True):
            calibration_tables.print_calibration(out, one, drift)
    if any(one.short for one in found) or any(one and one.drifted for one in drifts):
        raise typer.Exit(1)


@app.command()
def metrics(
    name: Annotated[str | None, typer.Argument(help="One metric, to read all about it.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the metrics: what each measures, its formula, what it needs and asks."""
    from ragmetrics.registry import metrics as all_metrics
    from ragmetrics.registry import select

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
        sys.stdout.write(json.dumps(records, ensure_ascii=False) + "\n")
    elif name:
        tables.print_metric(out, chosen[0])
    else:
        tables.print_metrics(out, chosen)


@app.command()
def dashboard(
    store: Annotated[str, typer.Argument(help="The store: a folder or s3:// address.")],
    output: Annotated[
        str | None, typer.Option("--out", help="Where the site goes; default: into the store.")
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write the dashboard of a store anew."""
    from ragmetrics.publish import rebuild_dashboard
    from ragmetrics.store.files import Files

    files = Files(store)
    if not (files.exists("runs") or files.exists("calibrations")):
        raise InputError(f"{store}: not a store: there are no runs in it")
    site = Files(output) if output else files.at("dashboard")
    first = site.uri(rebuild_dashboard(files, site))
    out.print(first, soft_wrap=True)
    if open_it:
        if site.local is None:
            raise InputError(f"a browser cannot open {first}; give --out a folder")
        webbrowser.open((site.local / "index.html").resolve().as_uri())


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        out.print(__version__)
        raise typer.Exit


def _names(metrics: str | None) -> list[str] | None:
    """The metrics named on the command line; None where none is."""
    return None if metrics is None else [name.strip() for name in metrics.split(",")]


def _settings(path: Path | None) -> Settings:
    return load_settings(path) if path else make_settings({})


def main() -> None:
    """Run the command line; errors meant for people are printed as one line, exit code 2."""
    try:
        app(prog_name="ragmetrics")
    except RagmetricsError as error:
        err.print(f"ragmetrics: {error}", style="red", markup=False, soft_wrap=True)
        sys.exit(2)

"""`ragmetrics gate` compares two logs or index builds; `emit-build` lets Prefect do the latter."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from ragmetrics.cli.options import (
    JUDGE_NAME,
    BaseUrlFlag,
    GoldenFlag,
    JsonFlag,
    MetricsFlag,
    ModelFlag,
    PresetFlag,
    SettingsFlag,
    StoreFlag,
    err,
    names_of,
    out,
    print_json,
    print_settings_file,
    settings_file,
    settings_here,
)
from ragmetrics.cli.output import summary as tables
from ragmetrics.cli.output.summary import print_source
from ragmetrics.cli.progress import progress_reporter
from ragmetrics.cli.table import print_grid
from ragmetrics.config import Settings, with_overrides
from ragmetrics.errors import InputError, StoreError
from ragmetrics.messages import FORMATS, gate_story
from ragmetrics.metrics import display_name, find_metric
from ragmetrics.records import Gate, MetricVerdict, make_index_build, movement_text
from ragmetrics.text import clean, drop_words, number

BUILD_OPTION = typer.Option("--build", help="The new index build.")
AgainstFlag = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="The build that serves; default: the last one promoted, else the build "
        "of the newest night.",
    ),
]
LogsFlag = Annotated[
    str | None,
    typer.Option(
        "--logs",
        help="The new build's log: a file, folder or glob; default: `gate: logs` of the settings.",
    ),
]
LogArgument = typer.Argument(help="A log (file, folder, glob), where two logs are compared.")
JudgeFlag = Annotated[
    str | None,
    typer.Option(
        "--judge",
        help=f"{JUDGE_NAME}; default: that of the settings. Two logs with ids need none.",
    ),
]
DropFlag = Annotated[
    float,
    typer.Option("--max-drop", min=0.0001, help="The largest drop allowed between two logs."),
]
MissingFlag = Annotated[
    float | None,
    typer.Option(
        "--max-missing",
        min=0.0,
        max=1.0,
        help="The largest share of the questions of BEFORE that AFTER may lack; default: 0.02.",
    ),
]
_USAGE = (
    "name two logs, as in `ragmetrics gate before.jsonl after.jsonl`, or an index build with "
    "--build; --against and --logs are for builds, --metrics and --max-drop for logs"
)
_EXIT_CODES = {"promote": 0, "hold": 1, "inconclusive": 2}


def gate(
    before: Annotated[str | None, LogArgument] = None,
    after: Annotated[str | None, LogArgument] = None,
    build: Annotated[str | None, BUILD_OPTION] = None,
    against: AgainstFlag = None,
    logs: LogsFlag = None,
    metrics: MetricsFlag = None,
    judge: JudgeFlag = None,
    model: ModelFlag = None,
    base_url: BaseUrlFlag = None,
    golden: GoldenFlag = None,
    preset: PresetFlag = None,
    max_drop: DropFlag = 0.05,
    max_missing: MissingFlag = None,
    settings: SettingsFlag = None,
    store: StoreFlag = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare two logs, or index builds: pass or fail.

    Two logs need no settings: `ragmetrics gate before.jsonl after.jsonl`. The verdict on a build,
    which --build names, is stored. Exit code: 0 passed (promote), 1 failed (hold), 2 inconclusive.
    The build is scored in this process: the setting `runner:` is for Prefect's flows alone.
    """
    from ragmetrics.pipeline import gate_logs

    chosen = settings_here(settings, store)
    chosen = with_overrides(chosen, judge, model, base_url, golden=golden, preset=preset)
    if max_missing is not None:
        rules = chosen.gate.model_copy(update={"max_missing": max_missing})
        chosen = chosen.model_copy(update={"gate": rules})
    if before and after and not (build or against or logs):
        judged = bool(judge or settings_file(settings))
        with tables.progress(err, "staging", quiet=as_json) as progress:
            found = gate_logs(
                chosen,
                before,
                after,
                metrics=names_of(metrics),
                judged=judged,
                max_drop=max_drop,
                progress=progress,
            )
    elif build and not (before or metrics):
        found = _gate_build(chosen, build, against, logs, quiet=as_json)
    else:
        raise InputError(_USAGE)
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        print_gate(out, found)
        print_settings_file(settings)
    raise typer.Exit(_EXIT_CODES[found.verdict])


def _gate_build(
    settings: Settings, build: str, against: str | None, logs: str | None, *, quiet: bool
) -> Gate:
    """Run the gate of a build, notify of it, and refresh the dashboard."""
    from ragmetrics.comparison import run_gate

    asked = make_index_build(
        {"dataset": settings.dataset, "build": build, "serving": against, "logs": logs}
    )
    with progress_reporter(err, "staging", quiet=quiet) as progress:
        found = run_gate(settings, asked, progress)
    found = _notify(settings, found)
    _show(settings)
    return found


def emit_build(
    build: Annotated[str, BUILD_OPTION],
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", help="The data set of the index; default: that of the settings."),
    ] = None,
    logs: Annotated[
        str | None,
        typer.Option(
            "--logs", help="The build's log, as a path or address that the flow's worker can read."
        ),
    ] = None,
    against: AgainstFlag = None,
    settings: SettingsFlag = None,
    api_url: Annotated[
        str | None,
        typer.Option("--api-url", help="URL of Prefect's API; default: $PREFECT_API_URL."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Send Prefect the event of a new index build. It starts the gate of the build."""
    from ragmetrics.pipeline import announce_build

    asked = make_index_build(
        {
            "dataset": dataset or settings_here(settings).dataset,
            "build": build,
            "serving": against,
            "logs": logs,
        }
    )
    event = announce_build(asked, api_url)
    if as_json:
        print_json(event)
    else:
        text = f"{event['event']} of build {asked.build} ({asked.dataset}): event {event['id']}"
        out.print(text)


def _notify(settings: Settings, gate: Gate) -> Gate:
    """Notify of a gate with a new verdict; return the gate with the result."""
    from ragmetrics.delivery import Unconfirmed, notify_gate

    try:
        return notify_gate(settings, gate)
    except (Unconfirmed, StoreError) as error:
        text = f"{error}; run the same command again"
        err.print(text, style="yellow")
        return gate


def _show(settings: Settings) -> None:
    """Refresh the dashboard. If that fails, the verdict is stored all the same."""
    from ragmetrics.dashboard import refresh_builds
    from ragmetrics.storage import open_store

    try:
        refresh_builds(open_store(settings))
    except StoreError as error:
        text = f"the dashboard is not up to date: {error}"
        err.print(text, style="yellow")


_STYLES = {"promote": "bold green", "hold": "bold red", "inconclusive": "bold yellow"}


_OF_LOGS = {"promote": "passed", "hold": "failed"}
_QUESTIONS = 3


def print_gate(console: Console, gate: Gate) -> None:
    """Print the metrics of both builds, the largest drops, and the verdict with its reasons."""
    against = f" against {gate.serving}" if gate.serving else ""
    title = f"Build {gate.build}{against} ({gate.dataset})"
    console.print(f"{gate.build}{against}" if gate.is_of_logs else title)
    if gate.metrics:
        _print_metrics(console, gate)
    _print_fallen(console, gate)
    print_source(console, gate.source.rows, gate.quarantined, gate.source.reasons)
    if gate.missing:
        why = ", ".join(f"{count:,} {reason}" for reason, count in gate.missing_why.items())
        console.print(f"Questions that cannot be compared: {gate.missing:,} ({why})")
    for note in dict.fromkeys(movement_text(metric.movement) for metric in gate.metrics):
        if note:
            console.print(f"Note: {note}", style="yellow")
    for problem in gate.problems:
        console.print(f"Problem: {clean(problem, 300)}", style="red")
    if not gate.metrics or any(map(_asks_judge, gate.metrics)):
        console.print(f"Judge: {gate.judge.name} ({gate.judge.fingerprint})")
        if gate.judge.note:
            console.print(f"Note: {gate.judge.note}", style="yellow")
    story = gate_story(gate)
    words = _OF_LOGS if gate.is_of_logs else {}
    verdict = words.get(gate.verdict, gate.verdict).upper() + story.headline.removeprefix(
        gate.verdict.capitalize()
    )
    console.print(verdict, style=_STYLES[gate.verdict])
    if story.blocks:
        console.print(FORMATS.find("terminal").render(story.blocks))


def _print_metrics(console: Console, gate: Gate) -> None:
    """Print a line per metric, and over how many questions it is; once where all have as many."""
    headers = ("metric", "before", "after", "drop [95%]", tables.DROP, "limit")
    styles = [_STYLES[one.verdict] if one.verdict == "hold" else None for one in gate.metrics]
    print_grid(console, headers, [_line(metric) for metric in gate.metrics], styles=styles)
    asked: dict[str, list[str]] = {}
    for metric in gate.metrics:
        asked.setdefault(f"{metric.questions:,}", []).append(display_name(metric.metric))
    several = len(asked) > 1
    counts = [f"{n} ({', '.join(of)})" if several else n for n, of in asked.items()]
    console.print(f"Questions scored on both sides: {'; '.join(counts)}")


def _asks_judge(one: MetricVerdict) -> bool:
    metric = find_metric(one.metric)
    return metric is None or bool(metric.prompts) or metric.embeds


def _print_fallen(console: Console, gate: Gate) -> None:
    """Print the questions with the largest drops, for the metrics that hold the build.

    Where lost passages alone hold it, for all metrics.
    """
    if gate.verdict != "hold":
        return
    held = [metric.metric for metric in gate.metrics if metric.verdict == "hold"]
    alike: dict[str, list[str]] = {}
    for metric in held or [metric.metric for metric in gate.metrics]:
        fallen = [row for row in gate.fallen if row.metric == metric][:_QUESTIONS]
        lines = (
            f"  {row.before:.3f} → {row.after:.3f}  {clean(row.user_input, 200)}" for row in fallen
        )
        alike.setdefault("\n".join(lines), []).append(display_name(metric))
    for questions, names in alike.items():
        console.print(f"Largest drops of {', '.join(names)}:\n{questions}")


def _line(one: MetricVerdict) -> tuple[str, ...]:
    words = ("–",) if one.drop is None else drop_words(one.drop, one.low, one.high)
    means = number(one.before), number(one.after), " ".join(words).rstrip()
    return (
        display_name(one.metric),
        *means,
        number(one.detectable),
        f"{one.max_drop:g}",
    )

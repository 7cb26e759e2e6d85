"""Prints runs, nights, checks of logs and metrics for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from ragmetrics.cli.output.costs import print_budget, print_labelled, print_sample, print_usage
from ragmetrics.cli.output.labels import print_label_report, print_people
from ragmetrics.cli.table import print_grid, shown
from ragmetrics.dashboard import detectable
from ragmetrics.messages import FORMATS, in_display_names
from ragmetrics.metrics import Metric
from ragmetrics.records import Manifest, Status, Summary, unwatched_drop_text
from ragmetrics.rules import Incident, incidents
from ragmetrics.text import NO_VALUE, clean, interval, number

if TYPE_CHECKING:
    from ragmetrics.pipeline import CheckReport, NightResult

_EXAMPLES = 10
_LONGEST_PROBLEM = 800
DROP = "smallest detectable drop"


@contextmanager
def progress(
    console: Console, what: str, *, quiet: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on a terminal; nothing elsewhere."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    hidden = quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(what, total=None)

        def advance(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        yield advance


def print_summary(console: Console, manifest: Manifest) -> None:
    """Print problems and means with intervals, then rows, judge, requests and cost."""
    source = manifest.source
    for problem in (*manifest.damaged, *manifest.problems):
        console.print(f"Problem: {clean(problem, _LONGEST_PROBLEM)}", style="red")
    _print_means(console, manifest)
    _print_panel(console, manifest)
    print_people(console, manifest)
    if manifest.labels:
        print_label_report(console, manifest.labels)
    print_source(console, source.rows, source.quarantined, source.reasons)
    _print_counts(console, "Skipped", source.skipped)
    _print_counts(console, "Fields left out of their rows", source.dropped, _EXAMPLES)
    _print_note(console, source.note)
    for broken in source.broken:
        console.print(f"Broken file {broken.file}: {broken.reason}", style="red")
    console.print(f"Judge: {manifest.judge.title} ({manifest.judge.fingerprint})")
    if manifest.judge.note:
        console.print(f"Note: {manifest.judge.note}", style="yellow")
    for name, changes in manifest.changed_parameters.items():
        console.print(f"Sent to {clean(name, 60)}, as the model takes it: {clean(changes, 200)}")
    print_usage(console, manifest.usage_by_metric, manifest.usage)
    print_sample(console, manifest)
    print_labelled(console, manifest.labelled)
    if manifest.budget:
        print_budget(console, manifest.budget)
    if manifest.splits:
        counts = ", ".join(f"{n:,} {reason}" for reason, n in manifest.splits.items())
        console.print(f"Texts split by the plain splitter: {counts}")


def _print_means(console: Console, manifest: Manifest) -> None:
    """Print the table of means, without columns that say nothing; below it what is not scored."""
    headers = ("metric", "mean", "95% interval", DROP, "scored", "questions")
    lines = [_means_line(metric, manifest) for metric in manifest.metrics]
    hidden = {"questions"} if all(line[5] == line[4] for line in lines) else set()
    hidden |= set() if any(line[3] for line in lines) else {DROP}
    kept = [at for at, header in enumerate(headers) if header not in hidden]
    print_grid(console, [headers[at] for at in kept], [[line[at] for at in kept] for line in lines])
    if DROP not in hidden:
        console.print(f"{DROP.capitalize()}: found with a probability of 80%")
    for metric in manifest.metrics:
        if rest := _not_scored(metric):
            console.print(f"Not scored by {shown(metric.metric)}: {rest}")


def _means_line(metric: Summary, manifest: Manifest) -> tuple[str, ...]:
    least, _ = detectable(manifest, metric)
    return (
        shown(metric.metric),
        number(metric.mean),
        interval(metric.low, metric.high) or NO_VALUE,
        "" if least is None else number(least),
        f"{metric.scored:,}",
        f"{metric.questions:,}",
    )


def _not_scored(metric: Summary) -> str:
    """The rows without a score, by status."""
    return ", ".join(
        f"{n:,} {clean(metric.status_text(status, status.replace('_', ' ')), 200)}"
        for status, n in metric.status.items()
        if status != Status.SCORED and n
    )


def _print_panel(console: Console, manifest: Manifest) -> None:
    """Print the mean of each judge of a panel, their agreement, and the spread of a row."""
    panel = manifest.judge.panel
    if panel:
        lines = [
            [
                shown(metric.metric),
                number(metric.agreement),
                *(
                    number(judge.mean) + (f" ({judge.failed:,} failed)" if judge.failed else "")
                    for judge in metric.judges
                ),
            ]
            for metric in manifest.metrics
            if any(judge.scored or judge.failed for judge in metric.judges)
        ]
        if lines:
            names = (clean(name, 60) for name in panel)
            print_grid(console, ["metric", "agreement", *names], lines)
    spreads = {shown(one.metric): one.spread for one in manifest.metrics if one.spread is not None}
    if spreads:
        steady = ", ".join(f"{metric} {spread:.3f}" for metric, spread in spreads.items())
        console.print(f"Spread of a row: {steady}")
    _print_easy_rows(console, manifest)
    _print_unanswered(console, manifest)


def _print_unanswered(console: Console, manifest: Manifest) -> None:
    """Print why single rows failed, where no problem says so."""
    told = " ".join(manifest.problems)
    for metric in manifest.metrics:
        if metric.unanswered and next(iter(metric.unanswered)) not in told:
            name = shown(metric.metric)
            console.print(f"{name}: failed rows: {clean(metric.why_unanswered, 600)}")


def _print_easy_rows(console: Console, manifest: Manifest) -> None:
    """Say where the last judge of a cascade failed: rows with a score are the easy ones."""
    certain = {
        metric
        for label, of in manifest.usage_by_metric.items()
        if any(one.certain for one in of.values())
        for metric in label.split(" + ")
    }
    for summary in manifest.metrics:
        if summary.metric not in certain or not summary.scored:
            continue
        last = manifest.judge.panel[-1]
        if failed := sum(judge.failed for judge in summary.judges if judge.name == last):
            console.print(
                f"{shown(summary.metric)}: {clean(last, 60)} failed on {failed:,} rows of which no "
                "earlier judge was certain: the mean is one of easier rows",
                style="yellow",
            )


def print_source(console: Console, rows: int, quarantined: int, reasons: dict[str, int]) -> None:
    """Print how many rows were read, and why others were quarantined."""
    console.print(f"Rows: {rows:,}, quarantined: {quarantined:,}")
    for reason, count in list(reasons.items())[:_EXAMPLES]:
        console.print(f"  {count:,}  {clean(reason, 300)}")


def _print_counts(
    console: Console, what: str, counts: Mapping[str, int], most: int | None = None
) -> None:
    """Print how many records or fields were left out while reading, and why."""
    if counts:
        console.print(f"{what}: {sum(counts.values()):,}")
    for reason, count in list(counts.items())[:most]:
        console.print(f"  {count:,}  {clean(reason, 300)}")


def _print_note(console: Console, note: str) -> None:
    """Print how logs in an unknown layout were read. Lines to paste are not wrapped."""
    for line in note.splitlines():
        console.print(clean(line, 1_000), style="yellow", soft_wrap=True)


def print_check(console: Console, report: CheckReport) -> None:
    """Print the result of a check of logs."""
    console.print(f"Files: {report.files:,}")
    print_source(console, report.rows, report.quarantined, dict(report.reasons.most_common()))
    for place in list(report.examples.values())[:_EXAMPLES]:
        console.print(f"    first at {clean(place, 300)}")
    skipped, dropped = report.read.skipped.most_common(), report.read.dropped.most_common()
    _print_counts(console, "Skipped", dict(skipped))
    _print_counts(console, "Fields left out of their rows", dict(dropped), _EXAMPLES)
    for broken in report.broken:
        console.print(f"Broken file {broken}", style="red")
    if report.rows:
        _print_fields(console, report)
    elif not report.quarantined and not report.broken:
        console.print("There is no row in these files")
    for remark in report.remarks:
        console.print(f"Warning: {clean(remark, 500)}", style="yellow")
    if report.also:
        console.print(report.also[0].upper() + report.also[1:])
    if report.labels:
        print_label_report(console, report.labels)
    _print_note(console, report.read.note)


def _print_fields(console: Console, report: CheckReport) -> None:
    """Print which fields the rows have, and which metrics can be scored."""
    filled = [(name, f"{count:,}") for name, count in report.filled.most_common()]
    print_grid(console, ("field", "rows with it"), filled)
    runnable = [(shown(m), f"{count:,}") for m, count in report.runnable.items() if count]
    print_grid(console, ("metric", "rows with what it needs"), runnable)
    for needs, names in report.not_applicable().items():
        console.print(f"Without {needs} there is no {', '.join(map(shown, names))}")
    if report.judged is not None:
        _print_sample_of(console, report.judged, report)


def _print_sample_of(console: Console, judged: Mapping[str, int], report: CheckReport) -> None:
    """Print how many rows of these logs a sampled night would send to the judge."""
    kinds: dict[str, list[str]] = {}
    for name, rows in judged.items():
        kinds.setdefault(f"{rows:,} of {report.runnable[name]:,} rows", []).append(shown(name))
    parts = "; ".join(f"{rows} by {', '.join(names)}" for rows, names in kinds.items())
    console.print(
        f"Sample: the judge would be asked about {'at most ' if report.judged_at_most else ''}"
        f"{parts}. What that costs: ragmetrics score --dry-run",
    )


def print_metrics(console: Console, metrics: Sequence[Metric]) -> None:
    """Print all metrics: title, formula, needed fields, and judge calls."""
    for metric in metrics:
        _print_name(console, metric)
        console.print(f"    {metric.title}")
        console.print(indent(metric.formula, "    "), style="cyan")
        facts = f"    needs: {', '.join(metric.needs)}\n    judge calls per row: {metric.calls}\n"
        console.print(facts)
    console.print("One metric in full: ragmetrics metrics NAME")


def _print_name(console: Console, metric: Metric) -> None:
    """Print the name of the code, to type, and the display name."""
    console.print(Text(metric.name, "bold").append(f"  {shown(metric.name)}", "not bold"))


def print_metric(console: Console, metric: Metric) -> None:
    """Print the whole description of a metric."""
    _print_name(console, metric)
    console.print(metric.description)
    console.print(f"\nNeeds: {', '.join(metric.needs)}")
    console.print(f"Judge calls per row: {metric.calls}")


def print_nights(console: Console, results: Sequence[NightResult]) -> None:
    """Print a line per night: the means that rules watch, alerts, and drops without a rule."""
    findings = [one for result in results for one in result.manifest.findings]
    watched = list(dict.fromkeys(finding.metric for finding in findings if finding.is_rule))
    names = [name for name in watched if name]
    lines, styles = [], []
    for result in results:
        manifest = result.manifest
        means = [number(one.mean) if (one := manifest.summary(name)) else "" for name in names]
        news = [one for one in manifest.findings if one.transition or one.level == "no_data"]
        texts = [
            f"{incident.transition}: {rule_text(incident)}"
            for incident in incidents(news, manifest)
            if incident.transition
        ]
        loud = any(text.startswith(("fired", "escalated")) for text in texts)
        styles.append("bold red" if loud else None)
        texts += [unwatched_drop_text(fall) for fall in manifest.falls]
        waiting = dict.fromkeys(one.metric or "" for one in manifest.findings if not one.compared)
        texts += [f"not compared yet: {', '.join(waiting)}"] if waiting else []
        rows = f"{manifest.source.rows:,}"
        alerts = in_display_names("\n".join(texts), manifest)
        lines.append([manifest.date.isoformat(), rows, *means, alerts])
    headers = ["night", "rows", *map(shown, names), "alerts"]
    print_grid(console, headers, lines, names=(0, len(headers) - 1), styles=styles)
    if note := results[-1].manifest.judge.note:
        console.print(f"Judge: {note}\n")


def rule_text(incident: Incident) -> str:
    """The rule of an incident's cause, and the number of findings that the cause explains."""
    more = len(incident.findings) - 1
    text = incident.folded if incident.cause.is_rule else f"explains {more} more alerts"
    return f"{incident.cause.rule} ({text})" if more else incident.cause.rule


def print_messages(console: Console, results: Sequence[NightResult]) -> None:
    """Print the Slack messages of the nights, as Slack would show them."""
    for result in results:
        delivery = result.delivery
        if delivery.message is None:
            continue
        outcome = "sent" if delivery.sent else "not sent: SLACK_WEBHOOK_URL is not set"
        if delivery.errors:
            outcome = f"not delivered: {delivery.errors[0]}"
        console.rule(f"Slack message of {result.manifest.date} ({outcome})", align="left")
        console.print(FORMATS.find("terminal").render(delivery.message.blocks))
        console.print()

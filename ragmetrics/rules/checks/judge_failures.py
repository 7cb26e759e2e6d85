"""Judge failures: too many rows of a metric, or of one judge of a panel, without a verdict."""

from __future__ import annotations

from collections.abc import Iterator

from ragmetrics.metrics import display_name
from ragmetrics.records import Finding, Level, Manifest, Status, Summary, former_judge_name
from ragmetrics.rules.night_check import (
    Limit,
    Sample,
    Tonight,
    are_alike,
    check,
    check_of,
    lacks_data,
)
from ragmetrics.text import finite


def _explains(cause: Finding, finding: Finding, night: Manifest) -> bool:
    """The same in another metric, the rules on the metric, a labelled set without verdicts."""
    if finding.kind == cause.kind:
        by_code = any(_fails_by_its_code(one, night) for one in (cause, finding))
        return finding.metric is not None and not by_code and are_alike(cause, finding)
    same = finding.metric is not None and finding.metric == cause.metric
    is_of_judge = same or check_of(finding).needs_verdicts
    return cause.level == "breach" and is_of_judge and lacks_data(finding)


def _fails_by_its_code(finding: Finding, night: Manifest) -> bool:
    """Whether most failed rows of a metric failed by its own code, and not by the judge."""
    summary = night.summary(finding.metric or "")
    return summary is not None and 2 * summary.failed_by_code > summary.unanswered_rows[0]


def _title(finding: Finding, metrics: int) -> str:
    more = "more " if finding.transition == "escalated" else ""
    which = display_name(finding.metric) if finding.metric else "the panel"
    which = f"{metrics} metrics" if metrics > 1 else which
    return f"{more}judge failures in {which}"


@check(
    "judge_failures",
    _title,
    order=30,
    severity="critical",
    limit=Limit(),
    lasting=False,
    lacks="scores",
    several="judge {judge} failed in {metrics} metrics",
    explains=_explains,
    sample=Sample(
        "Judge failures",
        "context_recall: at most 5% of the rows unanswered",
        "context_recall: 310 of 1,240 rows got no usable verdict (25.0%): 429: quota exceeded",
        key="context_recall",
        fields={"metric": "context_recall", "n": 1240},
        night={"problems": ["429: quota exceeded"]},
    ),
)
def judge_failures(tonight: Tonight) -> Iterator[Finding]:
    """The alert for too many rows of a metric without a usable verdict.

    A finding for each metric, and for each judge of a panel.
    """
    manifest = tonight.manifest
    yield from (_of_metric(tonight, summary) for summary in manifest.metrics)
    yield from (_of_judge(tonight, name) for name in manifest.judge.panel)


def _of_metric(tonight: Tonight, summary: Summary) -> Finding:
    name, (failed, asked) = summary.metric, summary.unanswered_rows
    share = failed / asked if asked else 0.0
    level: Level = "breach" if share > tonight.limit else "ok"
    text = f"{name}: {failed:,} of {asked:,} rows got no usable verdict ({share:.1%})"
    problems = tonight.manifest.problems
    whys = [summary.why_unanswered, *(one for one in problems if not one.startswith("metric "))]
    if 2 * summary.failed_by_code > failed:
        text = f"{name}: its code failed on {failed:,} of {asked:,} rows ({share:.1%})"
        whys = [one for one in problems if one.startswith(f"metric {name} ")]
    if summary.scored and finite(summary.mean) is None:
        level, text = "breach", f"{name}: its {summary.scored:,} scores have no mean"
    if refused := summary.status.get(Status.REFUSED, 0):
        text += f", {refused:,} of them refused by the judge"
    if level != "ok" and (why := next(filter(None, whys), "")):
        text += f": {why}"
    rule = f"{name}: at most {tonight.limit:.0%} of the rows unanswered"
    return tonight.finding(level, rule, text, key=name, metric=name, n=asked)


def _of_judge(tonight: Tonight, name: str) -> Finding:
    """A warning for a judge of a panel: rows have values, but from fewer judges than planned."""
    manifest = tonight.manifest
    counts = [judge for one in manifest.metrics for judge in one.judges if judge.name == name]
    failed = sum(judge.failed for judge in counts)
    asked = failed + sum(judge.scored for judge in counts)
    share = failed / asked if asked else 0.0
    level: Level = "breach" if share > tonight.limit else "ok"
    text = f"{name}: no usable verdict on {failed:,} of {asked:,} row scores ({share:.1%})"
    refusals = [problem for problem in manifest.problems if problem.startswith(f"{name}: ")]
    if level != "ok" and refusals:
        text += f"; {refusals[0]}"
    rule = f"{name}: at most {tonight.limit:.0%} of its verdicts missing in the panel"
    return tonight.finding(
        level, rule, text, key=f"judge={former_judge_name(name)}", n=asked, severity="warning"
    )

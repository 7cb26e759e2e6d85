"""The night in five steps, as plain functions: what the flow's tasks call, and what runs it
without Prefect.

    stage -> score (metric family x shard) -> publish -> alert -> show

An alert needs the findings alone. So it comes before the pages, which may fail.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from ragmetrics.alerts import (
    Delivery,
    check_rules,
    incidents,
    notify_channels,
    notify_dashboard_failure,
)
from ragmetrics.calibration import judge_drift_set
from ragmetrics.config import Rule, Settings
from ragmetrics.errors import (
    JudgePending,
    JudgeRefused,
    RagmetricsError,
    StoreError,
)
from ragmetrics.judges import deadline_at, use_deadline
from ragmetrics.logs import NightInputs, find_inputs
from ragmetrics.model import JudgeInfo, Manifest
from ragmetrics.pipeline.publish import publish_run
from ragmetrics.pipeline.show import show_run
from ragmetrics.report import redacted
from ragmetrics.scoring import (
    BudgetPlan,
    SamplePlan,
    Staged,
    check_prices,
    chosen_metrics,
    find_attempt,
    find_reusable_run,
    judge_info,
    list_parts,
    metric_fingerprint,
    plan_budget,
    plan_run,
    plan_sample,
    score_parts,
    stage_run,
    staged_runs,
)
from ragmetrics.storage import RunRef, open_store

log = logging.getLogger(__name__)


class CoverageShort(RagmetricsError):
    """The night was published, but some of it could not be scored, told or shown."""


@dataclass(frozen=True)
class NightResult:
    """What a night came to."""

    manifest: Manifest
    delivery: Delivery


def check_settings(settings: Settings) -> tuple[JudgeInfo, str]:
    """Say who will judge and the embedder's fingerprint, if a night can begin with the settings.

    Raises InputError for an unknown metric, a rule that watches nothing, a prompt that cannot be
    used or a price that a budget needs, JudgeRefused for a judge without its key.
    """
    check_rules(settings)
    check_prices(settings)
    return judge_info(settings)


def stage_night(settings: Settings, day: date, begun: datetime | None = None) -> Staged:
    """Find the night's logs and stage them as a run, or find the run as it was staged.

    Where that ended before `begun`, now if None, and rows of it may get a verdict that have none,
    it is left as it is, and this is another attempt, a run of its own. Which rows are sampled, and
    what the run's budget lets be judged of them, is decided here.
    """
    info, embedder = check_settings(settings)
    files, now = open_store(settings), datetime.now(UTC)
    inputs, ref = _planned(settings, day, info, embedder, begun or now)
    staged = stage_run(settings, ref, inputs, now)
    prints = {
        metric.name: metric_fingerprint(metric, info.fingerprint, embedder)
        for metric in chosen_metrics(settings)
    }
    find_reusable_run(settings, files, staged, prints)
    if sample := plan_sample(settings, files, ref, prints):
        _warn_of_few_rows(settings, sample)
    if budget := plan_budget(settings, files, ref):
        _warn_of_small_budget(settings, budget, sample)
    return staged


def judge_drift_labels(settings: Settings, until: datetime | None = None) -> list[str]:
    """Judge the labelled set that the settings name for judge drift, unless it was judged today;
    return why it could not be. After `until` nothing is asked.
    """
    with use_deadline(deadline_at(until)):
        problem = judge_drift_set(settings, open_store(settings), datetime.now(UTC))
    return [problem] if problem else []


def find_run(settings: Settings, day: date) -> RunRef:
    """The run that the night's logs would be, as they are now: its newest attempt, and no new one.

    Nothing is written.
    """
    return _planned(settings, day, *check_settings(settings))[1]


def _planned(
    settings: Settings, day: date, info: JudgeInfo, embedder: str, begun: datetime | None = None
) -> tuple[NightInputs, RunRef]:
    files, inputs = open_store(settings), find_inputs(settings, day)
    earlier = staged_runs(files, day)
    shards = earlier[0].ref.shards if earlier else None  # rows that are there stay in theirs
    first = plan_run(settings, day, inputs, f"{info.fingerprint}/{embedder}", shards)
    return inputs, find_attempt(files, first, earlier, begun)


def _warn_of_small_budget(
    settings: Settings, budget: BudgetPlan, sample: SamplePlan | None
) -> None:
    """Say so where the budget lets fewer rows be judged, of a sample too, than an alert needs."""
    rules = settings.alerts.rules or ()
    needed = max((rule.min_rows for rule in rules), default=Rule.model_fields["min_rows"].default)
    drawn = [one.judged for one in sample.groups if one.judged >= needed] if sample else []
    rows = min([budget.rows, *(int(budget.share * judged) for judged in drawn)])
    if budget.share < 1 and rows < needed:
        told = "the budget is for %d rows, and alerts need %d: they will say no_data"
        log.warning(told, rows, needed)


def _warn_of_few_rows(settings: Settings, sample: SamplePlan) -> None:
    """Say so where fewer rows are sampled than an alert needs."""
    for rule in settings.alerts.rules or ():
        group = sample.group(rule.metric)
        if group and group.judged < min(rule.min_rows, group.rows):
            log.warning(
                "sample: %d rows of %s are judged, and its alert needs %d: it will say no_data",
                group.judged,
                rule.metric,
                rule.min_rows,
            )


def publish_night(
    settings: Settings,
    staged: Staged,
    problems: Sequence[str] = (),
    *,
    silent: bool = False,
    flow_run: str = "",
) -> Manifest:
    """Write a run's findings and manifest; `problems` say why parts of it could not be scored.

    A `silent` one tells nobody. `flow_run` is where Prefect shows the run.
    """
    now = datetime.now(UTC)
    return publish_run(settings, staged, now, problems, silent=silent, flow_run=flow_run)


def show_night(settings: Settings, manifest: Manifest, *, overview: bool = True) -> None:
    """Write the pages of a published run, and what tells of all nights; without `overview` the
    night's own pages alone. Raises StoreError with everything that could not be written.
    """
    show_run(settings, manifest, overview=overview)


def notify_unshown_night(
    settings: Settings, manifest: Manifest, reason: str, run_url: str | None = None
) -> bool:
    """Tell people that the dashboard does not show a night; return whether Slack was told."""
    return notify_dashboard_failure(settings, open_store(settings), manifest, reason, run_url)


def alert_night(settings: Settings, manifest: Manifest, run_url: str | None = None) -> Delivery:
    """Send what has to be told of a published run."""
    return notify_channels(settings, open_store(settings), manifest, run_url)


def run_night(settings: Settings, day: date) -> NightResult:
    """One night from logs to alert, without Prefect.

    Judges are asked until the settings' deadline; what is there then is published.
    Raises CoverageShort, after publishing and alerting, where not everything could be scored, told
    or shown;
    JudgePending, with nothing published, where batches take longer than the settings let it wait.
    """
    until = datetime.now(UTC) + settings.deadline
    staged = stage_night(settings, day)
    unjudged = judge_drift_labels(settings, until)
    try:
        problems = score_parts(settings, staged, list_parts(settings, staged), until=until)
    except JudgeRefused as error:
        problems = [error]
    for problem in problems:
        if isinstance(problem, JudgePending):
            raise problem
    manifest = publish_night(settings, staged, [*map(str, problems), *unjudged])
    delivery = alert_night(settings, manifest)
    unshown = _show_or_tell(settings, manifest)
    if missing := [*shortfalls(manifest, delivery), *unshown, *staged.problems]:
        raise coverage_short(manifest, missing)
    return NightResult(manifest, delivery)


def _show_or_tell(settings: Settings, manifest: Manifest) -> list[str]:
    """Show a night; where that fails, tell people so and return why."""
    try:
        show_night(settings, manifest)
    except StoreError as error:
        notify_unshown_night(settings, manifest, str(error))
        return [str(error)]
    return []


def coverage_short(manifest: Manifest, missing: Sequence[str]) -> CoverageShort:
    """The error that a published night ends with: what is missing, and what is there."""
    there = "what could be scored is published"
    if not any(one.scored for one in manifest.metrics):
        there = "no row has a score, and the night is published as one without data"
    return CoverageShort(f"night {manifest.date}: {'; '.join(missing)}; {there}")


def shortfalls(manifest: Manifest, delivery: Delivery) -> list[str]:
    """Why the run does not do its whole duty; nothing where it does."""
    told = redacted(manifest, manifest.redacts)
    missing = [
        finding
        for finding in told.findings
        if finding.kind in ("no_data", "judge_failures")
        and finding.level != "ok"
        and finding.severity == "critical"  # one judge of a panel is not
    ]
    return [*(one.sentence for one in incidents(missing, told)), *delivery.errors]

"""The six steps of a night as plain functions. The flow's tasks call them; `run_night` runs them
without Prefect.

    stage -> score (metric family x shard) -> publish -> alert -> show -> write back

Alerts need only the findings. They come before the pages, because writing the pages may fail.
Write-back comes late, because it may wait for other services. If the settings use a learned judge,
it is fitted at the very end: the next night needs it first.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from ragmetrics.config import Settings, check_night
from ragmetrics.dashboard import redacted
from ragmetrics.delivery import (
    Delivery,
    WriteBackReport,
    notify_channels,
    notify_dashboard_failure,
    queue_night,
    send_waiting,
)
from ragmetrics.errors import JudgePending, JudgeRefused, RagmetricsError, StoreError
from ragmetrics.logs import NightInputs, find_inputs
from ragmetrics.passages import topics_of_night
from ragmetrics.people import REFIT_AFTER, judge_drift_set, learn
from ragmetrics.pipeline.publish import publish_run
from ragmetrics.pipeline.show import show_run
from ragmetrics.records import (
    JudgeInfo,
    LearnedModel,
    Manifest,
    TopicModel,
    deadline_at,
    use_deadline,
)
from ragmetrics.rules import check_of, check_rules, incidents
from ragmetrics.scoring import (
    Staged,
    check_judging,
    choose_rows_of_night,
    chosen_metrics,
    find_reusable_run,
    judge_info,
    list_parts,
    plan_attempt,
    score_parts,
    stage_run,
)
from ragmetrics.storage import Files, RunRef, Runs, open_store

log = logging.getLogger(__name__)


class CoverageShort(RagmetricsError):
    """The night was published, but something could not be scored, notified or shown."""

    result: NightResult | None = None
    """The night as it was published, where the whole night ran in this process."""

    @classmethod
    def of(cls, manifest: Manifest, missing: Sequence[str]) -> CoverageShort:
        """The error of a published night: what is missing, and what is published."""
        published = "all other scores are published"
        if not any(metric.scored for metric in manifest.metrics):
            published = "no row has a score, and the night is published without data"
        source = manifest.source
        note = f"\n{source.note}" if not (source.rows or manifest.redacts) and source.note else ""
        return cls(f"night {manifest.date}: {'; '.join(missing)}; {published}{note}")


@dataclass(frozen=True)
class NightResult:
    """The result of a night."""

    manifest: Manifest
    delivery: Delivery
    write_back: tuple[WriteBackReport, ...] = ()
    """What tracing tools got of the night, and of earlier nights that waited."""

    @property
    def shortfalls(self) -> list[str]:
        """The reasons why a published night is incomplete; empty when it is complete."""
        shown = redacted(self.manifest, self.manifest.redacts)
        lacks = ("scores", "rows") if self.manifest.source.rows else ("scores",)
        missing = [
            finding
            for finding in shown.findings
            if check_of(finding).lacks in lacks
            and finding.level != "ok"
            and finding.severity == "critical"  # a failure of one judge of a panel is not critical
        ]
        return [
            *(incident.sentence for incident in incidents(missing, shown)),
            *self.delivery.errors,
        ]


@dataclass(frozen=True)
class Night:
    """The steps of the nights of one data set. Each may run in a process of its own."""

    settings: Settings

    def check(self) -> tuple[JudgeInfo, str]:
        """Check that a night can start. Returns the judges and the embedder's fingerprint.

        Raises InputError for an unknown metric, a rule without effect, an invalid prompt or a
        missing price of a budget, and JudgeRefused for a judge without its key.
        """
        check_rules(self.settings)
        check_judging(self.settings)
        return judge_info(self.settings)

    def stage(self, day: date, begun: datetime | None = None) -> Staged:
        """Stage the logs of a night as a run, or find the run if it is staged already.

        If that run ended before `begun` (None: now) without verdicts that a new attempt may get,
        this is a new attempt with its own run. The sample and the budget plan are made here; active
        sampling first has all rows scored by the cheap judge.
        """
        check_night(day)
        settings, (info, embedder) = self.settings, self.check()
        files, now = self._files, datetime.now(UTC)
        topics = topics_of_night(settings, files, day) if settings.topics else None
        inputs, ref = self._planned(day, info, embedder, topics, begun or now)
        staged = stage_run(settings, ref, inputs, now, topics=topics)
        prints = {
            metric.name: metric.fingerprint(info.of(metric.name).fingerprint, embedder)
            for metric in chosen_metrics(settings)
        }
        find_reusable_run(settings, files, staged, prints)
        if settings.samples or settings.budget.binds:
            choose_rows_of_night(settings, staged, prints)
        return staged

    def judge_drift_labels(self, until: datetime | None = None) -> list[str]:
        """Judge the labelled set for judge drift, unless it was judged today. Returns the problem
        if that failed. After `until` no request is sent.
        """
        with use_deadline(deadline_at(until)):
            problem = judge_drift_set(self.settings, self._files, datetime.now(UTC))
        return [problem] if problem else []

    def find_run(self, day: date, begun: datetime | None = None) -> RunRef:
        """The newest attempt of the run for the night's current logs, or the one that a run that
        began then gets. Nothing is written.
        """
        topics = None
        if self.settings.topics:
            topics = topics_of_night(self.settings, self._files, day, keep=False)
        return self._planned(day, *self.check(), topics, begun)[1]

    def is_published(self, day: date) -> bool:
        """Whether a run of the night is published and whole, for the same logs and settings, and
        another attempt could get no verdict that is missing. Nothing is written.
        """
        manifest = Runs(self._files).find(self.find_run(day, datetime.now(UTC)))
        return manifest is not None and not manifest.problems

    def score(self, staged: Staged, until: datetime | None = None) -> Sequence[RagmetricsError]:
        """Score all parts. Returns the errors of parts that could not be scored. After `until`
        (None: the deadline of the settings from now) no judge gets a request.
        """
        until = until or datetime.now(UTC) + self.settings.deadline
        parts = list_parts(self.settings, staged)
        return score_parts(self.settings, staged, parts, until=until)

    def publish(
        self,
        staged: Staged,
        problems: Sequence[str] = (),
        *,
        silent: bool = False,
        flow_run: str = "",
    ) -> Manifest:
        """Write a run's findings and manifest. `problems` are the errors of parts that failed.

        With `silent` no message will be sent. `flow_run` is the address of the run in Prefect.
        """
        now = datetime.now(UTC)
        return publish_run(self.settings, staged, now, problems, silent=silent, flow_run=flow_run)

    def show(self, manifest: Manifest, *, overview: bool = True) -> None:
        """Write the pages of a published run and the overview of all nights; without `overview`
        only the night's own pages. Raises StoreError that lists everything that could not be
        written.
        """
        show_run(self.settings, manifest, overview=overview)

    def notify_unshown(self, manifest: Manifest, reason: str, run_url: str | None = None) -> bool:
        """Send a message that the dashboard does not show a night. Returns True if it was told."""
        return notify_dashboard_failure(self.settings, self._files, manifest, reason, run_url)

    def alert(self, manifest: Manifest, run_url: str | None = None) -> Delivery:
        """Send the messages of a published run."""
        return notify_channels(self.settings, self._files, manifest, run_url)

    def write_back(self, manifest: Manifest) -> tuple[WriteBackReport, ...]:
        """Send the scores of a published run to the targets of `write_back:`, and those of earlier
        nights that wait. A failure is in the reports and in the log, and never fails the night.
        """
        if self.settings.write_back is None:
            return ()
        try:
            queue_night(self.settings, self._files, manifest)
            return tuple(send_waiting(self.settings, self._files, newest=manifest.date))
        except StoreError as error:
            log.error("the scores of %s are not written back: %s", manifest.date, error)
            return ()

    @property
    def learns(self) -> bool:
        """Whether the settings use the learned judge: in `sample`, or as a judge."""
        sample = self.settings.sample if self.settings.samples else None
        by_sample = sample is not None and sample.learns
        return by_sample or any(judge.kind.fitted for judge in self.settings.panel)

    def learn(self) -> LearnedModel | None:
        """Fit the learned judge again if the settings use one and enough new verdicts have come.

        None if it was not fitted. A failure is in the log, and never fails the night.
        """
        if not self.learns:
            return None
        try:
            return learn(self.settings, self._files, refit_after=REFIT_AFTER)
        except RagmetricsError as error:
            log.error("the learned judge is not fitted again: %s", error)
            return None

    @property
    def _files(self) -> Files:
        return open_store(self.settings)

    def _planned(
        self,
        day: date,
        info: JudgeInfo,
        embedder: str,
        topics: TopicModel | None,
        begun: datetime | None = None,
    ) -> tuple[NightInputs, RunRef]:
        settings, inputs = self.settings, find_inputs(self.settings, day)
        judged_by = f"{info.identity}/{embedder}"
        ref = plan_attempt(settings, self._files, day, inputs, judged_by, topics, begun)
        return inputs, ref


def run_night(settings: Settings, day: date) -> NightResult:
    """Run one night from logs to alerts, without Prefect.

    Judges get requests, and a bucket that fails is waited for, until the settings' deadline. Then
    the scores so far are published.
    Raises CoverageShort, after publishing and alerting, when something could not be scored,
    notified or shown. Raises JudgePending, without publishing, when batches take longer than the
    settings allow.
    """
    until = datetime.now(UTC) + settings.deadline
    with use_deadline(deadline_at(until)):
        return _run_night(settings, day, until)


def _run_night(settings: Settings, day: date, until: datetime) -> NightResult:
    night = Night(settings)
    staged = night.stage(day)
    unjudged = night.judge_drift_labels(until)
    try:
        problems = night.score(staged, until)
    except JudgeRefused as error:
        problems = [error]
    for problem in problems:
        if isinstance(problem, JudgePending):
            raise problem
    manifest = night.publish(staged, [*map(str, problems), *unjudged])
    return finish_night(settings, manifest, staged.problems)


def finish_night(
    settings: Settings, manifest: Manifest, unwritten: Sequence[str] = ()
) -> NightResult:
    """Alert on a published run, show it and write it back. `unwritten` are files of staging.

    Raises CoverageShort at the end, when something could not be scored, notified or shown.
    """
    night = Night(settings)
    delivery = night.alert(manifest)
    unshown = _show_or_notify(night, manifest)
    reports = night.write_back(manifest)
    night.learn()
    result = NightResult(manifest, delivery, reports)
    if missing := [*result.shortfalls, *unshown, *unwritten]:
        error = CoverageShort.of(manifest, missing)
        error.result = result
        raise error
    return result


def _show_or_notify(night: Night, manifest: Manifest) -> list[str]:
    """Show a night. If that fails, send a message and return the problem."""
    try:
        night.show(manifest)
    except StoreError as error:
        night.notify_unshown(manifest, str(error))
        return [str(error)]
    return []

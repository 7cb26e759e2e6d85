"""Start and end of a run: the limit of restarts, the deadline, waiting for batches, and failures.

A batch may take 24 hours. A nightly or gate of a deployment waits a minute for its batches. Then it
schedules the same work for later and ends as `Waiting`, with nothing published. The next run finds
rows, finished parts and batches in the store. A run without a deployment waits until the end.

A failed run notifies people once: by itself if it can, else by the automation `run failed`. The
message of the run says more (the findings, the payload). The message of the automation needs no
Slack on the worker, and no worker. So a run that has notified people ends in a failed state of
another name, which the automation ignores. The automation notifies of every other failed run.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prefect import get_run_logger
from prefect.context import FlowRunContext
from prefect.deployments import run_deployment
from prefect.runtime import deployment, flow_run
from prefect.states import Completed, Failed

from ragmetrics.config import Settings
from ragmetrics.errors import JudgePending, RagmetricsError
from ragmetrics.scoring import Staged

MOST_STARTS = 3

WAIT_SECONDS = 60.0
BACK_AFTER = dt.timedelta(minutes=10)
LONGEST = dt.timedelta(hours=72)
"""From the start of the night: time for two waves and one expired batch. Then the scores so far are
published."""
TOLD = "FailedAndTold"
"""The state of runs whose message Slack has confirmed; deployments/automations.yaml names it."""


class StartedTooOften(RagmetricsError):
    """Every attempt of a run crashed or was given up."""


def bound_starts(again: str) -> None:
    """Fail a run that was started more than three times.

    A crash (no memory, a lost node) cannot report its reason, and the automations start the run
    again. A failure ends that, and people are notified. `again` says how to start a new run when
    the cause is gone. Raises StartedTooOften.
    """
    if flow_run.run_count > MOST_STARTS:
        raise StartedTooOften(
            f"start {flow_run.run_count} of this run, and {MOST_STARTS} did not finish it: see in "
            f"the worker's log why they ended (memory?), then {again}"
        )


def first_start() -> dt.datetime:
    """The first start of this run, also if it was started again since.

    A night that was published before that start belongs to another run: its rows without a verdict
    get another attempt. A night that was published later belongs to this run, which continues it.
    """
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    return (run and run.start_time) or dt.datetime.now(dt.UTC)


def run_deadline(longest: dt.timedelta) -> dt.datetime:
    """The time after which this run sends no request to a judge: `longest` after its first start,
    so that crashes do not extend it. A run that is started again later has `longest` from now.
    """
    now = dt.datetime.now(dt.UTC)
    until = first_start() + longest
    return until if until > now else now + longest


def leaving(settings: Settings) -> Settings:
    """The settings with which a run ends before long batches do; unchanged without a deployment."""
    if not deployment.id:
        return settings
    judges = [
        judge if judge.wait_seconds else judge.model_copy(update={"wait_seconds": WAIT_SECONDS})
        for judge in settings.panel
    ]
    return settings.with_panel(judges)


def come_back(pending: Sequence[JudgePending], settings: str, day: dt.date, staged: Staged) -> Any:
    """Schedule the night for later if batches are open, and return the end state of this run; None
    if the night can be published.

    Without a deployment it raises the first of `pending`; the same command continues the night.
    """
    # The date is fixed: a night that began before midnight is the same after it.
    parameters = {"settings": settings, "date": day.isoformat()}
    return run_again(pending, parameters, staged.started_at, f"night {day}")


def run_again(
    pending: Sequence[JudgePending], parameters: dict[str, Any], since: dt.datetime, what: str
) -> Any:
    """Schedule the deployment's flow with these parameters for later, and return the end state of
    this run; None if nothing is pending, or if the work began too long ago.

    `what` names the work. Without a deployment it raises the first of `pending`.
    """
    if not pending:
        return None
    if not deployment.id:
        raise pending[0]
    now = dt.datetime.now(dt.UTC)
    if now - since > LONGEST:
        get_run_logger().warning("%s: no longer waiting: %s", what, pending[0])
        return None
    run_deployment(
        UUID(str(deployment.id)),
        parameters=parameters,
        scheduled_time=now + BACK_AFTER,
        timeout=0,
        as_subflow=False,
        idempotency_key=f"waiting-{flow_run.id}",
    )
    later = f"{what} is run again at {now + BACK_AFTER:%H:%M} UTC"
    return Completed(name="Waiting", message=f"{pending[0]}; {later}")


def failed_state(error: RagmetricsError, *, notified: bool) -> Any:
    """The state that a flow returns; for the caller of the flow it raises `error`.

    Without `notified` the error is raised here, and ends the run as any other failure.
    """
    if not notified:
        raise error
    return Failed(name=TOLD, message=f"{type(error).__name__}: {error}", data=error)

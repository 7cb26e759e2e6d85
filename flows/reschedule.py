"""Work that waits for batches: the run ends, and its deployment runs it again later.

A batch may take 24 hours. A nightly or gate of a deployment waits a minute for its batches. Then it
schedules the same work for later and ends as `Waiting`, with nothing published. The next run finds
rows, finished parts and batches in the store. A run without a deployment waits until the end.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prefect import get_run_logger
from prefect.deployments import run_deployment
from prefect.runtime import deployment, flow_run
from prefect.states import Completed

from ragmetrics.config import Settings
from ragmetrics.errors import JudgePending
from ragmetrics.scoring import Staged

WAIT_SECONDS = 60.0
BACK_AFTER = dt.timedelta(minutes=10)
LONGEST = dt.timedelta(hours=72)
"""From the start of the night: time for two waves and one expired batch. Then the scores so far are
published."""


def leaving(settings: Settings) -> Settings:
    """The settings with which a run ends before long batches do; unchanged without a deployment."""
    if not deployment.id:
        return settings
    judges = [
        one if one.wait_seconds else one.model_copy(update={"wait_seconds": WAIT_SECONDS})
        for one in settings.panel
    ]
    if settings.judges:
        return settings.model_copy(update={"judges": tuple(judges)})
    return settings.model_copy(update={"judge": judges[0]})


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

"""The night of a scheduled run: the day before its planned start, in the zone of the settings or
of its schedule.

A day of another zone than the schedule's would be skipped where clocks are set back: a run planned
for 01:30 in Berlin starts on the UTC day before in summer, and on the same UTC day in winter.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.runtime import deployment, flow_run

from ragmetrics.config import load_settings
from ragmetrics.errors import SettingsError

if TYPE_CHECKING:
    from prefect.client.schemas.objects import DeploymentSchedule


def planned_night(settings: str) -> dt.date:
    """The night of the current run, which it keeps when it is late, retried or started again.

    Its zone is the `time_zone` of the settings, or that of the schedule that planned the run.
    """
    name = _time_zone(settings)
    zone = ZoneInfo(name) if name else _zone()
    return night_before(flow_run.scheduled_start_time, zone)


def _time_zone(settings: str) -> str | None:
    try:
        return load_settings(settings).time_zone
    except SettingsError:  # the flow raises it where its words are read
        return None


def night_before(planned: dt.datetime, zone: dt.tzinfo) -> dt.date:
    """The day in a zone before the one on which a run is planned to start."""
    local = dt.datetime.fromtimestamp(planned.timestamp(), zone)  # Prefect's dates are pendulum's
    return local.date() - dt.timedelta(days=1)


def schedule_zone(schedules: Sequence[DeploymentSchedule], made_by: UUID | None) -> dt.tzinfo:
    """The zone of the schedule that planned a run, or the one zone of all schedules; else UTC.

    `made_by` is the ID of the schedule; it is None where people or events started the run, and
    unknown where the deployment was deployed again since.
    """
    of_deployment = [schedule for schedule in schedules if schedule.id == made_by]
    zones = {getattr(one.schedule, "timezone", None) or "UTC" for one in of_deployment or schedules}
    return ZoneInfo(zones.pop()) if len(zones) == 1 else dt.UTC


def _zone() -> dt.tzinfo:
    if not deployment.id:
        return dt.UTC
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    with get_client(sync_client=True) as client:
        run = run or client.read_flow_run(UUID(flow_run.id))
        schedules = client.read_deployment(UUID(deployment.id)).schedules
    return schedule_zone(schedules, run.created_by.id if run.created_by else None)

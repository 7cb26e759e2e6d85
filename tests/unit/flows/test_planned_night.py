"""flows/planned_night.py: the night of a scheduled run, in the zone of its schedule."""

from __future__ import annotations

import datetime as dt
import uuid
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
from prefect.server.schemas.schedules import CronSchedule as ServerSchedule

from flows import planned_night as module
from flows.planned_night import night_before, planned_night, schedule_zone

YEAR = dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2027, 1, 1, tzinfo=dt.UTC)
ZONES = ("Europe/Berlin", "Europe/London", "America/Los_Angeles")
TIMES = ("0 0", "30 0", "30 1", "30 2", "30 5", "30 16", "30 23")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("time", TIMES)
def test_every_night_of_a_year_is_evaluated_once(zone: str, time: str) -> None:
    """Each planned start of a daily schedule, as Prefect's server computes them, has the night
    after that of the start before, also where clocks change."""
    schedule = ServerSchedule(cron=f"{time} * * *", timezone=zone)
    starts = sorted(set(schedule._get_dates_generator(n=400, start=YEAR[0], end=YEAR[1])))
    nights = [night_before(start, ZoneInfo(zone)) for start in starts]
    steps = {later - earlier for earlier, later in pairwise(nights)}
    assert steps == {dt.timedelta(days=1)}
    assert len(nights) >= 365


def scheduled(zone: str | None, cron: bool = True) -> DeploymentSchedule:
    """A schedule of a deployment, in a zone."""
    day = dt.timedelta(days=1)
    schedule = (
        CronSchedule(cron="30 1 * * *", timezone=zone)
        if cron
        else IntervalSchedule(interval=day, timezone=zone)
    )
    return DeploymentSchedule(id=uuid.uuid4(), schedule=schedule)


def test_the_schedule_that_planned_the_run_gives_the_zone() -> None:
    """A deployment may have schedules in several zones."""
    schedules = [scheduled("Europe/Berlin"), scheduled("America/Los_Angeles", cron=False)]
    zones = [schedule_zone(schedules, schedule.id) for schedule in schedules]
    assert zones == [ZoneInfo("Europe/Berlin"), ZoneInfo("America/Los_Angeles")]


def test_a_run_that_no_schedule_planned_has_the_zone_of_all_schedules() -> None:
    """Started by hand, or by a schedule that was deployed again since: the one zone that all have,
    else UTC."""
    berlin, london = scheduled("Europe/Berlin"), scheduled("Europe/London")
    assert schedule_zone([berlin, scheduled("Europe/Berlin")], None) == ZoneInfo("Europe/Berlin")
    assert schedule_zone([berlin], uuid.uuid4()) == ZoneInfo("Europe/Berlin")
    assert schedule_zone([berlin, london], None) == dt.UTC
    assert schedule_zone([], None) == dt.UTC
    assert schedule_zone([scheduled(None)], None) == ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("time_zone", "night"), [("America/Los_Angeles", 17), (None, 18), ("Nowhere/Land", 18)]
)
def test_the_time_zone_of_the_settings_comes_before_that_of_the_schedule(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, time_zone: str | None, night: int
) -> None:
    """At 05:30 UTC the day in Los Angeles is not over: the night is the day before it. Settings
    that cannot be read have no zone; the flow says what is wrong with them.
    """
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text("" if time_zone is None else f"time_zone: {time_zone}\n")
    planned = dt.datetime(2026, 11, 19, 5, 30, tzinfo=dt.UTC)
    monkeypatch.setattr(module, "flow_run", SimpleNamespace(scheduled_start_time=planned))
    assert planned_night(str(settings)) == dt.date(2026, 11, night)

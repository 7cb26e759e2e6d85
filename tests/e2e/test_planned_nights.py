"""Nights that Prefect's own scheduler planned in a zone with summer time."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.config import load_settings
from ragmetrics.storage import Runs, open_store
from tests.fakes.logs import make_rows

pytestmark = pytest.mark.usefixtures("prefect_server", "without_pages")

CHANGE = dt.date(2026, 10, 25)
"""Clocks are set back at three o'clock."""


def planned_runs(settings: Path) -> list[Any]:
    """The runs of a deployment, at 01:30 in Berlin around the change, as the server plans them."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import CronSchedule

    from flows.nightly import nightly

    schedule = CronSchedule(cron="30 1 * * *", timezone="Europe/Berlin")
    with get_client(sync_client=True) as client:
        deployment = client.create_deployment(
            client.create_flow(nightly),
            "autumn",
            parameters={"settings": str(settings)},
            schedules=[DeploymentScheduleCreate(schedule=schedule)],
        )
        span = {"start_time": "2026-10-23T12:00:00Z", "end_time": "2026-10-26T12:00:00Z"}
        planned = client.request("POST", f"/deployments/{deployment}/schedule", json=span)
        planned.raise_for_status()
        runs = [run for run in client.read_flow_runs() if run.deployment_id == deployment]
    return sorted(runs, key=lambda run: run.expected_start_time)


def test_no_night_is_skipped_where_clocks_are_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs planned for 01:30 on the 24th, 25th and 26th of October publish three nights in a row;
    by UTC the night of the 24th would be missing."""
    from prefect.flow_engine import run_flow

    from flows.nightly import nightly

    nights = [CHANGE - dt.timedelta(days=days) for days in (2, 1, 0)]
    for night in nights:
        folder = tmp_path / f"logs/dt={night}"
        folder.mkdir(parents=True)
        rows = make_rows(4, night=night)
        (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = tmp_path / "ragmetrics.yaml"
    values = {"logs": "logs/dt={date}/", "store": "store", "metrics": ["context_relevance"]}
    settings.write_text(yaml.safe_dump(values))
    monkeypatch.chdir(tmp_path)
    runs = planned_runs(settings)
    assert [str(run.expected_start_time.date()) for run in runs] == [
        "2026-10-23",
        "2026-10-24",
        "2026-10-26",
    ]
    for run in runs:
        run_flow(nightly, flow_run=run, parameters={"settings": str(settings)})
    store = open_store(load_settings(settings))
    assert [manifest.date for manifest in Runs(store).outlines()] == nights

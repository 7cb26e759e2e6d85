"""The night in four steps as tasks of Airflow 3. Copy this file into the folder of your DAGs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk import Param, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException

from ragmetrics import NightSteps, errors, load_settings

Json = dict[str, Any]


@contextmanager
def steps() -> Iterator[NightSteps]:
    """The steps with the settings of the run. Airflow retries only what a retry may mend."""
    try:
        yield NightSteps(load_settings(get_current_context()["params"]["settings"]))
    except errors.RagmetricsError as error:
        if error.transient:
            raise
        raise AirflowFailException(str(error)) from error


@dag(
    schedule="0 3 * * *",
    start_date=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    catchup=False,
    max_active_runs=1,  # nights alert in their order
    default_args={"retries": 3, "retry_delay": dt.timedelta(minutes=1)},
    params={
        "settings": Param("/etc/ragmetrics/ragmetrics.yaml", type="string"),
        "date": Param(None, type=["null", "string"], format="date"),
    },
)
def ragmetrics_nightly() -> None:
    """Score one night's retrieval logs, publish the dashboard, alert on regressions.

    The night is `date`, or the day (UTC) before the planned start of the run.
    """

    @task
    def stage() -> Json:
        context = get_current_context()
        run, night = context["dag_run"], context["params"]["date"]
        planned = (run.logical_date or run.run_after).astimezone(dt.UTC).date()
        day = dt.date.fromisoformat(night) if night else planned - dt.timedelta(days=1)
        with steps() as night_steps:
            return night_steps.stage(day).as_json

    @task
    def parts(run: Json) -> list[Json]:
        with steps() as night_steps:
            return [part.as_json for part in night_steps.parts(run)]

    @task(max_active_tis_per_dagrun=4)
    def score(run: Json, part: Json) -> str | None:
        with steps() as night_steps:
            return night_steps.score(run, part)

    @task
    def publish(run: Json, problems: list[str | None]) -> Json:
        with steps() as night_steps:
            night_steps.publish(run, list(problems))
        return run

    @task
    def alert(run: Json) -> None:
        with steps() as night_steps:
            night_steps.alert(run)

    run = stage()
    problems = score.partial(run=run).expand(part=parts(run))
    alert(publish(run, problems))


ragmetrics_nightly()

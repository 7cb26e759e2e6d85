"""Calibration as Prefect tasks. Only settings and records of results pass between them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from prefect import task

from ragmetrics.config import Settings
from ragmetrics.dashboard import CALIBRATION_PAGE, calibration_markdown, refresh_dashboard
from ragmetrics.delivery import page_link
from ragmetrics.people import ATTACKED, calibrate as calibrate_judges, load_history
from ragmetrics.pipeline import Night
from ragmetrics.records import Calibration, Drift
from ragmetrics.storage import open_store
from tasks.nightly import RETRIES
from tasks.run_page import artifact_key, leave_artifact


@task(name="calibrate", task_run_name="calibrate · {settings.dataset}", **RETRIES)
def calibrate(
    settings: Settings, labelled: Sequence[str], metrics: Sequence[str] | None, at: datetime
) -> list[Calibration]:
    """Compare every judge with every set. A retry finds the replies of the attempt before."""
    files = open_store(settings)
    attacks = ATTACKED
    return calibrate_judges(settings, labelled, metrics, now=at, files=files, attacks=attacks)


@task(
    name="judge the labelled set",
    task_run_name="judge the labelled set · {settings.dataset}",
    **RETRIES,
)
def judge_labelled(settings: Settings, until: datetime | None = None) -> list[str]:
    """Judge the labelled set that shows judge drift; return the problems. After `until` no judge
    gets a request.
    """
    return Night(settings).judge_drift_labels(until)


@task(name="find drift", task_run_name="find drift · {settings.dataset}", **RETRIES)
def find_drifts(settings: Settings, calibrations: Sequence[Calibration]) -> list[Drift | None]:
    """The changes since the calibrations before."""
    history = load_history(open_store(settings))
    return [history.drift_to(one) for one in calibrations]


@task(name="publish calibrations", task_run_name="publish · {settings.dataset}", **RETRIES)
def publish(
    settings: Settings, calibrations: Sequence[Calibration], drifts: Sequence[Drift | None]
) -> None:
    """Add the figures as an artifact, and refresh the dashboard."""
    files = open_store(settings)
    leave_artifact(
        calibration_markdown(calibrations, drifts, page_link(settings, files, CALIBRATION_PAGE)),
        key=f"ragmetrics-{artifact_key(settings.dataset)}-calibration",
        description=f"Judges of {settings.dataset} against labelled rows",
    )
    refresh_dashboard(files)

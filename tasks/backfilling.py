"""A backfill's own task: publishing a past night."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import task

from ragmetrics import night
from ragmetrics.records import Manifest
from ragmetrics.settings import Settings
from ragmetrics.stage import Staged
from tasks.steps import RETRIES


@task(name="publish", task_run_name="publish · {staged.ref.date}", **RETRIES)
def publish_past(
    settings: Settings, staged: Staged, problems: Sequence[str], *, silent: bool
) -> Manifest:
    """Write the night's manifest and pages. The artifact of the dataset stays that of last night,
    and the overview is written once, at the end.
    """
    return night.publish_night(settings, staged, problems, silent=silent, overview=False)

"""Tasks of the backfill flow: publish and show a past night."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import task

from ragmetrics.config import Settings
from ragmetrics.pipeline import Night
from ragmetrics.records import Manifest
from ragmetrics.scoring import Staged
from tasks.nightly import RETRIES


@task(name="publish", task_run_name="publish · {staged.ref.date}", **RETRIES)
def publish_past(
    settings: Settings, staged: Staged, problems: Sequence[str], *, silent: bool
) -> Manifest:
    """Evaluate the alert rules of the night, and write its manifest."""
    return Night(settings).publish(staged, problems, silent=silent)


@task(name="show", task_run_name="show · {manifest.date}", **RETRIES)
def show_past(settings: Settings, manifest: Manifest, *, overview: bool) -> None:
    """Write the night's pages. The overview is written once, at the end. The artifact of the
    dataset stays that of the newest night.
    """
    Night(settings).show(manifest, overview=overview)

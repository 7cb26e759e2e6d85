"""The night's steps as Prefect tasks. Only settings and references pass between them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from prefect import get_run_logger, task
from prefect.client.schemas.objects import State

from ragmetrics.config import Settings
from ragmetrics.dashboard import night_markdown, redacted
from ragmetrics.delivery import Delivery, WriteBackReport, dashboard_link
from ragmetrics.errors import JudgePending, RagmetricsError
from ragmetrics.pipeline import Night
from ragmetrics.records import Manifest
from ragmetrics.scoring import Staged, score_part
from ragmetrics.storage import Files, RunRef, Runs, open_store
from tasks.events import emit
from tasks.night_events import night_events
from tasks.run_page import artifact_key, leave_artifact, newest_key, run_page


def _may_pass(_task: object, _run: object, state: State[Any]) -> bool:
    """Retry only transient errors: never a wrong key, a wrong setting or a bug."""
    try:
        state.result()
    except JudgePending:
        return False  # batches take hours: the flow is scheduled again
    except RagmetricsError as error:
        return error.transient
    except Exception:
        return False
    return False


RETRIES: dict[str, Any] = {
    "retries": 3,
    "retry_delay_seconds": [5, 20, 60],
    "retry_jitter_factor": 0.3,
    "retry_condition_fn": _may_pass,
}


@task(name="stage", task_run_name="stage · {day}", **RETRIES)
def stage(settings: Settings, day: date, begun: datetime) -> Staged:
    """Stage the logs of the night, unless they are staged; `begun`: first start of the flow."""
    return Night(settings).stage(day, begun)


@task(name="score", **RETRIES)
def score(
    settings: Settings,
    ref: RunRef,
    family: Sequence[str],
    shard: int,
    kept: str | None = None,
    until: datetime | None = None,
) -> None:
    """Score one family of metrics over one shard, store the part, and log what it took.

    `kept` is the store of the replies; None: that of the settings. After
    `until` no judge gets a request.
    """
    files = Files(kept, settings.storage_options) if kept else None
    report = score_part(settings, ref, family, shard, kept=files, until=until)
    get_run_logger().info("%s", report or "scored before: nothing was asked")


@task(name="publish", task_run_name="publish · {staged.ref.date}", **RETRIES)
def publish(settings: Settings, staged: Staged, problems: Sequence[str]) -> Manifest:
    """Evaluate the alert rules of the night, and write its manifest."""
    return Night(settings).publish(staged, problems, flow_run=run_page() or "")


@task(name="alert", task_run_name="alert · {manifest.date}", **RETRIES)
def alert(settings: Settings, manifest: Manifest) -> Delivery:
    """Notify every channel of the changes, before the dashboard is written."""
    return Night(settings).alert(manifest, run_page())


@task(name="announce", task_run_name="announce · {manifest.date}", **RETRIES)
def announce(settings: Settings, manifest: Manifest) -> None:
    """Emit what happened as events, for automations. A repetition emits none of them again, and a
    run that is not the night's current one emits none. Raises NotEmitted.
    """
    files = open_store(settings)
    if Runs(files).is_current(manifest):
        shown = redacted(manifest, settings.redacts_messages)
        emit(night_events(shown, dashboard_link(settings, files, manifest)))


@task(name="show", task_run_name="show · {manifest.date}", **RETRIES)
def show(settings: Settings, manifest: Manifest) -> None:
    """Write the dashboard, and the headline as an artifact of the flow run. That of the data set
    stays the one of the newest night.
    """
    Night(settings).show(manifest)
    files = open_store(settings)
    link = dashboard_link(settings, files, manifest)
    leave_artifact(
        night_markdown(files, manifest, link),
        key=newest_key(f"ragmetrics-{artifact_key(manifest.dataset)}", files, manifest.date),
        description=f"Retrieval of {manifest.dataset} on {manifest.date}",
    )


@task(name="tell of no dashboard", task_run_name="tell of no dashboard · {manifest.date}")
def tell_unshown(settings: Settings, manifest: Manifest, reason: str) -> bool:
    """Notify people that the dashboard lacks the night; return whether Slack confirmed it."""
    return Night(settings).notify_unshown(manifest, reason, run_page())


@task(name="write back", task_run_name="write back · {manifest.date}")
def write_back(settings: Settings, manifest: Manifest) -> tuple[WriteBackReport, ...]:
    """Send the scores to tracing tools. What cannot be sent waits for the next night."""
    return Night(settings).write_back(manifest)


@task(name="learn")
def fit_learned(settings: Settings) -> int:
    """Fit the learned judge again, if enough new verdicts have come; return its version or 0."""
    model = Night(settings).learn()
    return model.version if model else 0


def show_or_tell(settings: Settings, manifest: Manifest) -> tuple[list[str], bool]:
    """Show the night, or notify people why not; return the reasons, and if all were notified."""
    unshown = failures(show(settings, manifest, return_state=True))
    notified = all(tell_unshown(settings, manifest, reason) for reason in unshown)
    return unshown, notified


def failures(state: State[Any]) -> list[str]:
    """The error of a failed task without which a flow can continue; empty if it did not fail.

    Raises any exception that is a bug.
    """
    error = state.result(raise_on_failure=False)
    if isinstance(error, RagmetricsError):
        return [str(error)]
    if isinstance(error, BaseException):
        raise error
    return []

"""The gate of an index build as Prefect tasks. Only settings, references and records of results
pass between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from prefect import task
from prefect.runtime import flow_run

from ragmetrics.comparison import (
    StagedGate,
    build_path,
    decide_gate,
    load_gates,
    replay_missing,
    stage_gate,
)
from ragmetrics.config import Settings
from ragmetrics.dashboard import gate_markdown, redacted, refresh_builds
from ragmetrics.delivery import notify_failed_gate, notify_gate, page_link
from ragmetrics.records import (
    HELD,
    INCONCLUSIVE,
    PASSED,
    FailedGate,
    Gate,
    IndexBuild,
    ReplayReport,
    Verdict,
    deadline_at,
    use_deadline,
)
from ragmetrics.storage import open_store
from ragmetrics.text import clean
from tasks.events import emit
from tasks.nightly import RETRIES
from tasks.run_page import artifact_key, leave_artifact, run_page

OUTCOMES: dict[Verdict, str] = {"promote": PASSED, "hold": HELD, "inconclusive": INCONCLUSIVE}
"""The event of each verdict."""
_MOST = 20


def _by_flow_run(step: str) -> Callable[[], str]:
    """Names a task run after its flow run: an event may lack the name of a build."""
    return lambda: f"{step} · {flow_run.name}"


@task(name="replay", task_run_name="replay · {build.build}", **RETRIES)
def replay(
    settings: Settings, build: IndexBuild, until: datetime | None = None
) -> ReplayReport | None:
    """Ask the retriever the golden questions, if the settings have one and the build has no log.
    After `until` it gets no request.
    """
    with use_deadline(deadline_at(until)):
        return replay_missing(settings, build, announced=True)


@task(name="stage gate", task_run_name="stage · {build.build}", **RETRIES)
def stage(settings: Settings, build: IndexBuild) -> StagedGate:
    """Stage the logs of both builds, unless they are staged already. An event may name no log
    outside the folder of `gate: logs:`.
    """
    return stage_gate(settings, build, announced=True)


@task(name="decide", task_run_name="verdict · {staged.build.build}", **RETRIES)
def decide(settings: Settings, staged: StagedGate, problems: Sequence[str]) -> Gate:
    """Compare the builds and store the verdict."""
    return decide_gate(settings, staged, problems)


@task(name="publish gate", task_run_name="publish · {gate.build}", **RETRIES)
def publish(settings: Settings, gate: Gate) -> Gate:
    """Refresh the dashboard, and add the verdict as an artifact of the flow run. That of the data
    set stays the one of the build made last.
    """
    files = open_store(settings)
    refresh_builds(files)
    shown, newest = redacted(gate, settings.redact), next(load_gates(files), gate)
    leave_artifact(
        gate_markdown(shown, _link(settings, gate)),
        key=f"ragmetrics-{artifact_key(gate.dataset)}-gate" if newest.build == gate.build else None,
        description=f"Index build {gate.build} of {gate.dataset}",
    )
    return gate


@task(name="announce", task_run_name="announce · {gate.build}", **RETRIES)
def announce(settings: Settings, gate: Gate) -> Gate:
    """Emit the verdict as an event, for the automation that swaps indexes. A repeat emits the same
    event. Raises NotEmitted if the server did not confirm it.
    """
    event = {
        "id": str(outcome_id(gate)),
        "occurred": datetime.now(UTC).isoformat(),
        "event": OUTCOMES[gate.verdict],
        "resource": {
            "prefect.resource.id": f"rag.index.{gate.dataset}.{gate.build}",
            "prefect.resource.name": gate.build,
            "rag.dataset": gate.dataset,
        },
        "payload": essentials(redacted(gate, settings.redact), _link(settings, gate)),
    }
    emit([event])
    return gate


@task(name="tell", task_run_name="tell · {gate.build}", **RETRIES)
def tell(settings: Settings, gate: Gate) -> Gate:
    """Notify every channel of a gate, and record the channels that confirmed it."""
    return notify_gate(settings, gate, run_page())


@task(name="tell of no verdict", task_run_name=_by_flow_run("tell"), **RETRIES)
def tell_undecided(
    settings: Settings, reason: str, carried: str, event_id: str | None
) -> FailedGate:
    """Notify every channel that a build got no verdict."""
    return notify_failed_gate(settings, reason, carried, event_id, run_page())


@task(name="publish no verdict", task_run_name=_by_flow_run("publish"), **RETRIES)
def publish_undecided(settings: Settings) -> None:
    """Show on the dashboard that a build got no verdict."""
    refresh_builds(open_store(settings))


def essentials(gate: Gate, link: str) -> dict[str, Any]:
    """The payload of a verdict's event: what an automation needs."""
    return {
        "dataset": gate.dataset,
        "build": gate.build,
        "serving": gate.serving,
        "verdict": gate.verdict,
        "reasons": [clean(reason, 500) for reason in gate.reasons[:_MOST]],
        "further": gate.further,
        "metrics": [
            metric.model_dump(
                include={"metric", "before", "after", "drop", "low", "high", "questions"}
                | {"max_drop", "verdict"}
            )
            for metric in gate.metrics[:_MOST]
        ],
        "page": link,
    }


def outcome_id(gate: Gate) -> UUID:
    """The id of a verdict's event. A repeated gate with the same result has the id of the first;
    after another verdict in between the same result is a new event.
    """
    record = gate.model_dump_json(exclude={"told", "heard", "redact"})
    return uuid5(NAMESPACE_URL, f"{OUTCOMES[gate.verdict]}:{record}")


def _link(settings: Settings, gate: Gate) -> str:
    """Link to the build on the dashboard."""
    return page_link(settings, open_store(settings), build_path(gate.build))

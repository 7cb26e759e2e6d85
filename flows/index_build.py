"""The index-build flow: compares a new index build with the serving one, before it serves.

A deployment runs it on each event `rag.index.built`. Without Prefect: `ragmetrics gate`.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from prefect import flow, get_run_logger
from prefect.runtime import flow_run

from flows.progress import Label
from flows.run_state import bound_starts, failed_state, leaving, run_again, run_deadline
from flows.scoring import ScoredParts, score_all
from ragmetrics.comparison import StagedGate, gate_parts, gate_run_settings
from ragmetrics.config import Settings, load_settings
from ragmetrics.errors import InputError, JudgePending, RagmetricsError
from ragmetrics.records import Gate, IndexBuild, deadline_at, make_index_build, use_deadline
from ragmetrics.storage import RunRef
from ragmetrics.text import clean
from tasks import index_build as gate_tasks

Payload = dict[str, Any] | str
"""The payload of an event: a mapping, or its JSON."""


class NotTold(RagmetricsError):
    """The verdict is stored, but the dashboard, a channel or Prefect did not get it."""


class NoVerdict(RagmetricsError):
    """The gate has no verdict."""


def _run_name() -> str:
    build = _mapping(flow_run.parameters.get("build")).get("build")
    return f"index build {clean(build, 100) if isinstance(build, str) else '(not named)'}"


@flow(name="index-build", flow_run_name=_run_name)
def index_build(
    build: Payload,
    settings: str = "ragmetrics.yaml",
    event_id: str | None = None,
    occurred: dt.datetime | None = None,
) -> Gate:
    """Compare an index build with the one that serves, store the verdict, notify people.

    Parameters: the payload of the event (dataset, build; logs and serving if they differ from the
    settings; when it was built), the path of a settings file, the id of the event, and its time,
    which is that of a build that names none. Returns the gate as in
    gates/BUILD.json. A run may be repeated: finished parts and replies are in the store, the
    verdict does not change, and no message is sent twice.
    Raises NoVerdict, after notifying people, if the payload is wrong or the store or judge fails;
    the run ends as `FailedAndTold` if the message is confirmed. Raises NotTold if the verdict is
    stored, but the dashboard, a channel or Prefect did not get it. Raises StartedTooOften if the
    run crashed three times.
    """
    bound_starts("announce the build again: ragmetrics emit-build")
    chosen = leaving(load_settings(settings))
    until = run_deadline(chosen.deadline)
    try:
        wanted = _wanted(build, occurred)
        with use_deadline(deadline_at(until)):
            if chosen.retriever:
                gate_tasks.replay(chosen, wanted, until)
            staged = gate_tasks.stage(chosen, wanted)
            scored = _score(chosen, staged, until)
            pending = [error for error in scored.errors if isinstance(error, JudgePending)]
            parameters = {"build": build, "settings": settings, "event_id": event_id}
            parameters |= {"occurred": occurred.isoformat()} if occurred else {}
            if waiting := run_again(pending, parameters, _since(staged), f"gate of {wanted.build}"):
                return waiting  # type: ignore[no-any-return]  # a state, which Prefect takes for the result
            problems = [str(error) for error in scored.errors]
            gate = gate_tasks.decide(chosen, staged, problems, wait_for=scored.ended)
    except JudgePending:
        raise  # without a deployment: the same command continues
    except RagmetricsError as error:
        return _without_verdict(chosen, error, build, event_id)  # type: ignore[no-any-return]
    return _tell(chosen, gate)


def _score(settings: Settings, staged: StagedGate, until: dt.datetime) -> ScoredParts:
    """Score both builds. After `until` no judge gets a request."""
    run, both, wanted = gate_run_settings(settings), ScoredParts([], []), 0
    for ref, parts in gate_parts(settings, staged):
        wanted += len(parts)
        label = Label(settings.dataset, _whose(staged, ref), "gate")
        scored = score_all(run, ref, parts, label, kept=settings.store, until=until)
        both.errors.extend(scored.errors)
        both.task_runs.extend(scored.task_runs)
    get_run_logger().info("%d of %d parts scored", wanted - len(both.errors), wanted)
    return both


def _whose(staged: StagedGate, ref: RunRef) -> str:
    """The name of a run of a gate: its build, and the build that the gate compares."""
    is_new = staged.now.staged is not None and staged.now.staged.ref == ref
    return staged.build.build if is_new else f"{staged.serving} for {staged.build.build}"


def _tell(settings: Settings, gate: Gate) -> Gate:
    """Send the verdict to Prefect, the channels and the dashboard. If one fails, the others still
    get it.
    """
    failed = []
    for tell in (gate_tasks.announce, gate_tasks.tell, gate_tasks.publish):
        try:
            gate = tell(settings, gate)
        except RagmetricsError as error:
            failed.append(str(error))
    for reason in gate.reasons:
        get_run_logger().info("%s: %s", gate.verdict, clean(reason, 500))
    if failed:
        raise NotTold(
            f"index build {gate.build}: {gate.verdict}, but not everybody was notified: "
            f"{'; '.join(failed)}; run it again to notify them"
        )
    return gate


def _since(staged: StagedGate) -> dt.datetime:
    """The first start of the gate, also if it was run again."""
    return min((run.started_at for run in staged.runs), default=staged.started_at)


def _without_verdict(
    settings: Settings, error: RagmetricsError, build: Payload, event_id: str | None
) -> Any:
    """Notify people why there is no verdict, show it on the dashboard, and fail the run."""
    carried = build if isinstance(build, str) else json.dumps(build, ensure_ascii=False)
    reason = text = clean(str(error), 1_000)
    notified = False
    try:
        notified = gate_tasks.tell_undecided(settings, reason, carried, event_id).told
    except RagmetricsError as failed:
        text += f"; and not everybody was notified: {failed}"
    try:
        gate_tasks.publish_undecided(settings)
    except RagmetricsError as unshown:
        text += f"; and the dashboard does not show it: {unshown}"
    return failed_state(NoVerdict(text), notified=notified)


def _wanted(payload: Payload, occurred: dt.datetime | None) -> IndexBuild:
    """The build of a payload. Builds are ordered by when they were made, not by when their gates
    come to run.
    """
    build = make_index_build(_read(payload))
    return build if build.built else build.model_copy(update={"built": occurred})


def _read(payload: Payload) -> Any:
    if not isinstance(payload, str):
        return payload
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        raise InputError(
            "index build: the payload is no JSON, or longer than the deployment's trigger takes"
        ) from None


def _mapping(payload: Any) -> dict[str, Any]:
    try:
        content = _read(payload)
    except InputError:
        return {}
    return content if isinstance(content, dict) else {}

"""The index-build flow: a new index build held against the one that serves, before it serves.

A deployment runs it on each event `rag.index.built`. Without Prefect: `ragmetrics gate`.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from prefect import flow, get_run_logger
from prefect.runtime import flow_run

from flows.failure_state import failed_state
from flows.progress import Label
from flows.reschedule import leaving, run_again
from flows.restart_limit import bound_starts, run_deadline
from flows.scoring import score_all
from ragmetrics.comparison import StagedGate, gate_parts, gate_run_settings
from ragmetrics.config import Settings, load_settings
from ragmetrics.errors import InputError, JudgePending, RagmetricsError
from ragmetrics.model import Gate, make_index_build
from ragmetrics.storage import RunRef
from ragmetrics.text import clean
from tasks import index_build as gate_tasks

Payload = dict[str, Any] | str
"""What an event carried: a mapping, or its JSON."""


class NotTold(RagmetricsError):
    """The verdict is written, but not on the dashboard, or a channel or Prefect did not take it."""


class NoVerdict(RagmetricsError):
    """The gate came to no verdict."""


def _run_name() -> str:
    build = _mapping(flow_run.parameters.get("build")).get("build")
    return f"index build {clean(build, 100) if isinstance(build, str) else '(not named)'}"


@flow(name="index-build", flow_run_name=_run_name)
def index_build(
    build: Payload, settings: str = "ragmetrics.yaml", event_id: str | None = None
) -> Gate:
    """Hold an index build against the one that serves, write the verdict, tell of it.

    In: the event's payload (dataset, build, and where they are not as the settings say, logs and
    serving), the path of a settings file, and the event's id. Out: the gate, as it is in
    gates/BUILD.json. May be repeated: finished parts and judgements are found in the store, the
    verdict does not change, and nothing is told twice.
    Raises NoVerdict, after telling people, where the payload is wrong or the store or judge fails,
    and ends as `FailedAndTold` if they were told; NotTold, with the verdict written, where
    dashboard, channels or Prefect did not take it; StartedTooOften where the run crashed three
    times.
    """
    bound_starts("announce the build again: ragmetrics emit-build")
    chosen = leaving(load_settings(settings))
    until = run_deadline(chosen.deadline)
    try:
        wanted = make_index_build(_read(build))
        if chosen.retriever:
            gate_tasks.replay(chosen, wanted, until)
        staged = gate_tasks.stage(chosen, wanted)
        errors = _score(chosen, staged, until)
        pending = [error for error in errors if isinstance(error, JudgePending)]
        parameters = {"build": build, "settings": settings, "event_id": event_id}
        if waiting := run_again(pending, parameters, _since(staged), f"gate of {wanted.build}"):
            return waiting  # type: ignore[no-any-return]  # a state, which Prefect takes for the result
        gate = gate_tasks.decide(chosen, staged, [str(error) for error in errors])
    except JudgePending:
        raise  # by hand: the same command goes on
    except RagmetricsError as error:
        return _without_verdict(chosen, error, build, event_id)  # type: ignore[no-any-return]
    return _tell(chosen, gate)


def _score(settings: Settings, staged: StagedGate, until: dt.datetime) -> list[RagmetricsError]:
    """Score both builds; return why some parts could not be. After `until` no judge is asked."""
    run, errors, wanted = gate_run_settings(settings), [], 0
    for ref, parts in gate_parts(settings, staged):
        wanted += len(parts)
        label = Label(settings.dataset, _whose(staged, ref), "gate")
        errors += score_all(run, ref, parts, label, kept=settings.store, until=until)
    get_run_logger().info("%d of %d parts scored", wanted - len(errors), wanted)
    return errors


def _whose(staged: StagedGate, ref: RunRef) -> str:
    """By what a run of a gate is known: its build, and the one that the gate is of."""
    is_new = staged.now.staged is not None and staged.now.staged.ref == ref
    return staged.build.build if is_new else f"{staged.serving} for {staged.build.build}"


def _tell(settings: Settings, gate: Gate) -> Gate:
    """Tell of the verdict wherever it has to be told, on the dashboard last: one that fails keeps
    no other from it.
    """
    untold = []
    for tell in (gate_tasks.announce, gate_tasks.tell, gate_tasks.publish):
        try:
            gate = tell(settings, gate)
        except RagmetricsError as error:
            untold.append(str(error))
    for reason in gate.reasons:
        get_run_logger().info("%s: %s", gate.verdict, clean(reason, 500))
    if untold:
        raise NotTold(
            f"index build {gate.build}: {gate.verdict}, but not told to all: {'; '.join(untold)}; "
            "run it again to tell them"
        )
    return gate


def _since(staged: StagedGate) -> dt.datetime:
    """When the gate was begun first, however often it was run again."""
    return min((one.started_at for one in staged.runs), default=staged.started_at)


def _without_verdict(
    settings: Settings, error: RagmetricsError, build: Payload, event_id: str | None
) -> Any:
    """Tell people why there is no verdict, then the dashboard; fail the run."""
    carried = build if isinstance(build, str) else json.dumps(build, ensure_ascii=False)
    reason = said = clean(str(error), 1_000)
    told = False
    try:
        told = gate_tasks.tell_undecided(settings, reason, carried, event_id).told
    except RagmetricsError as untold:
        said += f"; and not everybody was told: {untold}"
    try:
        gate_tasks.publish_undecided(settings)
    except RagmetricsError as unshown:
        said += f"; and the dashboard does not show it: {unshown}"
    return failed_state(NoVerdict(said), told=told)


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
        found = _read(payload)
    except InputError:
        return {}
    return found if isinstance(found, dict) else {}

"""Limits how often a crashed run is started again."""

from __future__ import annotations

import datetime as dt

from prefect.context import FlowRunContext
from prefect.runtime import flow_run

from ragmetrics.errors import RagmetricsError

MOST_STARTS = 3


class StartedTooOften(RagmetricsError):
    """Every attempt of a run crashed or was given up."""


def bound_starts(again: str) -> None:
    """Fail a run that was started more than three times.

    A crash (no memory, a lost node) cannot report its reason, and the automations start the run
    again. A failure ends that, and people are notified. `again` says how to start a new run when
    the cause is gone. Raises StartedTooOften.
    """
    if flow_run.run_count > MOST_STARTS:
        raise StartedTooOften(
            f"start {flow_run.run_count} of this run, and {MOST_STARTS} did not finish it: see in "
            f"the worker's log why they ended (memory?), then {again}"
        )


def first_start() -> dt.datetime:
    """The first start of this run, also if it was started again since.

    A night that was published before that start belongs to another run: its rows without a verdict
    get another attempt. A night that was published later belongs to this run, which continues it.
    """
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    return (run and run.start_time) or dt.datetime.now(dt.UTC)


def run_deadline(longest: dt.timedelta) -> dt.datetime:
    """The time after which this run sends no request to a judge: `longest` after its first start,
    so that crashes do not extend it. A run that is started again later has `longest` from now.
    """
    now = dt.datetime.now(dt.UTC)
    until = first_start() + longest
    return until if until > now else now + longest

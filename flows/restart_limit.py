"""A run that crashes is started again, but not for ever."""

from __future__ import annotations

import datetime as dt

from prefect.context import FlowRunContext
from prefect.runtime import flow_run

from ragmetrics.errors import RagmetricsError

MOST_STARTS = 3


class StartedTooOften(RagmetricsError):
    """Each attempt at a run crashed or was given up; one more would not mend it."""


def bound_starts(again: str) -> None:
    """Fail a run that was started more than three times.

    A crash leaves no time to say why (no memory, a lost node), and the automations start the run
    again; a failure ends that, and is told. `again` says how to begin afresh once the cause is
    gone. Raises StartedTooOften.
    """
    if flow_run.run_count > MOST_STARTS:
        raise StartedTooOften(
            f"start {flow_run.run_count} of this run, and {MOST_STARTS} did not finish it: see in "
            f"the worker's log why they ended (memory?), then {again}"
        )


def first_start() -> dt.datetime:
    """When this run was started for the first time, however often it was since.

    What ended before is left as it is, and rows of it without a verdict are another attempt's;
    what this run itself has published is its own, and it goes on with that.
    """
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    return (run and run.start_time) or dt.datetime.now(dt.UTC)


def run_deadline(longest: dt.timedelta) -> dt.datetime:
    """Until when this run asks judges: so long from its first start, or it would end no sooner for
    its crashes. Who starts it again after that wants it to go on: then it has as long from now.
    """
    now = dt.datetime.now(dt.UTC)
    until = first_start() + longest
    return until if until > now else now + longest

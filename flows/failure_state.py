"""A failure is told once: by the run itself where it can, else by the automation `run failed`.

What the flow told has more in it (the findings, the payload); what the automation tells needs no
Slack on the worker, and no worker. So a run that told ends in a failed state of another name, which
the automation leaves alone, and every other failed run is told by the automation.
"""

from __future__ import annotations

from typing import Any

from prefect.states import Failed

from ragmetrics.errors import RagmetricsError

TOLD = "FailedAndTold"
"""Of runs whose failure Slack has confirmed to have; deployments/automations.yaml knows it."""


def failed_state(error: RagmetricsError, *, told: bool) -> Any:
    """The state for a flow to return, which raises `error` for whoever called the flow.

    Raises it here unless `told`: it ends the run as any other failure.
    """
    if not told:
        raise error
    return Failed(name=TOLD, message=f"{type(error).__name__}: {error}", data=error)

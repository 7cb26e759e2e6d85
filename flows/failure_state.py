"""A failed run notifies people once: by itself if it can, else by the automation `run failed`.

The message of the run says more (the findings, the payload). The message of the automation needs no
Slack on the worker, and no worker. So a run that has notified people ends in a failed state of
another name, which the automation ignores. The automation notifies of every other failed run.
"""

from __future__ import annotations

from typing import Any

from prefect.states import Failed

from ragmetrics.errors import RagmetricsError

TOLD = "FailedAndTold"
"""The state of runs whose message Slack has confirmed; deployments/automations.yaml names it."""


def failed_state(error: RagmetricsError, *, told: bool) -> Any:
    """The state that a flow returns; for the caller of the flow it raises `error`.

    Without `told` the error is raised here, and ends the run as any other failure.
    """
    if not told:
        raise error
    return Failed(name=TOLD, message=f"{type(error).__name__}: {error}", data=error)

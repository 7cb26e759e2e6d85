"""Settings of where the flows' tasks run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ragmetrics.judge_settings import Part


class RunnerSettings(Part):
    """The task runner of the flows: threads of the flow's process, processes beside it, or a
    cluster.
    """

    name: Literal["threads", "processes", "dask", "ray"] = "threads"
    workers: int | None = Field(None, ge=1)
    """Tasks at once; None: as many as fit."""
    address: str | None = None
    """Of a cluster that runs already."""
    cluster: dict[str, Any] = Field(default_factory=dict)
    """How to start one: `cluster_class` and what it takes, as prefect-dask has it; for Ray, what
    `ray.init` takes."""

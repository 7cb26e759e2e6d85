"""Settings of where the flows' tasks run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from ragmetrics.config.judge import SettingsModel

CLUSTERS = ("dask", "ray")
"""Runners that may be on other machines: those of the flows alone."""


class RunnerSettings(SettingsModel):
    """The task runner of the flows: threads of the flow's process, processes beside it, or a
    cluster.
    """

    name: Literal["threads", "processes", "dask", "ray"] = "threads"
    workers: int | None = Field(None, ge=1, le=1_000)
    """Tasks at once, of what is started here; None: as many as fit."""
    address: str | None = Field(None, min_length=1)
    """Of a cluster that runs already."""
    cluster: dict[str, Any] = Field(default_factory=dict)
    """How to start one. Dask: `cluster_class` (a `LocalCluster` where there is none), `adapt`, and
    whatever else that class takes; Ray: what `ray.init` takes.
    """

    @model_validator(mode="after")
    def _of_a_cluster(self) -> RunnerSettings:
        if self.name not in CLUSTERS:
            for key in ("address", "cluster"):
                if getattr(self, key):
                    raise ValueError(f"{key}: of a cluster: say `name: dask` or `name: ray` too")
        if self.address and self.workers:
            raise ValueError("workers: those at `address` run already; leave out one of the two")
        if self.address and self.cluster and self.name == "dask":
            raise ValueError("cluster: the one at `address` runs already; leave out one of the two")
        return self

"""The key `runner`: where the tasks of a flow run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from ragmetrics.config.judge import SettingsModel

CLUSTERS = ("dask", "ray")
"""Runners that may use other machines. Only flows support them."""


class RunnerSettings(SettingsModel):
    """The task runner of the flows: threads of the flow's process, worker processes, or a
    cluster.
    """

    name: Literal["threads", "processes", "dask", "ray"] = "threads"
    """`dask` needs the extra `retrieval-nightly[dask]`, `ray` the extra `retrieval-
    nightly[ray]`."""
    workers: int | None = Field(None, ge=1, le=1_000)
    """Number of parallel tasks of a runner that is started here. None: as many as fit."""
    address: str | None = Field(None, min_length=1)
    """Address of a cluster that is running already."""
    cluster: dict[str, Any] = Field(default_factory=dict)
    """How to start a cluster. Dask: `cluster_class` (default `LocalCluster`), `adapt`, and the
    arguments of that class. Ray: the arguments of `ray.init`.
    """

    @model_validator(mode="after")
    def _of_a_cluster(self) -> RunnerSettings:
        if self.name not in CLUSTERS:
            for key in ("address", "cluster"):
                if getattr(self, key):
                    raise ValueError(
                        f"{key}: is for clusters only: add `name: dask` or `name: ray`"
                    )
        if self.address and self.workers:
            raise ValueError(
                "workers: the workers at `address` are running already; remove one of the two"
            )
        if self.address and self.cluster and self.name == "dask":
            raise ValueError(
                "cluster: the cluster at `address` is running already; remove one of the two"
            )
        return self

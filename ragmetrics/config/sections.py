"""Small sections of the settings: gate, task runner, topics, Pushgateway, preset of the logs, and
tracing tools that get the scores of each night.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from ragmetrics.config.alerts import LEAST_ROWS
from ragmetrics.config.base import SettingsModel, repeated
from ragmetrics.config.endpoints import EnvironmentHeaders, check_address
from ragmetrics.plugins import Kind, UnusablePlugin


def cpu_count() -> int:
    """The cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


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

    @property
    def parallel(self) -> int:
        """Number of parallel tasks of a runner that is started here."""
        return self.workers or cpu_count()

    @property
    def is_cluster(self) -> bool:
        """True for a runner that may use other machines. Only flows support them."""
        return self.name in ("dask", "ray")

    @model_validator(mode="after")
    def _of_a_cluster(self) -> RunnerSettings:
        if not self.is_cluster:
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


class TopicSettings(SettingsModel):
    """How questions are grouped into topics."""

    count: int | None = Field(None, ge=2, le=20)
    """Number of topics. None: the number that separates the questions best, 4 to 20."""
    refit_days: int = Field(28, ge=1, le=366)
    """Days after which topics are fitted again. Topics that stay keep their names."""


class PushSettings(SettingsModel):
    """A Pushgateway of Prometheus, or a service with the same push API."""

    url: str
    """The address without the path `/metrics/job/...`."""
    format: Literal["text", "openmetrics"] = "text"
    """Prometheus's text format, or OpenMetrics 1.0. A Pushgateway reads only the text format."""
    job: str = Field("ragmetrics", min_length=1, max_length=100)
    """The Pushgateway stores the metrics under this job and `dataset`."""
    headers_env: EnvironmentHeaders = Field(default_factory=dict)
    """Maps a header to the environment variable that holds its value, or to a text with variables
    in braces, such as `Bearer {PUSH_TOKEN}`."""
    timeout_seconds: float = Field(10, gt=0, le=300)
    """Timeout of one attempt. There are three attempts."""

    @field_validator("url")
    @classmethod
    def _usable(cls, url: str) -> str:
        check_address(url, "https://push.example.com", "secrets into `headers_env`")
        return url


PRESETS: Kind[Any] = Kind(
    "ragmetrics.presets", "ragmetrics.logs.presets", "ragmetrics.logs.preset:Preset", "preset"
)


def known_preset(name: str) -> str:
    """Return the name of a preset. Raises ValueError for an unknown one. None is loaded."""
    if name not in PRESETS.names:
        raise ValueError(f"unknown preset {name!r}; the presets are: {', '.join(PRESETS.names)}")
    return name


def _named(schema: dict[str, Any]) -> None:
    schema["enum"] = list(PRESETS.names)


PresetName = Annotated[str, AfterValidator(known_preset), Field(json_schema_extra=_named)]


_BUILD = "{build}"
"""Placeholder for the name of a build in `gate: logs:`."""


class GateRule(SettingsModel):
    """The largest drop of a metric that is allowed from the serving build to the new one."""

    metric: str
    """One of `metrics`, in which higher is better."""
    max_drop: float = Field(0.05, gt=0, allow_inf_nan=False)
    """The largest drop of its mean that is allowed."""


class GateSettings(SettingsModel):
    """How a new index build is compared with the serving one."""

    logs: str = "builds/{build}/"
    """Location of the log of a build. An event may name another one below the same folder, which is
    what stands before `{build}`."""
    rules: tuple[GateRule, ...] | None = None
    """None: a drop of 0.05 in context_relevance and in context_recall. A metric that cannot be
    scored has no rule."""
    min_questions: int = Field(LEAST_ROWS, ge=2)
    """With fewer questions on both sides no metric decides: the gate is inconclusive, unless
    passages are gone from the index. As many as `min_rows` of an alert."""
    max_missing: float = Field(0.02, ge=0, le=1)
    """A build is not promoted when a larger share of the serving build's questions has no usable
    row of the new build, or when a larger share of the rows of either log or of the golden set
    cannot be read."""

    @property
    def folder(self) -> str:
        """The folder of all builds' logs: `logs` up to the step that names the build."""
        head = self.logs.partition(_BUILD)[0]
        return head[: head.rfind("/") + 1] or "./"

    def place_of(self, build: str, logs: str | None = None) -> str:
        """The location of the log of a build: `logs`, or else that of the settings, with its name
        filled in."""
        return (logs or self.logs).replace(_BUILD, build)

    @field_validator("logs")
    @classmethod
    def _one_log_per_build(cls, logs: str) -> str:
        if _BUILD not in logs:
            raise ValueError("should contain {build}: each build has its own log")
        return logs

    @field_validator("rules")
    @classmethod
    def _one_rule_per_metric(
        cls, rules: tuple[GateRule, ...] | None
    ) -> tuple[GateRule, ...] | None:
        if rules == ():
            raise ValueError("should name a metric; leave it out to get the default rules")
        if twice := repeated(rule.metric for rule in rules or ()):
            raise ValueError(f"{twice} has more than one rule")
        return rules


WriteBackStatus = Literal["scored", "skipped", "failed"]


TARGETS: Kind[Any] = Kind(
    "ragmetrics.targets",
    "ragmetrics.delivery.write_back.targets",
    "ragmetrics.delivery.write_back.target:TargetKind",
    "target",
)


class WriteBackSettings(SettingsModel):
    """Which scores are sent to which tracing tools, and how long a night tries."""

    model_config = ConfigDict(extra="allow")  # a key for each target

    metrics: tuple[str, ...] | None = None
    """The metrics whose scores are sent. None: all of the night."""
    statuses: tuple[WriteBackStatus, ...] = ("scored", "skipped", "failed")
    """Which scores are sent: those with a value, those that were not to be scored (the metric does
    not apply, the row is not in the sample or over the budget), and those that failed."""
    batch_size: int = Field(200, ge=1, le=1_000)
    """Number of scores in one request."""
    timeout_seconds: float = Field(30, gt=0, le=600)
    """Timeout of one request."""
    retry_delay_seconds: float = Field(1, gt=0, le=60)
    """Pause before a failed request is repeated. It doubles each time, up to 32 times as long."""
    retry_seconds: float = Field(300, ge=0, le=86_400)
    """How long one run waits for a target that fails, all waits together. The scores that are left
    wait for the next run."""

    @property
    def targets(self) -> dict[str, SettingsModel]:
        """The settings of the configured targets by name, in alphabetical order."""
        return dict(sorted((self.model_extra or {}).items()))

    @model_validator(mode="before")
    @classmethod
    def _read_targets(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        fields = {key: value[key] for key in value if key in cls.model_fields}
        others = {key: value[key] for key in value if key not in fields and value[key] is not None}
        return fields | {key: _target_settings(key, others[key]) for key in others}

    @model_validator(mode="after")
    def _has_target(self) -> WriteBackSettings:
        if not self.targets:
            raise ValueError(f"needs at least one of {', '.join(TARGETS.names)}")
        if not self.statuses:
            raise ValueError("statuses: needs at least one of scored, skipped and failed")
        return self

    @classmethod
    def plugin_models(cls) -> dict[str, type[SettingsModel]]:
        """The sections of the bundled targets, by their keys."""
        return {name: kind.settings for name, kind in TARGETS.bundled.items()}


def _target_settings(name: str, value: object) -> SettingsModel:
    """The settings of a target. Raises ValidationError with the place of each mistake."""
    if name not in TARGETS.names:
        unknown = InitErrorDetails(type="extra_forbidden", loc=(name,), input=value)
        raise ValidationError.from_exception_data("write_back", [unknown])
    try:
        settings: SettingsModel = TARGETS.find(name).settings.model_validate(value)
    except UnusablePlugin:  # told where scores are sent, and by doctor; the night goes on
        return SettingsModel()
    except ValidationError as error:
        raise ValidationError.from_exception_data(
            "write_back",
            [
                InitErrorDetails(
                    type=mistake["type"],
                    loc=(name, *mistake["loc"]),
                    input=mistake["input"],
                    ctx=mistake.get("ctx", {}),
                )
                for mistake in error.errors()
            ],
        ) from None
    return settings

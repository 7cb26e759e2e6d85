"""Settings: what `ragmetrics.yaml` may say. Unknown keys are errors.

Environment variables override the file: `RAGMETRICS_JUDGE__MODEL=...` sets `judge: model:`.
Secrets come from the environment alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadVariable

from ragmetrics.config.alerts import AlertSettings
from ragmetrics.config.gate import GateSettings
from ragmetrics.config.judge import (
    Budget,
    EmbeddingSettings,
    JudgeSettings,
    SettingsModel,
    make_budget,
    make_judge_settings,
)
from ragmetrics.config.prometheus import PushSettings
from ragmetrics.config.retriever import RetrieverSettings
from ragmetrics.config.runner import RunnerSettings
from ragmetrics.config.sampling import SampleSettings
from ragmetrics.errors import SettingsError
from ragmetrics.model import FIELDS, explain_validation_error
from ragmetrics.text import Duration, load_yaml

DEFAULT_METRICS: tuple[str, ...] = (
    "context_relevance",
    "context_precision",
    "context_relevancy",
    "context_relevancy_chunks",
    "context_recall",
    "response_relevancy",
)


class ReadLimits(SettingsModel):
    """Bounds that keep one bad row from hurting a night."""

    row_bytes: int = Field(10_000_000, ge=1_000)
    unpacked_bytes: int = Field(10_000_000_000, ge=1_000)
    """Of one file that is packed, or Parquet."""


Aggregate = Literal["mean", "median", "min", "max", "majority"]
PresetName = Literal["ragas", "openinference", "langfuse", "otel", "langsmith"]
MetricChoice = str | dict[str, dict[str, Any]]


def _named(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


class Settings(BaseSettings):
    """One dataset's nightly."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix="RAGMETRICS_",
        env_nested_delimiter="__",
    )

    dataset: str = Field("default", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    logs: str = "logs/dt={date}/"
    store: str = "ragmetrics-store"
    golden: str | None = None
    labelled: tuple[str, ...] = ()
    """Labelled sets that the calibrate flow holds the judges against."""
    preset: PresetName | None = None
    """The tool that wrote the logs; None: rows in our own layout."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Our field -> the log's, by dotted path: `user_input: request.body.question`."""
    language: str = "en"
    """Of rows that do not say."""
    metrics: tuple[MetricChoice, ...] = DEFAULT_METRICS
    prompts: str | None = None
    """A folder of YAML files that replace or translate what judges are asked."""
    judge: Annotated[JudgeSettings, BeforeValidator(_named)] = JudgeSettings()
    judges: tuple[Annotated[JudgeSettings, BeforeValidator(_named)], ...] = ()
    """A panel, in place of `judge`: every one of them judges every row."""
    aggregate: Aggregate = "mean"
    """What a panel's row value is of its judges' values."""
    fuse: Literal["row"] | None = None
    """`row`: one request of a row carries its contexts once and asks for all metrics' verdicts."""
    budget: Budget = Budget()
    sample: SampleSettings | None = None
    """How many rows are judged; None: all of them."""
    embeddings: Annotated[EmbeddingSettings, BeforeValidator(_named)] = EmbeddingSettings()
    alerts: AlertSettings = AlertSettings()
    gate: GateSettings = GateSettings()
    retriever: RetrieverSettings | None = None
    """Asked the golden questions of an index build that has no log yet."""
    runner: Annotated[RunnerSettings, BeforeValidator(_named)] = RunnerSettings()
    redact: bool = False
    """Keep logged texts out of the dashboard and of messages: hashes and scores alone."""
    segments: tuple[str, ...] | None = None
    """Tags to show scores by; None: all tags with at most 20 values."""
    limits: ReadLimits = ReadLimits()
    shards: int | None = Field(None, ge=1, le=1_000)
    """None: by the size of the logs."""
    deadline: Duration = timedelta(hours=20)
    """From a run's start: how long judges are asked. After it what is there is published."""
    workers: int | None = Field(None, ge=1, le=256)
    """Processes at work where the judge computes on this machine; None: one per core."""
    dashboard_url: str | None = None
    """Where people open the dashboard, for links in messages; None: the path in the store."""
    metrics_push: PushSettings | None = None
    """A Pushgateway that is told of the newest night."""
    storage_options: dict[str, Any] = Field(default_factory=dict)
    """Passed to fsspec, for buckets that the AWS environment variables do not describe."""

    @field_validator("columns")
    @classmethod
    def _columns(cls, columns: dict[str, str]) -> dict[str, str]:
        for name in columns:
            if name not in FIELDS and not name.startswith("tags."):
                raise ValueError(f"{name}: not a row field; there are: {', '.join(FIELDS)}")
        return columns

    @model_validator(mode="after")
    def _one_or_several(self) -> Settings:
        if self.judges and "judge" in self.model_fields_set:
            raise ValueError("judge and judges: say one of them")
        return self

    @property
    def panel(self) -> tuple[JudgeSettings, ...]:
        """All who judge: the panel, or the one judge."""
        return self.judges or (self.judge,)

    @property
    def redacts_messages(self) -> bool:
        """Whether messages are to name no question."""
        return self.redact or self.alerts.redact

    @property
    def reads_corpus(self) -> bool:
        """Whether somebody here weighs words by how common they are in all that was retrieved."""
        free = not all(one.remote for one in self.panel)
        return self.embeddings.name == "hashed" or free or self.samples

    @property
    def samples(self) -> bool:
        """Whether the judge is asked about a sample of the rows; one that is embedded costs nothing
        and scores all of them.
        """
        return self.sample is not None and any(one.name != "embedded" for one in self.panel)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file, whose values come in as arguments."""
        return env_settings, init_settings


def load_settings(path: str | Path, **overrides: Any) -> Settings:
    """Read a settings file; relative paths in it are relative to its folder.

    `overrides` replace top-level keys of the file. Raises SettingsError, naming the key.
    """
    file = Path(path)
    try:
        values = load_yaml(file.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        where = "" if file.is_absolute() else f" in {Path.cwd()}"
        raise SettingsError(f"{file}: no such settings file{where}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{file}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(values, Mapping):
        raise SettingsError(f"{file}: should be a mapping of keys to values")
    if strange := [key for key in values if not isinstance(key, str)]:
        raise SettingsError(f"{file}: {strange[0]!r:.50}: there is no such key")
    settings = make_settings({**values, **overrides}, str(file))
    base, drift_set = file.parent, settings.alerts.drift_set
    return settings.model_copy(
        update={
            name: _beside(base, value)
            for name in ("logs", "store", "golden", "prompts")
            if (value := getattr(settings, name)) is not None
        }
        | {
            "labelled": tuple(_beside(base, place) for place in settings.labelled),
            "gate": settings.gate.model_copy(update={"logs": _beside(base, settings.gate.logs)}),
            "alerts": settings.alerts.model_copy(
                update={"drift_set": _beside(base, drift_set) if drift_set else None}
            ),
        }
    )


Judged = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
"""A judge as people name it: by name, by a mapping of settings, or several as a list."""


def make_settings(values: Mapping[str, Any], origin: str = "settings") -> Settings:
    """Validate settings; raise SettingsError with the key and what is wrong with it."""
    # As mappings, so that the environment adds to a name and does not take its place.
    named = {
        name: _named(values[name]) for name in ("judge", "embeddings", "runner") if name in values
    }
    try:
        return Settings(**{**values, **named})
    except ValidationError as error:
        raise SettingsError(f"{origin}: {explain_validation_error(error)}") from None
    except UnreadVariable as error:
        raise SettingsError(f"the environment: {error}") from None
    except RecursionError:
        raise SettingsError(f"{origin}: nested too deeply, or a variable of it is") from None


def judged_by(
    settings: Settings, judge: Judged, model: str | None = None, base_url: str | None = None
) -> Settings:
    """The settings with another judge, or other words about the one there is; a list is a panel."""
    more = {name: value for name, value in (("model", model), ("base_url", base_url)) if value}
    if judge is None and settings.judges:
        if more:
            raise SettingsError(f"{next(iter(more))}: of which judge? the settings name several")
        return settings
    wanted = [judge] if judge is None or isinstance(judge, str | Mapping) else list(judge)
    judges = tuple(_judge_like(settings.judge, one, more) for one in wanted)
    if not judges:
        raise SettingsError("judge: an empty list")
    several = len(judges) > 1
    update = {
        "judge": settings.judge if several else judges[0],
        "judges": judges if several else (),
    }
    return settings.model_copy(update=update)


def _judge_like(
    base: JudgeSettings, judge: str | Mapping[str, Any] | None, more: Mapping[str, str]
) -> JudgeSettings:
    given = judge if isinstance(judge, Mapping) else {"name": judge} if judge else {}
    found = make_judge_settings({**base.model_dump(), **given, **more})
    if more and not found.remote:
        raise SettingsError(
            f"{next(iter(more))}: says nothing to the judge {found.name}: name the judge openai too"
        )
    return found


def bounded(settings: Settings, budget: Mapping[str, Any] | None, fuse: str | None) -> Settings:
    """The settings with another budget, or fused requests; None keeps theirs."""
    update: dict[str, Any] = {}
    if budget is not None:
        update["budget"] = make_budget(budget)
    if fuse is not None:
        if fuse != "row":
            raise SettingsError(f"fuse: no {fuse!r}; there is: row")
        update["fuse"] = fuse
    return settings.model_copy(update=update)


def with_preset(settings: Settings, preset: str | None) -> Settings:
    """The settings with a preset named on the command line or in Python; None keeps theirs."""
    if preset is None:
        return settings
    if preset not in get_args(PresetName):
        raise SettingsError(f"preset: no {preset!r}; there are: {', '.join(get_args(PresetName))}")
    return settings.model_copy(update={"preset": preset})


def _beside(base: Path, location: str) -> str:
    return location if "://" in location or Path(location).is_absolute() else str(base / location)


__all__ = [
    "DEFAULT_METRICS",
    "Aggregate",
    "Judged",
    "ReadLimits",
    "Settings",
    "bounded",
    "judged_by",
    "load_settings",
    "make_settings",
    "with_preset",
]

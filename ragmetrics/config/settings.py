"""The keys of `ragmetrics.yaml`. An unknown key is an error.

Environment variables override the file: `RAGMETRICS_JUDGE__MODEL=...` sets `judge: model:`.
Secrets are read only from environment variables. This module has the root of the settings; its
sections have modules of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError as UnreadVariable,
)

from ragmetrics.config.alerts import AlertSettings
from ragmetrics.config.base import (
    SettingsModel,
    as_mapping,
    explain_settings_error,
    retired_variables,
    without_retired,
)
from ragmetrics.config.endpoints import listed_prices
from ragmetrics.config.judge import JudgeChoice, JudgeSettings
from ragmetrics.config.judging import (
    Budget,
    EmbeddingSettings,
    SampleSettings,
    check_alone,
    check_cascade,
)
from ragmetrics.config.nights import ZoneName, check_template
from ragmetrics.config.retriever import RetrieverSettings
from ragmetrics.config.sections import (
    GateSettings,
    PresetName,
    PushSettings,
    RunnerSettings,
    TopicSettings,
    WriteBackSettings,
    cpu_count,
)
from ragmetrics.errors import SettingsError
from ragmetrics.records import FIELDS, check_trace_url
from ragmetrics.text import Duration

_BRACES = re.compile(r"\{([^{}]*)\}")

DEFAULT_METRICS: tuple[str, ...] = (
    "context_relevance",
    "context_precision",
    "context_relevancy",
    "context_relevancy_chunks",
    "context_recall",
    "response_relevancy",
)

Aggregate = Literal["mean", "median", "min", "max", "majority", "cascade"]
MetricChoice = str | dict[str, dict[str, Any]]


class ReadLimits(SettingsModel):
    """Limits that protect a night from one bad row or file."""

    row_bytes: int = Field(10_000_000, ge=1_000)
    """A larger row is quarantined. A row group of Parquet may use 64 times as much memory."""
    unpacked_bytes: int = Field(10_000_000_000, ge=1_000)
    """Largest unpacked size of one compressed or Parquet file."""


def _switch(value: object) -> object:
    """`true` as the defaults, `false` as nothing."""
    return ({} if value else None) if isinstance(value, bool) else value


class Settings(BaseSettings):
    """Settings of one dataset."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix="RAGMETRICS_", env_nested_delimiter="__"
    )
    retired: ClassVar[Mapping[str, str]] = {
        "fuse": "with `prompt_layout: row_first`, requests begin with the row, which the endpoint "
        "caches; it costs less too, and its verdicts do not influence each other"
    }

    dataset: str = Field("default", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of what is evaluated. It is part of every alert's identity."""
    logs: str = "logs/dt={date}/"
    """Location of a night's logs: a file, a folder or a glob, on disk or in a bucket."""
    time_zone: ZoneName | None = None
    """The time zone of nights, such as `Europe/Berlin`: a night is a day there. None: that of the
    schedule that planned the run, or UTC, and a row is outside the night only if it is so in every
    zone, so that a log of the day before may look like tonight's."""
    split_nights: bool = False
    """True where `logs` is one export of many days: a night has the rows whose time is on its day,
    in `time_zone` or in UTC. Rows without a time are in no night."""
    store: str = "ragmetrics-store"
    """Location of the store: a folder or a bucket."""
    golden: str | None = None
    """The golden set: questions with the ids or texts that should be retrieved."""
    corpus: str | None = None
    """The documents that the index is built from: a list with ids and texts, or a folder of text
    files. It shows which lost passages are not in the source any more."""
    labelled: tuple[str, ...] = ()
    """Labelled sets that the calibrate flow compares the judges with."""
    labels: str | None = None
    """Labels that people gave to rows of nights: a file, a folder or a glob. Each mean is then also
    shown as people would judge it."""
    feedback_labels: dict[str, str] = Field(default_factory=dict)
    """A metric, and the one by which users label it: `{response_relevancy: user_feedback}`."""
    preset: PresetName | None = None
    """The tool that wrote the logs. None: rows in ragmetrics' own layout."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Maps a row field to a dotted path in the log: `user_input: request.body.question`."""
    context_separator: str | None = Field(None, min_length=1)
    """Where a log has the contexts of a row as one text: the text between two of them."""
    language: str = "en"
    """Language of rows without one."""
    metrics: tuple[MetricChoice, ...] = DEFAULT_METRICS
    """Names of metrics, or names with parameters: `{context_precision: {relevant_from: 2}}`."""
    prompts: str | None = None
    """A folder of YAML files that replace or translate prompts."""
    judge: JudgeChoice = JudgeSettings()
    """The judge, by its name or with more settings."""
    judges: tuple[JudgeChoice, ...] = ()
    """A panel, in place of `judge`: every judge scores every row, or with `aggregate: cascade` as
    many rows as it takes."""
    aggregate: Aggregate = "mean"
    """How the values of a panel's judges become the value of the row. `cascade`: a judge answers
    what it is certain of, and the next judge the rest."""
    budget: Budget = Budget()
    """The most that a run may ask of judges that cost money."""
    sample: SampleSettings | None = None
    """How many rows are judged. None: all of them."""
    embeddings: Annotated[EmbeddingSettings, BeforeValidator(as_mapping)] = EmbeddingSettings()
    """The embedder, by its name or with more settings."""
    # A key without a value, as in `alerts:` alone, is as good as no key.
    alerts: Annotated[
        AlertSettings, BeforeValidator(lambda value: {} if value is None else value)
    ] = AlertSettings()
    """When to alert, and where messages go."""
    gate: GateSettings = GateSettings()
    """When an index build is promoted."""
    retriever: RetrieverSettings | None = None
    """The retriever that gets the golden questions for an index build without a log."""
    runner: Annotated[RunnerSettings, BeforeValidator(as_mapping)] = RunnerSettings()
    """Where the tasks of the flows run, by its name or with more settings."""
    redact: bool = False
    """Keep logged texts out of the dashboard and of messages: they show only hashes and scores."""
    topics: Annotated[TopicSettings | None, BeforeValidator(_switch)] = None
    """Groups of questions, which become the tag `topic`. `true`: by the defaults. None: off."""
    segments: tuple[str, ...] | None = None
    """Tags to show scores by. None: of the 50 most frequent tags those with 2 to 20 values."""
    limits: ReadLimits = ReadLimits()
    """Limits that protect a night from one bad row or file."""
    shards: int | None = Field(None, ge=1, le=1_000)
    """Number of shards. None: it follows from the size of the logs."""
    deadline: Duration = timedelta(hours=20)
    """Time from the start of a run after which no judge, embedder or retriever gets a request, such
    as `90m` or `1h30m`. The run then publishes the scores that it has."""
    workers: int | None = Field(None, ge=1, le=256)
    """Number of worker processes for a judge that computes on this machine. None: one per core."""
    dashboard_url: str | None = None
    """Address at which people open the dashboard, for links. None: its path in the store."""
    trace_url: Annotated[str, AfterValidator(check_trace_url)] | None = None
    """Address of a row's trace in a tracing tool, for links: its placeholders are `{id}`,
    `{trace_id}`, `{span_id}` and `{tags.NAME}`."""
    metrics_push: PushSettings | None = None
    """A Pushgateway that gets the metrics of the newest night."""
    pages: tuple[str, ...] = ()
    """Pages of other packages that the dashboard has, by name."""
    write_back: WriteBackSettings | None = None
    """Tracing tools that get the scores of each night. None: scores are not sent anywhere."""
    storage_options: dict[str, Any] = Field(default_factory=dict)
    """Passed to fsspec, for buckets that the AWS environment variables do not describe. Only
    `patience_seconds` (60) is ours: how long to wait for a bucket that fails."""

    @model_validator(mode="before")
    @classmethod
    def _without_retired(cls, values: object) -> object:
        return without_retired(values, cls.retired)

    @field_validator("logs")
    @classmethod
    def _dated(cls, logs: str) -> str:
        for name in _BRACES.findall(logs):
            if name != "date" and not name.startswith("date:"):
                raise ValueError(f"{{{name}}}: the only placeholder is {{date}} or {{date:%Y/%m}}")
        check_template(logs)
        return logs

    @field_validator("columns")
    @classmethod
    def _columns(cls, columns: dict[str, str]) -> dict[str, str]:
        for name in columns:
            if name not in FIELDS and not name.startswith("tags."):
                raise ValueError(f"{name}: not a row field; the fields are: {', '.join(FIELDS)}")
        return columns

    @model_validator(mode="after")
    def _one_or_several(self) -> Settings:
        if self.judges and "judge" in self.model_fields_set:
            raise ValueError("set either judge or judges")
        check_alone(self.judges)
        return self

    @model_validator(mode="after")
    def _cascade(self) -> Settings:
        if self.aggregate == "cascade":
            check_cascade(self.judges)
            if self.sample and self.sample.learns:
                raise ValueError(
                    "sample: cheap: learned: a cascade has verdicts of several judges, and its "
                    "last one only those on doubtful requests; use `lexical`"
                )
            if self.alerts.drift_set:
                raise ValueError(
                    "alerts: drift_set: a cascade has no level on a labelled set; name the set "
                    "under `labelled`, which calibrates its judges one by one"
                )
        return self

    @property
    def panel(self) -> tuple[JudgeSettings, ...]:
        """All judges: the panel, or the one judge and the one under its `also`."""
        if self.judges or self.judge.also is None:
            return self.judges or (self.judge,)
        return self.judge.model_copy(update={"also": None}), self.judge.also

    def with_panel(self, panel: Sequence[JudgeSettings]) -> Settings:
        """The settings with other judges, in the order of `panel`."""
        if self.judges:
            return self.model_copy(update={"judges": tuple(panel)})
        judge, *also = panel
        if also:
            judge = judge.model_copy(update={"also": also[0]})
        return self.model_copy(update={"judge": judge})

    @property
    def joined(self) -> Aggregate | Literal["also"]:
        """How the judges score a row together; `also`: each metric by the first that can."""
        return "also" if self.judge.also and not self.judges else self.aggregate

    @property
    def replaced(self) -> Settings | None:
        """The settings with the judges that those of today replace; None where none does."""
        if not any(judge.replaces for judge in self.panel):
            return None
        if not self.judges:
            return self.model_copy(update={"judge": self.judge.old})
        return self.with_panel([judge.replaces or judge for judge in self.judges])

    @property
    def final_judges(self) -> tuple[JudgeSettings, ...]:
        """The judges whose verdicts are final: the last one of a cascade, else all."""
        return self.panel[-1:] if self.aggregate == "cascade" else self.panel

    @property
    def embedder(self) -> EmbeddingSettings:
        """The embedder that is named or follows the judges; at OpenAI with its listed price."""
        follows = {judge.kind.embedder for judge in self.panel}
        default = next((name for name in ("openai", "local") if name in follows), "hashed")
        chosen = self.embeddings.model_copy(update={"name": self.embeddings.name or default})
        if chosen.usd_per_million_tokens is not None or not chosen.remote:
            return chosen
        followed = next((one for one in self.panel if one.kind.embedder == chosen.name), self.judge)
        address = chosen.base_url or followed.base_url
        price = listed_prices(chosen.model or chosen.openai_model, address).prompt
        return chosen.model_copy(update={"usd_per_million_tokens": price})

    @property
    def processes(self) -> int:
        """Number of worker processes for a judge that computes on this machine."""
        return self.workers or cpu_count()

    @property
    def asks_by_row(self) -> bool:
        """True when requests of a row share a beginning or are one: one task scores all metrics."""
        return any(one.begins_with_row or one.decides for one in self.panel)

    @property
    def decides(self) -> bool:
        """True when all judges answer with probabilities, one under `also` aside."""
        return all(one.decides for one in self.judges or (self.judge,))

    @property
    def redacts_messages(self) -> bool:
        """True when messages must not contain questions."""
        return self.redact or self.alerts.redact

    @property
    def reads_corpus(self) -> bool:
        """True when a judge or the embedder weighs words by their frequency in the whole night."""
        free = not all(one.remote for one in self.panel)
        return self.embeddings.hashed or free or self.samples

    @property
    def is_paid(self) -> bool:
        """True when a judge or the embedder is paid, so that replies are worth caching."""
        return self.embedder.remote or any(one.remote for one in self.panel)

    @property
    def samples(self) -> bool:
        """True when a sample of the rows is judged; judges that cost nothing score all rows."""
        return self.sample is not None and not all(one.kind.free for one in self.panel)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        *_: Any,
        **others: Any,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment variables override the file, whose values are passed as arguments."""
        return env_settings, init_settings


def make_settings(values: Mapping[str, Any], origin: str = "settings") -> Settings:
    """Validate settings. Raises SettingsError, which names the key and the problem."""
    # As mappings: an environment variable then adds to the name and does not replace it.
    sections = values.keys() & {"judge", "embeddings", "runner"}
    named = {name: as_mapping(values[name]) for name in sections}
    removed = retired_variables(Settings.retired, os.environ)
    try:
        return Settings(**{**removed, **values, **named})
    except ValidationError as error:
        raise SettingsError(f"{origin}: {explain_settings_error(error, Settings)}") from None
    except UnreadVariable as error:
        raise SettingsError(f"environment variable: {error}") from None
    except RecursionError:
        raise SettingsError(f"{origin}, or an environment variable, is nested too deeply") from None

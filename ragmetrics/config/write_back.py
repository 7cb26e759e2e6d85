"""The key `write_back`: tracing tools that get the scores of each night."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ragmetrics.config.endpoints import VARIABLE, EnvironmentHeaders, check_address
from ragmetrics.config.judge import SettingsModel

WriteBackStatus = Literal["scored", "skipped", "failed"]


def _variable(name: str) -> str:
    if not VARIABLE.fullmatch(name):
        raise ValueError("should be the name of an environment variable, such as PHOENIX_API_KEY")
    return name


def _address(example: str) -> AfterValidator:
    def check(url: str) -> str:
        check_address(url, example, "the key into an environment variable, and name that here")
        return url.rstrip("/")

    return AfterValidator(check)


Variable = Annotated[str, AfterValidator(_variable)]


class LangfuseSettings(SettingsModel):
    """A project of Langfuse. Its keys are read from environment variables."""

    base_url: Annotated[str, _address("https://cloud.langfuse.com")] = "https://cloud.langfuse.com"
    """The address without a path."""
    public_key_env: Variable = "LANGFUSE_PUBLIC_KEY"
    """The environment variable with the public key."""
    secret_key_env: Variable = "LANGFUSE_SECRET_KEY"  # noqa: S105 - the name of a variable
    """The environment variable with the secret key."""
    api: Literal["scores", "ingestion"] = "scores"
    """`scores`: lists of scores to `/api/public/scores`. `ingestion`: for servers before Langfuse
    4, which take lists only at `/api/public/ingestion`."""


class PhoenixSettings(SettingsModel):
    """A server of Arize Phoenix."""

    base_url: Annotated[str, _address("http://phoenix.example.com:6006")]
    """The address without a path."""
    api_key_env: Variable | None = None
    """The environment variable with the key. None: the server needs none."""
    kind: Literal["span", "document"] = "span"
    """`span`: a score annotates the span of the retrieval. `document`: the verdicts on each context
    annotate its document too."""


class OtlpSettings(SettingsModel):
    """A receiver of OpenTelemetry logs by OTLP over HTTP."""

    endpoint: Annotated[str, _address("http://collector.example.com:4318")]
    """The address without the path `/v1/logs`."""
    headers_env: EnvironmentHeaders = Field(default_factory=dict)
    """Maps a header to the environment variable that holds its value, or to a text with variables
    in braces, such as `Bearer {OTLP_TOKEN}`."""


class WriteBackSettings(SettingsModel):
    """Which scores are sent to which tracing tools, and how long a night tries."""

    langfuse: LangfuseSettings | None = None
    """A project of Langfuse."""
    phoenix: PhoenixSettings | None = None
    """A server of Arize Phoenix."""
    otlp: OtlpSettings | None = None
    """A receiver of OpenTelemetry logs."""
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

    @model_validator(mode="after")
    def _has_target(self) -> WriteBackSettings:
        if not (self.langfuse or self.phoenix or self.otlp):
            raise ValueError("needs at least one of langfuse, phoenix and otlp")
        if not self.statuses:
            raise ValueError("statuses: needs at least one of scored, skipped and failed")
        return self

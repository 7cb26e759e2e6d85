"""Settings of who judges: judges, what they may cost, and where embeddings come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from ragmetrics.errors import SettingsError
from ragmetrics.model import explain_validation_error

_JUDGES = ("embedded", "local", "openai", "openai-batch")


def usable_url(url: str) -> str:
    """An endpoint's URL; ValueError for one that no request can be sent to."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or " " in url or parts.port == 0:
        raise ValueError(f"should be like https://llm.example.com/v1, and is {url!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:  # secrets, as often as not
        raise ValueError(
            "should end with its path and hold no user, password or query; the key goes into the "
            "environment (`api_key_env`)"
        )
    return url


class SettingsModel(BaseModel):
    """Base of the settings' parts."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class JudgeSettings(SettingsModel):
    """Who gives the verdicts: `judge: embedded`, or a mapping with more to say."""

    name: str = "embedded"
    """`embedded`, `local`, `local:MODEL`, `openai`, `openai-batch` or `recorded:PATH`."""
    model: str = "gpt-4.1-mini"
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    temperature: float = Field(0.1, ge=0, le=2)
    max_tokens: int = Field(1_000, ge=16)
    concurrency: int = Field(128, ge=1, le=1_000)
    """Most requests in flight; how many the endpoint bears is found out below it."""
    requests_per_minute: int | None = Field(None, ge=1)
    tokens_per_minute: int | None = Field(None, ge=1)
    timeout_seconds: float = Field(60, gt=0)
    """Longest wait for one attempt."""
    deadline_seconds: float = Field(600, gt=0)
    """Longest wait for a request with all its attempts."""
    retries: int = Field(6, ge=0, le=20)
    """Attempts after the first for a transient error of the endpoint. A 429 is no error but a
    request to wait: it is asked again until the deadline."""
    reasks: int = Field(4, ge=0, le=10)
    """Times that a request is asked again after an unreadable reply."""
    max_reply_bytes: int = Field(10_000_000, ge=10_000, le=1_000_000_000)
    """Largest answer of the endpoint, unpacked: to one request, or to one for several vectors. A
    larger one is not read to its end."""
    ttl_days: int | None = Field(None, ge=1)
    """Kept replies that are older are asked for anew; None: they are good for ever."""
    poll_seconds: float = Field(60, gt=0)
    """Of `openai-batch`: between looks at a batch."""
    wait_seconds: float | None = Field(None, gt=0)
    """Of `openai-batch`: longest that a run waits for its batches before it ends and leaves them
    to a later run; None: as long as they take, but 60 s in a nightly that a deployment runs."""
    repeats: int = Field(1, ge=1, le=100)
    """Times that each row is judged; its value is the mean, its spread is kept."""
    usd_per_million_prompt_tokens: float | None = Field(None, ge=0)
    usd_per_million_cached_tokens: float | None = Field(None, ge=0)
    """Of prompt tokens that the endpoint had in its cache; None: like any other."""
    usd_per_million_completion_tokens: float | None = Field(None, ge=0)

    @property
    def remote(self) -> bool:
        """Whether it is reached over a network, and paid for."""
        return self.name in ("openai", "openai-batch")

    def usd(
        self, prompt_tokens: float, completion_tokens: float, cached: float = 0
    ) -> float | None:
        """What tokens cost, `cached` of the prompt's at their own price; None: no price is set."""
        prompt, completion = (
            self.usd_per_million_prompt_tokens,
            self.usd_per_million_completion_tokens,
        )
        if prompt is None or completion is None:
            return None
        of_cached = self.usd_per_million_cached_tokens
        of_cached = prompt if of_cached is None else of_cached
        paid = (prompt_tokens - cached) * prompt + cached * of_cached
        return (paid + completion_tokens * completion) / 1e6

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name in _JUDGES or name.startswith(("local:", "recorded:")):
            return name
        raise ValueError(f"should be {', '.join(_JUDGES)}, local:MODEL or recorded:PATH")

    @field_validator("base_url")
    @classmethod
    def _usable(cls, base_url: str | None) -> str | None:
        return usable_url(base_url) if base_url else None


class EmbeddingSettings(SettingsModel):
    """Where embeddings come from: `hashed` or `local` (no network), or OpenAI-compatible."""

    name: Literal["hashed", "local", "openai"] | None = None
    """None: what goes with the judge; `hashed` but for `openai` and `local`."""
    model: str | None = None
    """None: `text-embedding-3-small` of `openai`, `all-MiniLM-L6-v2` of `local`."""
    threads: int = Field(1, ge=1, le=1_000)
    """Of one run of `local`; shards run side by side already."""
    usd_per_million_tokens: float | None = Field(None, ge=0)
    base_url: str | None = None
    """None: the judge's."""
    api_key_env: str | None = None
    """None: the judge's."""

    def usd(self, tokens: float) -> float | None:
        """What tokens cost; None: no price is set."""
        price = self.usd_per_million_tokens
        return None if price is None else tokens * price / 1e6

    @field_validator("base_url")
    @classmethod
    def _usable(cls, base_url: str | None) -> str | None:
        return usable_url(base_url) if base_url else None


class Budget(SettingsModel):
    """What the judges may cost in a night; where it binds, a sample of the questions is judged."""

    max_requests: int | None = Field(None, ge=0)
    max_tokens: int | None = Field(None, ge=0)
    max_usd: float | None = Field(None, ge=0, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, value: object) -> object:
        if value is None or value == "":  # `budget:` with nothing after it
            return {}
        if not isinstance(value, Mapping | cls):
            raise ValueError("should be a mapping such as {max_requests: 1000}")
        return value

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("should be a number")
        return value

    @property
    def binds(self) -> bool:
        """Whether it says anything."""
        return any(limit is not None for _, limit in self)


def make_budget(values: Mapping[str, Any]) -> Budget:
    """Validate a budget given in Python; the environment has no say."""
    try:
        return Budget.model_validate(values)
    except ValidationError as error:
        raise SettingsError(f"budget: {explain_validation_error(error)}") from None


def make_judge_settings(values: Mapping[str, Any]) -> JudgeSettings:
    """Validate a judge named on the command line or in Python; the environment has no say."""
    try:
        return JudgeSettings(**values)
    except ValidationError as error:
        raise SettingsError(f"judge: {explain_validation_error(error)}") from None


def api_key(name: str, environment: Mapping[str, str]) -> SecretStr | None:
    """The secret in an environment variable, if it is set and not blank."""
    value = environment.get(name, "").strip()
    return SecretStr(value) if value else None

"""Settings of a Pushgateway, to which the newest night's metrics are pushed."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from ragmetrics.config.headers import check_named
from ragmetrics.config.judge import SettingsModel


class PushSettings(SettingsModel):
    """A Pushgateway of Prometheus, or what takes pushes as it does."""

    url: str
    """Without the path `/metrics/job/...`."""
    format: Literal["text", "openmetrics"] = "text"
    """Prometheus's text format, which is all that a Pushgateway reads, or OpenMetrics 1.0."""
    job: str = Field("ragmetrics", min_length=1, max_length=100)
    """Beside `dataset`, under which the Pushgateway keeps the metrics."""
    headers_env: dict[str, str] = Field(default_factory=dict)
    """Header -> the environment variable that holds it, or a text with variables in braces, such
    as `Bearer {PUSH_TOKEN}`."""
    timeout_seconds: float = Field(10, gt=0, le=300)
    """Longest wait for one attempt, of three."""

    @field_validator("url")
    @classmethod
    def _usable(cls, url: str) -> str:
        if set(url) & set("@?#"):  # secrets, as often as not: they are not repeated
            raise ValueError(
                "should end with its path and hold no user, password or query: what is secret "
                "goes into `headers_env`"
            )
        try:
            parts = urlsplit(url)
            good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            good = False
        if not good or not url.isprintable() or " " in url:
            raise ValueError(f"should be like https://push.example.com, and is {url!r}")
        return url

    @field_validator("headers_env")
    @classmethod
    def _named(cls, headers: dict[str, str]) -> dict[str, str]:
        return check_named(headers)

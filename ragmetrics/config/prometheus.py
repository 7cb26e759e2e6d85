"""Settings of a Pushgateway, to which the newest night's metrics are pushed."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from ragmetrics.config.headers import check_named
from ragmetrics.config.judge import SettingsModel


class PushSettings(SettingsModel):
    """A Pushgateway of Prometheus, or a service with the same push API."""

    url: str
    """The address without the path `/metrics/job/...`."""
    format: Literal["text", "openmetrics"] = "text"
    """Prometheus's text format, or OpenMetrics 1.0. A Pushgateway reads only the text format."""
    job: str = Field("ragmetrics", min_length=1, max_length=100)
    """The Pushgateway stores the metrics under this job and `dataset`."""
    headers_env: dict[str, str] = Field(default_factory=dict)
    """Maps a header to the environment variable that holds its value, or to a text with variables
    in braces, such as `Bearer {PUSH_TOKEN}`."""
    timeout_seconds: float = Field(10, gt=0, le=300)
    """Timeout of one attempt. There are three attempts."""

    @field_validator("url")
    @classmethod
    def _usable(cls, url: str) -> str:
        if set(url) & set("@?#"):  # the message does not repeat them: they may be secrets
            raise ValueError(
                "should end with the path and contain no user, password or query: put secrets "
                "into `headers_env`"
            )
        try:
            parts = urlsplit(url)
            good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            good = False
        if not good or not url.isprintable() or " " in url:
            raise ValueError(f"should look like https://push.example.com, but is {url!r}")
        return url

    @field_validator("headers_env")
    @classmethod
    def _named(cls, headers: dict[str, str]) -> dict[str, str]:
        return check_named(headers)

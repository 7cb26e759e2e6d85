"""The key `metrics_push`: a Pushgateway for the metrics of the newest night."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from ragmetrics.config.endpoints import EnvironmentHeaders, check_address
from ragmetrics.config.judge import SettingsModel


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

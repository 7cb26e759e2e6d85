"""Settings of the notification channels other than Slack's webhook."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ragmetrics.config.judge import SettingsModel


class ChannelSettings(SettingsModel):
    """One service that Apprise supports. Its address is a secret, so the settings name only the
    environment variable that holds it."""

    url_env: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    """The environment variable that holds the address, such as mailtos://... or msteams://..."""
    severity: Literal["critical", "warning"] = "warning"
    """The lowest severity that is sent there."""

"""Settings of the channels beside Slack's webhook that alerts are told on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ragmetrics.config.judge import SettingsModel


class ChannelSettings(SettingsModel):
    """One service that Apprise knows. Its address is a secret: only the variable is named here."""

    url_env: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    """The environment variable that holds the address, as in mailtos://..., msteams://..."""
    severity: Literal["critical", "warning"] = "warning"
    """The least that is told there."""

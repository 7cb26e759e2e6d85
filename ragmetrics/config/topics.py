"""Settings of topics: groups of questions for logs without tags."""

from __future__ import annotations

from pydantic import Field

from ragmetrics.config.judge import SettingsModel


class TopicSettings(SettingsModel):
    """How questions are grouped into topics."""

    count: int | None = Field(None, ge=2, le=20)
    """Number of topics. None: the number that separates the questions best, 4 to 20."""
    refit_days: int = Field(28, ge=1, le=366)
    """Days after which topics are fitted again. Topics that stay keep their names."""

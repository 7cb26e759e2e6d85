"""Settings of the gate: when an index build is promoted, and when it is held."""

from __future__ import annotations

from collections import Counter

from pydantic import Field, field_validator

from ragmetrics.config.judge import SettingsModel

BUILD = "{build}"
"""In `gate: logs:`, where the name of a build goes."""


class GateRule(SettingsModel):
    """The most that a metric may fall from the serving build to the new one."""

    metric: str
    max_drop: float = Field(0.05, gt=0, allow_inf_nan=False)


class GateSettings(SettingsModel):
    """How index builds are held against the one that serves."""

    logs: str = "builds/{build}/"
    """Where the log of a build is, unless its event says so."""
    rules: tuple[GateRule, ...] | None = None
    """None: 0.05 in context_relevance and in context_recall, each where it can be scored."""
    min_questions: int = Field(30, ge=2)
    """Questions on both sides below which a gate is inconclusive."""
    max_missing: float = Field(0.02, ge=0, le=1)
    """Share of the serving build's questions without a usable row of the new build, and of rows of
    either log or of the golden set that cannot be read, above which it is not promoted."""

    @field_validator("logs")
    @classmethod
    def _one_log_per_build(cls, logs: str) -> str:
        if BUILD not in logs:
            raise ValueError("should hold {build}: each build has a log of its own")
        return logs

    @field_validator("rules")
    @classmethod
    def _one_rule_per_metric(
        cls, rules: tuple[GateRule, ...] | None
    ) -> tuple[GateRule, ...] | None:
        if rules == ():
            raise ValueError("should name a metric, or be left out for the default rules")
        twice = [name for name, n in Counter(one.metric for one in rules or ()).items() if n > 1]
        if twice:
            raise ValueError(f"{twice[0]} has more than one rule")
        return rules

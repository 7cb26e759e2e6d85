"""Settings of the gate: when an index build is promoted, and when it is held back."""

from __future__ import annotations

from pydantic import Field, field_validator

from ragmetrics.config.alerts import LEAST_ROWS
from ragmetrics.config.base import SettingsModel, repeated

_BUILD = "{build}"
"""Placeholder for the name of a build in `gate: logs:`."""


class GateRule(SettingsModel):
    """The largest drop of a metric that is allowed from the serving build to the new one."""

    metric: str
    """One of `metrics`, in which higher is better."""
    max_drop: float = Field(0.05, gt=0, allow_inf_nan=False)
    """The largest drop of its mean that is allowed."""


class GateSettings(SettingsModel):
    """How a new index build is compared with the serving one."""

    logs: str = "builds/{build}/"
    """Location of the log of a build. An event may name another one below the same folder, which is
    what stands before `{build}`."""
    rules: tuple[GateRule, ...] | None = None
    """None: a drop of 0.05 in context_relevance and in context_recall. A metric that cannot be
    scored has no rule."""
    min_questions: int = Field(LEAST_ROWS, ge=2)
    """With fewer questions on both sides no metric decides: the gate is inconclusive, unless
    passages are gone from the index. As many as `min_rows` of an alert."""
    max_missing: float = Field(0.02, ge=0, le=1)
    """A build is not promoted when a larger share of the serving build's questions has no usable
    row of the new build, or when a larger share of the rows of either log or of the golden set
    cannot be read."""

    @property
    def folder(self) -> str:
        """The folder of all builds' logs: `logs` up to the step that names the build."""
        head = self.logs.partition(_BUILD)[0]
        return head[: head.rfind("/") + 1] or "./"

    def place_of(self, build: str, logs: str | None = None) -> str:
        """The location of the log of a build: `logs`, or else that of the settings, with its name
        filled in."""
        return (logs or self.logs).replace(_BUILD, build)

    @field_validator("logs")
    @classmethod
    def _one_log_per_build(cls, logs: str) -> str:
        if _BUILD not in logs:
            raise ValueError("should contain {build}: each build has its own log")
        return logs

    @field_validator("rules")
    @classmethod
    def _one_rule_per_metric(
        cls, rules: tuple[GateRule, ...] | None
    ) -> tuple[GateRule, ...] | None:
        if rules == ():
            raise ValueError("should name a metric; leave it out to get the default rules")
        if twice := repeated(rule.metric for rule in rules or ()):
            raise ValueError(f"{twice} has more than one rule")
        return rules

"""Settings of the gate: when an index build is promoted, and when it is held."""

from __future__ import annotations

from pydantic import Field

from ragmetrics.judge_settings import Part


class GateRule(Part):
    """The most that a metric may fall from the serving build to the new one."""

    metric: str
    max_drop: float = Field(0.05, gt=0)


class GateSettings(Part):
    """How index builds are held against the one that serves."""

    logs: str = "builds/{build}/"
    """Where the log of a build is, unless its event says so."""
    rules: tuple[GateRule, ...] | None = None
    """None: 0.05 in context_relevance and in context_recall, each where it can be scored."""
    min_questions: int = Field(30, ge=2)
    """Questions on both sides below which a gate is inconclusive."""
    max_missing: float = Field(0.02, ge=0, le=1)
    """Share of the serving build's questions without a usable row of the new build above which it
    is not promoted."""

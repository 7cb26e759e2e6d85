"""Settings of what is worth a message, and where it goes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from ragmetrics.judge_settings import Part


class Rule(Part):
    """When to alert: `min` on the mean, `max_drop` against earlier nights, or both."""

    metric: str
    min: float | None = Field(None, allow_inf_nan=False)
    max_drop: float | None = Field(None, ge=0, allow_inf_nan=False)
    versus: str = "previous"
    """`previous`, or `trailing:N` for the mean of the N nights before."""
    by: str | None = None
    """A tag: the rule is held against each of its values."""
    min_rows: int = Field(20, ge=1)
    """Scored rows below which the rule says no_data."""
    for_: int = Field(2, ge=1, alias="for")
    """Nights in a row on which a `min` suspect fires, and of whose rows a `max_drop` suspect is
    given the sum, to become a breach."""
    clear: float | None = Field(None, allow_inf_nan=False)
    """A firing `min` rule resolves at this mean, a `max_drop` rule at this drop."""
    severity: Literal["critical", "warning"] = "critical"

    @field_validator("versus")
    @classmethod
    def _versus(cls, versus: str) -> str:
        kind, _, nights = versus.partition(":")
        if versus == "previous" or (kind == "trailing" and nights.isdecimal() and int(nights) > 0):
            return versus
        raise ValueError("should be previous or trailing:N")

    @model_validator(mode="after")
    def _has_limit(self) -> Rule:
        if self.min is None and self.max_drop is None:
            raise ValueError("a rule needs min or max_drop")
        return self


class AlertSettings(Part):
    """What is worth a message, and where it goes."""

    rules: tuple[Rule, ...] | None = None
    """None: a drop of more than 0.05 in context_relevance and in context_recall against the
    seven nights before, each where the logs allow it to be scored."""
    max_quarantined: float = Field(0.05, ge=0, le=1)
    """Share of rows in quarantine above which an alert fires."""
    max_judge_failures: float = Field(0.05, ge=0, le=1)
    """Share of unreadable and failed rows of a metric above which an alert fires."""
    false_alarms: float = Field(0.01, gt=0, lt=1)
    """Share of nights on which nothing changed that may fire a drop rule all the same."""
    remind_days: int = Field(7, ge=1)
    redact: bool = False
    """Keep questions out of messages."""
    slack_webhook_env: str = "SLACK_WEBHOOK_URL"

"""Settings of what is worth a message, and where it goes."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from ragmetrics.config.channels import ChannelSettings
from ragmetrics.config.judge import SettingsModel

STEP = 0.05
"""`worse_by` of rules that say neither it nor a `max_drop` above 0."""


class Rule(SettingsModel):
    """When to alert: `min` on the mean, `max_drop` against earlier nights, or both."""

    metric: str
    min: float | None = Field(None, allow_inf_nan=False)
    max_drop: float | None = Field(None, ge=0, allow_inf_nan=False)
    versus: str = "previous"
    """`previous`; `trailing:N` for the N nights before; `pinned:RUN` for one run of the store;
    `serving` for the nights of the index build that serves."""
    by: str | None = Field(None, min_length=1)
    """A tag: the rule is held against each of its values."""
    min_rows: int = Field(20, ge=1)
    """Scored rows below which the rule says no_data."""
    for_: int = Field(2, ge=1, alias="for")
    """Nights in a row on which a `min` suspect fires, and of whose rows a `max_drop` suspect is
    given the sum, to become a breach."""
    clear: float | None = Field(None, allow_inf_nan=False)
    """A firing `min` rule resolves at this mean, a `max_drop` rule at this drop."""
    worse_by: float | None = Field(None, gt=0, allow_inf_nan=False)
    """How far a firing alert falls below the mean of its last message to be told at once; None:
    as far as `max_drop`, or 0.05."""
    severity: Literal["critical", "warning"] = "critical"

    @field_validator("versus")
    @classmethod
    def _versus(cls, versus: str) -> str:
        kind, _, which = versus.partition(":")
        known = versus in ("previous", "serving")
        nights = kind == "trailing" and which.isdecimal() and int(which) > 0
        if known or nights or (kind == "pinned" and re.fullmatch(r"[\w.-]{1,100}", which)):
            return versus
        raise ValueError("should be previous, trailing:N, pinned:RUN or serving")

    @model_validator(mode="after")
    def _has_limit(self) -> Rule:
        if self.min is None and self.max_drop is None:
            raise ValueError("a rule needs min or max_drop")
        return self

    @model_validator(mode="after")
    def _can_clear(self) -> Rule:
        if self.clear is None:
            return self
        above = self.min is not None and self.clear >= self.min
        within = self.max_drop is not None and self.clear <= self.max_drop
        if not (above or within):
            raise ValueError("clear should be at min or above it, or at max_drop or below it")
        return self

    @property
    def step(self) -> float:
        """The further drop from which a firing alert escalates."""
        return self.worse_by or self.max_drop or STEP

    @property
    def limits(self) -> list[str]:
        """Its limits, as the keys of its alerts name them."""
        least = [] if self.min is None else [least_name(self.min)]
        return least if self.max_drop is None else [*least, drop_name(self.max_drop, self.versus)]


def least_name(least: float) -> str:
    """`min 0.7`."""
    return f"min {least:g}"


def drop_name(max_drop: float, versus: str) -> str:
    """`max_drop 0.05 versus trailing:7`."""
    return f"max_drop {max_drop:g} versus {versus}"


class AlertSettings(SettingsModel):
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
    mix_tags: tuple[str, ...] | None = None
    """The tags by which nights with other questions are compared like with like. None: those that
    explain the scores of the nights before; none at all: nights are compared as they are."""
    drift_set: str | None = None
    """A labelled set that the nightly judges afresh, to know a move of its judge from one of
    retrieval."""
    drift_rows: int = Field(50, ge=20)
    """Rows of it that are judged."""
    max_stale: float = Field(0.1, ge=0, le=1)
    """How far the share of golden ids that no row retrieves any more may be above the usual,"""
    max_unseen: float = Field(0.3, ge=0, le=1)
    """and that of retrieved ids that no night before retrieved."""
    remind_days: int = Field(7, ge=1)
    redact: bool = False
    """Keep questions out of messages."""
    slack_webhook_env: str = "SLACK_WEBHOOK_URL"
    slack_channel: str | None = Field(None, min_length=1, max_length=100)
    """Where a bot posts, in threads, in place of the webhook: where its token is set."""
    slack_token_env: str = "SLACK_BOT_TOKEN"  # noqa: S105 - the name of a variable
    channels: tuple[ChannelSettings, ...] = ()
    """More services that are told."""

    @field_validator("rules")
    @classmethod
    def _apart(cls, rules: tuple[Rule, ...] | None) -> tuple[Rule, ...] | None:
        """An alert is known by these: two of the same would count each night twice."""
        seen = set()
        for rule in rules or ():
            for limit in rule.limits:
                known = rule.metric, rule.by, limit
                if known in seen:
                    by = f" by {rule.by}" if rule.by else ""
                    raise ValueError(f"{limit} of {rule.metric}{by} stands twice: one rule for it")
                seen.add(known)
        return rules

    @field_validator("channels")
    @classmethod
    def _once(cls, channels: tuple[ChannelSettings, ...]) -> tuple[ChannelSettings, ...]:
        names = [one.url_env for one in channels]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice} stands twice: one entry per address")
        return channels

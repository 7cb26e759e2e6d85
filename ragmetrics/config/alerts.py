"""Settings of alerts: the rules, and the channels that get the messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny, field_validator, model_validator

from ragmetrics.config.base import SettingsModel, not_bool, repeated
from ragmetrics.plugins import Kind, UnusablePlugin

DECLINE_SHARE = 0.25
"""Share of the false alarms for slow declines; the rules have the rest."""
_RATE = re.compile(r"(\d+(?:\.\d+)?) per (week|month|year)")
_NIGHTS = {"week": 7.0, "month": 365.25 / 12, "year": 365.25}

STEP = 0.05
"""Default of `worse_by` for a rule without a `max_drop` above 0."""
LEAST_ROWS = 20
"""Scored rows, of a night or of a gate's questions, below which nothing is decided by default."""


class Rule(SettingsModel):
    """When to alert: `min` on the mean, `max_drop` against earlier nights, or both."""

    metric: str
    """The metric that it watches."""
    min: float | None = Field(None, allow_inf_nan=False)
    """The lowest mean that is allowed, where higher is better."""
    max_drop: float | None = Field(None, ge=0, allow_inf_nan=False)
    """The largest drop of the mean that is allowed: the largest rise where lower is better, and the
    largest change where neither is."""
    max_share: float | None = Field(None, gt=0, lt=1, allow_inf_nan=False)
    """The largest share of the mean that may be lost. It is the limit where the mean is so small
    that `max_drop` is more."""
    versus: str = "trailing:7"
    """`trailing:N` for the N nights before; `previous` for the night before, or where scores go by
    the day of the week, the same day a week before; `pinned:RUN` for one run of the store;
    `serving` for the nights of the index build that serves."""
    by: str | None = Field(None, min_length=1)
    """A tag: the rule is checked for each of its values that has scored rows; a blank value is
    none."""
    min_rows: int = Field(LEAST_ROWS, ge=1)
    """With fewer scored rows the rule reports `no_data`. A value of `by` that had fewer all week is
    `not compared yet`."""
    for_: int = Field(2, ge=1, alias="for")
    """Number of nights in a row. A `min` suspect fires after so many nights. A `max_drop` suspect
    is tested on the rows of so many nights together."""
    clear: float | None = Field(None, allow_inf_nan=False)
    """A firing `min` rule resolves at this mean, a `max_drop` rule at this drop."""
    worse_by: float | None = Field(None, gt=0, allow_inf_nan=False)
    """A firing alert escalates when its mean falls so far below the mean of its last message.
    None: `max_drop`, or 0.05."""
    severity: Literal["critical", "warning"] = "critical"
    """Channels can select messages by it."""

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
        if self.max_share is not None and self.max_drop is None:
            raise ValueError("max_share needs max_drop")
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

    def allowed_drop(self, mean: float | None) -> float:
        """The largest drop that is allowed from a mean; from an unknown one, `max_drop`."""
        most = self.max_drop or 0.0
        if self.max_share is None or mean is None:
            return most
        return min(most, self.max_share * max(mean, 0.0))

    @property
    def step(self) -> float:
        """The further drop from which a firing alert escalates."""
        return self.worse_by or self.max_drop or STEP

    @property
    def limits(self) -> list[str]:
        """The names of its limits, as in the keys of its alerts."""
        least = [] if self.min is None else [f"min {self.min:g}"]
        return least if self.max_drop is None else [*least, drop_name(self.max_drop, self.versus)]

    @property
    def former_limit(self) -> str | None:
        """The name of its drop limit in earlier versions, in which a rule without `versus` was one
        against the previous night; None where the name is the same.
        """
        if self.max_drop is None or "versus" in self.model_fields_set:
            return None
        return drop_name(self.max_drop, "previous")


def _drop_of(rule: Rule) -> tuple[str, str | None, float | None, str]:
    return rule.metric, rule.by, rule.max_drop, rule.versus


def drop_name(max_drop: float, versus: str) -> str:
    """`max_drop 0.05 versus trailing:7`."""
    return f"max_drop {max_drop:g} versus {versus}"


CHANNELS: Kind[Any] = Kind(
    "ragmetrics.channels",
    "ragmetrics.delivery.channel_kinds",
    "ragmetrics.delivery.channel:ChannelKind",
    "channel",
)


class ChannelSettings(SettingsModel):
    """One service that gets messages. Its address is a secret, so the settings name only the
    environment variable that holds it."""

    kind: str = "apprise"
    """`apprise` for any service that Apprise supports, `slack_webhook`, `slack_bot`, which needs a
    `channel`, or a channel of another package, which may have more keys."""
    url_env: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")
    """The environment variable that holds the address, such as mailtos://... or msteams://..."""
    severity: Literal["critical", "warning"] = "warning"
    """The lowest severity that is sent there."""

    @property
    def channel_kind(self) -> Any:
        """The channel that its kind names. Raises UnusablePlugin for one that cannot be loaded."""
        return CHANNELS.find(self.kind)

    @property
    def thread_place(self) -> str:
        """The place whose threads are continued, in services that have threads."""
        return self.url_env


def _of_kind(value: object) -> object:
    """An entry of `channels` as the settings of its kind. One that cannot be loaded has the usual
    keys: it is told where messages are sent, and the night goes on.
    """
    if not isinstance(value, Mapping):
        return value
    kind = value.get("kind", ChannelSettings.model_fields["kind"].default)
    if kind not in CHANNELS.names:
        raise ValueError(f"no channel {kind!r}; there are: {', '.join(CHANNELS.names)}")
    try:
        model: type[ChannelSettings] = CHANNELS.find(kind).settings
    except UnusablePlugin:
        value = {key: value[key] for key in value if key in ChannelSettings.model_fields}
        model = ChannelSettings
    return model.model_validate(value)


class AlertSettings(SettingsModel):
    """When to alert, and where to send the messages."""

    rules: tuple[Rule, ...] | None = None
    """None: a drop of more than 0.05 in context_relevance and context_recall, of more than 0.1 in
    the other default metrics, or of a quarter of the mean where that is less, compared with the
    seven nights before. A metric that the logs do not allow to be scored has no rule."""
    checks: dict[str, Annotated[float | None, BeforeValidator(not_bool)]] = Field(
        default_factory=dict
    )
    """Limits of checks of the night by name: `checks: {quarantine: 0.1}`. It comes before the limit
    that another setting has. A check of another package is loaded only if it is named here; null:
    its default limit."""
    max_quarantined: float = Field(0.05, ge=0, le=1)
    """An alert fires when a larger share of the rows is quarantined."""
    max_judge_failures: float = Field(0.05, ge=0, le=1)
    """An alert fires when a larger share of a metric's rows is unreadable or failed."""
    max_outside: float = Field(0.5, ge=0, le=1)
    """An alert fires when a larger share of the rows has a time outside the night. 1: times say
    nothing of the night, as where a golden set has fixed ones."""
    false_alarms: float | str = 0.01
    """False alarms of nights without a change. A number: the share of nights on which drop rules
    may fire. `1 per year` (month, week): the number of nights on which anything may fire that is
    tested, over all rules and segments."""
    slow_decline: float | None = Field(0.03, gt=0, allow_inf_nan=False)
    """An alert fires when the mean of a metric with a rule fell by more than this over weeks, or by
    more than a quarter. None: not watched."""
    mix_tags: tuple[str, ...] | None = None
    """Tags by which the mix of questions is standardised before nights are compared. None: the
    tags that explain the scores of the nights before. An empty list: nights are not adjusted."""
    drift_set: str | None = None
    """A labelled set that every nightly judges again, to tell judge drift from a change in
    retrieval."""
    drift_rows: int = Field(50, ge=20)
    """Number of its rows that are judged."""
    max_stale: float = Field(0.1, ge=0, le=1)
    """An alert fires when the share of golden ids that no row retrieves any more is so far above
    the usual share."""
    max_unseen: float = Field(0.3, ge=0, le=1)
    """An alert fires when the share of retrieved ids that no earlier night retrieved is so far
    above the usual share."""
    remind_days: int = Field(7, ge=1)
    """Days after which people are reminded of a firing alert."""
    redact: bool = False
    """Keep questions out of messages."""
    slack_webhook_env: str = "SLACK_WEBHOOK_URL"
    """The environment variable with the address of the webhook. Slack is notified where it is set;
    an entry of `channels` always, and it waits for its variable."""
    slack_channel: str | None = Field(None, min_length=1, max_length=100)
    """The channel in which a bot posts, in threads. It replaces the webhook when the bot's token is
    set."""
    slack_token_env: str = "SLACK_BOT_TOKEN"  # noqa: S105 - the name of a variable
    """The environment variable with the bot's token."""
    channels: tuple[Annotated[SerializeAsAny[ChannelSettings], BeforeValidator(_of_kind)], ...] = ()
    """Other services that get the messages."""

    # The keys that have the limit of a check where `checks` does not.
    limit_keys: ClassVar[Mapping[str, str]] = {
        "quarantine": "max_quarantined",
        "judge_failures": "max_judge_failures",
        "stale_log": "max_outside",
        "stale_labels": "max_stale",
        "slow_decline": "slow_decline",
    }

    @field_validator("false_alarms", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        """A number in quotes is a number."""
        is_number = isinstance(value, str) and re.fullmatch(r"\d*\.?\d+", value.strip())
        return float(str(value)) if is_number else value

    @field_validator("false_alarms")
    @classmethod
    def _is_rate(cls, value: float | str) -> float | str:
        if not 0 < _share_of_nights(value) < 1:
            raise ValueError("should be above 0, and below one false alarm a night")
        return value

    def default_channel(self, environment: Mapping[str, str]) -> ChannelSettings:
        """The channel of the keys `slack_...`: the bot where its token is set, else the webhook."""
        if self.slack_channel and environment.get(self.slack_token_env, "").strip():
            bot: Any = CHANNELS.find("slack_bot").settings
            channel: ChannelSettings = bot.model_construct(
                kind="slack_bot", url_env=self.slack_token_env, channel=self.slack_channel
            )
            return channel
        return ChannelSettings.model_construct(kind="slack_webhook", url_env=self.slack_webhook_env)

    def limit(self, check: str, default: float = 0.0) -> Any:
        """The limit of a check, by the settings that have it before its default. None: it is not
        watched."""
        if (chosen := self.checks.get(check)) is not None:
            return chosen
        return getattr(self, self.limit_keys[check]) if check in self.limit_keys else default

    @property
    def per_time(self) -> bool:
        """Whether `false_alarms` is a number for all tests in a time."""
        return isinstance(self.false_alarms, str)

    @property
    def rules_level(self) -> float:
        """Level of the tests of rules in a night, together."""
        share = _share_of_nights(self.false_alarms)
        return (1 - DECLINE_SHARE) * share if self.per_time else share

    @property
    def decline_level(self) -> float:
        """Level of the tests of slow declines in a night, together."""
        return DECLINE_SHARE * _share_of_nights(self.false_alarms)

    @field_validator("rules")
    @classmethod
    def _no_duplicates(cls, rules: tuple[Rule, ...] | None) -> tuple[Rule, ...] | None:
        """Metric, tag and limit identify an alert: two equal ones would count each night twice.

        A drop rule without `versus` beside one that says the default is the same rule: earlier
        versions told them apart.
        """
        if rules is not None:
            explicit = {_drop_of(one) for one in rules if one.former_limit is None}
            rules = tuple(
                rule
                for rule in rules
                if rule.min is not None or not rule.former_limit or _drop_of(rule) not in explicit
            )
        if twice := repeated(
            (limit, rule.metric, rule.by) for rule in rules or () for limit in rule.limits
        ):
            limit, metric, by = twice
            what = f"{limit} of {metric} by {by}" if by else f"{limit} of {metric}"
            raise ValueError(f"duplicate rule: {what}; keep one of them")
        return rules

    @field_validator("channels")
    @classmethod
    def _once(cls, channels: tuple[ChannelSettings, ...]) -> tuple[ChannelSettings, ...]:
        if twice := repeated(one.url_env for one in channels):
            raise ValueError(f"duplicate channel: {twice}; keep one entry per address")
        return channels


def _share_of_nights(rate: float | str) -> float:
    """`1 per year` as a share of nights; a number is one already."""
    if not isinstance(rate, str):
        return rate
    if match := _RATE.fullmatch(rate):
        return float(match[1]) / _NIGHTS[match[2]]
    raise ValueError("should be a number, or a rate such as 1 per year, 2 per month, 1 per week")

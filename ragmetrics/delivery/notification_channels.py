"""Notification channels: where a night's alerts are sent, and which messages each channel gets.

    slack      a webhook: one message a night
               a bot: fired alerts as a message, their updates in that message's thread
    URL_ENV    a service of `channel_kinds/`: one message a night, from a severity on

Each channel has its own messages in the outbox, so a failed channel repeats no others.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from pydantic import SecretStr

from ragmetrics.config import CHANNELS, AlertSettings, ChannelSettings, api_key
from ragmetrics.delivery.channel import ChannelKind
from ragmetrics.delivery.slack_threads import load_threads
from ragmetrics.delivery.timeouts import Unconfirmed, redact_secrets
from ragmetrics.messages import FORMATS, Message, Tone
from ragmetrics.plugins import UnusablePlugin
from ragmetrics.records import Finding, Severity
from ragmetrics.storage import Files
from ragmetrics.text import shorten

SLACK = "slack"
MOST_THREADS = 5
"""Most threads that one night updates; with more, all updates go into one message."""
_BARE = 3_000
"""Most characters of a message without blocks; Slack truncates much longer ones."""
ComposeMessage: TypeAlias = Callable[[Sequence[Finding]], Message | None]
"""Composes the message of some findings; None where they have no transition."""
log = logging.getLogger(__name__)


class Channel(Protocol):
    """A place to send alerts to."""

    @property
    def name(self) -> str:
        """Its name in the outbox."""

    @property
    def missing_variable(self) -> str:
        """The required environment variable that is not set; empty where none is missing."""

    def accepts(self, severity: Severity) -> bool:
        """Whether messages of this severity are sent here."""

    def messages(self, findings: Sequence[Finding], compose: ComposeMessage) -> list[Message]:
        """The messages of a night for this channel."""

    def send(self, message: Message) -> None:
        """Send one message; return only when it is confirmed, raise RagmetricsError otherwise."""

    def verify(self) -> str:
        """Check the access without a message. Returns what was found; raises RagmetricsError."""


@dataclass(frozen=True)
class SlackWebhook:
    """Slack by its webhook."""

    variable: str
    webhook: SecretStr | None
    name: str = SLACK

    @property
    def missing_variable(self) -> str:
        """The webhook's variable, where it is not set."""
        return "" if self.webhook else self.variable

    def accepts(self, severity: Severity) -> bool:
        """All severities."""
        return True

    def messages(self, findings: Sequence[Finding], compose: ComposeMessage) -> list[Message]:
        """One message for all findings."""
        message = compose(findings)
        return [message] if message else []

    def send(self, message: Message) -> None:
        """Post it."""
        from ragmetrics.delivery.webhook import send

        if (webhook := self.webhook) is not None:
            in_any_form(message, lambda one: send(one, webhook))

    def verify(self) -> str:
        """Ask Slack whether it knows the webhook."""
        from ragmetrics.delivery.webhook import verify

        return verify(self.webhook) if self.webhook else f"{self.variable} is not set"


@dataclass(frozen=True)
class SlackBot:
    """Slack by a bot token, in threads."""

    token: SecretStr
    channel: str
    files: Files
    name: str = SLACK
    missing_variable: str = ""

    def accepts(self, severity: Severity) -> bool:
        """All severities."""
        return True

    def messages(self, findings: Sequence[Finding], compose: ComposeMessage) -> list[Message]:
        """One message for fired alerts, then one update for each thread.

        Escalated and resolved alerts are shown in the channel too. Alerts without a known thread in
        this channel are updated together in the channel. With too many threads, all are.
        """
        fired = [one for one in findings if one.transition == "fired"]
        updated = [one for one in findings if one.transition not in (None, "fired")]
        first = compose([_without_transition(one) if one in updated else one for one in findings])
        opening = [_about(first, fired, opens=True)] if first and fired else []
        groups = self._by_thread(updated)
        if len(groups) > MOST_THREADS:
            together = compose(updated)
            return [*opening, replace(_about(together, updated), about=())] if together else opening
        return [*opening, *(_about(one, group) for group in groups if (one := compose(group)))]

    def _by_thread(self, findings: Sequence[Finding]) -> list[list[Finding]]:
        groups: dict[str, list[Finding]] = {}
        threads = load_threads(self.files).by_alert
        for one in findings:
            thread = threads.get(one.key)
            here = thread is not None and thread.channel == self.channel
            groups.setdefault(thread.ts if thread and here else "", []).append(one)
        return [*groups.values()]

    def send(self, message: Message) -> None:
        """Post it in the channel or its thread."""
        from ragmetrics.delivery.slack_bot import Bot

        in_any_form(message, Bot(self.token, self.channel, self.files).send)

    def verify(self) -> str:
        """Ask Slack whose token it is."""
        from ragmetrics.delivery.slack_bot import Bot

        return Bot(self.token, self.channel, self.files).verify()


@dataclass(frozen=True)
class Service:
    """A service of `alerts: channels`, by its kind."""

    settings: ChannelSettings
    address: SecretStr | None

    @property
    def name(self) -> str:
        """The variable that contains its address."""
        return self.settings.url_env

    @property
    def missing_variable(self) -> str:
        """The variable of the address, where it is not set."""
        return "" if self.address else self.name

    def accepts(self, severity: Severity) -> bool:
        """Severities from the configured one on."""
        return severity == "critical" or self.settings.severity == "warning"

    def messages(self, findings: Sequence[Finding], compose: ComposeMessage) -> list[Message]:
        """One message of the findings that are severe enough."""
        severe = [finding for finding in findings if self.accepts(finding.severity)]
        message = compose(severe)
        return [replace(message, tone=tone_of(severe))] if message else []

    def send(self, message: Message) -> None:
        """Send it."""
        if (address := self.address) is not None:
            self._call(lambda kind: kind.send(message, self.settings, address), address)

    def verify(self) -> str:
        """Look at the address."""
        if (address := self.address) is None:
            return f"{self.name} is not set"
        return str(self._call(lambda kind: kind.verify(self.settings, address), address))

    def _call(self, act: Callable[[ChannelKind], Any], address: SecretStr) -> Any:
        """Let the kind act. Whatever goes wrong in it is an error of this channel alone, without
        the address.
        """
        try:
            return act(CHANNELS.find(self.settings.kind))
        except UnusablePlugin as error:
            raise Unconfirmed(f"{self.name}: {error}") from None
        except Unconfirmed:
            raise
        except Exception as error:
            said = redact_secrets(shorten(repr(error)), [address.get_secret_value()])
            raise Unconfirmed(f"{self.name}: channel {self.settings.kind} failed: {said}") from None


def channels(
    settings: AlertSettings, files: Files, environment: Mapping[str, str] = os.environ
) -> list[Channel]:
    """The channels of the settings, Slack first."""
    return [
        slack_channel(settings, files, environment),
        *(Service(chosen, api_key(chosen.url_env, environment)) for chosen in settings.channels),
    ]


def slack_channel(
    settings: AlertSettings, files: Files, environment: Mapping[str, str] = os.environ
) -> Channel:
    """Slack: by its bot where a token and a channel are set, else by its webhook."""
    token = api_key(settings.slack_token_env, environment)
    if settings.slack_channel and token:
        return SlackBot(token, settings.slack_channel, files)
    webhook = api_key(settings.slack_webhook_env, environment)
    return SlackWebhook(settings.slack_webhook_env, webhook)


def tone_of(findings: Sequence[Finding]) -> Tone:
    """The mark of a message: that of its worst finding."""
    bad = [one for one in findings if one.transition not in (None, "resolved")]
    if not bad:
        return "success"
    return "failure" if any(one.severity == "critical" for one in bad) else "warning"


def in_any_form(message: Message, send: Callable[[Message], None]) -> None:
    """Send a message; as plain text where Slack refuses its blocks, as a retry would not help."""
    try:
        send(message)
    except Unconfirmed as error:
        if not (error.of_content and message.blocks):
            raise
        log.warning("sent as text: %s", error)
        words = FORMATS.find("text").render(message.body, _BARE)
        send(replace(message, text=f"{message.text}\n\n{words}", blocks=[]))


def _without_transition(finding: Finding) -> Finding:
    return finding.model_copy(update={"transition": None})


def _about(message: Message, findings: Sequence[Finding], *, opens: bool = False) -> Message:
    return replace(
        message,
        tone=tone_of(findings),
        about=tuple(one.key for one in findings),
        opens=opens,
        broadcast=any(one.transition in ("escalated", "resolved") for one in findings),
    )


__all__ = [
    "SLACK",
    "Channel",
    "ComposeMessage",
    "SlackBot",
    "SlackWebhook",
    "channels",
    "slack_channel",
    "tone_of",
]

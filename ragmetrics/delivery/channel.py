"""Channels: where messages are sent, which messages of a night each gets, and what its kind does.

A channel gets one message a night, of the findings from its severity on. Where its kind has
threads, fired alerts are a message and their updates are in its thread: `alerts/threads.json`. If
two runs write the threads at the same time, one version may be lost, and an update is posted in the
channel instead; no message is lost. Each channel has its own messages in the outbox, so a failed
channel repeats no others.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from pydantic import Field, SecretStr

from ragmetrics.config import AlertSettings, ChannelSettings as ChannelSettings, api_key
from ragmetrics.delivery.outbox import DEFAULT_CHANNEL
from ragmetrics.errors import RagmetricsError, StoreError
from ragmetrics.messages import Message, Tone
from ragmetrics.plugins import UnusablePlugin
from ragmetrics.records import Finding, Record, Severity
from ragmetrics.storage import Files, find_record
from ragmetrics.text import shorten

CHANNEL_TIMEOUT = 90.0
"""Seconds for all messages of one channel in one run."""
MOST_THREADS = 5
"""Most threads that one night updates; with more, all updates go into one message."""
_SHORTEST_PART = 6
"""Shortest part of an address that may be a secret; shorter ones are words such as `hooks`, except
in user and password."""
ComposeMessage: TypeAlias = Callable[[Sequence[Finding]], Message | None]
"""Composes the message of some findings; None where they have no transition."""
Send: TypeAlias = Callable[[Message, Any, SecretStr], None]
Verify: TypeAlias = Callable[[Any, SecretStr], str]
Post: TypeAlias = Callable[[Message, Any, SecretStr, str], str]
THREADS = "alerts/threads.json"
_MOST_STORED = 2_000
"""Most alerts with a stored thread: the newest ones."""
_LONGEST = 100
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChannelKind:
    """How a service is reached, by its settings and the address in the variable `url_env`."""

    name: str
    send: Send
    """Sends a message. Returns only when the service confirmed it; else raises Unconfirmed, which
    is `transient` if a repetition may succeed."""
    verify: Verify
    """Looks at an address without a message, and says what it is. Raises Unconfirmed."""
    sample: str
    """An address that can be used, with `{host}` for a server's host and port."""
    settings: type[ChannelSettings] = ChannelSettings
    """The entry of `alerts: channels`, where it has more keys."""
    title: str = ""
    """The service in errors, as in `Slack message`."""
    post: Post | None = None
    """Like `send`, into a thread; an empty one is none. Returns the thread that the message begins.
    None: the service has no threads."""
    sample_keys: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of an entry that uses the sample."""


@dataclass(frozen=True)
class Channel:
    """A place that gets messages, by its kind."""

    settings: ChannelSettings
    address: SecretStr | None
    files: Files
    is_default: bool = False
    """Whether it is that of the keys `alerts: slack_...`: nobody is told that it is not set."""

    @property
    def name(self) -> str:
        """Its name in the outbox: the variable that contains its address."""
        return DEFAULT_CHANNEL if self.is_default else self.settings.url_env

    @property
    def missing_variable(self) -> str:
        """The variable of the address, where it is not set."""
        return "" if self.address else self.settings.url_env

    @property
    def title(self) -> str:
        """What a message of it is called in errors."""
        kind = self._kind
        return f"{kind.title} message" if kind and kind.title else "message"

    def accepts(self, severity: Severity) -> bool:
        """Severities from the configured one on."""
        return severity == "critical" or self.settings.severity == "warning"

    def messages(self, findings: Sequence[Finding], compose: ComposeMessage) -> list[Message]:
        """The messages of the findings that are severe enough.

        With threads: one message for fired alerts, then one update for each thread. Escalated and
        resolved alerts are shown in the channel too. Alerts without a known thread in this place
        are updated together in the channel. With too many threads, all are.
        """
        severe = [finding for finding in findings if self.accepts(finding.severity)]
        if not (self._kind and self._kind.post):
            message = compose(severe)
            return [replace(message, tone=tone_of(severe))] if message else []
        fired = [finding for finding in severe if finding.transition == "fired"]
        updated = [finding for finding in severe if finding.transition not in (None, "fired")]
        quiet = {"transition": None}
        first = compose([one.model_copy(update=quiet) if one in updated else one for one in severe])
        opening = [_about(first, fired, opens=True)] if first and fired else []
        groups = self._by_thread(updated)
        if len(groups) > MOST_THREADS:
            together = compose(updated)
            return [*opening, replace(_about(together, updated), about=())] if together else opening
        return [*opening, *(_about(one, group) for group in groups if (one := compose(group)))]

    def _by_thread(self, findings: Sequence[Finding]) -> list[list[Finding]]:
        groups: dict[str, list[Finding]] = {}
        threads = load_threads(self.files)
        for finding in findings:
            thread = thread_of(threads, _keys(finding), self.settings.thread_place)
            groups.setdefault(thread, []).append(finding)
        return [*groups.values()]

    def send(self, message: Message, seconds: float = CHANNEL_TIMEOUT) -> None:
        """Send a message; return only when it is confirmed. Raises Unconfirmed."""
        if (address := self.address) is None:
            raise Unconfirmed(f"{self.missing_variable} is not set")
        with_timeout(seconds, partial(self._call, partial(self._send, message, address), address))

    def _send(self, message: Message, address: SecretStr, kind: ChannelKind) -> None:
        if kind.post is None:
            kind.send(message, self.settings, address)
            return
        follows, place = message.about and not message.opens, self.settings.thread_place
        thread = thread_of(load_threads(self.files), message.about, place) if follows else ""
        begun = kind.post(message, self.settings, address, thread)
        if message.opens:  # the service has it already, so an error here causes no retry
            try:
                save_thread(self.files, message.about, place, begun)
            except StoreError as error:
                log.error("the thread is not stored, updates go to the channel: %s", error)

    def verify(self) -> str:
        """Check the access without a message. Returns what was found; raises Unconfirmed."""
        if (address := self.address) is None:
            return f"{self.missing_variable} is not set"
        return str(self._call(lambda kind: kind.verify(self.settings, address), address))

    @property
    def _kind(self) -> ChannelKind | None:
        """The kind; None where it cannot be used, which is told when a message is sent."""
        try:
            kind: ChannelKind = self.settings.channel_kind
        except UnusablePlugin:
            return None
        return kind

    def _call(self, act: Callable[[ChannelKind], Any], address: SecretStr) -> Any:
        """Let the kind act. Whatever goes wrong in it is an error of this channel alone, without
        the address.
        """
        try:
            return act(self.settings.channel_kind)
        except UnusablePlugin as error:
            raise Unconfirmed(f"{self.name}: {error}") from None
        except Unconfirmed:
            raise
        except Exception as error:
            said = redact_secrets(shorten(repr(error)), [address.get_secret_value()])
            raise Unconfirmed(f"{self.name}: channel {self.settings.kind} failed: {said}") from None


def channels(settings: AlertSettings, files: Files) -> list[Channel]:
    """The channels of the settings: first that of the keys `slack_...`."""
    default = settings.default_channel(os.environ)
    return [
        Channel(default, api_key(default.url_env, os.environ), files, is_default=True),
        *(Channel(one, api_key(one.url_env, os.environ), files) for one in settings.channels),
    ]


def tone_of(findings: Sequence[Finding]) -> Tone:
    """The mark of a message: that of its worst finding."""
    bad = [finding for finding in findings if finding.transition not in (None, "resolved")]
    if not bad:
        return "success"
    return "failure" if any(finding.severity == "critical" for finding in bad) else "warning"


def _keys(finding: Finding) -> tuple[str, ...]:
    """The alert's key; also that of earlier versions, under which its thread may be stored."""
    return (finding.key, finding.renamed_from) if finding.renamed_from else (finding.key,)


def _about(message: Message, findings: Sequence[Finding], *, opens: bool = False) -> Message:
    return replace(
        message,
        tone=tone_of(findings),
        about=tuple(key for finding in findings for key in _keys(finding)),
        opens=opens,
        broadcast=any(finding.transition in ("escalated", "resolved") for finding in findings),
    )


class Unconfirmed(RagmetricsError):
    """A channel did not confirm a message; `transient` says whether a retry may succeed.

    `of_content`: the channel refused the content of the message, not its sender.
    """

    def __init__(self, message: str, *, transient: bool = False, of_content: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.of_content = of_content


def with_timeout(seconds: float, act: Callable[[], None]) -> None:
    """Call `act`, which may hang in name resolution, in a connection, or on a slow server.

    Raises the errors of `act`, and a transient Unconfirmed after `seconds`. The call then goes on
    in its thread: if its message is still sent, people get it twice.
    """
    done: Future[None] = Future()

    def acting() -> None:
        try:
            act()
        except BaseException as error:  # raised again in the waiting thread
            done.set_exception(error)
        else:
            done.set_result(None)

    if seconds > 0:
        threading.Thread(target=acting, daemon=True).start()
        try:
            return done.result(seconds)
        except TimeoutError:
            if done.done():  # a TimeoutError of `act` itself
                raise
    raise Unconfirmed(f"no answer within {CHANNEL_TIMEOUT:.0f} seconds", transient=True)


def redact_secrets(text: str, secrets: Iterable[str]) -> str:
    """A text without the secrets, and without parts of them that may be secret."""
    parts = {part for secret in secrets for part in _parts(secret)}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= _SHORTEST_PART:
            text = text.replace(part, "***")
        else:
            text = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", "***", text)
    return text


def _parts(secret: str) -> set[str]:
    long = {part for part in re.split(r"[/:@?&=,#]+", secret) if len(part) >= _SHORTEST_PART}
    try:
        address = urlsplit(secret)
        login = {address.username or "", address.password or ""} - {""}
    except ValueError:
        login = set()
    return {one for part in {secret, *long, *login} for one in (part, unquote(part)) if one}


class Thread(Record):
    """Channel and timestamp of an alert's first message."""

    channel: str
    ts: str


class Threads(Record):
    """Threads by key of the alert, the oldest first."""

    by_alert: dict[str, Thread] = Field(default_factory=dict)


def load_threads(files: Files) -> Threads:
    """The stored threads; empty where the file cannot be read, which is logged."""
    problem = "not a record of threads, updates go to the channel"
    return find_record(files, THREADS, Threads, problem) or Threads()


def thread_of(threads: Threads, alerts: Iterable[str], place: str) -> str:
    """The thread of some alerts in a place, by the first that has one; empty without one."""
    known = (threads.by_alert[key] for key in alerts if key in threads.by_alert)
    thread = next(known, None)
    return thread.ts if thread and thread.channel == place else ""


def save_thread(files: Files, alerts: Sequence[str], place: str, thread: str) -> None:
    """Store the thread of some alerts. Raises StoreError."""
    if not thread:
        log.error("the thread is not stored, updates go to the channel: the service named none")
        return
    known = {key: one for key, one in load_threads(files).by_alert.items() if key not in alerts}
    new = Thread(channel=place, ts=thread[:_LONGEST])
    newest = dict([*known.items(), *((key, new) for key in alerts)][-_MOST_STORED:])
    files.write(THREADS, Threads(by_alert=newest).model_dump_json(indent=1).encode())

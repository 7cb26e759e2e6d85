"""The alert store: states of alerts, messages that are not delivered, silences, threads.

alerts/state.json       the state of each alert after the newest night
alerts/outbox/*.json    the messages that their channels have not confirmed
alerts/silences/*.json  one file per silence: 2026-11-20T071502.104233Z.ID.json
alerts/threads.json     the Slack thread of each incident

Commands write and remove silences, nights read them. So neither overwrites the other, and only
nights write the state of the alerts. The newest silence of an alert counts. If two runs write the
threads at the same time, one version may be lost. An update is then posted in the channel instead
of its thread; no message is lost.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from ragmetrics.errors import InputError
from ragmetrics.model import Finding, Manifest, Notification, Record, Severity, Silence, State
from ragmetrics.storage import Files, find_record, remove_file

Tone = Literal["info", "success", "warning", "failure"]
"""How a service with more than text marks a message."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Message:
    """A message: `text` is one line for notifications, `blocks` are Block Kit blocks as JSON."""

    text: str
    blocks: list[dict[str, Any]]
    tone: Tone = "info"
    about: tuple[str, ...] = ()
    """Keys of its alerts, where they decide on its thread."""
    opens: bool = False
    """Whether it starts the thread of its alerts."""
    broadcast: bool = False
    """Whether a message in a thread is shown in the channel too."""


class AlertState(Record):
    """One alert after the last night that judged it. The default is a new alert."""

    state: State = "ok"
    since: date | None = None
    """First night of the current pending or firing incident."""
    nights: int = 0
    """Judged nights in a row that were not ok."""
    last_night: date | None = None
    last_sent: date | None = None
    """Night of the last message about this alert."""
    told: date | None = None
    """First night of the incident that people were notified of and that is not resolved for them;
    else None."""
    notified: Notification | None = None
    """Numbers of the last message while the alert fires. An escalation is measured from them."""
    unsilenced: datetime | None = None
    """Silences made before this time have ended, because the alert escalated."""
    snoozed: bool = False
    """Whether a snooze held back the newest night. A message follows when the snooze ends."""
    finding: Finding | None = None
    """The finding of `last_night`."""
    previous: AlertState | None = None
    """The state before `last_night`. A rerun of that night starts from it."""

    @model_validator(mode="before")
    @classmethod
    def _upgrade(cls, data: Any) -> Any:
        """Read states of earlier versions. Before silences existed, every firing alert had been
        notified. Before escalations existed, only the night of the last message was stored.
        """
        if not isinstance(data, dict):
            return data
        if "told" not in data and data.get("state") == "firing":
            data = {**data, "told": data.get("since")}
        if "notified" not in data and data.get("told") and data.get("last_sent"):
            data = {**data, "notified": {"night": data["last_sent"]}}
        return data


class Undelivered(Record):
    """A message that its channel has not confirmed yet."""

    night: date
    message: Message
    channel: str = "slack"
    turn: int = 0
    """Number of the run's batch of messages within the night. A rerun gets a later number while
    messages of an earlier batch still wait."""
    together: int = 1
    """Number of messages in its batch, for all channels, itself included."""
    undo: dict[str, AlertState] | None = None
    """States of its alerts before the message; None: see `AlertStore.undo`."""
    redo: dict[str, AlertState] = Field(default_factory=dict)
    """States of its alerts after the message, in case the run died before it wrote them."""


class AlertStore(Record):
    """All alert states by `Finding.key`, and the messages that are not delivered yet."""

    night: date | None = None
    """The newest night of the states."""
    states: dict[str, AlertState] = Field(default_factory=dict)
    outbox: tuple[Undelivered, ...] = ()
    undo: dict[str, AlertState] = Field(default_factory=dict)
    """States of tonight's notified alerts before tonight, in case the message is withdrawn."""

    def queue(
        self, messages: Sequence[tuple[str, Message]], waited: Sequence[Undelivered] = ()
    ) -> AlertStore:
        """This store with tonight's messages in the outbox, each with the name of its channel.

        Call `advance_states` first. `waited` are the messages that waited before it. Withdrawn
        messages stay in the outbox folder until the state is written. So only equal messages may
        have their batch number.
        """
        if self.night is None:
            raise ValueError("no night to queue a message for: call advance_states first")
        redo = {key: self.states[key] for key in self.undo if key in self.states}
        fresh = [
            Undelivered(
                night=self.night,
                message=message,
                channel=channel,
                together=len(messages),
                undo=self.undo,
                redo=redo,
            )
            for channel, message in messages
        ]
        mine = [one for one in waited if one.night == self.night and one not in self.outbox]
        turn = _same_turn(fresh, mine)
        if turn is None:
            turns = [one.turn for one in (*waited, *self.outbox) if one.night == self.night]
            turn = max(turns, default=-1) + 1
        queued = (one.model_copy(update={"turn": turn}) for one in fresh)
        return self.model_copy(update={"outbox": (*self.outbox, *queued)})


def silences(files: Files) -> dict[str, Silence]:
    """The newest silence of each alert, expired or not, by the alert's key.

    Other files are logged and ignored. Raises StoreError where the store cannot be read.
    """
    return _newest(one for _, one in _found(files))


FOLDER = "alerts/silences"
ID_LENGTH = 8
_ORDER = ("firing", "pending", "ok")
_MOST_LISTED = 5
"""Most alerts named in an error about an ambiguous key."""
THREADS = "alerts/threads.json"
_MOST = 2_000
"""Most alerts with a stored thread: the newest ones."""


def _same_turn(fresh: Sequence[Undelivered], waited: Sequence[Undelivered]) -> int | None:
    """The batch number of equal waiting messages; None where there are none."""
    for turn in sorted({one.turn for one in waited}):
        if all(one.model_copy(update={"turn": turn}) in waited for one in fresh):
            return turn
    return None


def alert_id(key: str) -> str:
    """A short id of an alert, the same every night: `3f9a1c04`."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=ID_LENGTH // 2)
    return digest.hexdigest()


def silence(files: Files, one: Silence) -> None:
    """Store a silence; it replaces the alert's earlier one."""
    files.write(_path(one), one.model_dump_json(indent=1).encode())


def unsilence(files: Files, key: str) -> bool:
    """Remove all silences of an alert; return whether there was any."""
    paths = [path for path, one in _found(files) if one.key == key]
    for path in paths:
        remove_file(files, path)
    return bool(paths)


def remove_expired_silences(files: Files, alerts: AlertStore) -> None:
    """Remove expired and replaced silences, as every night reads all of them."""
    found = list(_found(files))
    newest = _newest(one for _, one in found)
    for path, one in found:
        if one != newest[one.key] or not is_in_force(alerts, one):
            remove_file(files, path)


def is_in_force(alerts: AlertStore, one: Silence) -> bool:
    """Whether a silence is in force, by the states of the newest night."""
    state = alerts.states.get(one.key)
    since: date | None = None
    severity: Severity = one.severity
    if state and state.finding and state.state == "firing":
        since, severity = state.since, state.finding.severity
    unsilenced = state.unsilenced if state else None
    return one.is_in_force(alerts.night or date.min, since, severity, unsilenced)


def with_silences(manifest: Manifest, found: Mapping[str, Silence]) -> Manifest:
    """A night's manifest with the silences in force added to its findings."""

    def of(finding: Finding) -> Silence | None:
        one = found.get(finding.key)
        since = finding.since if finding.state == "firing" else None
        if one is None:
            return None
        in_force = one.is_in_force(manifest.date, since, finding.severity, finding.unsilenced)
        return one if in_force else None

    findings = [one.model_copy(update={"silence": of(one)}) for one in manifest.findings]
    return manifest.model_copy(update={"findings": findings})


def _newest(found: Iterable[Silence]) -> dict[str, Silence]:
    newest: dict[str, Silence] = {}
    for one in found:
        if one.key not in newest or one.at >= newest[one.key].at:
            newest[one.key] = one
    return newest


def _found(files: Files) -> Iterator[tuple[str, Silence]]:
    for info in files.below(FOLDER):
        if found := find_record(files, info.path, Silence, "not a silence and is ignored"):
            yield info.path, found


def _path(one: Silence) -> str:
    return f"{FOLDER}/{one.at.astimezone(UTC):%Y-%m-%dT%H%M%S.%fZ}.{alert_id(one.key)}.json"


@dataclass(frozen=True)
class Alert:
    """One alert after the newest night."""

    key: str
    state: AlertState
    finding: Finding
    silence: Silence | None
    """The silence in force."""
    unchecked: date | None
    """The last night that judged it, where that is not the newest night."""

    @property
    def id(self) -> str:
        """The short id that commands accept in place of the key."""
        return alert_id(self.key)

    @property
    def last_mean(self) -> float | None:
        """The mean in the last message, while it fires."""
        return self.state.notified.mean if self.state.notified else None

    @property
    def message(self) -> str:
        """The last finding in words, with its night where that is not the newest."""
        late = f"; not checked since {self.unchecked}" if self.unchecked else ""
        worse = f"; got {self.finding.escalation}" if self.finding.escalation else ""
        return f"{self.finding.message}{worse}{late}"

    def as_json(self) -> dict[str, Any]:
        """One object of `ragmetrics alerts list --json`."""
        silence = self.silence and self.silence.model_dump(mode="json", exclude={"key"})
        state = self.state.model_dump(mode="json", include={"state", "since", "nights"})
        return {
            "id": self.id,
            "key": self.key,
            **state,
            "level": self.finding.level,
            "severity": self.finding.severity,
            "last_night": _iso(self.state.last_night),
            "last_told": _iso(self.state.last_sent),
            "last_told_mean": self.last_mean,
            "message": self.message,
            "silence": silence,
        }


def all_alerts(alerts: AlertStore, silences: Mapping[str, Silence]) -> list[Alert]:
    """Every alert: firing alerts first, critical ones before warnings, then by key."""
    found = []
    for key, state in alerts.states.items():
        if state.finding is None:
            continue
        one = silences.get(key)
        unchecked = state.last_night if state.last_night != alerts.night else None
        in_force = one if one and is_in_force(alerts, one) else None
        found.append(Alert(key, state, state.finding, in_force, unchecked))
    return sorted(
        found,
        key=lambda one: (_ORDER.index(one.state.state), one.finding.severity, one.key),
    )


def open_alerts(alerts: Iterable[Alert]) -> list[Alert]:
    """The alerts that are not ok or are silenced."""
    return [one for one in alerts if one.state.state != "ok" or one.silence]


def find_alert(alerts: Sequence[Alert], word: str) -> Alert:
    """The alert with this key or id, or the only alert whose key or id begins with it.

    Raises InputError where there is none, or more than one.
    """
    exact = [one for one in alerts if word in (one.key, one.id)]
    found = exact or [
        one for one in alerts if word and (one.key.startswith(word) or one.id.startswith(word))
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InputError(f"no alert {word!r}: `ragmetrics alerts list --all` lists all alerts")
    named = ", ".join(f"{one.id} ({one.key})" for one in found[:_MOST_LISTED])
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    raise InputError(f"{word!r} matches {len(found)} alerts, give more characters: {named}{more}")


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


class Thread(Record):
    """Channel and timestamp of an alert's first message."""

    channel: str
    ts: str


class Threads(Record):
    """Threads by key of the alert, the oldest first."""

    by_alert: dict[str, Thread] = Field(default_factory=dict)


def load_threads(files: Files) -> Threads:
    """The stored threads; empty where the file cannot be read, which is logged."""
    data = files.find(THREADS)
    try:
        return Threads() if data is None else Threads.model_validate_json(data)
    except ValidationError:
        log.error("%s: not a record of threads, updates go to the channel", files.uri(THREADS))
        return Threads()


def find_thread(files: Files, alerts: Sequence[str]) -> Thread | None:
    """The thread of some alerts."""
    known = load_threads(files).by_alert
    return next((known[key] for key in alerts if key in known), None)


def save_thread(files: Files, alerts: Sequence[str], thread: Thread) -> None:
    """Store the thread of some alerts."""
    known = {key: one for key, one in load_threads(files).by_alert.items() if key not in alerts}
    newest = dict([*known.items(), *((key, thread) for key in alerts)][-_MOST:])
    files.write(THREADS, Threads(by_alert=newest).model_dump_json(indent=1).encode())

"""All alerts after the newest night, as `ragmetrics alerts list` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ragmetrics.delivery.outbox import GIVEN_UP, LONGEST_DAYS, load_batches
from ragmetrics.delivery.state_fold import load_alerts
from ragmetrics.errors import InputError
from ragmetrics.records import AlertState, Finding, Silence, alert_id
from ragmetrics.rules import is_in_force, silences
from ragmetrics.storage import Files

_ORDER = ("firing", "pending", "ok")
_MOST_LISTED = 5
"""Most alerts named in an error about an ambiguous key."""


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


@dataclass(frozen=True)
class AlertList:
    """All alerts after the newest night."""

    night: date | None
    """The newest night; None before the first."""
    states: Mapping[str, AlertState]
    """By key."""
    alerts: Sequence[Alert]
    """Firing alerts first, critical ones before warnings, then by key."""

    @property
    def open(self) -> list[Alert]:
        """The alerts that are not ok or are silenced."""
        return [alert for alert in self.alerts if alert.state.state != "ok" or alert.silence]

    def find(self, word: str) -> Alert:
        """The alert with this key or ID, or the only alert whose key or ID begins with it.

        Raises InputError where there is none, or more than one.
        """
        exact = [alert for alert in self.alerts if word in (alert.key, alert.id)]
        matches = exact or [
            alert
            for alert in self.alerts
            if word and (alert.key.startswith(word) or alert.id.startswith(word))
        ]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise InputError(f"no alert {word!r}: `ragmetrics alerts list --all` lists all alerts")
        named = ", ".join(f"{alert.id} ({alert.key})" for alert in matches[:_MOST_LISTED])
        more = f" and {len(matches) - _MOST_LISTED} more" if len(matches) > _MOST_LISTED else ""
        raise InputError(
            f"{word!r} matches {len(matches)} alerts, give more characters: {named}{more}"
        )


@dataclass(frozen=True)
class Undelivered:
    """Messages that no channel has."""

    nights: Sequence[date]
    """The night of each message that waits for the next run."""
    given_up: int
    """Number of messages that waited too long."""
    place: str
    """Where those are."""
    days: int = LONGEST_DAYS
    """Days after which a message is given up."""


def list_alerts(files: Files, remind_days: int | None = None) -> AlertList:
    """All alerts of a store. Raises StoreError where it cannot be read."""
    known, quiet = load_alerts(files, remind_days), silences(files)
    alerts = []
    for key, state in known.states.items():
        if state.finding is None:
            continue
        silence = quiet.get(key)
        unchecked = state.last_night if state.last_night != known.night else None
        in_force = silence if silence and is_in_force(silence, state, known.night) else None
        alerts.append(Alert(key, state, state.finding, in_force, unchecked))
    alerts.sort(key=lambda one: (_ORDER.index(one.state.state), one.finding.severity, one.key))
    return AlertList(known.night, known.states, alerts)


def undelivered(files: Files) -> Undelivered:
    """The messages of a store that no channel has. Raises StoreError where it cannot be read."""
    batches = load_batches(files, date.max).waiting.values()
    nights = [batch.night for batch in batches for _ in batch.waiting]
    return Undelivered(nights, len(files.below(GIVEN_UP)), files.uri(GIVEN_UP))


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None

"""All alerts after the newest night, as `ragmetrics alerts list` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from ragmetrics.delivery.state import AlertStates
from ragmetrics.errors import InputError
from ragmetrics.records import AlertState, Finding, Silence, alert_id
from ragmetrics.rules import is_in_force

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


def all_alerts(alerts: AlertStates, silences: Mapping[str, Silence]) -> list[Alert]:
    """Every alert: firing alerts first, critical ones before warnings, then by key."""
    found = []
    for key, state in alerts.states.items():
        if state.finding is None:
            continue
        one = silences.get(key)
        unchecked = state.last_night if state.last_night != alerts.night else None
        in_force = one if one and is_in_force(one, state, alerts.night) else None
        found.append(Alert(key, state, state.finding, in_force, unchecked))
    return sorted(
        found,
        key=lambda one: (_ORDER.index(one.state.state), one.finding.severity, one.key),
    )


def open_alerts(alerts: Iterable[Alert]) -> list[Alert]:
    """The alerts that are not ok or are silenced."""
    return [alert for alert in alerts if alert.state.state != "ok" or alert.silence]


def find_alert(alerts: Sequence[Alert], word: str) -> Alert:
    """The alert with this key or id, or the only alert whose key or id begins with it.

    Raises InputError where there is none, or more than one.
    """
    exact = [alert for alert in alerts if word in (alert.key, alert.id)]
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

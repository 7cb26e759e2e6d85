"""The state of an alert after a night, what a message said about it, and its short id."""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from typing import Any

from pydantic import model_validator

from ragmetrics.records.base import Record
from ragmetrics.records.finding import Finding, Notification, Severity, State, Transition

ID_LENGTH = 8


_NAMES = ("key", "kind", "level", "severity", "rule", "message", "metric", "segment", "state")


class Told(Record):
    """What a message said about one alert."""

    night: date
    transition: Transition
    since: date | None = None
    """First night of the reported incident; None where it has resolved."""
    notified: Notification | None = None
    """The numbers from which an escalation is measured after this message."""
    unsilenced: datetime | None = None
    """Silences made up to this time have ended, because the alert escalated."""
    finding: Finding
    """The finding without its numbers."""


class AlertState(Record):
    """One alert after the last night that judged it. The default is a new alert."""

    state: State = "ok"
    since: date | None = None
    """First night of the current pending or firing incident."""
    nights: int = 0
    """Judged nights in a row that were not ok."""
    last_night: date | None = None
    severity: Severity | None = None
    """Severity of the last finding or message: a rise is reported."""
    last_sent: date | None = None
    """Night of the last message about this alert."""
    told: date | None = None
    """First night of the incident that people were notified of and that is not resolved for them;
    else None."""
    unheard: date | None = None
    """First night of an incident whose message was never queued, because its run died."""
    notified: Notification | None = None
    """Numbers of the last message while the alert fires. An escalation is measured from them."""
    unsilenced: datetime | None = None
    """Silences made up to this time have ended, because the alert escalated."""
    snoozed: bool = False
    """Whether a snooze held back the newest night. A message follows when the snooze ends."""
    finding: Finding | None = None
    """The finding of `last_night`."""

    @property
    def is_known(self) -> bool:
        """Whether anything about the alert matters later: it is not ok, or people heard of it."""
        heard = self.told or self.unheard or self.last_sent or self.unsilenced
        return self.state != "ok" or heard is not None

    def heard(self, told: Told) -> AlertState:
        """The state after people were told. An alert that fires for them fires, whatever a rerun of
        the night found.
        """
        update: dict[str, Any] = {
            "told": told.since,
            "unheard": None,
            "notified": told.notified,
            "severity": told.finding.severity,
            "last_sent": told.night,
            "unsilenced": told.unsilenced or self.unsilenced,
            "snoozed": False,
        }
        if told.since and self.state != "firing":
            update |= {"state": "firing", "since": told.since, "last_night": told.night}
            update |= {"finding": self.finding or told.finding}
        return self.model_copy(update=update)

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
        if "severity" not in data and isinstance(data.get("finding"), dict):
            data = {**data, "severity": data["finding"].get("severity", "critical")}
        return data


def without_numbers(finding: Finding) -> Finding:
    """A finding with what names its alert, and its sentence."""
    return Finding(**{name: getattr(finding, name) for name in _NAMES})


def alert_id(key: str) -> str:
    """A short id of an alert, the same every night: `3f9a1c04`."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=ID_LENGTH // 2)
    return digest.hexdigest()

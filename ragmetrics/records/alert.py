"""The state of an alert after a night, and its short id."""

from __future__ import annotations

import hashlib
from datetime import date, datetime
from typing import Any

from pydantic import model_validator

from ragmetrics.records.base import Record
from ragmetrics.records.finding import Finding, Notification, State

ID_LENGTH = 8


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


def alert_id(key: str) -> str:
    """A short id of an alert, the same every night: `3f9a1c04`."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=ID_LENGTH // 2)
    return digest.hexdigest()

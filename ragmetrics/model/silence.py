"""A silence of an alert: somebody acknowledged or snoozed it. Stored as JSON."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import AwareDatetime

from ragmetrics.model.base import Record

Severity = Literal["critical", "warning"]


class Silence(Record):
    """Somebody acknowledged an alert, or snoozed it."""

    key: str
    """Key of the alert."""
    at: AwareDatetime
    by: str = ""
    note: str = ""
    until: date | None = None
    """Snoozed: the first night with messages again; None: acknowledged."""
    since: date | None = None
    """Acknowledged: the first night of the incident."""
    severity: Severity = "critical"
    """Acknowledged: the severity at that time."""

    def __str__(self) -> str:
        """`acknowledged by Ada: the index is being rebuilt`."""
        what = f"snoozed until {self.until}" if self.until else "acknowledged"
        by = f" by {self.by}" if self.by else ""
        return f"{what}{by}: {self.note}" if self.note else f"{what}{by}"

    def is_in_force(
        self,
        night: date,
        since: date | None,
        severity: Severity,
        unsilenced: datetime | None = None,
    ) -> bool:
        """Whether the silence is in force on a night, for an alert that fires since `since`.

        `since` is None where the alert does not fire. A snooze lasts until its date. An
        acknowledgement lasts for its incident, at its severity or below. An escalation of the
        alert ended the silences made up to `unsilenced`.
        """
        if unsilenced and self.at <= unsilenced:
            return False
        if self.until:
            return night < self.until
        same = since is not None and self.since == since
        return same and not is_more_severe(self.severity, severity)


def is_more_severe(before: Severity, now: Severity) -> bool:
    """Whether a severity is above another."""
    return (before, now) == ("warning", "critical")

"""A silence: why people are not told of an alert, a record that is stored as JSON."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import AwareDatetime

from ragmetrics.model.base import Record

Severity = Literal["critical", "warning"]


class Silence(Record):
    """Somebody acknowledged an alert, or snoozed it."""

    key: str
    """Of the alert."""
    at: AwareDatetime
    by: str = ""
    note: str = ""
    until: date | None = None
    """Snoozed: the first night that is told of again; None: acknowledged."""
    since: date | None = None
    """Acknowledged: the first night of the spell that this is good for,"""
    severity: Severity = "critical"
    """and the severity that it was acknowledged at."""

    def __str__(self) -> str:
        """`acknowledged by Ada: the index is being built anew`."""
        what = f"snoozed until {self.until}" if self.until else "acknowledged"
        by = f" by {self.by}" if self.by else ""
        return f"{what}{by}: {self.note}" if self.note else f"{what}{by}"

    def holds(
        self,
        night: date,
        since: date | None,
        severity: Severity,
        unsilenced: datetime | None = None,
    ) -> bool:
        """Whether it is in force on a night, of an alert that fires since then, or does not (None).

        A snooze holds until its date; an acknowledgement for its spell, at its severity or below.
        Silences made until `unsilenced` were ended by an escalation of the alert.
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

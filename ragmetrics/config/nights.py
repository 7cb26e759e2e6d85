"""Which time a night covers: a day in a time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

_LATER = timedelta(hours=12)
"""How far days of zones west of UTC reach beyond the UTC day of the same date. Zones east of it
begin their day earlier, but most of its working hours are on the same UTC day."""


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError):  # of another form; a folder; ZoneInfoNotFoundError is a KeyError
        raise ValueError(f"{name!r}: should be a time zone like Europe/Berlin") from None
    except KeyError:
        raise ValueError(f"{name!r}: no such time zone; one is Europe/Berlin") from None
    return name


ZoneName = Annotated[str, AfterValidator(_known_zone)]


def night_span(day: date, zone: str | None) -> tuple[datetime, datetime]:
    """The time that a night covers, up to and without its end.

    Without a zone it is the day in UTC and the twelve hours after it: whether the log has days of
    UTC or of a zone west of it is not known. A night at the end of the calendar has its last moment
    as its end.
    """
    start = _midnight(day, zone)
    try:
        end = _midnight(day + timedelta(days=1), zone) + (timedelta(0) if zone else _LATER)
    except OverflowError:
        end = datetime.max.replace(tzinfo=UTC)
    return start, end


def night_before(moment: datetime, zone: str | None) -> date:
    """The last night that is over at a moment: the day before, in a zone or in UTC."""
    return moment.astimezone(_zone(zone)).date() - timedelta(days=1)


def _midnight(day: date, zone: str | None) -> datetime:
    return datetime.combine(day, time(), _zone(zone)).astimezone(UTC)


def _zone(name: str | None) -> tzinfo:
    return ZoneInfo(name) if name else UTC

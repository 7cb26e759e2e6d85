"""Which time a night covers, a day in a time zone; and where its logs are."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

from ragmetrics.errors import InputError

_DATE = re.compile(r"\{date(?::([^}]+))?\}")
_YEARS = range(1970, 3000)
_LEAP_YEAR = 366
_STARTS = (date(2024, 1, 1), date(2025, 1, 1), date(2035, 1, 1))
"""Years whose nights have to be told apart: neighbours, and one of another decade."""
_EARLIER = timedelta(hours=14)
"""How long before the UTC day of the same date the day begins in the zone furthest east of UTC."""
_LATER = timedelta(hours=12)
"""How long after the UTC day of the same date the day ends in the zone furthest west of UTC."""


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

    Without a zone it is the day in every zone, from 14 hours before the UTC day to 12 hours after
    it: of which zone the days of the log are is not known. A night at the end of the calendar has
    its last moment as its end.
    """
    start = _midnight(day, zone) - (timedelta(0) if zone else _EARLIER)
    try:
        end = _midnight(day + timedelta(days=1), zone) + (timedelta(0) if zone else _LATER)
    except OverflowError:
        end = datetime.max.replace(tzinfo=UTC)
    return start, end


def check_night(day: date) -> None:
    """Raise InputError for what is no date of a night: a time, or a year that no log is of."""
    if isinstance(day, datetime) or not isinstance(day, date):
        raise InputError(f"a night is a datetime.date, not {day!r:.100}")
    if day.year not in _YEARS:
        first, last = _YEARS[0], _YEARS[-1]
        raise InputError(f"night {day}: the year should be from {first} to {last}")


def check_not_future(day: date, zone: str | None) -> None:
    """Raise InputError for no date, and for a night that has begun nowhere: not in its zone or,
    without one, in any zone.
    """
    check_night(day)
    now = datetime.now(UTC)
    here = now.astimezone(_zone(zone))
    if day > (here if zone else now + _EARLIER).date():
        raise InputError(f"night {day} is in the future; today is {here.date()}")


def log_files_of_day(place: str, day: date) -> str:
    """The location with the date filled in."""
    return _DATE.sub(lambda match: day.strftime(match[1] or "%Y-%m-%d"), place)


def check_template(place: str) -> None:
    """Raise ValueError for a location with a date that is the same for several nights."""
    if not _DATE.search(place):
        return  # one file, which is replaced or grows
    first: dict[str, date] = {}
    for start in _STARTS:
        for number in range(_LEAP_YEAR):
            day = start + timedelta(days=number)
            if (other := first.setdefault(log_files_of_day(place, day), day)) != day:
                raise ValueError(
                    f"the same for {other} and {day}: a date needs a year, a month and a day, as "
                    "in {date} or {date:%Y/%m/%d}"
                )


def night_before(moment: datetime, zone: str | None) -> date:
    """The last night that is over at a moment: the day before, in a zone or in UTC."""
    return moment.astimezone(_zone(zone)).date() - timedelta(days=1)


def _midnight(day: date, zone: str | None) -> datetime:
    return datetime.combine(day, time(), _zone(zone)).astimezone(UTC)


def _zone(name: str | None) -> tzinfo:
    return ZoneInfo(name) if name else UTC

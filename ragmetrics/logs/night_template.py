"""Derives where a night's logs are from the names of a sample: the date becomes `{date}`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from ragmetrics.logs.formats import FORMATS

_FORMATS = ("year=%Y/month=%m/day=%d", "%Y-%m-%d", "%Y/%m/%d", "%Y_%m_%d", "%Y%m%d")
"""How names write a date, the most special one first."""
_PARTS = {"%Y": r"(?:19|20)\d\d", "%m": r"\d\d", "%d": r"\d\d"}


@dataclass(frozen=True)
class NightPlace:
    """Where the logs of a night are."""

    logs: str
    """A location with `{date}`; one without it where no name has a date."""
    days: Mapping[str, date] = field(default_factory=dict)
    """The date in the name of each path that has one."""


def night_place(place: str, paths: Sequence[str]) -> NightPlace:
    """The location of one night's logs, from the whole paths of the logs at a place.

    A date in a folder's name stands for the whole folder: `logs/dt=2026-11-19/a.jsonl` is
    `logs/dt={date}/`. A date in a file's name stands for the file, or for all files that begin so
    where a day has several: `logs/{date}*.jsonl`. Without a date it is the place itself.
    """
    for form in _FORMATS:
        pattern = re.compile(rf"(?<!\d){_regex(form)}(?!\d)")
        dated = [(day, path) for path in paths if (day := _day(pattern, form, path))]
        if dated:
            newest, path = max(dated)
            same = [other for day, other in dated if day == newest]
            days = {path: day for day, path in dated}
            return NightPlace(_template(pattern, form, path, same), days)
    return NightPlace(place)


def _regex(form: str) -> str:
    pattern = re.escape(form)
    for code, digits in _PARTS.items():
        pattern = pattern.replace(re.escape(code), digits)
    return pattern


def _day(pattern: re.Pattern[str], form: str, path: str) -> date | None:
    """The last date of a path; None where the digits are none."""
    for text in reversed(pattern.findall(path)):
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None


def _template(pattern: re.Pattern[str], form: str, path: str, same: Sequence[str]) -> str:
    """A path with its dates replaced, up to the end of the part that has the last one."""
    code = "{date}" if form == "%Y-%m-%d" else f"{{date:{form}}}"
    day = _day(pattern, form, path)
    dates = [match for match in pattern.finditer(path) if _day(pattern, form, match[0]) == day]
    rest = path[dates[-1].end() :]
    before = pattern.sub(
        lambda one: code if _day(pattern, form, one[0]) == day else one[0], path[: dates[-1].end()]
    )
    part, folder, _ = rest.partition("/")
    if folder:
        return f"{before}{part}/"
    ending = FORMATS.search(rest)
    tail = rest[ending.start() :] if ending else ""
    several = len(same) > 1 or any(map(str.isdigit, rest.removesuffix(tail)))
    return f"{before}*{tail}" if several else f"{before}{rest}"

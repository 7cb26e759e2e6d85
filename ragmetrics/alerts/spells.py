"""Spells: the nights in a row on which one alert was not ok, by the record of those nights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from ragmetrics.records import Finding, Manifest

MOST_NIGHTS = 7
"""Nights of a spell that are judged together: the newest ones."""


def spell_before(earlier: Sequence[Manifest], key: str, most: int) -> date | None:
    """First night of the spell that lasts until tonight, or None where there is none.

    Of a spell that is only pending at most so many nights are told; one that is firing began
    with the pending nights that led to it. Nights that did not judge the alert do not count.
    """
    start, pending = None, 0
    for night, found in _findings(reversed(earlier), key):
        if found.state == "firing":
            return found.since or night
        if found.state == "ok" or pending == most:
            break
        start, pending = night, pending + 1
    return start


def nights_out(earlier: Sequence[Manifest], key: str) -> set[date]:
    """The nights of all firing spells, with the pending ones that led to them."""
    spans = [
        (found.since or night, night)
        for night, found in _findings(earlier, key)
        if found.state == "firing"
    ]
    dates = [one.date for one in earlier]
    return {day for day in dates if any(first <= day <= last for first, last in spans)}


def _findings(nights: Iterable[Manifest], key: str) -> Iterator[tuple[date, Finding]]:
    for one in nights:
        for found in one.findings:
            if found.key == key:
                yield one.date, found

"""Incidents of one alert: nights in a row on which it was not ok, from the manifests.

A night with too few rows to judge the alert does not count: the alert fires for lack of data, and
no drop is known. Such a night neither begins nor ends an incident.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from ragmetrics.model import Finding, Manifest

MOST_NIGHTS = 7
"""Most nights of an incident that are judged together: the newest ones."""


def incident_start(earlier: Sequence[Manifest], key: str, most: int | None = None) -> date | None:
    """First night of the incident that lasts until tonight; None where there is none.

    A pending incident has at most `most` nights. A firing incident includes the pending nights
    before it. Nights that did not judge the alert do not count.
    """
    spell: list[date] = []
    firing = False
    for night, found in _judged(reversed(earlier), key):
        if found.state == "ok" or (not firing and found.state == "pending" and len(spell) == most):
            break
        firing = firing or found.state == "firing"
        spell.append(night)
    return spell[-1] if spell else None


def was_firing(earlier: Sequence[Manifest], key: str) -> bool:
    """Whether the alert was firing on the last night that judged it."""
    for one in reversed(earlier):
        found = next((found for found in one.findings if found.key == key), None)
        if found is None or found.state != "firing":
            return False
        if not _is_unjudged(found):
            return True
    return False


def nights_out(earlier: Sequence[Manifest], key: str) -> set[date]:
    """The nights of all firing incidents with their pending nights, and the nights with too few
    rows to judge the alert.
    """
    out = {night for night, found in _findings(earlier, key) if _is_unjudged(found)}
    spell: list[date] = []
    for night, found in _judged(earlier, key):
        spell = [*spell, night] if found.state != "ok" else []
        if found.state == "firing":
            out.update(one.date for one in earlier if spell[0] <= one.date <= night)
    return out


def _judged(nights: Iterable[Manifest], key: str) -> Iterator[tuple[date, Finding]]:
    """The findings of the nights that judged the alert, or closed it without a check."""
    return ((night, found) for night, found in _findings(nights, key) if not _is_unjudged(found))


def _is_unjudged(found: Finding) -> bool:
    return found.level == "no_data" and found.state == "firing"


def _findings(nights: Iterable[Manifest], key: str) -> Iterator[tuple[date, Finding]]:
    for one in nights:
        for found in one.findings:
            if found.key == key:
                yield one.date, found

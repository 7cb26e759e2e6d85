"""Spells: the nights in a row on which one alert was not ok, by the record of those nights.

A night that had too few rows to judge it is none of them: its alert is firing for want of data, and
nothing is known to have fallen. It neither begins a spell nor ends one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from ragmetrics.model import Finding, Manifest

MOST_NIGHTS = 7
"""Nights of a spell that are judged together: the newest ones."""


def incident_start(earlier: Sequence[Manifest], key: str, most: int | None = None) -> date | None:
    """First night of the spell that lasts until tonight, or None where there is none.

    Of a spell that is only pending at most so many nights are told; one that is firing began
    with the pending nights that led to it. Nights that did not judge the alert do not count.
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
    """Whether the alert was firing on the night before, by a night that judged it."""
    for one in reversed(earlier):
        found = next((found for found in one.findings if found.key == key), None)
        if found is None or found.state != "firing":
            return False
        if not _is_unjudged(found):
            return True
    return False


def nights_out(earlier: Sequence[Manifest], key: str) -> set[date]:
    """The nights of all firing spells, with the pending ones that led to them, and those that could
    not judge the alert: too few rows are no measure either."""
    out = {night for night, found in _findings(earlier, key) if _is_unjudged(found)}
    spell: list[date] = []
    for night, found in _judged(earlier, key):
        spell = [*spell, night] if found.state != "ok" else []
        if found.state == "firing":
            out.update(one.date for one in earlier if spell[0] <= one.date <= night)
    return out


def _judged(nights: Iterable[Manifest], key: str) -> Iterator[tuple[date, Finding]]:
    """The findings of the nights that judged the alert, or on which it was closed unjudged."""
    return ((night, found) for night, found in _findings(nights, key) if not _is_unjudged(found))


def _is_unjudged(found: Finding) -> bool:
    return found.level == "no_data" and found.state == "firing"


def _findings(nights: Iterable[Manifest], key: str) -> Iterator[tuple[date, Finding]]:
    for one in nights:
        for found in one.findings:
            if found.key == key:
                yield one.date, found

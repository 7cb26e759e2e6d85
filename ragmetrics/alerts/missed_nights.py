"""Missed nights: those in the store that the state of the alerts knows nothing of.

A night is missed where its run died after the manifest was written and before the alerts were, or
where the folder of the alerts could not be written. Nobody knows what people heard of it. So the
alerts are carried through the missed nights by their manifests, as if nobody had heard anything.
The next night then says of each alert that it fired, still fires, or fired and is well again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from ragmetrics.alerts.alert_store import AlertState, AlertStore
from ragmetrics.alerts.state import advance_states
from ragmetrics.model import Finding, Manifest
from ragmetrics.storage import Files, outlines, run_of

LONGEST = 60
"""Days back for which missed nights are looked for."""


def with_missed_nights(
    book: AlertStore, earlier: Sequence[Manifest], findings: Sequence[Finding], remind_days: int
) -> AlertStore:
    """The book as the missed ones of earlier nights left it; `findings` are those of tonight."""
    missed = [one for one in _missed(book, earlier) if not _waits(book, one.date)]
    if not missed:
        return book
    knew: dict[str, AlertState] = {}
    unheard: dict[str, date] = {}
    for night in missed:
        before = book.states
        book, moved = advance_states(book, night.findings, night.date, remind_days, run=night.run)
        for one in moved:
            if one.transition:
                knew.setdefault(one.key, before.get(one.key, AlertState()))
        for one in night.findings:  # what its run was about to tell: nothing, of a silent one
            if one.transition:
                knew.setdefault(one.key, before.get(one.key, AlertState()))
                unheard.setdefault(one.key, one.since or night.date)
    firing = {one.key for one in findings if _fires(one, book.states.get(one.key))}
    states = dict(book.states)
    for key, known in knew.items():
        now = states.get(key, AlertState())
        told = known.told or (None if key in firing else unheard.get(key))
        states[key] = now.model_copy(
            update={
                "told": told,
                "notified": (known.notified or now.notified) if told else None,
                "unsilenced": known.unsilenced,
                "last_sent": known.last_sent,
                "snoozed": key in unheard,
            }
        )
    return book.model_copy(update={"states": states})


def find_earlier(files: Files, book: AlertStore, day: date) -> list[Manifest]:
    """The nights before a day that the book may have missed, oldest first."""
    if book.night is None:
        return outlines(files, before=day, last=LONGEST)
    begin = max(book.night, day - timedelta(days=LONGEST))
    between = [begin + timedelta(days=ago) for ago in range(1, (day - begin).days)]
    return [one for one in (run_of(files, each) for each in between) if one]


def _missed(book: AlertStore, earlier: Sequence[Manifest]) -> Sequence[Manifest]:
    """The nights after the one that the book knows last.

    Of a store whose alerts were never written, those from the first on that had something to tell.
    """
    if book.night is not None:
        return [one for one in earlier if one.date > book.night]
    telling = (number for number, one in enumerate(earlier) if _tells(one))
    return earlier[next(telling, len(earlier)) :]


def _tells(night: Manifest) -> bool:
    return any(one.transition for one in night.findings)


def _waits(book: AlertStore, night: date) -> bool:
    """Whether all that a night tells waits in the outbox, so that people hear it from there."""
    waiting = [one for one in book.outbox if one.night == night]
    turns = {one.turn for one in waiting}
    return bool(waiting) and all(
        len(turn) >= max(one.together for one in turn)
        for number in turns
        if (turn := [one for one in waiting if one.turn == number])
    )


def _fires(finding: Finding, was: AlertState | None) -> bool:
    """Whether an alert fires tonight, so that people hear of it in any case."""
    return finding.level in ("breach", "no_data") or (
        finding.level != "ok" and was is not None and was.state == "firing"
    )


__all__ = ["find_earlier", "with_missed_nights"]

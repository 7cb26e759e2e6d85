"""Missed nights: stored nights that are not in the state of the alerts.

A night is missed where its run died after it wrote the manifest and before it wrote the alerts, or
where the folder of the alerts could not be written. It is not known whether its messages were
sent. So the alert states are advanced by the manifests of the missed nights, as if no message had
been sent. The next night then reports each alert: it fired, still fires, or fired and resolved.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from ragmetrics.delivery.alert_store import AlertStore
from ragmetrics.delivery.state import advance_states
from ragmetrics.records import AlertState, Finding, Manifest
from ragmetrics.storage import Files, outlines, run_of

LONGEST = 60
"""Days back for which missed nights are looked for."""


def with_missed_nights(
    alerts: AlertStore, earlier: Sequence[Manifest], findings: Sequence[Finding], remind_days: int
) -> AlertStore:
    """The alert store after the missed nights among `earlier`; `findings` are tonight's."""
    missed = [one for one in _missed(alerts, earlier) if not _waits(alerts, one.date)]
    if not missed:
        return alerts
    knew: dict[str, AlertState] = {}
    unheard: dict[str, date] = {}
    for night in missed:
        before = alerts.states
        alerts, moved = advance_states(
            alerts, night.findings, night.date, remind_days, run=night.run
        )
        for one in moved:
            if one.transition:
                knew.setdefault(one.key, before.get(one.key, AlertState()))
        for one in night.findings:  # the messages that its run was about to send
            if one.transition:
                knew.setdefault(one.key, before.get(one.key, AlertState()))
                unheard.setdefault(one.key, one.since or night.date)
    firing = {one.key for one in findings if _fires(one, alerts.states.get(one.key))}
    states = dict(alerts.states)
    for key, known in knew.items():
        now = states.get(key, AlertState())
        since = known.told or (None if key in firing else unheard.get(key))
        states[key] = now.model_copy(
            update={
                "told": since,
                "notified": (known.notified or now.notified) if since else None,
                "unsilenced": known.unsilenced,
                "last_sent": known.last_sent,
                "snoozed": key in unheard,
            }
        )
    return alerts.model_copy(update={"states": states})


def find_earlier(files: Files, alerts: AlertStore, day: date) -> list[Manifest]:
    """The nights before a day that the alert store may have missed, oldest first."""
    if alerts.night is None:
        return outlines(files, before=day, last=LONGEST)
    begin = max(alerts.night, day - timedelta(days=LONGEST))
    between = [begin + timedelta(days=ago) for ago in range(1, (day - begin).days)]
    return [one for one in (run_of(files, each) for each in between) if one]


def _missed(alerts: AlertStore, earlier: Sequence[Manifest]) -> Sequence[Manifest]:
    """The nights after the newest night of the alert store.

    Where the alerts were never written, these are the nights from the first transition on.
    """
    if alerts.night is not None:
        return [one for one in earlier if one.date > alerts.night]
    changed = (number for number, one in enumerate(earlier) if _has_transition(one))
    return earlier[next(changed, len(earlier)) :]


def _has_transition(night: Manifest) -> bool:
    return any(one.transition for one in night.findings)


def _waits(alerts: AlertStore, night: date) -> bool:
    """Whether all messages of a night wait in the outbox, from where they will be sent."""
    waiting = [one for one in alerts.outbox if one.night == night]
    turns = {one.turn for one in waiting}
    return bool(waiting) and all(
        len(turn) >= max(one.together for one in turn)
        for number in turns
        if (turn := [one for one in waiting if one.turn == number])
    )


def _fires(finding: Finding, was: AlertState | None) -> bool:
    """Whether an alert fires tonight, so that a message follows in any case."""
    return finding.level in ("breach", "no_data") or (
        finding.level != "ok" and was is not None and was.state == "firing"
    )

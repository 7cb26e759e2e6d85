"""The outbox: messages that their channels have not confirmed yet, each in its own file.

alerts/outbox/2026-11-19.DIGEST.json
alerts/given-up/2026-11-05.DIGEST.json   waited too long: stored for people, not sent

A run stores its messages before it stores the states of their alerts. So the outbox has the
messages to send even where the run died before it wrote the states.

If two runs write the state of the alerts at the same time, one state may be lost. No message is
lost, because files with one name have the same content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date

from ragmetrics.delivery.alert_store import AlertStore, Undelivered
from ragmetrics.errors import RagmetricsError
from ragmetrics.messages import Message
from ragmetrics.records import AlertState
from ragmetrics.storage import Files, find_record, remove_file, save_record

FOLDER = "alerts/outbox"
GIVEN_UP = "alerts/given-up"
LONGEST_DAYS = 14
"""Longest wait of a message. An alert that still fires then gets a reminder anyway."""


def waiting_messages(files: Files) -> tuple[Undelivered, ...]:
    """The waiting messages in the order of queueing. Other files are logged and ignored."""
    found = (message for _, message in _found(files))
    return tuple(sorted(found, key=lambda one: (one.night, one.turn)))


def add_messages(files: Files, messages: Iterable[Undelivered]) -> None:
    """Store messages before they are sent."""
    for one in messages:
        save_record(files, _path(one), one)


def remove_messages(files: Files, messages: Iterable[Undelivered]) -> None:
    """Remove messages that were delivered or withdrawn. Raises StoreError."""
    gone = {_path(one) for one in messages}
    if not gone:
        return
    # Compare contents: another version may have stored the same message under another name.
    for path, one in _found(files):
        if _path(one) in gone:
            remove_file(files, path)


def is_old(one: Undelivered, night: date) -> bool:
    """Whether a message has waited too long, seen from the newest night. That of a late night waits
    from the night on which it was queued, however old its own is.
    """
    return (night - (one.queued or one.night)).days >= LONGEST_DAYS


def give_up(files: Files, one: Undelivered) -> str:
    """Move a message to the given-up folder; return its address."""
    path = _path(one).replace(FOLDER, GIVEN_UP)
    save_record(files, path, one)
    remove_messages(files, [one])
    return files.uri(path)


def given_up(files: Files) -> int:
    """Number of messages that were given up."""
    return len(files.below(GIVEN_UP))


def _found(files: Files) -> Iterator[tuple[str, Undelivered]]:
    for info in files.below(FOLDER):
        if not info.size:  # cleared
            continue
        problem = "not a message and is ignored"
        if message := find_record(files, info.path, Undelivered, problem):
            yield info.path, message


def _path(one: Undelivered) -> str:
    digest = hashlib.blake2b(one.model_dump_json().encode(), digest_size=6).hexdigest()
    return f"{FOLDER}/{one.night.isoformat()}.{digest}.json"


def withdraw(alerts: AlertStore, night: date) -> AlertStore:
    """The alert store without this night's undelivered messages, with the states before them.

    It is unchanged where some messages of the night were sent: they are not sent again, and the
    others still wait.
    """
    turns = sorted({one.turn for one in alerts.outbox if one.night == night}, reverse=True)
    for turn in turns:
        back = [one for one in alerts.outbox if (one.night, one.turn) == (night, turn)]
        if _is_short(back) and not _is_unwritten(alerts.states, back):
            break  # this batch was partly sent, and it builds on the earlier batches
        states = dict(alerts.states)
        for one in back:
            own = alerts.undo if alerts.night == night else {}
            states |= own if one.undo is None else one.undo
        alerts = _without(alerts, back).model_copy(update={"states": states})
    return alerts


def recover(alerts: AlertStore, night: date) -> AlertStore:
    """The alert store with the states of waiting messages of earlier nights, before this night.

    A run that died between outbox and state, and was not repeated, left the state without its
    messages, and the next night would send the same again. If it died before all its messages were
    stored, none of them is sent: the next night reports the current state. If it was a rerun, the
    messages that it replaces still wait beside its own: only those that match the state are sent.
    """
    late = {
        one.night
        for one in alerts.outbox
        if one.night < night and not (alerts.night and one.night < alerts.night)
    }
    for day in sorted(late):
        alerts = _without(alerts, _replaced(alerts, day))
        for turn in _turns(alerts, day):
            if not _is_unwritten(alerts.states, turn):
                continue
            if _is_short(turn):
                alerts = _without(alerts, turn)
                continue
            states = dict(alerts.states)
            for key in turn[0].undo or {}:
                states[key] = turn[0].redo.get(key, AlertState())
            alerts = alerts.model_copy(update={"states": states})
    return alerts


def _turns(alerts: AlertStore, night: date) -> list[list[Undelivered]]:
    """The waiting messages of a night by batch, oldest first."""
    found: dict[int, list[Undelivered]] = {}
    for one in alerts.outbox:
        if one.night == night:
            found.setdefault(one.turn, []).append(one)
    return [found[number] for number in sorted(found)]


def _replaced(alerts: AlertStore, night: date) -> list[Undelivered]:
    """The waiting messages of a night whose states were never written, or were overwritten.

    Empty where no batch matches the state, as it is then unknown which one is valid.
    """
    states, known = dict(alerts.states), False
    gone: list[Undelivered] = []
    for turn in reversed(_turns(alerts, night)):
        first = turn[0]
        if first.undo is None:  # of an earlier version, which had no batches
            continue
        if _are(states, first.redo):
            known = True
            states |= first.undo
        else:
            gone += turn
    return gone if known else []


def _are(states: Mapping[str, AlertState], told: Mapping[str, AlertState]) -> bool:
    """Whether the states of some alerts are those after a message."""
    return bool(told) and all(states.get(key, AlertState()) == was for key, was in told.items())


def _is_short(turn: Sequence[Undelivered]) -> bool:
    """Whether some of a batch's messages are missing: sent, or never queued."""
    return len(turn) < max(one.together for one in turn)


def _is_unwritten(states: Mapping[str, AlertState], turn: Sequence[Undelivered]) -> bool:
    """Whether the states are those before the messages: the run died before it wrote the state, so
    it sent nothing.
    """
    return all(
        one.undo and all(states.get(key, AlertState()) == was for key, was in one.undo.items())
        for one in turn
    )


def _without(alerts: AlertStore, gone: Sequence[Undelivered]) -> AlertStore:
    return alerts.model_copy(
        update={"outbox": tuple(one for one in alerts.outbox if one not in gone)}
    )


def deliver(
    alerts: AlertStore,
    send: Callable[[Message], None],
    sent: Callable[[Undelivered], None] = lambda _: None,
) -> tuple[AlertStore, list[RagmetricsError]]:
    """Send the outbox, oldest first; return the alert store without sent messages, and the errors.

    A refused message stays, and the next one is tried. A transient error ends the round. `sent` is
    called after each sent message, before the next one; its errors are raised.
    """
    unsent: list[Undelivered] = []
    errors: list[RagmetricsError] = []
    for waiting in alerts.outbox:
        if errors and errors[-1].transient:
            unsent.append(waiting)
            continue
        try:
            send(waiting.message)
        except RagmetricsError as error:
            errors.append(error)
            unsent.append(waiting)
        else:
            sent(waiting)
    return alerts.model_copy(update={"outbox": tuple(unsent)}), errors

"""What becomes of messages that wait: sent, taken back by a rerun, or caught up with.

A run writes its messages before it writes the state of their alerts. So the outbox says what people
are about to hear, also where the run died before the state said so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date

from ragmetrics.alerts.alert_store import AlertState, AlertStore, Message, Undelivered
from ragmetrics.errors import RagmetricsError


def withdraw(book: AlertStore, night: date) -> AlertStore:
    """The book as if this night's undelivered messages had never been queued.

    As it is where some of them went out: what people were told is not told again, and the others
    still wait.
    """
    turns = sorted({one.turn for one in book.outbox if one.night == night}, reverse=True)
    for turn in turns:
        back = [one for one in book.outbox if (one.night, one.turn) == (night, turn)]
        if _is_short(back) and not _is_unwritten(book.states, back):
            break  # what an earlier turn told is what this one was told upon
        states = dict(book.states)
        for one in back:
            own = book.undo if book.night == night else {}
            states |= own if one.undo is None else one.undo
        book = _without(book, back).model_copy(update={"states": states})
    return book


def recover(book: AlertStore, night: date) -> AlertStore:
    """The book with what waits from earlier nights in it, before it is advanced to this one.

    A run that died between the outbox and the state, and was not repeated, left the state as if
    nobody would hear of its night: the next night would tell the same again. Where it died before
    all channels had their message, none of them is sent: the next night tells how it is. Where it
    was a rerun, the messages that it was about to take back are still there beside its own: only
    those that the state knows are sent.
    """
    late = {
        one.night
        for one in book.outbox
        if one.night < night and not (book.night and one.night < book.night)
    }
    for day in sorted(late):
        book = _without(book, _replaced(book, day))
        for turn in _turns(book, day):
            if not _is_unwritten(book.states, turn):
                continue
            if _is_short(turn):
                book = _without(book, turn)
                continue
            states = dict(book.states)
            for key in turn[0].undo or {}:
                states[key] = turn[0].redo.get(key, AlertState())
            book = book.model_copy(update={"states": states})
    return book


def _turns(book: AlertStore, night: date) -> list[list[Undelivered]]:
    """What waits of a night, turn by turn."""
    found: dict[int, list[Undelivered]] = {}
    for one in book.outbox:
        if one.night == night:
            found.setdefault(one.turn, []).append(one)
    return [found[number] for number in sorted(found)]


def _replaced(book: AlertStore, night: date) -> list[Undelivered]:
    """What waits of a night, and is of a run whose state was never written, or was written over:
    another turn is what the state says. Nothing where no turn is: then nobody knows.
    """
    states, known = dict(book.states), False
    gone: list[Undelivered] = []
    for turn in reversed(_turns(book, night)):
        first = turn[0]
        if first.undo is None:  # of an earlier version, which knew no turns
            continue
        if _are(states, first.redo):
            known = True
            states |= first.undo
        else:
            gone += turn
    return gone if known else []


def _are(states: Mapping[str, AlertState], told: Mapping[str, AlertState]) -> bool:
    """Whether some alerts are as a message tells them."""
    return bool(told) and all(states.get(key, AlertState()) == was for key, was in told.items())


def _is_short(turn: Sequence[Undelivered]) -> bool:
    """Whether some of a turn's messages are not there: sent, or never queued."""
    return len(turn) < max(one.together for one in turn)


def _is_unwritten(states: Mapping[str, AlertState], turn: Sequence[Undelivered]) -> bool:
    """Whether the alerts are as they were before: a run died before it wrote the state, and so
    before it sent anything.
    """
    return all(
        one.undo and all(states.get(key, AlertState()) == was for key, was in one.undo.items())
        for one in turn
    )


def _without(book: AlertStore, gone: Sequence[Undelivered]) -> AlertStore:
    return book.model_copy(update={"outbox": tuple(one for one in book.outbox if one not in gone)})


def deliver(
    book: AlertStore,
    send: Callable[[Message], None],
    sent: Callable[[Undelivered], None] = lambda _: None,
) -> tuple[AlertStore, list[RagmetricsError]]:
    """Send the outbox, oldest first; return the book without what went out, and what failed.

    A message that is refused stays and lets the next one try; a transient error ends the round.
    `sent` is told of each that went out before the next one goes; what it raises is raised.
    """
    kept: list[Undelivered] = []
    errors: list[RagmetricsError] = []
    for waiting in book.outbox:
        if errors and errors[-1].transient:
            kept.append(waiting)
            continue
        try:
            send(waiting.message)
        except RagmetricsError as error:
            errors.append(error)
            kept.append(waiting)
        else:
            sent(waiting)
    return book.model_copy(update={"outbox": tuple(kept)}), errors


__all__ = ["deliver", "recover", "withdraw"]

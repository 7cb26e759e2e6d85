"""The alert store: states of alerts, and messages that are not delivered.

alerts/state.json     the state of each alert after the newest night
alerts/outbox/*.json  the messages that their channels have not confirmed

Only nights write them. `silence_store` and `slack_threads` have the other files of `alerts/`, so
that a command and a night do not overwrite each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pydantic import Field

from ragmetrics.messages import Message
from ragmetrics.records import AlertState, Record

MOST_NIGHTS = 90
"""Notified nights that are known."""


class Undelivered(Record):
    """A message that its channel has not confirmed yet."""

    night: date
    message: Message
    channel: str = "slack"
    turn: int = 0
    """Number of the run's batch of messages within the night. A rerun gets a later number while
    messages of an earlier batch still wait."""
    together: int = 1
    """Number of messages in its batch, for all channels, itself included."""
    undo: dict[str, AlertState] | None = None
    """States of its alerts before the message; None: see `AlertStore.undo`."""
    redo: dict[str, AlertState] = Field(default_factory=dict)
    """States of its alerts after the message, in case the run died before it wrote them."""
    queued: date | None = None
    """The newest night when a message of a late night was queued; None: the message's own."""


class AlertStore(Record):
    """All alert states by `Finding.key`, and the messages that are not delivered yet."""

    night: date | None = None
    """The newest night of the states."""
    nights: tuple[date, ...] = ()
    """The last nights that were notified of, oldest first; an earlier version stored none."""
    states: dict[str, AlertState] = Field(default_factory=dict)
    outbox: tuple[Undelivered, ...] = ()
    undo: dict[str, AlertState] = Field(default_factory=dict)
    """States of tonight's notified alerts before tonight, in case the message is withdrawn."""

    def queue(
        self,
        messages: Sequence[tuple[str, Message]],
        waited: Sequence[Undelivered] = (),
        night: date | None = None,
    ) -> AlertStore:
        """This store with tonight's messages in the outbox, each with the name of its channel.

        Call `advance_states` first. `waited` are the messages that waited before it. Withdrawn
        messages stay in the outbox folder until the state is written. So only equal messages may
        have their batch number. `night` is that of the messages; None: the newest night. Those of
        a late night change no state when they are withdrawn, so they have no states.
        """
        night = night or self.night
        if night is None or self.night is None:
            raise ValueError("no night to queue a message for: call advance_states first")
        undo = self.undo if night == self.night else {}
        redo = {key: self.states[key] for key in undo if key in self.states}
        fresh = [
            Undelivered(
                night=night,
                message=message,
                channel=channel,
                together=len(messages),
                undo=undo,
                redo=redo,
                queued=None if night == self.night else self.night,
            )
            for channel, message in messages
        ]
        mine = [one for one in waited if one.night == night and one not in self.outbox]
        turn = _same_turn(fresh, mine)
        if turn is None:
            turns = [one.turn for one in (*waited, *self.outbox) if one.night == night]
            turn = max(turns, default=-1) + 1
        queued = (one.model_copy(update={"turn": turn}) for one in fresh)
        return self.model_copy(update={"outbox": (*self.outbox, *queued)})


def _same_turn(fresh: Sequence[Undelivered], waited: Sequence[Undelivered]) -> int | None:
    """The batch number of equal waiting messages; None where there are none."""
    for turn in sorted({one.turn for one in waited}):
        if all(one.model_copy(update={"turn": turn}) in waited for one in fresh):
            return turn
    return None

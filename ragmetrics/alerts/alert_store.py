"""The book: what is kept of all alerts from night to night, and of the messages about them.

alerts/state.json     the state of each alert, as the newest night left it
alerts/outbox/*.json  the messages that their channels have not confirmed yet
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from pydantic import Field, model_validator

from ragmetrics.model import Finding, Notification, Record, State

Tone = Literal["info", "success", "warning", "failure"]
"""How services mark a message that know more than text."""


@dataclass(frozen=True)
class Message:
    """What is posted: `text` for notifications, in one line, and Block Kit blocks as JSON."""

    text: str
    blocks: list[dict[str, Any]]
    tone: Tone = "info"
    about: tuple[str, ...] = ()
    """Keys of the alerts that it is about, where that decides on its thread."""
    opens: bool = False
    """Whether their thread begins with it,"""
    broadcast: bool = False
    """or, told in their thread, it is shown in the channel too."""


class AlertState(Record):
    """One alert after the last night that judged it; the default is an alert never seen."""

    state: State = "ok"
    since: date | None = None
    """First night of the present pending or firing spell."""
    nights: int = 0
    """Judged nights in a row that were not ok."""
    last_night: date | None = None
    last_sent: date | None = None
    """Night of the last message about this alert."""
    told: date | None = None
    """First night of the spell that lasts for all that people were told, if one does."""
    notified: Notification | None = None
    """The last numbers that people were told of it while it fires, from which worse is measured."""
    unsilenced: datetime | None = None
    """Silences made until then have ended, as the alert escalated."""
    snoozed: bool = False
    """Whether the newest night was kept from people: what is, is told once that is over."""
    finding: Finding | None = None
    """As judged on `last_night`."""
    previous: AlertState | None = None
    """As it was before `last_night`: where a rerun of that night starts from."""

    @model_validator(mode="before")
    @classmethod
    def _told_all(cls, data: Any) -> Any:
        """Before there were silences, what fired had been told; before there were escalations, the
        night of the last message was kept, and not what it said.
        """
        if not isinstance(data, dict):
            return data
        if "told" not in data and data.get("state") == "firing":
            data = {**data, "told": data.get("since")}
        if "notified" not in data and data.get("told") and data.get("last_sent"):
            data = {**data, "notified": {"night": data["last_sent"]}}
        return data


class Undelivered(Record):
    """A message that its channel has not confirmed yet."""

    night: date
    message: Message
    channel: str = "slack"
    turn: int = 0
    """Of the night: a rerun tells in a later turn while something of an earlier one still waits."""
    together: int = 1
    """Messages of its turn, for all channels, itself included."""
    undo: dict[str, AlertState] | None = None
    """The alerts that it tells of as they were before; None: as the book says,"""
    redo: dict[str, AlertState] = Field(default_factory=dict)
    """and as they are since: a run that died may not have written that."""


class AlertStore(Record):
    """All alerts by `Finding.key`, and the messages that still have to go out."""

    night: date | None = None
    """The newest night that was advanced to."""
    states: dict[str, AlertState] = Field(default_factory=dict)
    outbox: tuple[Undelivered, ...] = ()
    undo: dict[str, AlertState] = Field(default_factory=dict)
    """The alerts of tonight's transitions as they were before: used if the message never went."""

    def queue(
        self, messages: Sequence[tuple[str, Message]], waited: Sequence[Undelivered] = ()
    ) -> AlertStore:
        """This book with tonight's messages in the outbox, each after the name of its channel.

        `advance` was called before. `waited` is what waited before that: what of it was taken back
        is still in the store until the state is written, so its turn is given to the very same
        messages alone.
        """
        if self.night is None:
            raise ValueError("no night to queue a message for: call advance first")
        redo = {key: self.states[key] for key in self.undo if key in self.states}
        fresh = [
            Undelivered(
                night=self.night,
                message=message,
                channel=channel,
                together=len(messages),
                undo=self.undo,
                redo=redo,
            )
            for channel, message in messages
        ]
        mine = [one for one in waited if one.night == self.night and one not in self.outbox]
        turn = _same_turn(fresh, mine)
        if turn is None:
            turns = [one.turn for one in (*waited, *self.outbox) if one.night == self.night]
            turn = max(turns, default=-1) + 1
        queued = (one.model_copy(update={"turn": turn}) for one in fresh)
        return self.model_copy(update={"outbox": (*self.outbox, *queued)})


def _same_turn(fresh: Sequence[Undelivered], waited: Sequence[Undelivered]) -> int | None:
    """The turn in which the very same messages waited; None where there is no such turn."""
    for turn in sorted({one.turn for one in waited}):
        if all(one.model_copy(update={"turn": turn}) in waited for one in fresh):
            return turn
    return None


__all__ = ["AlertState", "AlertStore", "Message", "Tone", "Undelivered"]

"""Findings become transitions: what people are told, once, however often a night is run.

    ok ──> pending ──> firing ──> ok        told: `fired`, `reminded` while it lasts, `resolved`

Nothing here reads a file, a clock or the network. One run does, in this order:

    book, findings = advance(book, findings, night, remind_days)
    book = book.queue(message)              if there is one
    (write its outbox)
    book, errors = deliver(book, send)
    (write the book)

so that a run that dies before the write is told again by its rerun, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import Field

from ragmetrics.errors import RagmetricsError
from ragmetrics.records import Finding, Record, State, Transition

UNJUDGED = 0
"""`for_nights` of findings that `advance` adds: nothing was judged. No rule says 0."""


@dataclass(frozen=True)
class Message:
    """What is posted: `text` for notifications, in one line, and Block Kit blocks as JSON."""

    text: str
    blocks: list[dict[str, Any]]


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
    finding: Finding | None = None
    """As judged on `last_night`."""
    previous: AlertState | None = None
    """As it was before `last_night`: where a rerun of that night starts from."""


class Undelivered(Record):
    """A message that Slack has not confirmed yet."""

    night: date
    message: Message


class Book(Record):
    """All alerts by `Finding.key`, and the messages that still have to go out."""

    night: date | None = None
    """The newest night that was advanced to."""
    states: dict[str, AlertState] = Field(default_factory=dict)
    outbox: tuple[Undelivered, ...] = ()
    undo: dict[str, AlertState] = Field(default_factory=dict)
    """The alerts of tonight's transitions as they were before: used if the message never went."""

    def queue(self, message: Message) -> Book:
        """This book with tonight's message in the outbox; `advance` was called before."""
        if self.night is None:
            raise ValueError("no night to queue a message for: call advance first")
        waiting = Undelivered(night=self.night, message=message)
        return self.model_copy(update={"outbox": (*self.outbox, waiting)})


def advance(
    book: Book, findings: Sequence[Finding], night: date, remind_days: int
) -> tuple[Book, list[Finding]]:
    """Move every alert to `night`; give the findings back with state, transition and since.

    - `breach` and `no_data` fire at once, `suspect` on the `for_nights`-th judged night in a row
      that is not ok, or never where that is None. A firing alert stays so until it is `ok`.
      Pending to ok is silent.
    - A rerun of the newest night starts from the night before it. What was delivered is not told
      again; a message of this night still in the outbox is taken back and its transitions told
      anew. If the rerun comes to another result, people are told of the difference.
    - An older night (a backfill) changes nothing and has no transitions.
    - A firing alert without a finding (its rule was removed, its segment is gone, or the night's
      own troubles silence it) stays as it is and is listed at the end as a `no_data` finding.
      After `remind_days` without one it is closed on the first night without such troubles, which
      is told as `resolved` with a message that says why. Others are forgotten then.
    - The findings given back may be given again with the same book: the answer is the same.

    The `since` of a resolved finding is the first night of the spell that ended.
    """
    if book.night is not None and night < book.night:
        return book, [finding.model_copy(update={"transition": None}) for finding in findings]
    book = _take_back(book, night)
    states: dict[str, AlertState] = {}
    told: list[Finding] = []
    judged = [finding for finding in findings if finding.for_nights != UNJUDGED]
    # A judge's drift lasts for weeks and silences nothing, so it keeps no alert from being closed.
    health = (one for one in judged if one.kind not in ("metric", "judge_drift"))
    healthy = all(one.level == "ok" for one in health)
    for finding in judged:
        was = book.states.get(finding.key, AlertState())
        states[finding.key], said = _judge(was, finding, night, remind_days)
        told.append(said)
    for key, was in book.states.items():
        if key in states or was.finding is None or was.last_night is None:
            continue
        stale = healthy and (night - was.last_night).days >= remind_days
        if was.state == "firing":
            told.append(_unheard(was, was.finding, closed=stale))
            states[key] = _closed(was, night) if stale else was
        elif not stale:
            states[key] = was
    undo = {f.key: book.states.get(f.key, AlertState()) for f in told if f.transition}
    return Book(night=night, states=states, outbox=book.outbox, undo=undo), told


def deliver(
    book: Book,
    send: Callable[[Message], None],
    sent: Callable[[Undelivered], None] = lambda _: None,
) -> tuple[Book, list[RagmetricsError]]:
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


def _take_back(book: Book, night: date) -> Book:
    """The book as if this night's undelivered message had never been queued."""
    kept = tuple(waiting for waiting in book.outbox if waiting.night != night)
    if len(kept) == len(book.outbox):
        return book
    # Of another night where the run died before it wrote the state: nothing to undo then.
    undo = book.undo if book.night == night else {}
    return book.model_copy(update={"outbox": kept, "states": {**book.states, **undo}})


def _judge(
    was: AlertState, finding: Finding, night: date, remind_days: int
) -> tuple[AlertState, Finding]:
    base = (was.previous or AlertState()) if was.last_night == night else was
    state: State = "ok"
    since, nights = None, 0
    if finding.level != "ok":
        since, nights = base.since or night, base.nights + 1
        waits = finding.for_nights is None or nights < finding.for_nights
        sure = finding.level != "suspect" or not waits
        state = "firing" if sure or "firing" in (base.state, was.state) else "pending"
    transition = _transition(was, state, night, remind_days)
    now = AlertState(
        state=state,
        since=since,
        nights=nights,
        last_night=night,
        last_sent=night if transition else was.last_sent,
        finding=finding,
        previous=_bare(base),
    )
    spell = was.since if transition == "resolved" else since
    said = {"state": state, "transition": transition, "since": spell}
    return now, finding.model_copy(update=said)


def _transition(was: AlertState, state: State, night: date, remind_days: int) -> Transition | None:
    """What people have to be told: `was.state` is what they know."""
    if state == "firing" and was.state != "firing":
        return "fired"
    if state != "firing" and was.state == "firing":
        return "resolved"
    if state == "firing" and was.last_sent and (night - was.last_sent).days >= remind_days:
        return "reminded"
    return None


def _bare(state: AlertState) -> AlertState:
    """The state without its own history: one night back is enough."""
    return state.model_copy(update={"previous": None})


def _closed(was: AlertState, night: date) -> AlertState:
    return AlertState(last_night=night, last_sent=night, finding=was.finding, previous=_bare(was))


def _unheard(was: AlertState, last: Finding, *, closed: bool) -> Finding:
    """What is said of a firing alert that nothing judges any more."""
    what = (last.metric or last.kind) + (f" of {last.segment}" if last.segment else "")
    end = "; its rule was removed or its segment is gone" if closed else ""
    return Finding(
        key=last.key,
        kind=last.kind,
        level="no_data",
        severity=last.severity,
        rule=last.rule,
        message=f"{what}: not checked since {was.last_night}{end}",
        metric=last.metric,
        segment=last.segment,
        for_nights=UNJUDGED,
        state="ok" if closed else "firing",
        transition="resolved" if closed else None,
        since=was.since,
    )


__all__ = ["AlertState", "Book", "Message", "Undelivered", "advance", "deliver"]

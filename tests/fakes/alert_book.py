"""Alerts over nights in memory, as a store has them: nights may be run again, and out of order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from ragmetrics.delivery.outbox import Batches, MessageBatch, Waiting
from ragmetrics.delivery.state import NO_SILENCES, AlertStates, judge_findings, messages_of
from ragmetrics.delivery.state_fold import states_after
from ragmetrics.messages import Message
from ragmetrics.messages.blocks import Section
from ragmetrics.records import AlertState, Finding, Manifest, Silence
from ragmetrics.storage import Files
from tests.fakes.nights import night as a_night

NO_STORE = Files("/nowhere")
NIGHT = a_night()


@dataclass(frozen=True)
class Book:
    """The manifests of nights, and what was told of them."""

    nights: Mapping[date, Manifest] = field(default_factory=dict)
    batches: Batches = field(default_factory=lambda: Batches({}, [], []))
    remind_days: int = 7
    runs: int = 0
    """Number of runs; the next one finishes later than all of them."""

    @property
    def night(self) -> date | None:
        """The newest night."""
        return max(self.nights, default=None)

    @property
    def states(self) -> dict[str, AlertState]:
        """The states after the newest night."""
        return self.before(date.max).states

    @property
    def waiting(self) -> list[MessageBatch]:
        """What is not delivered yet, oldest first."""
        return list(self.batches.waiting.values())

    def before(self, night: date) -> AlertStates:
        """The states before a night."""
        earlier = [one for day, one in sorted(self.nights.items()) if day < night]
        return states_after(NO_STORE, earlier, self.batches, self.remind_days, night)

    def known(self, night: date) -> AlertStates:
        """The states before a night, with what people know about it already."""
        return self.before(night).heard(self.batches.told_tonight(night))

    def delivered(self) -> Book:
        """The same after every channel has its messages."""
        done = [
            batch.model_copy(update={"waiting": [], "delivered": ["slack"]})
            for batch in self.waiting
        ]
        return replace(self, batches=Batches({}, [*self.batches.done, *done], []))


def run(
    book: Book,
    findings: Sequence[Finding],
    night: date,
    remind_days: int,
    silences: Mapping[str, Silence] = NO_SILENCES,
    text: str = "hello",
) -> tuple[Book, list[Finding]]:
    """Run a night, whose message waits for its channel. An older night is silent."""
    book = replace(book, remind_days=remind_days)
    silent = book.night is not None and night < book.night
    before = book.before(night)
    known = before.heard(book.batches.told_tonight(night))
    judged, found = judge_findings(known, findings, night, remind_days, silences)
    if silent:
        found = [one.model_copy(update={"transition": None}) for one in found]
    seen = NIGHT.finished_at + timedelta(minutes=book.runs)
    fields = {"date": night, "findings": found, "silent": silent, "finished_at": seen}
    fields |= {"alerts": before.snapshot}
    manifest = NIGHT.model_copy(update=fields)
    told = messages_of(judged, found, manifest.run)
    taken = book.batches.replaced(night) if not silent else {}
    waiting = {name: one for name, one in book.batches.waiting.items() if name not in taken}
    if told:
        number = len(book.batches.settled(night))
        message = Message(text, [Section(one.finding.key, one.transition) for one in told])
        batch = MessageBatch(
            night=night, number=number, told=told, waiting=[Waiting(message=message)]
        )
        waiting[batch.name] = batch
    batches = replace(book.batches, waiting=waiting)
    nights = {**book.nights, night: manifest}
    return replace(book, nights=nights, batches=batches, runs=book.runs + 1), found


def advance(
    book: Book,
    findings: Sequence[Finding],
    night: date,
    remind_days: int,
    silences: Mapping[str, Silence] = NO_SILENCES,
) -> tuple[Book, list[Finding]]:
    """Run a night whose message is delivered at once."""
    book, found = run(book, findings, night, remind_days, silences)
    return book.delivered(), found

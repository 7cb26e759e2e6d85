"""Delivery: tonight's transitions as messages to the channels, and the state of all alerts.

In this order, so that whatever dies in between, and whoever does the same at the same time, no
message is lost:

    the messages into the outbox -> the state -> each message to its channel, and out of the outbox

Messages that wait since other nights go first, each to its channel and out of the outbox before the
next. So a run that dies, or whose store fails, repeats at worst the one that was taken last; and a
channel that fails repeats nothing of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import ValidationError

from ragmetrics.alerts import outbox
from ragmetrics.alerts.channels import SLACK, Channel, Tell, channels
from ragmetrics.alerts.silences import silences
from ragmetrics.alerts.slack import compose
from ragmetrics.alerts.state import Book, Message, Undelivered, advance, deliver
from ragmetrics.errors import StoreError
from ragmetrics.records import Finding, Manifest
from ragmetrics.settings import Settings
from ragmetrics.store.files import Files
from ragmetrics.superseding import speaks

BOOK = "alerts/state.json"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Delivery:
    """What became of a night's message."""

    message: Message | None
    """None: nothing changed, nothing to say."""
    sent: bool
    errors: tuple[str, ...] = ()
    """Why messages are still undelivered; they are kept, and the next run sends them."""


def load_book(files: Files) -> Book:
    """The state of all alerts, with what waits in the outbox.

    Raises StoreError where it cannot be read as such.
    """
    return _with_outbox(_load_state(files), files)


def _with_outbox(state: Book, files: Files) -> Book:
    """The state has messages of its own where an earlier version wrote it."""
    more = (one for one in outbox.waiting(files) if one not in state.outbox)
    return state.model_copy(update={"outbox": (*state.outbox, *more)})


def _load_state(files: Files) -> Book:
    data = files.find(BOOK)
    try:
        return Book() if data is None else Book.model_validate_json(data)
    except ValidationError as error:
        raise StoreError(f"{files.uri(BOOK)}: not a state of alerts: {error}") from error


def alert(
    settings: Settings, files: Files, manifest: Manifest, run_url: str | None = None
) -> Delivery:
    """Tell every channel what changed with this night.

    Without a webhook or bot in the environment nothing is sent to Slack and the state advances all
    the same; a message that waits goes on waiting, anew where the night's own was taken back. Other
    channels were asked for, so what they cannot be sent is kept.
    A run that does not speak for its night any more has nothing to say of it.
    """
    stored = _load_state(files)
    before = _with_outbox(stored, files)
    reached = channels(settings.alerts, files)
    book, message = before, None
    spoke = speaks(files, manifest)
    if spoke:
        days = settings.alerts.remind_days
        book, findings = advance(before, manifest.findings, manifest.date, days, silences(files))
        tell = partial(
            compose,
            manifest,
            dashboard=dashboard_link(settings, files, manifest),
            redact=settings.alerts.redact,
            run_url=run_url,
        )
        message = tell(findings)
        again = {one.channel for one in before.outbox if one not in book.outbox}
        book = _queued(book, reached, findings, tell, again)
    kept = [one for one in before.outbox if one not in stored.outbox]
    outbox.keep(files, [one for one in book.outbox if one not in kept])
    if spoke:
        _save_state(settings, files, manifest, stored, book)
    outbox.drop(files, [one for one in before.outbox if one not in book.outbox])
    errors = tuple(_send_all(files, book, reached))
    for error in errors:
        log.error("%s", error)
    able = any(not one.lacks for one in reached)
    return Delivery(message, sent=able and message is not None and not errors, errors=errors)


def _queued(
    book: Book,
    reached: Sequence[Channel],
    findings: Sequence[Finding],
    tell: Tell,
    again: Collection[str],
) -> Book:
    """The book with tonight's messages; `again` are channels whose message was taken back."""
    messages = [
        (channel.name, message)
        for channel in reached
        if not channel.lacks or channel.name != SLACK or channel.name in again
        for message in channel.messages(findings, tell)
    ]
    if not messages or book.night is None:
        return book
    queued = [
        Undelivered(
            night=book.night,
            message=message,
            channel=name,
            together=len(messages),
            undo=book.undo,
        )
        for name, message in messages
    ]
    return book.model_copy(update={"outbox": (*book.outbox, *queued)})


def _send_all(files: Files, book: Book, reached: Sequence[Channel]) -> Iterator[str]:
    """Send what waits for each channel; why it is still undelivered, where it is."""
    names = [one.name for one in reached]
    for one in book.outbox:
        if one.channel not in names:
            log.warning("message of %s dropped: no channel %s any more", one.night, one.channel)
            outbox.drop(files, [one])
    for channel in reached:
        mine = tuple(one for one in book.outbox if one.channel == channel.name)
        if channel.lacks:
            if mine and channel.name != SLACK:
                yield f"message kept for the next run: {channel.lacks} is not set"
            continue
        waiting = book.model_copy(update={"outbox": mine})
        _, failed = deliver(waiting, channel.send, lambda one: outbox.drop(files, [one]))
        what = "Slack message" if channel.name == SLACK else "message"
        yield from (f"{what} kept for the next run: {error}" for error in failed)


def _save_state(
    settings: Settings, files: Files, manifest: Manifest, stored: Book, book: Book
) -> None:
    """Write the state. Where another run wrote its own meanwhile, this night follows upon that."""
    now = _load_state(files)
    bare: dict[str, object] = {"outbox": ()}
    if now != stored:
        if now.night and now.night > manifest.date:
            return
        undo = book.undo
        book, _ = advance(
            now.model_copy(update=bare),
            manifest.findings,
            manifest.date,
            settings.alerts.remind_days,
            silences(files),
        )
        # Of the message that this run may still have in the outbox.
        book = book.model_copy(update={"undo": {**now.undo, **undo}})
    files.write(BOOK, book.model_copy(update=bare).model_dump_json(indent=1).encode())


def dashboard_link(settings: Settings, files: Files, manifest: Manifest) -> str:
    """Where people find the night's page."""
    return page_link(settings, files, f"{manifest.date.isoformat()}/index.html")


def page_link(settings: Settings, files: Files, page: str) -> str:
    """Where people find a page of the dashboard."""
    if settings.dashboard_url:
        return f"{settings.dashboard_url.rstrip('/')}/{page}"
    return files.uri(f"dashboard/{page}")

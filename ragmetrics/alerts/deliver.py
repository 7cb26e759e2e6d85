"""Delivery: tonight's transitions as one message to Slack, and the state written after it went.

In this order, so that whatever dies in between, and whoever does the same at the same time, no
message is lost:

    the message into the outbox -> to Slack -> out of the outbox -> the state

Messages that wait since other nights go first, each to Slack and out of the outbox before the next.
So a run that dies, or whose store fails, repeats at worst the one that Slack took last.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

from pydantic import ValidationError

from ragmetrics.alerts import outbox
from ragmetrics.alerts.slack import compose
from ragmetrics.alerts.state import Book, Message, advance, deliver
from ragmetrics.errors import RagmetricsError, StoreError
from ragmetrics.judge_settings import api_key
from ragmetrics.records import Manifest
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
    """Why a message is still undelivered; it is kept, and the next run sends it."""


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
    """Tell Slack what changed with this night, then write the state.

    Without a webhook in the environment nothing is sent and the state advances all the same; a
    message that waits goes on waiting, anew where the night's own was taken back.
    A run that does not speak for its night any more has nothing to say of it.
    """
    stored = _load_state(files)
    before = _with_outbox(stored, files)
    book, message = before, None
    spoke = speaks(files, manifest)
    if spoke:
        book, findings = advance(
            before, manifest.findings, manifest.date, settings.alerts.remind_days
        )
        message = compose(
            manifest,
            findings,
            dashboard=dashboard_link(settings, files, manifest),
            redact=settings.alerts.redact,
            run_url=run_url,
        )
    webhook = api_key(settings.alerts.slack_webhook_env, os.environ)
    queued = book
    if message and (webhook or book.outbox != before.outbox):  # or one that waits was taken back
        queued = book.queue(message)
    kept = [one for one in before.outbox if one not in stored.outbox]
    outbox.keep(files, [one for one in queued.outbox if one not in kept])
    book, failed = queued, list[RagmetricsError]()
    if webhook is not None:
        from ragmetrics.alerts.webhook import send

        book, failed = deliver(
            queued, lambda one: send(one, webhook), lambda one: outbox.drop(files, [one])
        )
    errors = tuple(str(error) for error in failed)
    for error in errors:
        log.error("Slack message not delivered, kept for the next run: %s", error)
    if spoke:
        _save_state(settings, files, manifest, stored, book)
    outbox.drop(files, [one for one in before.outbox if one not in queued.outbox])
    return Delivery(
        message, sent=webhook is not None and message is not None and not errors, errors=errors
    )


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

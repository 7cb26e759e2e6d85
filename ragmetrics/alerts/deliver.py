"""Delivery: tonight's transitions as one message to Slack, and the state written after it went."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass

from pydantic import ValidationError

from ragmetrics.alerts.slack import compose
from ragmetrics.alerts.state import Book, Message, advance, deliver
from ragmetrics.errors import StoreError
from ragmetrics.judge_settings import api_key
from ragmetrics.records import Manifest
from ragmetrics.settings import Settings
from ragmetrics.store.files import Files

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
    """The state of all alerts; raises StoreError where it cannot be read as such."""
    data = files.find(BOOK)
    try:
        return Book() if data is None else Book.model_validate_json(data)
    except ValidationError as error:
        raise StoreError(f"{files.uri(BOOK)}: not a state of alerts: {error}") from error


def alert(
    settings: Settings, files: Files, manifest: Manifest, run_url: str | None = None
) -> Delivery:
    """Tell Slack what changed with this night, then write the state.

    Without a webhook in the environment nothing is sent and the state advances all the same.
    """
    book, findings = advance(
        load_book(files), manifest.findings, manifest.date, settings.alerts.remind_days
    )
    message = compose(
        manifest,
        findings,
        dashboard=dashboard_link(settings, files, manifest),
        redact=settings.alerts.redact,
        run_url=run_url,
    )
    webhook = api_key(settings.alerts.slack_webhook_env, os.environ)
    errors: tuple[str, ...] = ()
    if webhook is not None:
        from ragmetrics.alerts.webhook import send

        book = book.queue(message) if message else book
        book, failed = deliver(book, lambda one: send(one, webhook))
        errors = tuple(str(error) for error in failed)
        for error in errors:
            log.error("Slack message not delivered, kept for the next run: %s", error)
    files.write(BOOK, book.model_dump_json(indent=1).encode())
    return Delivery(
        message, sent=webhook is not None and message is not None and not errors, errors=errors
    )


def dashboard_link(settings: Settings, files: Files, manifest: Manifest) -> str:
    """Where people find the night's page."""
    return page_link(settings, files, f"{manifest.date.isoformat()}/index.html")


def page_link(settings: Settings, files: Files, page: str) -> str:
    """Where people find a page of the dashboard."""
    if settings.dashboard_url:
        return f"{settings.dashboard_url.rstrip('/')}/{page}"
    return files.uri(f"dashboard/{page}")

"""Delivery: tonight's transitions as messages to the channels, and the state of all alerts.

In this order, so that whatever dies in between, and whoever does the same at the same time, no
message is lost:

    the messages into the outbox -> the state -> each message to its channel, and out of the outbox

Messages that wait since other nights go first, each to its channel and out of the outbox before the
next. So a run that dies, or whose store fails, repeats at worst the one that was taken last; and a
channel that fails, or hangs, repeats nothing of the others and keeps none of them waiting for long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from pydantic import ValidationError

from ragmetrics.alerts import outbox
from ragmetrics.alerts.alert_store import AlertStore, Message, Undelivered
from ragmetrics.alerts.missed_nights import find_earlier, with_missed_nights
from ragmetrics.alerts.notification_channels import SLACK, Channel, ComposeMessage, channels
from ragmetrics.alerts.outbox_recovery import deliver
from ragmetrics.alerts.silencing import silences
from ragmetrics.alerts.slack import compose
from ragmetrics.alerts.state import advance_states
from ragmetrics.alerts.timeouts import CHANNEL_TIMEOUT, with_timeout
from ragmetrics.config import Settings
from ragmetrics.errors import StoreError
from ragmetrics.model import Finding, Manifest, explain_validation_error
from ragmetrics.storage import Files, is_current

STATE_FILE = "alerts/state.json"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Delivery:
    """What became of a night's message."""

    message: Message | None
    """None: nothing changed, nothing to say."""
    sent: bool
    errors: tuple[str, ...] = ()
    """Why messages are still undelivered; they are kept, and the next run sends them."""


def load_alerts(files: Files) -> AlertStore:
    """The state of all alerts, with what waits in the outbox.

    Raises StoreError where it cannot be read as such.
    """
    return _with_outbox(_load_state(files), files)


def _with_outbox(state: AlertStore, files: Files) -> AlertStore:
    """The state has messages of its own where an earlier version wrote it."""
    more = (one for one in outbox.waiting_messages(files) if one not in state.outbox)
    return state.model_copy(update={"outbox": (*state.outbox, *more)})


def _load_state(files: Files) -> AlertStore:
    data = files.find(STATE_FILE)
    try:
        return AlertStore() if data is None else AlertStore.model_validate_json(data)
    except ValidationError as error:
        reason = explain_validation_error(error)
        raise StoreError(f"{files.uri(STATE_FILE)}: not a state of alerts: {reason}") from None


def notify_channels(
    settings: Settings, files: Files, manifest: Manifest, run_url: str | None = None
) -> Delivery:
    """Tell every channel what changed with this night, and with those that were missed before it.

    A store that cannot be written keeps nobody from being told.
    Without a webhook or bot in the environment nothing is sent to Slack and the state advances all
    the same; a message that waits goes on waiting, anew where the night's own was taken back. Other
    channels were asked for, so what they cannot be sent is kept.
    A run that does not speak for its night any more has nothing to say of it.
    """
    stored = _load_state(files)
    before = _with_outbox(stored, files)
    reached = channels(settings.alerts, files)
    book, message, names = before, None, set[str]()
    spoke = is_current(files, manifest)
    if spoke:
        days = settings.alerts.remind_days
        quiet, found = silences(files), manifest.findings
        earlier = find_earlier(files, before, manifest.date)
        known = with_missed_nights(before, earlier, found, days)
        book, findings = advance_states(known, found, manifest.date, days, quiet, manifest.run)
        tell = message_composer(settings, files, manifest, run_url)
        message = tell(findings)
        again = {one.channel for one in before.outbox if one not in book.outbox}
        told = alert_messages(_asked(reached, again), findings, tell)
        queued = book.queue(told, before.outbox) if told else book
        book, names = queued, {name for name, _ in told}

    def save() -> None:
        if spoke:
            _save_state(settings, files, manifest, stored, book)

    errors = _write_and_send(files, reached, stored, before, book, save)
    for error in errors:
        log.error("%s", error)
    able = any(one.name in names and not one.missing_variable for one in reached)
    return Delivery(message, sent=able and not errors, errors=errors)


def _write_and_send(
    files: Files,
    reached: Sequence[Channel],
    stored: AlertStore,
    before: AlertStore,
    book: AlertStore,
    save: Callable[[], None],
) -> tuple[str, ...]:
    """Write the outbox and the state, and send; return why something of it could not be done.

    What the store does not take is sent all the same. Where the outbox cannot be written, the state
    is written last, and only if every message went out: else the next night would take it for told.
    """
    earlier = [one for one in before.outbox if one not in stored.outbox]
    queued = [one for one in book.outbox if one not in earlier]
    unkept = _unwritten(lambda: outbox.add_messages(files, queued))
    errors = unkept or _unwritten(save)
    errors += _unwritten(
        lambda: outbox.remove_messages(
            files, [one for one in before.outbox if one not in book.outbox]
        )
    )
    unsent = list(_send_all(files, book, reached, kept=not unkept))
    if unkept and not unsent:
        errors += _unwritten(save)
    return tuple(dict.fromkeys([*errors, *unsent]))


def _unwritten(write: Callable[[], None]) -> list[str]:
    """Why something of the alerts could not be written to the store; nothing where it could."""
    try:
        write()
    except StoreError as error:
        return [f"the alerts cannot be noted, and may be told twice: {error}"]
    return []


def message_composer(
    settings: Settings, files: Files, manifest: Manifest, run_url: str | None = None
) -> ComposeMessage:
    """Composes messages of a night as the settings say."""
    return partial(
        compose,
        manifest,
        dashboard=dashboard_link(settings, files, manifest),
        redact=settings.redacts_messages,
        run_url=run_url,
    )


def alert_messages(
    reached: Sequence[Channel], findings: Sequence[Finding], tell: ComposeMessage
) -> list[tuple[str, Message]]:
    """What every channel is told of a night, each after the channel's name."""
    return [(one.name, message) for one in reached for message in one.messages(findings, tell)]


def _asked(reached: Sequence[Channel], again: Collection[str]) -> list[Channel]:
    """All but a Slack of which nobody gave an address: then it tells again at most what it was to
    tell before."""
    return [
        one for one in reached if not one.missing_variable or one.name != SLACK or one.name in again
    ]


def _send_all(
    files: Files, book: AlertStore, reached: Sequence[Channel], *, kept: bool
) -> Iterator[str]:
    """Send what waits for each channel; why it is still undelivered, where it is. `kept`: the
    outbox is in the store.
    """
    names = [one.name for one in reached]
    for one in book.outbox:
        if one.channel not in names:
            log.warning("message of %s dropped: no channel %s any more", one.night, one.channel)
            yield from _unwritten(partial(outbox.remove_messages, files, [one]))
    for channel in reached:
        mine = tuple(one for one in book.outbox if one.channel == channel.name)
        left, reasons, unnoted = _send_to(files, book.model_copy(update={"outbox": mine}), channel)
        yield from unnoted
        old = [one for one in left if book.night and outbox.is_old(one, book.night)]
        what = "Slack message" if channel.name == SLACK else "message"
        if len(old) < len(left):
            state = "kept for the next run" if kept else "left to the next night"
            yield from (f"{what} {state}: {reason}" for reason in reasons)
        for one in old:
            yield _give_up(
                files, one, what, "; ".join(reasons) or f"{channel.missing_variable} is not set"
            )


def _give_up(files: Files, one: Undelivered, what: str, why: str) -> str:
    """Put a message aside that waited for too long; return what to say of it."""
    try:
        where = outbox.give_up(files, one)
    except StoreError as error:
        return f"{what} of {one.night} cannot be put aside: {error}; it was not sent: {why}"
    return f"{what} of {one.night} given up, it is in {where}: {why}"


def _send_to(
    files: Files, book: AlertStore, channel: Channel
) -> tuple[tuple[Undelivered, ...], list[str], list[str]]:
    """Send a channel its messages; return those that are left, why, and why of some that went out
    it could not be noted.
    """
    unnoted: list[str] = []
    if channel.missing_variable:
        asked = book.outbox and channel.name != SLACK
        return book.outbox, [f"{channel.missing_variable} is not set"] if asked else [], unnoted
    ends = monotonic() + CHANNEL_TIMEOUT
    left, failed = deliver(
        book,
        lambda message: with_timeout(ends - monotonic(), partial(channel.send, message)),
        lambda one: unnoted.extend(_unwritten(partial(outbox.remove_messages, files, [one]))),
    )
    return left.outbox, list(dict.fromkeys(map(str, failed))), unnoted


def _save_state(
    settings: Settings, files: Files, manifest: Manifest, stored: AlertStore, book: AlertStore
) -> None:
    """Write the state. Where another run wrote its own meanwhile, this night follows upon that."""
    now = _load_state(files)
    bare: dict[str, object] = {"outbox": ()}
    if now != stored:
        if now.night and now.night > manifest.date:
            return
        undo = book.undo
        book, _ = advance_states(
            now.model_copy(update=bare),
            manifest.findings,
            manifest.date,
            settings.alerts.remind_days,
            silences(files),
            manifest.run,
        )
        # Of the message that this run may still have in the outbox.
        book = book.model_copy(update={"undo": {**now.undo, **undo}})
    files.write(STATE_FILE, book.model_copy(update=bare).model_dump_json(indent=1).encode())


def dashboard_link(settings: Settings, files: Files, manifest: Manifest) -> str:
    """Where people find the night's page."""
    return page_link(settings, files, f"{manifest.date.isoformat()}/index.html")


def page_link(settings: Settings, files: Files, page: str) -> str:
    """Where people find a page of the dashboard."""
    if settings.dashboard_url:
        return f"{settings.dashboard_url.rstrip('/')}/{page}"
    return files.uri(f"dashboard/{page}")

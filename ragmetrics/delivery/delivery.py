"""Delivery: sends tonight's transitions to the channels, and writes the state of all alerts.

This order loses no message if a run dies or another run does the same:

    messages into the outbox -> state of the alerts -> each message to its channel, then removed

Messages of earlier nights go first. Each is removed from the outbox before the next is sent. So a
run that dies, or whose store fails, repeats at most its last message. A channel that fails or hangs
repeats no message of other channels, and delays them for a limited time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from ragmetrics.config import Settings
from ragmetrics.delivery import outbox
from ragmetrics.delivery.alert_store import AlertStore, Undelivered
from ragmetrics.delivery.late_nights import is_late, with_late_night
from ragmetrics.delivery.missed_nights import find_earlier, with_missed_nights
from ragmetrics.delivery.notification_channels import SLACK, Channel, ComposeMessage, channels
from ragmetrics.delivery.outbox import deliver
from ragmetrics.delivery.renamed_alerts import move_silences_and_threads, with_keys_of_today
from ragmetrics.delivery.state import advance_states
from ragmetrics.delivery.state_fold import fold_states
from ragmetrics.delivery.state_store import FOLDED_NIGHTS, load_state, save_state, with_outbox
from ragmetrics.delivery.timeouts import CHANNEL_TIMEOUT, with_timeout
from ragmetrics.errors import StoreError
from ragmetrics.messages import Message, compose
from ragmetrics.records import Finding, Manifest
from ragmetrics.rules import silences
from ragmetrics.storage import Files, is_current, outlines

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Delivery:
    """The result of delivering a night's messages."""

    message: Message | None
    """The message; None where no alert changed."""
    sent: bool
    errors: tuple[str, ...] = ()
    """Why messages are not delivered yet. They stay in the outbox for the next run."""


def notify_channels(
    settings: Settings, files: Files, manifest: Manifest, run_url: str | None = None
) -> Delivery:
    """Notify every channel of the changes of this night, and of missed nights before it.

    Messages are sent even where the store cannot be written. Without a webhook or bot in the
    environment nothing is sent to Slack, and the state advances all the same. A waiting Slack
    message keeps waiting, and is replaced where this run withdraws it. Other channels are
    configured explicitly, so their messages wait in the outbox. A run that is not the current run
    of its night sends nothing about it.
    """
    days = settings.alerts.remind_days
    stored = load_state(files, days, before=manifest.date).alerts
    before = with_outbox(stored, files)
    reached = channels(settings.alerts, files)
    alerts, message, names = before, None, set[str]()
    if current := is_current(files, manifest):
        late = manifest.late or _overtaken(before, manifest)
        night = manifest.model_copy(update={"late": late})
        move = _move_late if late and manifest.date not in before.nights else _move
        move_silences_and_threads(files, manifest.findings)
        moved, findings = move(settings, files, before, night)
        compose_message = message_composer(settings, files, night, run_url)
        message = compose_message(findings)
        again = {one.channel for one in before.outbox if one not in moved.outbox}
        messages = alert_messages(_configured(reached, again), findings, compose_message)
        alerts = moved.queue(messages, before.outbox, manifest.date) if messages else moved
        names = {name for name, _ in messages}

    def save() -> None:
        if current:
            _save_state(settings, files, manifest, stored, alerts)

    errors = _write_and_send(files, reached, stored, before, alerts, save)
    for error in errors:
        log.error("%s", error)
    able = any(one.name in names and not one.missing_variable for one in reached)
    return Delivery(message, sent=able and not errors, errors=errors)


def _move(
    settings: Settings, files: Files, before: AlertStore, manifest: Manifest
) -> tuple[AlertStore, list[Finding]]:
    """The alert states after a night and missed nights before it, and its findings."""
    days, found = settings.alerts.remind_days, manifest.findings
    earlier = with_keys_of_today(settings.alerts.rules, find_earlier(files, before, manifest.date))
    known = with_missed_nights(before, earlier, found, days)
    return advance_states(known, found, manifest.date, days, silences(files), manifest.run)


def _overtaken(alerts: AlertStore, manifest: Manifest) -> bool:
    """Whether a newer night was notified of while this one was published."""
    published = any(one.transition for one in manifest.findings)
    return published and is_late(alerts, manifest.date, [manifest])


def _move_late(
    settings: Settings, files: Files, before: AlertStore, manifest: Manifest
) -> tuple[AlertStore, list[Finding]]:
    """The alert states with a late night in them, and its findings."""
    days, past = settings.alerts.remind_days, outlines(files, last=FOLDED_NIGHTS)
    begin = fold_states([one for one in past if one.date < manifest.date], days)
    quiet, found = silences(files), manifest.findings
    after, findings = advance_states(begin, found, manifest.date, days, quiet, manifest.run)
    newer = [one for one in past if one.date > manifest.date]
    # A run that died before it wrote the states may have left messages of this night.
    others = tuple(message for message in before.outbox if message.night != manifest.date)
    before = before.model_copy(update={"outbox": others})
    return with_late_night(before, after, findings, newer, days), findings


def _write_and_send(
    files: Files,
    reached: Sequence[Channel],
    stored: AlertStore,
    before: AlertStore,
    alerts: AlertStore,
    save: Callable[[], None],
) -> tuple[str, ...]:
    """Write the outbox and the state, and send; return the errors.

    Messages that the store does not accept are sent all the same. Where the outbox cannot be
    written, the state is written last, and only if every message was sent: otherwise the next
    night would count them as sent.
    """
    earlier = [one for one in before.outbox if one not in stored.outbox]
    queued = [one for one in alerts.outbox if one not in earlier]
    unkept = _unwritten(lambda: outbox.add_messages(files, queued))
    errors = unkept or _unwritten(save)
    errors += _unwritten(
        lambda: outbox.remove_messages(
            files, [one for one in before.outbox if one not in alerts.outbox]
        )
    )
    unsent = list(_send_all(files, alerts, reached, kept=not unkept))
    if unkept and not unsent:
        errors += _unwritten(save)
    return tuple(dict.fromkeys([*errors, *unsent]))


def _unwritten(write: Callable[[], None]) -> list[str]:
    """The error of a write to the store; empty where it succeeded."""
    try:
        write()
    except StoreError as error:
        return [f"the alerts cannot be stored, messages may be sent twice: {error}"]
    return []


def message_composer(
    settings: Settings, files: Files, manifest: Manifest, run_url: str | None = None
) -> ComposeMessage:
    """A function that composes messages of a night as the settings say."""
    return partial(
        compose,
        manifest,
        dashboard=dashboard_link(settings, files, manifest),
        redact=settings.redacts_messages,
        run_url=run_url,
    )


def alert_messages(
    reached: Sequence[Channel], findings: Sequence[Finding], compose_message: ComposeMessage
) -> list[tuple[str, Message]]:
    """The messages of a night for every channel, each with the channel's name."""
    return [
        (one.name, message)
        for one in reached
        for message in one.messages(findings, compose_message)
    ]


def _configured(reached: Sequence[Channel], again: Collection[str]) -> list[Channel]:
    """The channels to send to. Slack without an address counts only where `again` names it, which
    replaces its withdrawn messages.
    """
    return [
        one for one in reached if not one.missing_variable or one.name != SLACK or one.name in again
    ]


def _send_all(
    files: Files, alerts: AlertStore, reached: Sequence[Channel], *, kept: bool
) -> Iterator[str]:
    """Send the waiting messages of each channel, and yield the errors. `kept`: the outbox is in the
    store.
    """
    names = [one.name for one in reached]
    for one in alerts.outbox:
        if one.channel not in names:
            log.warning("message of %s dropped: channel %s is removed", one.night, one.channel)
            yield from _unwritten(partial(outbox.remove_messages, files, [one]))
    for channel in reached:
        mine = tuple(one for one in alerts.outbox if one.channel == channel.name)
        left, reasons, unsaved = _send_to(
            files, alerts.model_copy(update={"outbox": mine}), channel
        )
        yield from unsaved
        old = [one for one in left if alerts.night and outbox.is_old(one, alerts.night)]
        what = "Slack message" if channel.name == SLACK else "message"
        if len(old) < len(left):
            state = "kept for the next run" if kept else "left to the next night"
            yield from (f"{what} {state}: {reason}" for reason in reasons)
        for one in old:
            yield _give_up(
                files, one, what, "; ".join(reasons) or f"{channel.missing_variable} is not set"
            )


def _give_up(files: Files, one: Undelivered, what: str, why: str) -> str:
    """Move a message that waited too long out of the outbox; return the error text."""
    try:
        where = outbox.give_up(files, one)
    except StoreError as error:
        return f"{what} of {one.night} cannot be moved: {error}; it was not sent: {why}"
    return f"{what} of {one.night} given up, it is in {where}: {why}"


def _send_to(
    files: Files, alerts: AlertStore, channel: Channel
) -> tuple[tuple[Undelivered, ...], list[str], list[str]]:
    """Send a channel its messages; return those that remain, their errors, and the errors of
    removing sent messages from the outbox.
    """
    unsaved: list[str] = []
    if channel.missing_variable:
        asked = alerts.outbox and channel.name != SLACK
        return alerts.outbox, [f"{channel.missing_variable} is not set"] if asked else [], unsaved
    ends = monotonic() + CHANNEL_TIMEOUT
    left, failed = deliver(
        alerts,
        lambda message: with_timeout(ends - monotonic(), partial(channel.send, message)),
        lambda one: unsaved.extend(_unwritten(partial(outbox.remove_messages, files, [one]))),
    )
    return left.outbox, list(dict.fromkeys(map(str, failed))), unsaved


def _save_state(
    settings: Settings, files: Files, manifest: Manifest, stored: AlertStore, alerts: AlertStore
) -> None:
    """Write the state. Where another run wrote it meanwhile, advance that state to this night."""
    now = load_state(files, settings.alerts.remind_days, manifest.date).alerts
    if now != stored:
        if now.night and now.night > manifest.date:
            if manifest.date in alerts.nights:  # its messages are sent: a repetition sends none
                nights = tuple(sorted({*now.nights, manifest.date}))
                save_state(files, now.model_copy(update={"nights": nights}))
            return
        undo = alerts.undo
        alerts, _ = advance_states(
            now.model_copy(update={"outbox": ()}),
            manifest.findings,
            manifest.date,
            settings.alerts.remind_days,
            silences(files),
            manifest.run,
        )
        # For the message that this run may still have in the outbox.
        alerts = alerts.model_copy(update={"undo": {**now.undo, **undo}})
    save_state(files, alerts)


def dashboard_link(settings: Settings, files: Files, manifest: Manifest) -> str:
    """Link to the night's page."""
    return page_link(settings, files, f"{manifest.date.isoformat()}/index.html")


def page_link(settings: Settings, files: Files, page: str) -> str:
    """Link to a page of the dashboard."""
    if settings.dashboard_url:
        return f"{settings.dashboard_url.rstrip('/')}/{page}"
    return files.uri(f"dashboard/{page}")

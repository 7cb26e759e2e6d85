"""Delivery: sends tonight's transitions to the channels.

This order loses no message if a run dies or another run does the same:

    a batch of messages into the outbox -> each message to its channel, then noted as delivered

From the outbox on the alerts count as told. Messages of earlier nights go first. Each is noted
before the next is sent. So a run that dies, or whose store fails, repeats at most its last message.
A channel that fails or hangs repeats no message of other channels, and delays them for a limited
time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from time import monotonic

from ragmetrics.config import Settings
from ragmetrics.delivery.channel import CHANNEL_TIMEOUT, Channel, ComposeMessage, channels
from ragmetrics.delivery.outbox import (
    FOLDER,
    Batches,
    MessageBatch,
    Outbox,
    Waiting,
    known_batches,
    queue_batch,
    remove_batches,
)
from ragmetrics.delivery.state import AlertStates, judge_findings, messages_of
from ragmetrics.delivery.state_fold import (
    EARLIER_NIGHTS,
    FOLDED_NIGHTS,
    implied,
    move_silences,
    states_after,
    with_keys_of_today,
)
from ragmetrics.errors import RagmetricsError, StoreError
from ragmetrics.messages import Message, compose
from ragmetrics.records import Finding, Manifest, Told
from ragmetrics.rules import known_silences
from ragmetrics.storage import Files, Runs

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

    Messages are sent even where the store cannot be written. Without its variable in the
    environment nothing is sent to the default channel, and its alerts count as told all the same.
    A message that waits for it keeps waiting, and is replaced where this run replaces its batch.
    Other channels are configured explicitly, so their messages wait in the outbox. A silent run,
    and a run that is not the current run of its night, sends nothing about it.
    """
    days = EARLIER_NIGHTS if manifest.alerts is None else FOLDED_NIGHTS
    batches = known_batches(files, manifest.date - timedelta(days=days), manifest.date)
    reached = channels(settings.alerts, files)
    message, batch, gone = None, None, list(batches.stale)
    if not manifest.silent and Runs(files).is_current(manifest):
        message, batch = _compose(settings, files, manifest, batches, reached, run_url)
        gone += batches.replaced(manifest.date)
    waiting = {path: one for path, one in batches.waiting.items() if path not in gone}
    unkept = _unwritten(partial(queue_batch, files, batch)) if batch else []
    if batch and batch.waiting:
        waiting[f"{FOLDER}/{batch.name}"] = batch
    gone = [path for path in gone if path not in waiting]
    errors = unkept + _unwritten(partial(remove_batches, files, gone))
    errors += _send_all(Outbox(files, waiting), reached, manifest.date, kept=not unkept)
    errors = list(dict.fromkeys(errors))
    for error in errors:
        log.error("%s", error)
    names = {one.channel for one in batch.waiting} if batch else set()
    able = any(one.name in names and not one.missing_variable for one in reached)
    return Delivery(message, sent=able and not errors, errors=tuple(errors))


def _compose(
    settings: Settings,
    files: Files,
    manifest: Manifest,
    batches: Batches,
    reached: Sequence[Channel],
    run_url: str | None,
) -> tuple[Message | None, MessageBatch | None]:
    """The message about a night, and the batch of it for all channels; None without changes."""
    newer = Runs(files).later(manifest.date)
    late = manifest.late or any(not one.silent for one in newer)
    night = manifest.model_copy(update={"late": late})
    move_silences(files, manifest.findings)
    findings, told = _changes(settings, files, batches, night, newer)
    compose_message = _composer(settings, files, night, run_url)
    message = compose_message(findings)
    again = [one.channel for old in batches.replaced(night.date).values() for one in old.waiting]
    messages = _messages(_configured(reached, again), findings, compose_message)
    batch = MessageBatch(
        night=night.date,
        number=max((one.number + 1 for one in batches.settled(night.date)), default=0),
        told=told,
        waiting=[Waiting(channel=name, message=one) for name, one in messages],
        queued=newer[-1].date if newer else None,
    )
    return message, batch if told else None


def _changes(
    settings: Settings, files: Files, batches: Batches, night: Manifest, newer: Sequence[Manifest]
) -> tuple[list[Finding], list[Told]]:
    """The findings of a night with what is to be told now, and that."""
    days = settings.alerts.remind_days
    before = _states_before(settings, files, batches, night)
    before = before.heard(batches.told_tonight(night.date))
    after, findings = judge_findings(
        before, night.findings, night.date, days, known_silences(files)
    )
    told = messages_of(after, findings, night.run)
    return findings, [*told, *implied(after.heard(told), told, newer, days)]


def _states_before(
    settings: Settings, files: Files, batches: Batches, night: Manifest
) -> AlertStates:
    """The alert states before a night: those of its manifest, which an earlier version lacks."""
    if night.alerts is not None:
        return AlertStates(states=night.alerts)
    earlier = Runs(files).outlines(before=night.date, last=EARLIER_NIGHTS)
    earlier = [*with_keys_of_today(settings.alerts.rules, earlier)]
    return states_after(files, earlier, batches, settings.alerts.remind_days, night.date)


def _unwritten(write: Callable[[], None]) -> list[str]:
    """The error of a write to the store; empty where it succeeded."""
    try:
        write()
    except StoreError as error:
        return [f"the alerts cannot be stored, messages may be sent twice: {error}"]
    return []


def night_messages(
    settings: Settings, files: Files, manifest: Manifest
) -> list[tuple[str, Message]]:
    """The messages of a published night for every channel, each with the channel's name."""
    compose_message = _composer(settings, files, manifest)
    return _messages(channels(settings.alerts, files), manifest.findings, compose_message)


def _composer(
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


def _messages(
    reached: Sequence[Channel], findings: Sequence[Finding], compose_message: ComposeMessage
) -> list[tuple[str, Message]]:
    return [
        (channel.name, message)
        for channel in reached
        for message in channel.messages(findings, compose_message)
    ]


def _configured(reached: Sequence[Channel], again: Collection[str]) -> list[Channel]:
    """The channels to send to. The default one without an address counts only where `again` names
    it, which replaces its withdrawn messages.
    """
    return [
        channel
        for channel in reached
        if not (channel.missing_variable and channel.is_default) or channel.name in again
    ]


def _send_all(
    outbox: Outbox, reached: Sequence[Channel], newest: date, *, kept: bool
) -> Iterator[str]:
    """Send the waiting messages of each channel, and yield the errors. `kept`: the outbox is in the
    store.
    """
    names = [one.name for one in reached]
    for path, waiting in outbox.messages():
        if waiting.channel not in names:
            night = outbox.night(path)
            log.warning("message of %s dropped: channel %s is removed", night, waiting.channel)
            yield from _unwritten(partial(outbox.drop, path, waiting))
    for channel in reached:
        reasons, unnoted = _send_to(outbox, channel)
        yield from unnoted
        left = [one for one in outbox.messages() if one[1].channel == channel.name]
        old = [one for one in left if outbox.is_old(one[0], newest)]
        what = channel.title
        if len(old) < len(left):
            state = "kept for the next run" if kept else "left to the next night"
            yield from (f"{what} {state}: {reason}" for reason in reasons)
        why = "; ".join(reasons) or f"{channel.missing_variable} is not set"
        for path, waiting in old:
            yield _give_up(outbox, path, waiting, what, why)


def _give_up(outbox: Outbox, path: str, waiting: Waiting, what: str, why: str) -> str:
    """Move a message that waited too long out of the outbox; return the error text."""
    night = outbox.night(path)
    try:
        where = outbox.give_up(path, waiting)
    except StoreError as error:
        return f"{what} of {night} cannot be moved: {error}; it was not sent: {why}"
    return f"{what} of {night} given up, it is in {where}: {why}"


def _send_to(outbox: Outbox, channel: Channel) -> tuple[list[str], list[str]]:
    """Send a channel its messages, oldest first; return the errors of sending, and those of noting
    what was sent.

    A refused message stays, and the next one is tried. A transient error ends the round.
    """
    mine = [one for one in outbox.messages() if one[1].channel == channel.name]
    if channel.missing_variable:
        asked = mine and not channel.is_default
        return [f"{channel.missing_variable} is not set"] if asked else [], []
    ends = monotonic() + CHANNEL_TIMEOUT
    failed, unnoted = list[RagmetricsError](), list[str]()
    for path, waiting in mine:
        try:
            channel.send(waiting.message, ends - monotonic())
        except RagmetricsError as error:
            failed.append(error)
            if error.transient:
                break
        else:
            unnoted += _unwritten(partial(outbox.confirm, path, waiting))
    return list(dict.fromkeys(map(str, failed))), unnoted


def dashboard_link(settings: Settings, files: Files, manifest: Manifest) -> str:
    """Link to the night's page."""
    return page_link(settings, files, f"{manifest.date.isoformat()}/index.html")


def page_link(settings: Settings, files: Files, page: str) -> str:
    """Link to a page of the dashboard."""
    if settings.dashboard_url:
        return f"{settings.dashboard_url.rstrip('/')}/{page}"
    return files.uri(f"dashboard/{page}")

"""Messages about gates: one per gate that needs people, and one per event without a verdict.

Each channel is notified separately. `heard` is stored after each confirmation, so a repeat
notifies the remaining channels. Delivery is at least once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from ragmetrics.comparison import (
    build_path,
    find_failed_gate,
    load_gate,
    save_failed_gate,
    save_gate,
)
from ragmetrics.config import Settings
from ragmetrics.delivery.channel import Unconfirmed, channels
from ragmetrics.delivery.delivery import page_link
from ragmetrics.errors import StoreError
from ragmetrics.messages import Message, compose_failed_gate, compose_gate
from ragmetrics.records import FailedGate, Gate, Severity, hashed_quote
from ragmetrics.storage import open_store
from ragmetrics.text import clean

R = TypeVar("R", Gate, FailedGate)
_LONGEST = 2_000


def gate_message(settings: Settings, gate: Gate, run_url: str | None = None) -> Message | None:
    """The message of a gate, as the settings say; None unless the build is held, or nothing could
    be compared.
    """
    nothing_compared = gate.verdict == "inconclusive" and not gate.scored_metrics
    if not (gate.verdict == "hold" or nothing_compared):
        return None
    page = page_link(settings, open_store(settings), build_path(gate.build))
    return compose_gate(gate, page=page, redact=settings.redacts_messages, run_url=run_url)


def notify_gate(settings: Settings, gate: Gate, run_url: str | None = None) -> Gate:
    """Notify every channel of a gate that needs it and was not sent yet; return the updated gate.

    The default channel gets nothing without its variable in the environment. Raises Unconfirmed
    where a channel did not confirm, after the others were notified. A repeat notifies that channel.
    """
    files = open_store(settings)
    known = load_gate(files, gate.build)
    if known and _unsent(known) == _unsent(gate):
        gate = known  # with the confirmations of an earlier attempt
    message = gate_message(settings, gate, run_url)
    if gate.told or message is None:
        return gate

    def save(notified: Gate) -> None:
        stored = load_gate(files, notified.build)
        if stored and _unsent(stored) == _unsent(notified):  # else a newer verdict, not sent yet
            save_gate(files, notified)

    severity: Severity = "critical" if gate.verdict == "hold" else "warning"
    return _notify(settings, message, severity, gate, save)


def notify_failed_gate(
    settings: Settings,
    reason: str,
    carried: str,
    event_id: str | None = None,
    run_url: str | None = None,
) -> FailedGate:
    """Store that a build got no verdict, and notify every channel once per event.

    `carried` is the event's payload as text. Raises Unconfirmed as `notify_gate` does. Messages
    are sent even where the store fails.
    """
    files = open_store(settings)
    now = FailedGate(
        dataset=settings.dataset,
        reason=clean(reason, _LONGEST),
        carried=clean(carried, _LONGEST),
        event_id=clean(event_id, 100) if event_id else None,
        at=datetime.now(UTC),
        redact=settings.redact,
    )
    before = find_failed_gate(files, now)
    if before and before.told:
        return before
    if before:
        now = now.model_copy(update={"heard": before.heard})
    save_failed_gate(files, now)
    hide = settings.redacts_messages
    why, payload = (hashed_quote(now.reason), "") if hide else (now.reason, now.carried)
    message = compose_failed_gate(now.dataset, why, payload, now.event_id, run_url)
    return _notify(settings, message, "critical", now, partial(save_failed_gate, files))


def _notify(
    settings: Settings, message: Message, severity: Severity, record: R, save: Callable[[R], None]
) -> R:
    """Notify the channels that have not confirmed yet, and return the record with them.

    `save` is called with the record after each confirmation. Raises Unconfirmed, or StoreError
    where saving failed, after all were notified.
    """
    left = [
        channel
        for channel in channels(settings.alerts, open_store(settings))
        if channel.name not in record.heard
        and channel.accepts(severity)
        and not (channel.missing_variable and channel.is_default)
    ]
    errors: list[Unconfirmed] = []
    unsaved: list[StoreError] = []
    for number, channel in enumerate(left, 1):
        try:
            channel.send(message)
        except Unconfirmed as error:
            errors.append(error)
        else:
            everyone = number == len(left) and not errors
            heard = [*record.heard, channel.name]
            record = record.model_copy(update={"heard": heard, "told": everyone})
            try:
                save(record)
            except StoreError as error:  # the other channels are notified all the same
                unsaved.append(error)
    if errors:
        reasons = "; ".join(map(str, errors))
        raise Unconfirmed(reasons, transient=any(error.transient for error in errors))
    if unsaved:
        raise unsaved[-1]
    return record


def _unsent(gate: Gate) -> Gate:
    """The gate without its message state."""
    return gate.model_copy(update={"told": False, "heard": []})

"""Loads and writes `alerts/state.json`: the states of all alerts.

The file saves time. Where it is damaged, cannot be read or was lost, the states are computed again
from the findings of the manifests, and the problem is told. Only what was not delivered and the
silences have files of their own.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date

from ragmetrics.config import AlertSettings
from ragmetrics.delivery import outbox
from ragmetrics.delivery.alert_store import AlertStore
from ragmetrics.delivery.state_fold import fold_states
from ragmetrics.errors import StoreError
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, outlines, require_record

STATE_FILE = "alerts/state.json"
FOLDED_NIGHTS = 90
"""Nights from which states are computed again. An older incident that still fires begins later."""
REMIND_DAYS: int = AlertSettings.model_fields["remind_days"].default
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedAlerts:
    """The alert states, and why they had to be computed again."""

    alerts: AlertStore
    problem: str = ""


def load_alerts(files: Files, remind_days: int = REMIND_DAYS) -> AlertStore:
    """The state of all alerts, with the messages in the outbox."""
    return with_outbox(load_state(files, remind_days).alerts, files)


def with_outbox(state: AlertStore, files: Files) -> AlertStore:
    """Add the outbox folder. A state of an earlier version may contain messages itself."""
    more = (one for one in outbox.waiting_messages(files) if one not in state.outbox)
    return state.model_copy(update={"outbox": (*state.outbox, *more)})


def load_state(
    files: Files, remind_days: int = REMIND_DAYS, before: date | None = None
) -> LoadedAlerts:
    """The state of all alerts without the outbox.

    Where the file is damaged it is computed from the manifests of the nights `before` a date (None:
    of all), whose messages count as sent. Where it is missing although two nights have messages, so
    are the nights before the last message: the run of that night may have died before it sent it.
    Raises StoreError where the manifests cannot be read either.
    """
    try:
        found = require_record(files, STATE_FILE, AlertStore, "is not a state of alerts")
        nameless = found is not None and found.night is None and not found.states
        reason = f"{files.uri(STATE_FILE)} names no night" if nameless else ""
    except StoreError as error:
        found, reason = None, str(error)
    if reason:
        nights = outlines(files, before=before, last=FOLDED_NIGHTS)
        return _folded(nights, remind_days, reason)
    if found:
        return LoadedAlerts(found)
    nights = outlines(files, before=before, last=FOLDED_NIGHTS)
    with_message = [one.date for one in nights if any(each.transition for each in one.findings)]
    if len(with_message) < 2:
        return LoadedAlerts(AlertStore())
    known = [one for one in nights if one.date < with_message[-1]]
    return _folded(known, remind_days, f"{files.uri(STATE_FILE)} is gone")


def _folded(nights: list[Manifest], remind_days: int, reason: str) -> LoadedAlerts:
    problem = f"{reason}; the states of alerts were computed again from {len(nights)} nights"
    log.error("%s", problem)
    return LoadedAlerts(fold_states(nights, remind_days), problem)


def repair_state(files: Files, remind_days: int) -> str:
    """Write the state again where it is damaged or lost, before a night adds to it. Returns the
    problem; empty where there was none. An error of writing is logged.

    Now the manifests say what was sent: a repeated night has its own manifest already.
    """
    loaded = load_state(files, remind_days)
    if loaded.problem:
        try:
            save_state(files, loaded.alerts)
        except StoreError as error:
            log.error("the states of alerts cannot be written: %s", error)
    return loaded.problem


def save_state(files: Files, alerts: AlertStore) -> None:
    """Write the states; the outbox has files of its own."""
    bare = alerts.model_copy(update={"outbox": ()})
    files.write(STATE_FILE, bare.model_dump_json(indent=1).encode())

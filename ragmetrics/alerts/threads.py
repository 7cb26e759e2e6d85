"""Threads: of each alert, the Slack message that first told of it.

alerts/threads.json

Two runs that write it at the same time may lose one of the two: then an update stands in the
channel instead of its thread. No message is lost by that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pydantic import Field, ValidationError

from ragmetrics.model import Record
from ragmetrics.storage import Files

THREADS = "alerts/threads.json"
_MOST = 2_000
"""Alerts that are remembered, the newest."""
log = logging.getLogger(__name__)


class Thread(Record):
    """Where an alert was first told."""

    channel: str
    ts: str


class Threads(Record):
    """By key of the alert, the oldest first."""

    by_alert: dict[str, Thread] = Field(default_factory=dict)


def load_threads(files: Files) -> Threads:
    """The threads that are known; a file that cannot be read is as good as none, and logged."""
    data = files.find(THREADS)
    try:
        return Threads() if data is None else Threads.model_validate_json(data)
    except ValidationError:
        log.error("%s: not a record of threads, updates stand in the channel", files.uri(THREADS))
        return Threads()


def find_thread(files: Files, alerts: Sequence[str]) -> Thread | None:
    """The thread in which some alerts are told."""
    known = load_threads(files).by_alert
    return next((known[key] for key in alerts if key in known), None)


def save_thread(files: Files, alerts: Sequence[str], thread: Thread) -> None:
    """Remember where some alerts are told from now on."""
    known = {key: one for key, one in load_threads(files).by_alert.items() if key not in alerts}
    newest = dict([*known.items(), *((key, thread) for key in alerts)][-_MOST:])
    files.write(THREADS, Threads(by_alert=newest).model_dump_json(indent=1).encode())


__all__ = ["THREADS", "Thread", "find_thread", "load_threads", "save_thread"]

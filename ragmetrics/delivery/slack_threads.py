"""The Slack thread of each incident: `alerts/threads.json`.

If two runs write the threads at the same time, one version may be lost. An update is then posted in
the channel instead of its thread; no message is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from ragmetrics.records import Record
from ragmetrics.storage import Files, find_record

THREADS = "alerts/threads.json"
_MOST = 2_000
"""Most alerts with a stored thread: the newest ones."""


class Thread(Record):
    """Channel and timestamp of an alert's first message."""

    channel: str
    ts: str


class Threads(Record):
    """Threads by key of the alert, the oldest first."""

    by_alert: dict[str, Thread] = Field(default_factory=dict)


def load_threads(files: Files) -> Threads:
    """The stored threads; empty where the file cannot be read, which is logged."""
    problem = "not a record of threads, updates go to the channel"
    return find_record(files, THREADS, Threads, problem) or Threads()


def find_thread(files: Files, alerts: Sequence[str]) -> Thread | None:
    """The thread of some alerts."""
    known = load_threads(files).by_alert
    return next((known[key] for key in alerts if key in known), None)


def save_thread(files: Files, alerts: Sequence[str], thread: Thread) -> None:
    """Store the thread of some alerts."""
    known = {key: one for key, one in load_threads(files).by_alert.items() if key not in alerts}
    newest = dict([*known.items(), *((key, thread) for key in alerts)][-_MOST:])
    files.write(THREADS, Threads(by_alert=newest).model_dump_json(indent=1).encode())

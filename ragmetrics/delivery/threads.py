"""The thread of each incident, for channels that have threads: `alerts/threads.json`.

If two runs write the threads at the same time, one version may be lost. An update is then posted in
the channel instead of its thread; no message is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from pydantic import Field

from ragmetrics.records import Record
from ragmetrics.storage import Files, find_record

THREADS = "alerts/threads.json"
_MOST = 2_000
"""Most alerts with a stored thread: the newest ones."""
_LONGEST = 100
log = logging.getLogger(__name__)


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


def thread_of(threads: Threads, alerts: Iterable[str], place: str) -> str:
    """The thread of some alerts in a place, by the first that has one; empty without one."""
    known = (threads.by_alert[key] for key in alerts if key in threads.by_alert)
    thread = next(known, None)
    return thread.ts if thread and thread.channel == place else ""


def save_thread(files: Files, alerts: Sequence[str], place: str, thread: str) -> None:
    """Store the thread of some alerts. Raises StoreError."""
    if not thread:
        log.error("the thread is not stored, updates go to the channel: the service named none")
        return
    known = {key: one for key, one in load_threads(files).by_alert.items() if key not in alerts}
    new = Thread(channel=place, ts=thread[:_LONGEST])
    newest = dict([*known.items(), *((key, new) for key in alerts)][-_MOST:])
    files.write(THREADS, Threads(by_alert=newest).model_dump_json(indent=1).encode())

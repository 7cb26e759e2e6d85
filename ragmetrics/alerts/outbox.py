"""The outbox: messages that their channels have not confirmed yet, each in its own file.

alerts/outbox/2026-11-19.DIGEST.json
alerts/given-up/2026-11-05.DIGEST.json   waited too long: stored for people, not sent

If two runs write the state of the alerts at the same time, one state may be lost. No message is
lost, because files with one name have the same content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import date

from ragmetrics.alerts.alert_store import Undelivered
from ragmetrics.storage import Files, find_record, remove_file, save_record

FOLDER = "alerts/outbox"
GIVEN_UP = "alerts/given-up"
LONGEST_DAYS = 14
"""Longest wait of a message. An alert that still fires then gets a reminder anyway."""


def waiting_messages(files: Files) -> tuple[Undelivered, ...]:
    """The waiting messages in the order of queueing. Other files are logged and ignored."""
    found = (message for _, message in _found(files))
    return tuple(sorted(found, key=lambda one: (one.night, one.turn)))


def add_messages(files: Files, messages: Iterable[Undelivered]) -> None:
    """Store messages before they are sent."""
    for one in messages:
        save_record(files, _path(one), one)


def remove_messages(files: Files, messages: Iterable[Undelivered]) -> None:
    """Remove messages that were delivered or withdrawn. Raises StoreError."""
    gone = {_path(one) for one in messages}
    if not gone:
        return
    # Compare contents: another version may have stored the same message under another name.
    for path, one in _found(files):
        if _path(one) in gone:
            remove_file(files, path)


def is_old(one: Undelivered, night: date) -> bool:
    """Whether a message is too old to send, seen from the newest night."""
    return (night - one.night).days >= LONGEST_DAYS


def give_up(files: Files, one: Undelivered) -> str:
    """Move a message to the given-up folder; return its address."""
    path = _path(one).replace(FOLDER, GIVEN_UP)
    save_record(files, path, one)
    remove_messages(files, [one])
    return files.uri(path)


def given_up(files: Files) -> int:
    """Number of messages that were given up."""
    return len(files.below(GIVEN_UP))


def _found(files: Files) -> Iterator[tuple[str, Undelivered]]:
    for info in files.below(FOLDER):
        if not info.size:  # cleared
            continue
        problem = "not a message and is ignored"
        if message := find_record(files, info.path, Undelivered, problem):
            yield info.path, message


def _path(one: Undelivered) -> str:
    digest = hashlib.blake2b(one.model_dump_json().encode(), digest_size=6).hexdigest()
    return f"{FOLDER}/{one.night.isoformat()}.{digest}.json"

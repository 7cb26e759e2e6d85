"""The outbox: messages that their channels have not confirmed yet, each in a file of its own.

alerts/outbox/2026-11-19.DIGEST.json
alerts/given-up/2026-11-05.DIGEST.json   what waited for too long: kept to be read, not sent

Two runs that write the state of the alerts at the same time may lose one of the two; they never
lose a message, for neither writes a file that the other did not write alike.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from datetime import date

from pydantic import ValidationError

from ragmetrics.alerts.alert_store import Undelivered
from ragmetrics.model import explain_validation_error
from ragmetrics.storage import Files, remove_file

FOLDER = "alerts/outbox"
GIVEN_UP = "alerts/given-up"
LONGEST_DAYS = 14
"""A message waits for so long. An alert that still fires then was due for a reminder meanwhile."""
log = logging.getLogger(__name__)


def waiting_messages(files: Files) -> tuple[Undelivered, ...]:
    """The messages that wait, as they were queued; what is no message is logged and left alone."""
    found = (message for _, message in _found(files))
    return tuple(sorted(found, key=lambda one: (one.night, one.turn)))


def add_messages(files: Files, messages: Iterable[Undelivered]) -> None:
    """Write messages before they are sent."""
    for one in messages:
        files.write(_path(one), _data(one))


def remove_messages(files: Files, messages: Iterable[Undelivered]) -> None:
    """Remove messages that were delivered or taken back. Raises StoreError."""
    gone = {_path(one) for one in messages}
    if not gone:
        return
    # By what a file holds: another version may have written the same, and so named it, otherwise.
    for path, one in _found(files):
        if _path(one) in gone:
            remove_file(files, path)


def is_old(one: Undelivered, night: date) -> bool:
    """Whether a message is not worth sending any more, by the newest night."""
    return (night - one.night).days >= LONGEST_DAYS


def give_up(files: Files, one: Undelivered) -> str:
    """Put a message aside, where nobody sends it; return where it can be read."""
    path = _path(one).replace(FOLDER, GIVEN_UP)
    files.write(path, _data(one))
    remove_messages(files, [one])
    return files.uri(path)


def given_up(files: Files) -> int:
    """How many messages were put aside."""
    return len(files.below(GIVEN_UP))


def _found(files: Files) -> Iterator[tuple[str, Undelivered]]:
    for info in files.below(FOLDER):
        if not info.size:  # cleared
            continue
        data = files.find(info.path)  # None: sent by another run meanwhile
        if data and (message := _parsed(files.uri(info.path), data)):
            yield info.path, message


def _path(one: Undelivered) -> str:
    digest = hashlib.blake2b(one.model_dump_json().encode(), digest_size=6).hexdigest()
    return f"{FOLDER}/{one.night.isoformat()}.{digest}.json"


def _data(one: Undelivered) -> bytes:
    return one.model_dump_json(indent=1).encode()


def _parsed(uri: str, data: bytes) -> Undelivered | None:
    try:
        return Undelivered.model_validate_json(data)
    except ValidationError as error:
        log.error("%s is no message, and is left aside: %s", uri, explain_validation_error(error))
        return None

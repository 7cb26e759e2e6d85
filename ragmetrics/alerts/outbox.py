"""The outbox: messages that their channels have not confirmed yet, each in a file of its own.

alerts/outbox/2026-11-19.DIGEST.json

Two runs that write the state of the alerts at the same time may lose one of the two; they never
lose a message, for neither writes a file that the other did not write alike.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from ragmetrics.alerts.state import Undelivered
from ragmetrics.store.files import Files

FOLDER = "alerts/outbox"
log = logging.getLogger(__name__)


def waiting(files: Files) -> tuple[Undelivered, ...]:
    """The messages that wait, oldest night first; what is no message is logged and left alone."""
    return tuple(message for _, message in _found(files))


def keep(files: Files, messages: Iterable[Undelivered]) -> None:
    """Write messages before they are sent."""
    for one in messages:
        files.write(_path(one), one.model_dump_json(indent=1).encode())


def drop(files: Files, messages: Iterable[Undelivered]) -> None:
    """Remove messages that were delivered or taken back."""
    gone = {_path(one) for one in messages}
    if not gone:
        return
    # By what a file holds: another version may have written the same, and so named it, otherwise.
    for path, one in _found(files):
        if _path(one) in gone:
            files.remove(path)


def _found(files: Files) -> Iterator[tuple[str, Undelivered]]:
    for info in files.below(FOLDER):
        data = files.find(info.path)  # None: sent by another run meanwhile
        if data is not None and (message := _parsed(files.uri(info.path), data)):
            yield info.path, message


def _path(one: Undelivered) -> str:
    digest = hashlib.blake2b(one.model_dump_json().encode(), digest_size=6).hexdigest()
    return f"{FOLDER}/{one.night.isoformat()}.{digest}.json"


def _parsed(uri: str, data: bytes) -> Undelivered | None:
    try:
        return Undelivered.model_validate_json(data)
    except ValidationError as error:
        log.error("%s is no message, and is left aside: %s", uri, error)
        return None

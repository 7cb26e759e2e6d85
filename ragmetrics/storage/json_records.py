"""Reads and writes records as JSON files: one way for every kind of record.

Whoever reads a damaged file goes on without it, and a night says which they were:

with collecting_damage() as found:
    ...                                 reads files
found                                   ["s3://b/store/topics/model-2026-11-19.json is ..."]
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ragmetrics.errors import StoreError
from ragmetrics.records import explain_validation_error
from ragmetrics.storage.files import Files

log = logging.getLogger(__name__)
R = TypeVar("R", bound=BaseModel)
_Read = TypeVar("_Read")
_collected: ContextVar[list[str] | None] = ContextVar("damage", default=None)


@contextmanager
def collecting_damage() -> Iterator[list[str]]:
    """Collect what `note_damage` is called with in the block, each text once."""
    texts: list[str] = []
    token = _collected.set(texts)
    try:
        yield texts
    finally:
        _collected.reset(token)


def note_damage(text: str) -> None:
    """Note a file that cannot be read, and what is done without it."""
    texts = _collected.get()
    if texts is not None and text not in texts:
        texts.append(text)


def unless_refused(read: Callable[[], _Read], otherwise: _Read, consequence: str) -> _Read:
    """What is read; `otherwise` where the store refuses it, which is logged and noted.

    Raises StoreError for a store that is down.
    """
    try:
        return read()
    except StoreError as error:
        if error.transient:
            raise
        log.error("%s: %s", error, consequence)
        note_damage(f"{error}: {consequence}")
        return otherwise


def parse_record(
    files: Files, path: str, data: bytes | None, kind: type[R], problem: str
) -> R | None:
    """The record in the content of a file; None for a missing or invalid file.

    An invalid file is logged; `problem` completes the sentence "FILE is ...".
    """
    if data is None:
        return None
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        text = f"{files.uri(path)} is {problem}"
        log.error("%s: %s", text, explain_validation_error(error))
        note_damage(text)
        return None


def find_record(files: Files, path: str, kind: type[R], problem: str) -> R | None:
    """The record in a file; None for a missing, removed (empty) or invalid file, which is logged.

    A file that can never be read, such as a folder in its place, is invalid. Raises StoreError for
    a store that is down.
    """
    try:
        data = files.find(path)
    except StoreError as error:
        if error.transient:
            raise
        log.error("%s: %s", problem, error)
        note_damage(f"{files.uri(path)} is {problem}")
        return None
    return parse_record(files, path, data or None, kind, problem)


def require_record(files: Files, path: str, kind: type[R], problem: str = "is damaged") -> R | None:
    """The record in a file; None for a missing file. Raises StoreError for an invalid one."""
    data = files.find(path)
    try:
        return None if data is None else kind.model_validate_json(data)
    except ValidationError as error:
        reason = explain_validation_error(error)
        raise StoreError(f"{files.uri(path)} {problem}: {reason}") from error


def save_record(files: Files, path: str, record: BaseModel) -> None:
    """Write a record as indented JSON."""
    files.write(path, record.model_dump_json(indent=1).encode())

"""Reads and writes records as JSON files: one way for every kind of record.

Whoever reads a damaged file goes on without it, and a night says which they were:

with collecting_damage() as found:
    ...                                 reads files
found                                   ["s3://b/store/topics/model-2026-11-19.json is ..."]

What a store knows of judges besides their replies are two kinds of records:

learned/FINGERPRINT/0001.json   a version of the learned judge that predicts a judge's verdicts
judges/FINGERPRINT.json         how an endpoint was asked otherwise than planned

No version of a learned judge is changed later: a run that uses one finds it again. The fingerprint
of a judge covers how it is planned to be asked, and names its cached replies. What an endpoint
refuses is known only after the first request. So that no scores are compared which were asked in
two ways, they are stored with a fingerprint that covers both.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ragmetrics.errors import StoreError
from ragmetrics.records import AskedWay, LearnedModel, explain_validation_error, fingerprint
from ragmetrics.storage.file_systems import FileInfo
from ragmetrics.storage.files import Files

log = logging.getLogger(__name__)
R = TypeVar("R", bound=BaseModel)
_Read = TypeVar("_Read")
_collected: ContextVar[list[str] | None] = ContextVar("damage", default=None)
_FOLDER = "learned"
_NAME = re.compile(r"learned/\w+/(\d{4,})\.json")


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


@dataclass(frozen=True)
class LearnedJudges:
    """The learned judges of a store."""

    store: Files

    @staticmethod
    def path(model: LearnedModel) -> str:
        """The path of a learned judge."""
        return f"{_FOLDER}/{model.judge_fingerprint}/{model.version:04d}.json"

    def save(self, model: LearnedModel) -> None:
        """Write a learned judge. Raises StoreError."""
        save_record(self.store, self.path(model), model)

    def newest(self, judge_fingerprint: str) -> LearnedModel | None:
        """The newest learned judge for a judge; None without one that can be read."""
        paths = self._versions(f"{_FOLDER}/{judge_fingerprint}")
        return self._find(paths[-1]) if paths else None

    def all(self) -> list[LearnedModel]:
        """The newest learned judge of each judge of the store, by the judge's name."""
        by_judge = {path.rpartition("/")[0]: path for path in self._versions(f"{_FOLDER}/*")}
        known = [model for path in by_judge.values() if (model := self._find(path))]
        return sorted(known, key=lambda model: (model.judge, model.judge_fingerprint))

    def files(self) -> list[FileInfo]:
        """The files of all learned judges."""
        return self.store.glob(f"{_FOLDER}/*/*.json")

    def load(self, path: str) -> LearnedModel | None:
        """The learned judge at a path; None for a missing file. Raises StoreError for a damaged
        one.
        """
        return require_record(self.store, path, LearnedModel)

    def copy_to(self, target: Files) -> None:
        """Copy the newest learned judges to another store, as for a run in a temporary one."""
        for model in self.all():
            LearnedJudges(target).save(model)

    def _find(self, path: str) -> LearnedModel | None:
        return find_record(self.store, path, LearnedModel, "not a learned judge")

    def _versions(self, folder: str) -> list[str]:
        """Paths of versions, oldest first."""
        named = (_NAME.fullmatch(info.path) for info in self.store.glob(f"{folder}/*.json"))
        return [match[0] for match in sorted(filter(None, named), key=lambda match: int(match[1]))]


@dataclass(frozen=True)
class AskedWays:
    """The ways of asking of a store's judges, by their fingerprints."""

    store: Files

    def compared(self, judge_fingerprint: str) -> str:
        """The fingerprint that scores of a judge have: its own, if it is asked as planned."""
        way = self.find(judge_fingerprint).way
        return fingerprint(judge_fingerprint, "asked with", way) if way else judge_fingerprint

    def find(self, judge_fingerprint: str) -> AskedWay:
        """How a judge was asked last."""
        record = find_record(self.store, _path(judge_fingerprint), AskedWay, "not a way of asking")
        return record or AskedWay(way="")

    def note(self, judge_fingerprint: str, asked: AskedWay | None) -> None:
        """Store how a judge was asked; None: no request was sent. Raises StoreError."""
        if asked is not None and asked != self.find(judge_fingerprint):
            save_record(self.store, _path(judge_fingerprint), asked)

    def copy_to(self, target: Files) -> None:
        """Copy all ways to another store, as for a run in a temporary one."""
        for info in self.store.glob(_path("*")):
            name = info.path.rpartition("/")[2].removesuffix(".json")
            AskedWays(target).note(name, self.find(name))


def _path(judge_fingerprint: str) -> str:
    return f"judges/{judge_fingerprint}.json"

"""Stores the answers of a replay, so that it may be killed at any moment.

    LOG                                   the log, written when all questions were asked
    _replay/LOG/state.json                digest of its input, and its result
    _replay/LOG/part-DIGEST-ID.jsonl      answers so far

A question counts as answered when its answer is in a part. Readers of logs ignore names that begin
with `_`, so an unfinished replay is not read. Parts are never appended to, as a bucket cannot.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from pydantic import ValidationError

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import FORMATS, find_logs
from ragmetrics.records import STATE_VERSION, ReplayReport, ReplayState
from ragmetrics.retriever import Question, key_of
from ragmetrics.storage import Files, temporary_file

log = logging.getLogger(__name__)

LOG = "replay.jsonl"
"""The log's name where the place is a folder."""
_MOST_PARTS = 64
"""Small parts of one run; so many become one."""
_JSONL = re.compile(r"\.(jsonl|ndjson)$", re.IGNORECASE)


@dataclass(frozen=True)
class ReplayTarget:
    """The log that a replay writes, and the files beside it."""

    files: Files
    log: str
    place: str

    @property
    def uri(self) -> str:
        """The address of the log."""
        return self.files.uri(self.log)

    @property
    def folder(self) -> str:
        """The folder of state and parts."""
        return f"_replay/{self.log}"

    def state(self) -> ReplayState | None:
        """The stored state; None where there is none, or this version cannot read it."""
        with suppress(ValidationError):
            data = self.files.find(f"{self.folder}/state.json") or b""
            state = ReplayState.model_validate_json(data)
            return state if state.version == STATE_VERSION else None
        return None

    def write_state(self, digest: str, replayed: ReplayReport | None = None) -> None:
        """Store the digest of the replay's input, and its result at the end."""
        data = ReplayState(digest=digest, replayed=replayed).model_dump_json(indent=1).encode()
        self.files.write(f"{self.folder}/state.json", data)

    def check_free(self, state: ReplayState | None) -> None:
        """Raise InputError where the place has a log that no replay has written."""
        _, infos = find_logs(self.place, self.files.options)
        theirs = [info.path for info in infos if state is None or info.path != self.log]
        if theirs:
            raise InputError(
                f"{self.files.uri(theirs[0])} is there, and was not written by a replay: the build "
                "has a log; remove it, or name another place"
            )

    def begin(self, digest: str, state: ReplayState | None, *, again: bool) -> None:
        """Remove parts and log of replays with another input; `again` removes them all.

        An outdated log must not be used to judge a build.
        """
        if again or state is None or state.digest != digest:
            self.files.remove(self.log)  # before the new state is written
            self._remove_parts(None if again else digest)
        self.write_state(digest)

    def finish(self, digest: str, replayed: ReplayReport, merged: Path) -> None:
        """Write the log, then the state, and remove the parts."""
        self.files.put(merged, self.log)
        self.write_state(digest, replayed)
        self._remove_parts(None)

    def part(self, digest: str) -> str:
        """Prefix of the names of a replay's parts."""
        return f"{self.folder}/part-{digest}-"

    def _remove_parts(self, but: str | None) -> None:
        for info in self.files.below(self.folder):
            is_part = info.path.startswith(f"{self.folder}/part-")
            if is_part and not (but and info.path.startswith(self.part(but))):
                self.files.remove(info.path)


def target_of(settings: Settings, build: str, place: str | None) -> ReplayTarget:
    """The log of a build: `place`, a folder or a .jsonl file, or where `gate: logs:` says.

    Raises InputError for a place that no log can be written to.
    """
    place = (place or settings.gate.logs).replace("{build}", build)
    if set(place) & set("*?[") or "{date" in place:
        raise InputError(f"{place}: names many places; a replay writes to a folder or .jsonl file")
    if not FORMATS.search(place):
        return ReplayTarget(Files(place, settings.storage_options), LOG, place)
    if not _JSONL.search(place):
        raise InputError(f"{place}: a replay writes .jsonl, or into a folder")
    head, _, name = place.rpartition("/")
    folder = head or ("/" if place.startswith("/") else ".")
    return ReplayTarget(Files(folder, settings.storage_options), name, place)


class ReplayCheckpoint:
    """The answers so far: in parts at the target, and as lines of one local file."""

    def __init__(
        self, target: ReplayTarget, digest: str, questions: Sequence[Question], folder: Path
    ) -> None:
        self._files, self._folder, self._part = target.files, target.folder, target.part(digest)
        self._wanted = {question.key: question for question in questions}
        self._path, self._merged = folder / "answers.jsonl", folder / "log.jsonl"
        self.empty = 0
        """Number of answers without contexts."""
        self._places: dict[str, tuple[int, int]] = {}  # question -> offset and length of its line
        self._pending: list[bytes] = []
        self._lines = self._written = 0
        self._small: list[str] = []
        self._small_lines: list[bytes] = []
        self._writing, self._one_write = asyncio.Lock(), threading.Lock()
        with temporary_file():
            self._path.touch()

    def __contains__(self, question: Question) -> bool:
        """Whether a question is answered."""
        return question.key in self._places

    def __len__(self) -> int:
        """Number of answered questions."""
        return len(self._places)

    def load(self) -> None:
        """Load the answers of earlier runs. Unreadable ones are ignored and requested again."""
        parts = [one for one in self._files.below(self._folder) if one.path.startswith(self._part)]
        for info in parts:
            data = self._files.find(info.path) or b""  # another run may have removed it
            for line in data.splitlines(keepends=True):
                key, empty = _read(line)
                if key is None:
                    log.warning("%s is damaged and is ignored", self._files.uri(info.path))
                elif key in self._wanted and key not in self._places:
                    self._append(key, line, empty)

    async def save(self, question: Question, line: bytes, *, empty: bool) -> None:
        """Store the answer to a question; return once it is in the target.

        Answers that arrive while a part is being written go into the next part together.
        """
        if question in self:
            return
        self._append(question.key, line, empty)
        self._pending.append(line)
        self._lines += 1
        mine = self._lines
        async with self._writing:
            if self._written < mine:
                await self.flush()

    async def flush(self) -> None:
        """Write the waiting answers."""
        lines, self._pending = self._pending, []
        await asyncio.to_thread(self._write, lines)
        self._written += len(lines)

    def merge(self) -> Path:
        """One local file of all answers, in the order of the questions."""
        with temporary_file(), self._path.open("rb") as answers, self._merged.open("wb") as merged:
            for key in self._wanted:
                if key in self._places:
                    merged.write(_line_at(answers, *self._places[key]))
        return self._merged

    def _append(self, key: str, line: bytes, empty: bool) -> None:
        self.empty += empty
        with temporary_file(), self._path.open("ab") as file:
            self._places[key] = (file.tell(), len(line))
            file.write(line)

    def _write(self, lines: list[bytes]) -> None:
        # The waiting task may be cancelled; the write is not.
        with self._one_write:
            if lines:
                self._small.append(self._put(lines))
                self._small_lines += lines
            if len(self._small) >= _MOST_PARTS:
                self._put(self._small_lines)
                for path in self._small:
                    self._files.remove(path)
                self._small, self._small_lines = [], []

    def _put(self, lines: list[bytes]) -> str:
        path = f"{self._part}{uuid4().hex}.jsonl"
        self._files.write(path, b"".join(lines))
        return path


def _line_at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def _read(line: bytes) -> tuple[str | None, bool]:
    """The key of a line's question, None for a damaged line; and whether it has no context."""
    with suppress(ValueError, LookupError, TypeError, AttributeError, RecursionError):
        row = json.loads(line)
        if line.endswith(b"\n") and isinstance(row["retrieved_contexts"], list):
            return key_of(row["id"], row["user_input"]), not row["retrieved_contexts"]
    return None, False

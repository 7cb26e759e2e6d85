"""The recorded judge: answers with recorded replies from a JSONL file.

One line per reply, as `ragmetrics score --record` writes it:

    {"key": ..., "prompt": ..., "judge": ..., "reply": ...}

Lines with equal keys are the replies to successive attempts. `"as_is": true` marks a verdict of a
built-in judge, which has no text; `"row_first": true` a reply to a request that began with the row;
`"decides": true` the probabilities of a decision model, and `"rounds": true` those of one with
`round`. `PATH#JUDGE` chooses one judge of a panel's recording.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, TextIO

from pydantic import BaseModel, ValidationError

from ragmetrics.config import file_and_judge
from ragmetrics.errors import InputError, JudgeError
from ragmetrics.judges.base import Reply
from ragmetrics.judges.decision_layout import DecidedPrompts, DecisionPrompt
from ragmetrics.judges.row_first import RowFirstPrompt
from ragmetrics.records import Ask, current_judge_name, dump_json, fingerprint

_LONGEST_LINE = 100_000_000  # bytes


class RecordedJudge:
    """Answers from a recording; a request that is not in it fails for its row alone."""

    note = "recorded replies"
    concurrency = 1
    cacheable = False

    def __init__(self, path: str) -> None:
        self.name = f"recorded:{path}"
        played = recording(path)
        self._replies, self.row_first = played.replies, played.row_first
        self.only: Set[str] | None = DecidedPrompts() if played.decides else None
        rounded = ("rounds",) if played.rounds else ()
        self.fingerprint = fingerprint("recorded", sorted(self._replies.items()), *rounded)

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The recorded reply to this attempt, or the last reply."""
        replies = self._replies.get(request.key)
        if not replies:
            raise JudgeError(f"the recording has no reply to this {request.prompt.name} request")
        reply, as_is = replies[min(attempt, len(replies) - 1)]
        return Reply(verdict=_verdict(request, reply)) if as_is else Reply(text=reply)

    def evidence(self, request: Ask) -> None:
        """Always None: the judge gives a verdict alone."""

    async def close(self) -> None:
        """Nothing to close."""


class Recorder:
    """Writes each reply to a recording when it comes; without a path it writes nothing.

    Until the end the file is PATH.part. A run without replies leaves an earlier recording
    unchanged. A run that fails saves the replies that it had, because they are paid for.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._name = f"recording {path}"
        # Resolved, so that the target of a link is replaced and not the link.
        self._path = None if path is None else Path(path).resolve()
        self._file: TextIO | None = None
        self._replies = 0

    def __enter__(self) -> Self:
        if self._path is not None:
            if self._path.exists() and not self._path.is_file():
                raise InputError(f"{self._name}: is not a file")
            try:
                # A lone surrogate, which is not UTF-8, is written as a JSON escape.
                self._file = _part(self._path).open(
                    "w", encoding="utf-8", errors="backslashreplace"
                )
            except OSError as error:
                raise InputError(f"{self._name}: {error.strerror}") from error
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is None or self._path is None:
            return
        self._file.close()
        part = _part(self._path)
        if not self._replies:
            part.unlink()
            return
        try:
            part.replace(self._path)
        except OSError as problem:
            message = f"{self._name}: {problem.strerror}; the replies are in {part}"
            raise InputError(message) from problem

    def note(self, judge: str, request: Ask, reply: Reply) -> None:
        """Write one reply."""
        if self._file:
            record: dict[str, Any] = {
                "key": request.key,
                "prompt": request.prompt.name,
                "judge": judge,
            }
            if isinstance(request.prompt, RowFirstPrompt):
                record["row_first"] = True
            if isinstance(request.prompt, DecisionPrompt):
                record |= {"decides": True} | ({"rounds": True} if request.prompt.rounds else {})
            if reply.verdict is None:
                record["reply"] = reply.text
            else:
                record |= {"reply": reply.verdict.model_dump_json(), "as_is": True}
            self._file.write(dump_json(record) + "\n")
            self._replies += 1


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _verdict(request: Ask, text: str) -> BaseModel:
    # Without the prompt's check: built-in judges may give less than a model has to.
    try:
        verdict: BaseModel = request.prompt.verdict.model_validate_json(text)
    except ValidationError as error:
        message = f"the recording's verdict does not fit this {request.prompt.name} request"
        raise JudgeError(message) from error
    return verdict


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a recording as bytes, because str lines also end at U+2028."""
    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE + 1):
                if len(line) > _LONGEST_LINE:
                    many = f"a line has more than {_LONGEST_LINE:,} bytes"
                    raise InputError(f"recording {path}: {many}")
                yield line
    except OSError as error:
        raise InputError(f"recording {path}: {error.strerror or error}") from error


@dataclass
class Recording:
    """The replies of one judge, and how it was asked."""

    replies: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    """The replies by key; each with whether it is a verdict as it is."""
    row_first: bool = False
    decides: bool = False
    rounds: bool = False


def recording(place: str) -> Recording:
    """The recording of a judge, which is read again only after it has changed.

    Raises InputError for what is no recording, or one of several judges of which none is named.
    """
    path, chosen = file_and_judge(place)
    try:
        known = path.stat()
    except OSError as error:
        raise InputError(f"recording {path}: {error.strerror or error}") from error
    chosen = str(current_judge_name(chosen))
    by_judge = _load(path, (known.st_mtime_ns, known.st_size))
    if (chosen and chosen not in by_judge) or (not chosen and len(by_judge) > 1):
        offered = ", ".join(f"{path}#{name}" for name in by_judge)
        raise InputError(f"recording {place}: say which judge: {offered}")
    return by_judge.get(chosen or next(iter(by_judge), ""), Recording())


@lru_cache(maxsize=16)  # more than a night has: its judges, those they replace, their `also`
def _load(path: Path, version: tuple[int, int]) -> Mapping[str, Recording]:
    """The recordings in a file, by judge."""
    by_judge: dict[str, Recording] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode())
            if not (isinstance(record["key"], str) and isinstance(record["reply"], str)):
                raise TypeError("a key is text, and so is a reply, as the judge wrote it")
            played = by_judge.setdefault(
                str(current_judge_name(record.get("judge", ""))), Recording()
            )
            reply = (record["reply"], record.get("as_is") is True)
            played.replies.setdefault(record["key"], []).append(reply)
            for way in ("row_first", "decides", "rounds"):
                if record.get(way) is True:
                    setattr(played, way, True)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"recording {path}, line {number}: not a recorded reply") from error
    return by_judge

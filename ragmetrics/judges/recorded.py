"""The recorded judge: plays back replies that were given before, from a JSONL file.

One line per reply: `{"key": ..., "prompt": ..., "reply": ...}`, as `ragmetrics score --record`
writes it. Lines with one key are replies to attempts in order. `"as_is": true` marks a verdict that
a judge of ours gave without text to be read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self, TextIO

from ragmetrics.errors import InputError, JudgeError
from ragmetrics.judges.base import Reply, fingerprint
from ragmetrics.protocol import Ask, dumps


class RecordedJudge:
    """Answers from a recording; a request that is not in it fails its row and no other."""

    note = "recorded replies"
    concurrency = 1
    keeps = False

    def __init__(self, path: str) -> None:
        self.name = f"recorded:{path}"
        self._replies = _load(Path(path))
        self.fingerprint = fingerprint("recorded", sorted(self._replies.items()))

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The recorded reply to this attempt, or the last one there is."""
        replies = self._replies.get(request.key)
        if not replies:
            raise JudgeError(f"the recording has no reply to this {request.prompt.name} request")
        reply, as_is = replies[min(attempt, len(replies) - 1)]
        if as_is:
            return Reply(verdict=request.prompt.verdict.model_validate_json(reply))
        return Reply(text=reply)

    def evidence(self, request: Ask) -> None:
        """Nothing: its verdict is all it says."""

    async def close(self) -> None:
        """Nothing to give back."""


class Recorder:
    """Writes replies to a recording as they come; without a path it writes nothing."""

    def __init__(self, path: str | Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                # Half a character, which is no UTF-8, is written as JSON's escape of it.
                self._file = Path(self._path).open("w", encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise InputError(f"recording {self._path}: {error.strerror}") from error
        return self

    def __exit__(self, *error: object) -> None:
        if self._file:
            self._file.close()

    def note(self, request: Ask, reply: Reply) -> None:
        """Write one reply."""
        if self._file:
            record: dict[str, Any] = {"key": request.key, "prompt": request.prompt.name}
            if reply.verdict is None:
                record["reply"] = reply.text
            else:
                record |= {"reply": reply.verdict.model_dump_json(), "as_is": True}
            self._file.write(dumps(record) + "\n")


def _load(path: Path) -> dict[str, list[tuple[str, bool]]]:
    replies: dict[str, list[tuple[str, bool]]] = {}
    try:
        lines = path.read_bytes().splitlines()  # a text would be split at U+2028 in replies too
    except OSError as error:
        raise InputError(f"recording {path}: {error.strerror or error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode())
            if not isinstance(record["reply"], str):
                raise TypeError("a reply is text, as the judge wrote it")
            reply = (record["reply"], record.get("as_is") is True)
            replies.setdefault(record["key"], []).append(reply)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"recording {path}, line {number}: not a recorded reply") from error
    return replies

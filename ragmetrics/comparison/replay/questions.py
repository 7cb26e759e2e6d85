"""The golden questions of a replay, with the keys that identify them in its log."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import golden_set
from ragmetrics.model import LogRow, Rejected, dump_json


@dataclass(frozen=True, slots=True)
class GoldenQuestion:
    """The fields of a golden row that a replay needs."""

    id: str
    user_input: str
    language: str
    tags: Mapping[str, str]

    @property
    def key(self) -> str:
        """Key of the question."""
        return key_of(self.id, self.user_input)


@dataclass(frozen=True)
class GoldenQuestions:
    """The questions of a golden set, each once, in its order."""

    asked: tuple[GoldenQuestion, ...]
    unreadable: int
    """Rows of the golden set that cannot be read, or have no question."""

    @property
    def digest(self) -> str:
        """Digest of all fields of the questions."""
        parts = [[one.id, one.user_input, one.language, dict(one.tags)] for one in self.asked]
        return digest_of(parts)


def key_of(row_id: str, user_input: str) -> str:
    """The key of a row, by which an answer finds its question."""
    return digest_of([row_id, user_input])


def digest_of(parts: Sequence[object]) -> str:
    """24 hex digits."""
    text = dump_json(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def golden_questions(settings: Settings, limit: int | None = None) -> GoldenQuestions:
    """The first `limit` questions of the golden set, or all.

    Unreadable rows are counted. Raises InputError where there is no golden set, no question in it,
    or a file of it is truncated: a log of half the questions must not be written.
    """
    golden = golden_set(settings)
    if golden is None:
        raise InputError(
            "a replay asks the golden questions: name them by `golden:` in the settings or --golden"
        )
    found: dict[str, GoldenQuestion] = {}
    unreadable = 0
    for item in golden.read():
        if isinstance(item, Rejected) and item.whole_file:
            raise InputError(f"golden set {golden.files.uri(item.file)}: {item.reason}")
        if isinstance(item, Rejected) or not item.user_input.strip():
            unreadable += 1
            continue
        question = _question(item, settings)
        found.setdefault(question.key, question)
    if not found:
        raise InputError(f"golden set {settings.golden}: there is no question in it")
    return GoldenQuestions(tuple(found.values())[:limit], unreadable)


def _question(row: LogRow, settings: Settings) -> GoldenQuestion:
    return GoldenQuestion(row.id, row.user_input, row.language or settings.language, row.tags)

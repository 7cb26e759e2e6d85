"""Finds out how a sample of a team's log is read: preset, columns, separator. What a sample leaves
open is a question for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragmetrics.errors import InputError
from ragmetrics.logs import LogSet, RecognisedLayout
from ragmetrics.records import LogRow

NONE = "none"
"""The answer that no key has an optional field."""
MOST_QUESTIONS = 6
_MOST_UNREAD = 5
"""Keys named that may hold an answer."""


@dataclass(frozen=True)
class Question:
    """One question, with the answer that is taken where nobody is asked."""

    text: str
    default: str
    """Empty where there is no likely answer."""
    options: Sequence[str] = ()
    """The answers that are possible; empty: any text."""
    samples: Mapping[str, str] = field(default_factory=dict)
    """For a question about a key: a value of each. Keys and values are texts of the log."""


Ask = Callable[[Question], str]


class Asker:
    """Asks a person at most six questions; then, and where there is nobody, takes the default."""

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask, self._left = ask, MOST_QUESTIONS if ask else 0

    def __call__(self, question: Question) -> tuple[str, bool]:
        """The answer, and whether it is a guess."""
        if self._ask is None or not self._left:
            return question.default, True
        self._left -= 1
        return self._ask(question), False


@dataclass(frozen=True)
class LogLayout:
    """The settings that read a log, and what was found about it."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """`preset`, `columns` and `context_separator`, where they are needed."""
    found: Sequence[str] = ()
    """Sentences for a person."""


def find_layout(logs: LogSet, ask: Asker) -> LogLayout:
    """The layout of a sample. Asks for the fields that several keys, or none for sure, can be.

    Raises InputError, with one sentence, where no key can be the question or the contexts.
    """
    seen = logs.layout()
    if names := seen.choices.get("preset"):
        text = f"Which tool wrote the log? {', '.join(names)}"
        preset, _ = ask(Question(text, names[0], names))
        return LogLayout({"preset": preset}, [f"The log is read as an export of {preset}."])
    if seen.preset:
        return _mapped(
            seen, ask, {"preset": seen.preset}, f"The log is an export of {seen.preset}."
        )
    if not seen.note:
        return _mapped(seen, ask, {}, "The log has the field names of ragmetrics and ragas.")
    if not seen.samples:
        raise InputError(" ".join(seen.note.split("\n")))
    text = "The log has other field names; they are mapped by `columns`."
    return _mapped(seen, ask, {}, text)


def _mapped(
    seen: RecognisedLayout, ask: Asker, settings: Mapping[str, Any], sentence: str
) -> LogLayout:
    """The layout with the keys of all fields, those of them that are asked for, and tags."""
    columns, sentences = dict(seen.columns), [sentence]
    for name in seen.unknown:
        path, guessed = ask(_question(seen, name))
        if not path:
            raise InputError(
                f"Unknown log format. {seen.question} If one of these keys does, write it into the "
                f"settings: `columns: {{{name}: KEY}}`"
            )
        columns[name] = path
        if path == NONE:
            del columns[name]
        elif guessed:
            sentences.append(f"Guessed: `{path}` is read as {name}. Please check.")
    columns |= {
        f"tags.{name}": path for name, path in seen.tags.items() if path not in columns.values()
    }
    mapped = {name: path for name, path in columns.items() if name != path}
    more = {"columns": mapped, "context_separator": seen.separator}
    if seen.separator:
        sentences.append(f"The contexts of a row are one text; {seen.separator!r} separates them.")
    unread = [path for path, value in seen.samples.items() if _may_be_an_answer(path, value)]
    unread = [f"`{path}`" for path in unread if path not in columns.values()]
    lacking = [name for name in ("response", "reference") if name not in columns]
    if unread and lacking and not (settings or not seen.note):
        sentences.append(
            f"Not read: {', '.join(unread[:_MOST_UNREAD])}. If one of them is the "
            f"{' or the '.join(lacking)}, name it under `columns:`."
        )
    return LogLayout(
        {**settings, **{key: value for key, value in more.items() if value}}, sentences
    )


def _may_be_an_answer(path: str, value: str) -> bool:
    """Whether a value is a text of several words, and no item of a list."""
    return "[]" not in path and " " in value.strip()


def _question(seen: RecognisedLayout, name: str) -> Question:
    """The question for the key of a field."""
    needed = name in seen.choices
    keys = seen.choices[name] if needed else seen.guesses[name]
    options = [*seen.samples, *([] if needed else [NONE])]
    return Question(seen.asked(name), next(iter(keys), ""), options, seen.samples)


def read_sample(logs: LogSet, most: int) -> list[LogRow]:
    """The first rows that can be read."""
    rows: list[LogRow] = []
    for item in logs.read():
        if isinstance(item, LogRow):
            rows.append(item)
        if len(rows) == most:
            break
    return rows

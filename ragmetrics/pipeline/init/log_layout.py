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


@dataclass(frozen=True)
class Question:
    """One question, with the answer that is taken where nobody is asked."""

    text: str
    default: str
    options: Sequence[str] = ()
    """The answers that are possible; empty: any text."""


Ask = Callable[[Question], str]


_MEANING = {
    "user_input": "the question of the user",
    "retrieved_contexts": "the retrieved contexts (texts, in rank order)",
}


@dataclass(frozen=True)
class LogLayout:
    """The settings that read a log, and what was found about it."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """`preset`, `columns` and `context_separator`, where they are needed."""
    found: Sequence[str] = ()
    """Sentences for a person."""


def find_layout(logs: LogSet, ask: Ask) -> LogLayout:
    """The layout of a sample. Asks where several keys can be one field.

    Raises InputError, with one sentence, where no key can be the question or the contexts.
    """
    seen = logs.layout()
    if not seen.note:
        columns = {f"tags.{name}": path for name, path in seen.tags.items()}
        sentences = ["The log has the field names of ragmetrics and ragas."]
        return LogLayout({"columns": columns} if columns else {}, sentences)
    if names := seen.choices.get("preset"):
        preset = ask(Question(f"Which tool wrote the log? {', '.join(names)}", names[0], names))
        return LogLayout({"preset": preset}, [f"The log is read as one of {preset}."])
    if seen.preset:
        return LogLayout({"preset": seen.preset}, [f"The log is one of {seen.preset}."])
    if not (seen.columns or any(seen.choices.values())):
        raise InputError(" ".join(seen.note.split("\n")))
    return _by_columns(seen, ask)


def _by_columns(seen: RecognisedLayout, ask: Ask) -> LogLayout:
    columns, sentences = dict(seen.columns), []
    for name, keys in seen.choices.items():
        if not keys:
            first = seen.note.splitlines()[0].split(" Say in ")[0]
            raise InputError(
                f"no key of the log can be `{name}`, {_MEANING.get(name, 'a field')}. {first} "
                f"If one of them is, say so in ragmetrics.yaml: `columns: {{{name}: KEY}}`"
            )
        columns[name] = keys[0]
        if len(keys) > 1 or name not in seen.columns:
            text = f"Which key has {_MEANING.get(name, name)}?"
            columns[name] = ask(Question(text, keys[0], keys))
            sentences.append(f"Please check: `{columns[name]}` is read as {name}.")
    sentences.insert(0, "The log has other field names; they are mapped by `columns`.")
    columns |= {f"tags.{name}": path for name, path in seen.tags.items()}
    settings: dict[str, Any] = {
        "columns": {name: path for name, path in columns.items() if name != path}
    }
    if seen.separator:
        settings["context_separator"] = seen.separator
        sentences.append(f"The contexts of a row are one text; {seen.separator!r} separates them.")
    return LogLayout({key: value for key, value in settings.items() if value}, sentences)


def read_sample(logs: LogSet, most: int) -> list[LogRow]:
    """The first rows that can be read."""
    rows: list[LogRow] = []
    for item in logs.read():
        if isinstance(item, LogRow):
            rows.append(item)
        if len(rows) == most:
            break
    return rows

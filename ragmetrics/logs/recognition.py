"""Recognises the layout of logs: by which preset, or by which `columns:`, records become rows.

A layout is sure when exactly one preset reads the records, or when exactly one of their keys can be
the question and one the contexts. Otherwise a person has to decide, and the note has a line to
paste into the settings.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from ragmetrics.config import PRESETS
from ragmetrics.logs.exported_values import plain_fields
from ragmetrics.logs.field_mapping import LIST, map_columns
from ragmetrics.logs.key_names import (
    are_sentences,
    candidates,
    fits,
    is_question,
    is_time,
    other_contexts,
    tag_paths,
    texts_of_items,
)
from ragmetrics.logs.preset import Place, Skipped
from ragmetrics.logs.preset_rows import interpret
from ragmetrics.logs.record_paths import first_records, is_record, paths_of, samples_of, values_of
from ragmetrics.records import FIELDS, REQUIRED, BadRow, LogRow, read_row
from ragmetrics.text import clean

RowOf = Callable[[Any], LogRow | None]

_NAMED = 12
_LONGEST_KEY = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w.]*")
_ICONV = "iconv -f WINDOWS-1252 -t UTF-8 IN.csv > OUT.csv"
_SEPARATORS = ("\n---\n", "\n###\n", "\n***\n", "\n\n", "\n", "|||", " | ")
_ASKED = {
    "user_input": "question of the user",
    "retrieved_contexts": "retrieved passages",
    "response": "answer of the product",
    "reference": "right answer",
    "retrieved_context_ids": "ids of the retrieved passages",
    "index_build": "version of the index",
    "timestamp": "time of the retrieval",
}
"""What a person is asked for, in this order."""


@dataclass(frozen=True)
class RecognisedLayout:
    """How records become rows, and what a person should know about it."""

    preset: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    sure: bool = False
    note: str = ""
    """Empty for records in our own layout."""
    separator: str | None = None
    """The text between two contexts, where a record has them as one text."""
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What a person has to decide: for each field, the keys that it can be, the likeliest first;
    for `preset` the presets. An empty list: no key looks like the field."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Paths with few values, by a name for a tag."""
    guesses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The paths that an optional field can be, by name or by value, the likeliest first."""
    samples: Mapping[str, str] = field(default_factory=dict)
    """A value of each path, cut where it is long. It is a text of the log."""

    @property
    def question(self) -> str:
        """Which field a person has to name, and what was found, in one line; empty if none."""
        name = next((name for name in self.unknown if name in self.choices), "")
        listed = _listed([*self.samples][:_NAMED])
        more = f" and {len(self.samples) - _NAMED} more" if len(self.samples) > _NAMED else ""
        return f"{self.asked(name)} Found: {listed or 'none'}{more}." if name else ""

    @property
    def unknown(self) -> list[str]:
        """The fields that a person is asked for, in this order: those in `choices` first."""
        asked = [name for name in _ASKED if name in self.choices or name in self.guesses]
        return sorted(asked, key=lambda name: name not in self.choices)

    def asked(self, name: str) -> str:
        """The question for the key of a field."""
        return f"Which field holds the {_ASKED.get(name, name)}?"


def recognise(
    records: Iterable[Any], *, golden: bool = False, separator: str | None = None
) -> RecognisedLayout:
    """The layout of the first records.

    A golden set needs no contexts, and its answers are right ones. `separator` is the text between
    two contexts, where it is known.
    """
    some = list(first_records(records))
    row_of = partial(_row, golden=golden, separator=separator)
    if not some or any(map(row_of, some)):
        here = {key for record in some for key, value in record.items() if value is not None}
        return RecognisedLayout() if golden else _beside_fields(some, FIELDS, here)
    if any(str(value).endswith("not UTF-8") for value in some[0].values()):
        return RecognisedLayout(note=f"Convert the file to UTF-8, such as with:\n{_ICONV}")
    for preset in PRESETS.bundled_names:
        if _rows_of_preset(preset, some):
            others = [
                name
                for name in PRESETS.bundled_names
                if name != preset and _rows_of_preset(name, some)
            ]
            return _by_preset(preset, others, some)
    return _by_columns(some, row_of, golden)


def _beside_fields(
    records: Sequence[Mapping[str, Any]], keys: Collection[str], filled: Collection[str]
) -> RecognisedLayout:
    """The optional fields that are not `filled`, and tags, in other keys than `keys`."""
    paths = {
        path: values
        for path, values in paths_of(records).items()
        if path.partition(".")[0].removesuffix("[]") not in keys
    }
    named = {
        name: some
        for name, some in candidates(paths).items()
        if name not in filled and name not in (*REQUIRED, "id")
    }
    columns = {name: some[0] for name, some in named.items() if len(some) == 1}
    return RecognisedLayout(
        columns=columns,
        tags=tag_paths(paths, columns.values()),
        guesses={name: some for name, some in named.items() if len(some) > 1},
        samples=samples_of(paths),
    )


def _row(record: Any, *, golden: bool = False, separator: str | None = None) -> LogRow | None:
    """The row of a record in our layout; None if it is none, or has nothing that is needed."""
    try:
        plain = plain_fields({"retrieved_contexts": [], **record} if golden else record, separator)
        row = read_row(plain, "", Counter())
    except BadRow:
        return None
    return row if not golden or row.reference or row.reference_contexts else None


def _rows_of_preset(name: str, records: Sequence[Mapping[str, Any]]) -> int:
    places = ((Place("", number), record) for number, record in enumerate(records))
    items = interpret(PRESETS.find(name), places, {})
    if PRESETS.find(name).ids_only:  # a log of its own: events may come before the first row
        return sum(isinstance(item, Mapping | Skipped) for _, item in items)
    rows = (_row(item) for _, item in items if isinstance(item, Mapping))
    return sum(
        row is not None and fits("retrieved_contexts", [[*row.retrieved_contexts]]) for row in rows
    )


def _by_preset(
    preset: str, others: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> RecognisedLayout:
    if others:
        names = ", ".join([preset, *others])
        return RecognisedLayout(
            note=f"{_seen(records)} Several presets can read them: {names}. Set one.",
            choices={"preset": [preset, *others]},
        )
    beside = _beside_preset(preset, records)
    line = f"preset: {preset}\n{_columns(beside.columns)}".strip()
    note = f"{_seen(records)} It is read with this line:\n{line}"
    return replace(beside, preset=preset, sure=True, note=note)


def _beside_preset(preset: str, records: Sequence[Mapping[str, Any]]) -> RecognisedLayout:
    """The fields and tags that a preset leaves in records that are rows."""
    chosen = PRESETS.find(preset)
    if not chosen.rows:
        return RecognisedLayout()
    places = ((Place("", number), record) for number, record in enumerate(records))
    items = [item for _, item in interpret(chosen, places, {}) if isinstance(item, dict)]
    filled = {name for item in items for name, value in item.items() if value is not None}
    return _beside_fields(records, chosen.columns, filled)


def _by_columns(
    records: Sequence[Mapping[str, Any]], row_of: RowOf, golden: bool
) -> RecognisedLayout:
    seen, paths = _seen(records), paths_of(records)
    if len(records) == 1 and (command := _command(records[0])):
        return RecognisedLayout(
            note=f"{seen} The rows are inside one object. Write them as lines:\n{command}"
        )
    given = candidates(paths, golden=golden)
    needed = ["user_input"] if golden else list(REQUIRED)
    doubtful = {name: given[name] for name in needed if len(given.get(name, ())) > 1}
    columns = {name: some[0] for name, some in given.items() if len(some) == 1 or name in doubtful}
    missing = [name for name in needed if name not in columns]
    unused = {path: values for path, values in paths.items() if path not in columns.values()}
    guesses = {name: _guesses(name, unused) for name in missing}
    guessed = {name: some[0] for name, some in guesses.items() if some}
    layout = RecognisedLayout(
        columns=columns,
        tags=tag_paths(paths, columns.values()),
        guesses={} if golden else _optional(given, columns, guesses, paths),
        samples=samples_of(paths),
    )
    rows = sum(row_of(map_columns(record, columns)) is not None for record in records)
    between = _separator(paths.get(columns.get("retrieved_contexts", ""), ()))
    if between and not rows:
        text = "The contexts of a record are one text: set what is between two of them:"
        lines = f"{_columns(columns)}context_separator: {json.dumps(between)}"
        note = f"{seen} {text}\n{lines}"
        return replace(layout, note=note, separator=between, choices=doubtful)
    if others := other_contexts(paths, columns.get("retrieved_contexts", "")):
        doubtful["retrieved_contexts"] = [columns["retrieved_contexts"], *others]
    if not missing and not doubtful and all(columns[name] == name for name in needed):
        return RecognisedLayout()  # our layout, with values that cannot be read
    named = {name: f"KEY_OF_{name.upper()}" for name in missing} | guessed
    line = _columns(columns | named).strip()
    if not missing and not doubtful and 2 * rows >= len(records):
        note = f"{seen} It is read with this line:\n{line}"
        return replace(layout, sure=True, note=note)
    layout = replace(layout, choices=doubtful | guesses)
    others = [f"{name} could also be: {_listed(some[1:])}" for name, some in doubtful.items()]
    ask = layout.question or f"Which of them are {' and '.join(needed)}?"
    note = "\n".join([f"Unknown log format. {ask} Write it into the settings:", line, *others])
    return replace(layout, note=note)


def _optional(
    given: Mapping[str, Sequence[str]],
    columns: Mapping[str, str],
    guesses: Mapping[str, Sequence[str]],
    paths: Mapping[str, Sequence[Any]],
) -> dict[str, Sequence[str]]:
    """For each optional field that no path is for sure: the paths with its name or, where there is
    none, the only path whose values are like those of the field.
    """
    some = {name: given[name] for name in _ASKED if name not in REQUIRED and name in given}
    doubtful = {name: named for name, named in some.items() if name not in columns}
    used = {*columns.values(), *chain.from_iterable(guesses.values())}
    unused = {path: values for path, values in paths.items() if path not in used}
    likely = columns.get("retrieved_contexts") or next(
        iter(guesses.get("retrieved_contexts", ())), ""
    )
    contexts = paths.get(likely, ())
    lengths = [len(value) if isinstance(value, list) else 0 for value in contexts]
    by_value: dict[str, Callable[[Sequence[Any]], bool]] = {
        "response": lambda values: are_sentences(values) and len(set(values)) > len(values) / 2,
        "retrieved_context_ids": lambda values: (
            fits("retrieved_context_ids", values) and [*map(len, values)] == lengths
        ),
        "timestamp": lambda values: all(isinstance(one, str) and is_time(one) for one in values),
    }
    for name, fit in by_value.items():
        alike = [path for path, values in unused.items() if LIST not in path and fit(values)]
        if name not in some and len(alike) == 1:
            doubtful[name] = alike
    return doubtful


def _seen(records: Sequence[Mapping[str, Any]]) -> str:
    """The keys of the records, in a sentence."""
    keys = list(dict.fromkeys(str(key) for record in records for key in record))
    shown = ", ".join(map(_scalar, keys[:_NAMED])) or "none"
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return f"Another log format, with the keys {shown}{more}."


def _guesses(name: str, paths: Mapping[str, Sequence[Any]]) -> list[str]:
    """The paths whose values look like those of a field."""
    some = [path for path, values in paths.items() if fits(name, values)]
    if name == "retrieved_contexts":
        lists = [path for path in some if LIST not in path and isinstance(paths[path][0], list)]
        return lists or texts_of_items(paths, known=False)
    return [path for path in some if any(str(one).strip().endswith("?") for one in paths[path])]


def _separator(values: Sequence[Any]) -> str:
    """What is between two contexts in texts; empty where the values are lists."""
    texts = [value for value in values if isinstance(value, str)]
    if not texts:
        return ""
    return next((one for one in _SEPARATORS if one in "".join(texts)), _SEPARATORS[0])


def _command(record: Mapping[str, Any]) -> str:
    """The command that writes rows as lines, for an object that contains all rows; else empty."""
    by_number = len(record) > 1 and _is_by_number(record)
    if by_number or (len(record) > 1 and all(map(_is_column, record.values()))):
        return (
            "python -c \"import json, pandas as pd; pd.DataFrame(json.load(open('IN.json')))"
            f"{'.T' * by_number}.to_json('OUT.jsonl', orient='records', lines=True)\""
        )
    inner = [
        path
        for path, value in values_of(record)
        if isinstance(value, list) and len(value) > 1 and all(map(is_record, value))
    ]
    # A key of another form could be a command of its own.
    safe = len(inner) == 1 and _PLAIN_KEY.fullmatch(inner[0])
    if safe and not any(map(is_question, record.values())):
        return f"jq -c '.{inner[0]}[]' IN.json > OUT.jsonl"
    return ""


def _is_by_number(record: Mapping[str, Any]) -> bool:
    """Rows by number, as pandas writes them with `orient="index"`."""
    return all(str(key).isdecimal() for key in record) and all(map(is_record, record.values()))


def _is_column(value: Any) -> bool:
    """A column of a table: values by number, or a list, as pandas and datasets write them."""
    if isinstance(value, Mapping):
        return len(value) > 1 and all(str(key).isdecimal() for key in value)
    return isinstance(value, list) and len(value) > 1


def _columns(columns: Mapping[str, str]) -> str:
    """Columns as a line of YAML, with the end of the line; empty where all names are ours."""
    renamed = {name: _scalar(path) for name, path in columns.items() if name != path}
    return f"columns: {{{', '.join(map(': '.join, renamed.items()))}}}\n" if renamed else ""


def _listed(paths: Iterable[str]) -> str:
    """Paths in a sentence, without signs that a terminal obeys."""
    return ", ".join(clean(path, _LONGEST_KEY) for path in paths)


def _scalar(key: str) -> str:
    """A key as YAML has it, cut where it is very long, without signs that a terminal obeys."""
    short = clean(key, _LONGEST_KEY)
    return short if _PLAIN_KEY.fullmatch(short) else json.dumps(short, ensure_ascii=False)

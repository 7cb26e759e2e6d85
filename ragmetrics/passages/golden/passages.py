"""Passages with their ids: those of now, and the earlier texts of labelled passages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.passages.diagnosis.corpus import read_documents
from ragmetrics.records import Manifest, question_key
from ragmetrics.storage import Files, RunRef, StoredPart, passing_over

_NAMES = ("user_input", "retrieved_contexts", "retrieved_context_ids")


@dataclass(frozen=True)
class Passages:
    """The passages that there are now."""

    label: str
    """Where they are from, for messages."""
    read: Callable[[], Iterator[tuple[str, str]]]
    """The id and the text of each, once."""
    complete: bool
    """Whether they are all passages of the index, and not only those of one night."""
    asked: Collection[str] = frozenset()
    """Keys of the questions that the night asked."""


@dataclass(frozen=True)
class EarlierPassage:
    """A labelled passage as it was last retrieved."""

    text: str
    questions: frozenset[str]
    """Keys of the questions that retrieved it."""


def listed_passages(settings: Settings, place: str) -> Passages:
    """All passages of an index, from a list or a folder. Raises InputError and StoreError as they
    are read.
    """
    return Passages(place, partial(read_documents, settings, place), complete=True)


def night_passages(files: Files, night: Manifest) -> Passages:
    """The passages that a night retrieved. Raises StoreError where its rows are gone."""
    asked = {question_key(one["user_input"]) for one in _records(files, night, ("user_input",))}
    label = f"night {night.date}"
    return Passages(label, partial(_retrieved, files, night), complete=False, asked=asked)


def _retrieved(files: Files, night: Manifest) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for record in _records(files, night, _NAMES):
        for name, text in pairs_of(record):
            if name not in seen:
                seen.add(name)
                yield name, text


def pairs_of(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The id and the text of each retrieved passage; none where their numbers differ."""
    ids, texts = record["retrieved_context_ids"] or (), record["retrieved_contexts"] or ()
    if len(ids) == len(texts):
        yield from ((str(name), text or "") for name, text in zip(ids, texts, strict=True) if name)


def earlier_passages(
    files: Files, nights: Sequence[Manifest], ids: Collection[str]
) -> dict[str, EarlierPassage]:
    """The newest texts that some ids had on earlier nights, and the questions that got them then.

    `nights` are oldest first. A night whose rows are gone is left out.
    """
    texts: dict[str, str] = {}
    questions: dict[str, set[str]] = {}
    for night in reversed(nights):
        with passing_over():
            for record in _records(files, night, _NAMES):
                for name, text in pairs_of(record):
                    if name in ids:
                        texts.setdefault(name, text)
                        key = question_key(record["user_input"])
                        questions.setdefault(name, set()).add(key)
    return {name: EarlierPassage(texts[name], frozenset(questions[name])) for name in texts}


def _records(files: Files, night: Manifest, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    ref = RunRef.of(night)
    for shard in range(ref.shards):
        yield from StoredPart(files, ref.rows(shard)).records(names)

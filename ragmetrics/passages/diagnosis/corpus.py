"""Reads the corpus of the settings: were lost passages edited, or are they not in it any more?

The corpus is a list of documents (JSON Lines, CSV, Parquet, as logs; with an id and a text), or a
folder of text files. It is read once, as a stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from ragmetrics.config import Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs import find_logs, log_of
from ragmetrics.passages.diagnosis.document_ids import is_in
from ragmetrics.passages.diagnosis.log_stages import Verdict
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.passages.diagnosis.text_match import Shingles, shingles_of
from ragmetrics.storage import FileInfo, Files
from ragmetrics.text import clean

_IDS = ("id", "_id", "doc_id", "document_id", "chunk_id", "passage_id")
_TEXTS = ("text", "content", "page_content", "body", "contents", "passage")
_FILES = (".txt", ".md", ".markdown", ".rst", ".html", ".htm", ".adoc")
_CHUNK = 500
_WHOLE = 0.95
"""Share of a passage's text in the corpus from which its source is unchanged."""
_PART = 0.5
"""Share from which its source was edited, and not removed."""


def ask_corpus(settings: Settings, lost: LostPairs) -> tuple[LostPairs, list[str]]:
    """The lost pairs with the stages that the corpus decides, and notes; unchanged without one."""
    texts = list(dict.fromkeys(old for old in lost.old if old and old.text))
    if settings.corpus is None or not texts:
        return lost, []
    try:
        found, unreadable = search_corpus(
            settings, [text.id for text in texts], shingles_of([text.text for text in texts])
        )
    except (InputError, StoreError) as error:
        return lost, [clean(f"corpus not read: {error}", 300)]
    evidence = dict(zip(texts, found, strict=True))
    notes = []
    if unreadable:
        notes = [
            f"{unreadable:,} records of the corpus have no text; passages in them look removed"
        ]
    verdicts = [
        verdict if old is None or old not in evidence else _stage(verdict, evidence[old])
        for verdict, old in zip(lost.verdicts, lost.old, strict=True)
    ]
    return replace(lost, verdicts=verdicts), notes


def _stage(verdict: Verdict, found: CorpusEvidence) -> Verdict:
    """The stage by the corpus, where the source changed; else as it was."""
    seen = verdict.stage == "in_index" and verdict.proven  # whatever the corpus says
    if found.share >= _WHOLE or seen:
        return verdict
    if found.known or found.share >= _PART:
        what = "its document is in the corpus" if found.known else "the corpus"
        return Verdict("edited", f"{what} with {found.share:.0%} of its text", proven=True)
    evidence = f"{found.share:.0%} of its text is in the corpus"
    return Verdict("not_in_corpus", evidence, proven=True)


@dataclass(frozen=True)
class CorpusEvidence:
    """What the corpus says about a passage."""

    known: bool
    """Whether a document of the corpus has its id."""
    share: float
    """Share of its text that is in the corpus."""


@dataclass
class _Unreadable:
    """Counts the records without a text."""

    count: int = 0


def search_corpus(
    settings: Settings, ids: Sequence[str], wanted: Sequence[Shingles]
) -> tuple[list[CorpusEvidence], int]:
    """Look for passages in the corpus, by their ids and by the shingles of their texts. Returns the
    number of records without a text too: a passage in one of them looks removed.

    Raises InputError where there is no corpus, or no document in it has a text; StoreError where
    it cannot be read.
    """
    every = np.unique(np.concatenate(list(wanted))) if wanted else np.array([], dtype=np.uint64)
    names, found, documents = set(ids), np.zeros(len(every), dtype=bool), 0
    known: set[str] = set()
    unreadable = _Unreadable()
    for texts in _chunks(_documents(settings, settings.corpus or "", unreadable)):
        documents += len(texts)
        known.update(name for name, _ in texts if name in names)
        for pieces in shingles_of([text for _, text in texts]):
            found |= is_in(every, pieces, assume_unique=True)
    if not documents:
        raise _no_document(f"corpus: {settings.corpus}")
    there = every[found]
    evidence = [
        CorpusEvidence(name in known, float(is_in(pieces, there).mean()) if len(pieces) else 0.0)
        for name, pieces in zip(ids, wanted, strict=True)
    ]
    return evidence, unreadable.count


def read_documents(settings: Settings, place: str) -> Iterator[tuple[str, str]]:
    """The id and the text of each document at a place: a list in a format of logs, or a folder of
    text files. Raises InputError where no document has a text.
    """
    documents = 0
    for document in _documents(settings, place, _Unreadable()):
        documents += 1
        yield document
    if not documents:
        raise _no_document(place)


def _no_document(place: str) -> InputError:
    return InputError(
        f"{place}: no document with a text; a document has an id and a text "
        f"({', '.join(_TEXTS)}), or is a file ending in {', '.join(_FILES)}"
    )


def _chunks(documents: Iterator[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    waiting: list[tuple[str, str]] = []
    for document in documents:
        waiting.append(document)
        if len(waiting) == _CHUNK:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _documents(
    settings: Settings, place: str, unreadable: _Unreadable
) -> Iterator[tuple[str, str]]:
    """The id and the text of each document."""
    files, infos = find_logs(place, settings.storage_options)
    if infos:
        yield from _records(settings, files, infos, unreadable)
        return
    files = Files(place, settings.storage_options)
    for info in files.below(""):
        if info.path.lower().endswith(_FILES):
            yield str(PurePosixPath(info.path).with_suffix("")), _text(settings, files, info)


def _text(settings: Settings, files: Files, info: FileInfo) -> str:
    if info.size > settings.limits.unpacked_bytes:
        raise InputError(f"corpus: {info.path} is larger than `limits: unpacked_bytes:`")
    return files.read(info.path).decode("utf-8", "replace")


def _records(
    settings: Settings, files: Files, infos: tuple[FileInfo, ...], unreadable: _Unreadable
) -> Iterator[tuple[str, str]]:
    logs = replace(log_of(settings, files, infos), also=(*_IDS, *_TEXTS, "title"))
    for _, item in logs.items():
        if isinstance(item, Mapping) and (text := _first(item, _TEXTS)):
            yield _first(item, _IDS), "\n".join(filter(None, [str(item.get("title") or ""), text]))
        else:
            unreadable.count += 1


def _first(record: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(record[name]) for name in names if record.get(name) is not None), "")

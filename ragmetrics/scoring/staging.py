"""Staging: validates the logs of a night, joins them to the golden set and writes shards.

The shard of a row follows from the hash of its question, so equal questions are in one shard.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path

from ragmetrics.config import Settings, log_files_of_day, night_span
from ragmetrics.errors import StoreError
from ragmetrics.judges import Corpus
from ragmetrics.logs import GoldenSet, NightInputs, ReadCounts
from ragmetrics.records import BrokenFile, LogRow, Record, Rejected, Source, TopicModel, printable
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.nights_before import NightsBefore
from ragmetrics.scoring.sharding import shard_of
from ragmetrics.scoring.topic_assignment import tagger
from ragmetrics.storage import (
    ROW_SCHEMA,
    Files,
    PartWriter,
    RunRef,
    StoredPart,
    find_record,
    open_store,
    row_record,
    row_size,
    save_record,
    workspace,
)

log = logging.getLogger(__name__)

_BUFFER_BYTES = 64 << 20

_MOST_REASONS = 50


class Staged(Record):
    """The result of staging. It is stored beside the rows and written last."""

    ref: RunRef
    source: Source
    started_at: datetime
    seen_at: datetime | None = None
    """When this run, or its repetition, listed the log files."""
    digests: tuple[str, ...] = ()
    """A digest of the rows of each shard."""
    corpus: str = ""
    """A digest of the word counts; empty when no judge or embedder needs them."""
    problems: tuple[str, ...] = ()
    """Files that could not be written and that the run does not need."""

    @classmethod
    def find(cls, files: Files, folder: str) -> Staged | None:
        """The result of staging in a run's folder of rows; None if staging did not finish. An
        invalid file is logged and ignored.
        """
        path = f"{folder}/staged.json"
        return find_record(files, path, cls, "damaged, its run is left out")


@dataclass
class _Counts:
    identity: LogIdentity
    rows: int = 0
    golden: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    read: ReadCounts = field(default_factory=ReadCounts)
    broken: list[BrokenFile] = field(default_factory=list)
    builds: Counter[str] = field(default_factory=Counter)

    def add(self, row: LogRow, joined: bool) -> None:
        self.rows += 1
        self.golden += joined
        if row.index_build:
            self.builds[row.index_build] += 1

    def reject(self, bad: Rejected) -> None:
        if bad.whole_file:
            self.broken.append(BrokenFile(file=bad.file, line=bad.line, reason=bad.reason))
        else:
            self.reasons[bad.reason] += 1


def stage_run(
    settings: Settings,
    ref: RunRef,
    inputs: NightInputs,
    now: datetime,
    weighed_by: Corpus | None = None,
    topics: TopicModel | None = None,
) -> Staged:
    """Write the run's rows, quarantine and word counts; return at once if they exist.

    `now` is stored as the start of the run, and as the time when its files were listed.
    `weighed_by` are word counts in place of the run's own. Rows get the tag of their topic, if
    there are `topics`, and what the nights before say of them, if a metric looks back.
    """
    files = open_store(settings)
    if done := _find_complete(files, ref):
        return done.model_copy(update={"seen_at": now})
    corpus = weighed_by or Corpus()
    span, paths = night_span(ref.date, settings.time_zone), inputs.log_files()
    counts = _Counts(LogIdentity(span, frozenset(printable(info.path) for info in paths)))
    golden = GoldenSet(inputs.golden, first=inputs.golden_first, day=ref.date)
    steps = _steps(settings, files, ref.date, topics)
    with workspace() as folder, ExitStack() as stack:
        share = max(_BUFFER_BYTES // ref.shards, 1 << 18)
        writers = [PartWriter(folder, ROW_SCHEMA, share) for _ in range(ref.shards)]
        quarantine = stack.enter_context((folder / "quarantine.jsonl").open("w", encoding="utf-8"))
        for item in _items(inputs, golden, counts.read):
            if isinstance(item, Rejected):
                counts.reject(item)
                quarantine.write(_quarantined(item))
                continue
            counts.identity.add(item)
            row, joined = golden.join(item)
            for step in steps:
                row = step(row)
            counts.add(row, joined)
            if settings.reads_corpus and weighed_by is None:
                corpus.add(row.retrieved_contexts, row.user_input)
            writers[shard_of(row, ref.shards)].add(row_record(row), row_size(row))
        quarantine.close()
        done = Staged.find(files, ref.folder("rows"))
        if done and not done.problems:  # another process was faster
            return done.model_copy(update={"seen_at": now})
        digests = [writer.finish(files, ref.rows(shard)) for shard, writer in enumerate(writers)]
        problems = []
        if counts.reasons or counts.broken:
            problems = _write_quarantine(files, ref, folder / "quarantine.jsonl")
    words = corpus.to_bytes()
    files.write(_corpus_path(ref), words)
    staged = Staged(
        ref=ref,
        source=_source(settings, inputs, counts, golden, ref.date),
        started_at=now,
        seen_at=now,
        digests=tuple(digests),
        corpus=hashlib.blake2b(words, digest_size=12).hexdigest() if settings.reads_corpus else "",
        problems=tuple(problems),
    )
    save_record(files, f"{ref.folder('rows')}/staged.json", staged)
    return staged


def _steps(
    settings: Settings, files: Files, day: date, topics: TopicModel | None
) -> list[Callable[[LogRow], LogRow]]:
    """What each row gets: the language, its topic, and what the nights before say of it."""
    language = settings.language
    steps = [lambda row: row if row.language else replace(row, language=language)]
    steps += [tagger(settings, topics)] if topics else []
    if any(metric.looks_back for metric in chosen_metrics(settings)):
        steps.append(NightsBefore.of(files, day).told)
    return steps


def _write_quarantine(files: Files, ref: RunRef, path: Path) -> list[str]:
    """Write the quarantine of a run. Returns the problem if that failed; a rerun writes it then."""
    try:
        files.put(path, f"{ref.folder('quarantine')}.jsonl")
    except StoreError as error:
        if error.transient:
            raise
        log.error("%s", error)
        return [f"the quarantined rows are not stored: {error}"]
    return []


def _find_complete(files: Files, ref: RunRef) -> Staged | None:
    """The result of an earlier staging; None when the run has to be staged again, because the word
    counts or the rows of a shard are damaged, or a file could not be written.
    """
    done = Staged.find(files, ref.folder("rows"))
    if done is None or done.problems:
        return None
    if _has_corpus(files, ref) and all(
        StoredPart(files, ref.rows(shard)).is_readable() for shard in range(ref.shards)
    ):
        return done
    log.warning("%s: damaged, staged again", files.uri(ref.folder("rows")))
    files.discard(f"{ref.folder('rows')}/staged.json")
    return None


def _has_corpus(files: Files, ref: RunRef) -> bool:
    try:
        load_corpus(files, ref)
    except StoreError as error:
        if error.transient:
            raise
        log.warning("%s", error)
        return False
    return True


def _items(
    inputs: NightInputs, golden: GoldenSet, counts: ReadCounts
) -> Iterator[LogRow | Rejected]:
    yield from () if inputs.golden_first else golden.rejected
    everything = (item for logs in inputs.logs for item in logs.read(counts))
    left = inputs.limit
    for item in everything:
        if left == 0:
            return
        yield item
        left = left - isinstance(item, LogRow) if left is not None else None


def _corpus_path(ref: RunRef) -> str:
    return f"{ref.folder('rows')}/corpus.bin"


def corpus_of(files: Files, ref: RunRef) -> Corpus | None:
    """The word counts of a run; counted from its rows where it stored none, as the run of a judge
    over a network does. None if its rows are gone too. Raises StoreError if they are damaged.
    """
    if files.exists(_corpus_path(ref)) and not (stored := load_corpus(files, ref)).is_empty:
        return stored
    if not all(files.exists(ref.rows(shard)) for shard in range(ref.shards)):
        return None
    corpus = Corpus()
    for shard in range(ref.shards):
        for batch in StoredPart(files, ref.rows(shard)).row_batches():
            for row in batch:
                corpus.add(row.retrieved_contexts, row.user_input)
    return corpus


def load_corpus(files: Files, ref: RunRef) -> Corpus:
    """The word counts that a run stored; empty where its judge needs none. Raises StoreError when
    they are missing or damaged.
    """
    path = _corpus_path(ref)
    data = files.read(path)
    try:
        return Corpus.from_bytes(data)
    except ValueError as error:
        raise StoreError(
            f"{files.uri(path)} is damaged ({error}): run its night or gate again to write a new "
            "one"
        ) from error


def _source(
    settings: Settings, inputs: NightInputs, counts: _Counts, golden: GoldenSet, day: date
) -> Source:
    problem = inputs.problem
    if not problem and not counts.rows:
        problem = "the logs hold no row that can be read"
        if counts.read.skipped and not counts.reasons:
            reason, number = counts.read.skipped.most_common(1)[0]
            problem = f"every record was skipped, most often: {reason} ({number:,})"
    return Source(
        logs=log_files_of_day(settings.logs, day),
        files=len(inputs.log_files()),
        rows=counts.rows,
        quarantined=counts.reasons.total(),
        reasons=dict(counts.reasons.most_common(_MOST_REASONS)),
        skipped=dict(counts.read.skipped.most_common()),
        dropped=dict((counts.read.dropped + golden.counts.dropped).most_common(_MOST_REASONS)),
        note="\n".join(filter(None, [golden.counts.note, counts.read.note])),
        broken=counts.broken,
        problem=problem,
        golden=counts.golden,
        golden_questions=len(golden.joined),
        golden_since=golden.since,
        golden_until=golden.until,
        index_builds=dict(counts.builds.most_common(_MOST_REASONS)),
        oldest=counts.identity.oldest,
        newest=counts.identity.newest,
        dated=counts.identity.dated,
        outside=counts.identity.outside,
        digest=str(counts.identity.rows),
        ids=str(counts.identity.ids),
        questions=str(counts.identity.questions),
        retrieved=str(counts.identity.retrieved),
    )


def _quarantined(bad: Rejected) -> str:
    record = {"file": bad.file, "line": bad.line, "reason": bad.reason, "excerpt": bad.excerpt}
    return json.dumps(record) + "\n"


_BYTES = 16


@dataclass
class _SumOfDigests:
    """A digest of values in any order, in which a repeated value counts each time."""

    total: int = 0

    def add(self, value: object) -> None:
        """Add a value that is equal where its `repr` is."""
        data = repr(value).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=_BYTES).digest()
        self.total = (self.total + int.from_bytes(digest)) % (1 << 8 * _BYTES)

    def __str__(self) -> str:
        return f"{self.total:0{2 * _BYTES}x}" if self.total else ""


@dataclass
class LogIdentity:
    """The times of a log's rows against the span of its night, and digests of what they say."""

    span: tuple[datetime, datetime]
    paths: frozenset[str]
    """The files of the log: a row without an id is named after its place in one."""
    dated: int = 0
    outside: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    rows: _SumOfDigests = field(default_factory=_SumOfDigests)
    ids: _SumOfDigests = field(default_factory=_SumOfDigests)
    questions: _SumOfDigests = field(default_factory=_SumOfDigests)
    retrieved: _SumOfDigests = field(default_factory=_SumOfDigests)

    def add(self, row: LogRow) -> None:
        """Count a row as it was logged: without its golden reference and topic."""
        row_id = None if row.id.rpartition(":")[0] in self.paths else row.id
        names = (row_id, row.trace_id, row.span_id)
        if any(names):
            self.ids.add(names)
        self.questions.add(row.user_input)
        passages = (row.user_input, row.retrieved_contexts, row.retrieved_context_ids)
        self.retrieved.add(passages)
        self.rows.add((names, row.timestamp and row.timestamp.isoformat(), *passages, row.response))
        if row.timestamp is None:
            return
        self.dated += 1
        self.outside += not self.span[0] <= row.timestamp < self.span[1]
        self.oldest = min(self.oldest or row.timestamp, row.timestamp)
        self.newest = max(self.newest or row.timestamp, row.timestamp)

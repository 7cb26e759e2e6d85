"""Stores under fire: each reader of a damaged file reads, leaves it out, or raises StoreError."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from ragmetrics.comparison import (
    load_compared,
    load_failed_gates,
    load_gates,
)
from ragmetrics.delivery import load_alerts
from ragmetrics.delivery.channel import Threads, load_threads
from ragmetrics.delivery.outbox import MessageBatch
from ragmetrics.delivery.state import AlertStates
from ragmetrics.delivery.state_fold import STATE_FILE
from ragmetrics.errors import StoreError
from ragmetrics.judges import Corpus, ReplyCache
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.people import load_history
from ragmetrics.records import LogRow, Score, Source, SpendLimits, Usage
from ragmetrics.rules import silences
from ragmetrics.scoring import Staged
from ragmetrics.scoring.budget.plan import BudgetPlan, load_plan
from ragmetrics.scoring.reuse import staged_runs
from ragmetrics.scoring.sampling.plan import load_sample
from ragmetrics.scoring.staging import load_corpus
from ragmetrics.storage import (
    ROW_SCHEMA,
    SCORE_SCHEMA,
    Files,
    PartWriter,
    RunRef,
    Runs,
    StoredPart,
    row_record,
    score_record,
    scored_rows,
    workspace,
)
from tests.fakes.fuzzing import JSON, damaged, fuzzed
from tests.fakes.nights import night

REF = RunRef(date=date(2026, 11, 19), run="ab12", shards=1)
ROWS = [
    LogRow(
        f"r{n}", f"Where is {n}?", ("Here.",), datetime(2026, 11, 19, tzinfo=UTC), tags={"a": "b"}
    )
    for n in range(5)
]
KEY = "00000001" + "ab" * 12
METRIC = "context_recall"
NOW = datetime(2026, 11, 19, tzinfo=UTC)
NIGHT = night().model_copy(update={"date": REF.date, "run": REF.run})
Read = Callable[[Files], Any]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """One of each kind of file that is read again."""
    files = Files(str(tmp_path_factory.mktemp("store")))
    with workspace() as folder:
        rows = PartWriter(folder, ROW_SCHEMA)
        scores = PartWriter(folder, SCORE_SCHEMA)
        for row in ROWS:
            rows.add(row_record(row))
            scores.add(score_record(row, Score(0.5, "so", {"verdicts": [1, 0]})))
        rows.finish(files, REF.rows(0))
        scores.finish(files, REF.scores(METRIC, 0), {"usage": {"judge": {}}})
    files.write(f"{REF.folder('runs')}.json", NIGHT.model_dump_json().encode())
    corpus = Corpus()
    corpus.add(("one two",), "one")
    files.write(f"{REF.folder('rows')}/corpus.bin", corpus.to_bytes())
    asyncio.run(_keep(files))
    return files


async def _keep(files: Files) -> None:
    """A file of judgements that is Parquet, and a journal that is still open."""
    done = ReplyCache(files, "f", "00000000", "ffffffff")
    done.load()
    await done.add(CachedReply(KEY, "grade", "a reply"))
    await asyncio.to_thread(done.compact)
    done.close()
    left = ReplyCache(files, "f", "00000000", "ffffffff")
    left.load()
    await left.add(CachedReply(KEY, "other", "a reply"))


def read_parts(files: Files) -> list[str]:
    """What comes of all that reads a part of rows."""
    part = StoredPart(files, REF.rows(0))
    readers = (part.row_batches, part.question_keys, part.records)
    found = [outcome(lambda read=read: list(read())) for read in readers]
    return [*found, outcome(lambda: scored_rows(files, REF, [METRIC], {0: [0, 3]}))]


def read_scores(files: Files) -> list[str]:
    """What comes of all that reads a part of scores."""
    path = REF.scores(METRIC, 0)
    return [
        outcome(lambda: StoredPart(files, path).is_whole()),
        outcome(lambda: StoredPart(files, path).notes()),
        outcome(lambda: StoredPart(files, path).columns(["value", "status"])),
        outcome(lambda: StoredPart(files, path).copy("copy.parquet", {})),
        outcome(lambda: scored_rows(files, REF, [METRIC], {0: [0, 3]})),
    ]


def judgements(files: Files) -> None:
    """All that reads judgements; what is damaged is asked anew."""
    kept = ReplyCache(files, "f", "00000000", "ffffffff")
    kept.load()
    kept.find(KEY)
    kept.find_vector(KEY)


READ = "read"


def outcome(read: Callable[[], Any]) -> str:
    """`read`, or the text of the one error that there is. Any other error fails the test."""
    try:
        read()
    except StoreError as error:
        return str(error)
    return READ


RECORDS: dict[str, tuple[BaseModel, Read]] = {
    f"{REF.folder('runs')}.json": (
        NIGHT,
        lambda files: (Runs(files).find(REF), Runs(files).nights()),
    ),
    "history/2026-11.json": (NIGHT, lambda files: Runs(files).outlines()),
    f"{REF.folder('rows')}/staged.json": (
        Staged(ref=REF, source=Source(logs="x", files=1, rows=1), started_at=NOW),
        lambda files: staged_runs(files, REF.date),
    ),
    f"{REF.folder('rows')}/budget.json": (
        BudgetPlan(limits=SpendLimits(max_usd=1.0), estimated=Usage()),
        lambda files: load_plan(files, REF),
    ),
    f"{REF.folder('rows')}/sample.json": (NIGHT, lambda files: load_sample(files, REF)),
    STATE_FILE: (AlertStates(), load_alerts),
    "alerts/threads.json": (Threads(), load_threads),
    "alerts/silences/a.json": (NIGHT, silences),
    "alerts/outbox/a.json": (NIGHT, load_alerts),
    "alerts/delivered/2026-11-19.0.json": (MessageBatch(night=NIGHT.date), load_alerts),
    "gates/b2.json": (NIGHT, lambda files: (list(load_gates(files)), load_compared(files, "b2"))),
    "gates/undecided/b2.json": (NIGHT, lambda files: list(load_failed_gates(files))),
    "calibrations/set=a/judge=f/20261119T000000.000000Z.json": (NIGHT, load_history),
}


@pytest.mark.parametrize("path", RECORDS)
@fuzzed
@given(data=st.data())
def test_damaged_records(store: Files, path: str, data: st.DataObject) -> None:
    """JSON with pieces of it changed, or of another kind."""
    record, read = RECORDS[path]
    whole = record.model_dump_json().encode()
    before = store.find(path)
    store.write(path, data.draw(damaged(whole) | JSON.map(lambda one: json.dumps(one).encode())))
    try:
        assert outcome(lambda: read(store))
    finally:
        store.remove(path)
        if before is not None:
            store.write(path, before)


@fuzzed
@given(data=st.data())
def test_damaged_judgements(store: Files, data: st.DataObject) -> None:
    """Journals and Parquet: what cannot be read is asked anew."""
    kept = [info.path for info in store.below("judgements")]
    path = data.draw(st.sampled_from(kept))
    whole = store.read(path)
    store.write(path, data.draw(damaged(whole)))
    try:
        assert outcome(lambda: judgements(store)) == READ
    finally:
        store.write(path, whole)


@fuzzed
@given(data=st.data())
def test_damaged_word_counts(store: Files, data: st.DataObject) -> None:
    """They are staged anew."""
    path = f"{REF.folder('rows')}/corpus.bin"
    whole = store.read(path)
    store.write(path, data.draw(damaged(whole)))
    try:
        assert outcome(lambda: load_corpus(store, REF))
    finally:
        store.write(path, whole)


@pytest.mark.parametrize("name", ["dt=2026-13-45/run=a.json", "dt=2026-11-19/run=.json", "x.json"])
def test_odd_names_are_no_nights(tmp_path: Path, name: str) -> None:
    """Whoever puts files into a store by hand may call them anything."""
    files = Files(str(tmp_path))
    files.write(f"runs/{name}", NIGHT.model_dump_json().encode())
    assert [one.date for one in Runs(files).nights()] in ([], [REF.date])


@pytest.mark.parametrize("kind", ["rows", "scores"])
@fuzzed
@given(data=st.data())
def test_damaged_parts(store: Files, kind: str, data: st.DataObject) -> None:
    """Parquet with pieces of it changed."""
    path = REF.rows(0) if kind == "rows" else REF.scores(METRIC, 0)
    whole = store.read(path)
    store.write(path, data.draw(damaged(whole)))
    try:
        assert all((read_parts if kind == "rows" else read_scores)(store))
    finally:
        store.write(path, whole)

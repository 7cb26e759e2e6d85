"""Parts: rows and scores of a shard as Parquet that anybody can read."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.errors import StoreError
from ragmetrics.records import LogRow, Score, Status
from ragmetrics.storage import (
    ROW_SCHEMA,
    SCORE_SCHEMA,
    DamagedPart,
    Files,
    PartWriter,
    RunRef,
    StoredPart,
    row_record,
    row_size,
    score_record,
    scored_rows,
    workspace,
)
from tests.fakes.clients import Bucket
from tests.fakes.examples import examples
from tests.fakes.flaky_s3 import FlakyS3
from tests.fakes.processes import running

REF = RunRef(date=date(2026, 11, 19), run="ab12", shards=2)
FULL = LogRow(
    id="a",
    user_input="What is it?",
    retrieved_contexts=("One.", ""),
    timestamp=datetime(2026, 11, 19, 1, 2, 3, 456, tzinfo=UTC),
    response="",
    reference="So.",
    reference_contexts=(),
    retrieved_context_ids=("1",),
    reference_context_ids=("1", "2"),
    retrieved_context_scores=(0.5, -1.0),
    index_build="7",
    language="en",
    tags={"channel": "web", "ключ": ""},
)
BARE = LogRow(id="b", user_input="q", retrieved_contexts=())


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """An empty store."""
    return Files(str(tmp_path / "store"))


def write(
    files: Files, path: str, schema: Any, records: list[dict[str, Any]], **how: Any
) -> PartWriter:
    """Write a part."""
    folder = Path(files.root).parent
    writer = PartWriter(folder, schema, **how)
    for record in records:
        writer.add(record, size=100)
    writer.finish(files, path, {"usage": {"requests": 3}})
    return writer


@pytest.mark.parametrize("row", [FULL, BARE], ids=["full", "bare"])
def test_rows_come_back_as_they_went(files: Files, row: LogRow) -> None:
    """Empty texts and lists stay empty, missing ones stay missing."""
    write(files, "x.parquet", ROW_SCHEMA, [row_record(row)])
    assert list(chain.from_iterable(StoredPart(files, "x.parquet").row_batches())) == [row]


@settings(deadline=None, max_examples=examples(50))
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_texts_come_back_to_the_letter(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Any script, any control character."""
    files = Files(str(tmp_path_factory.getbasetemp() / "parts" / "store"))
    Path(files.root).mkdir(parents=True, exist_ok=True)
    row = LogRow(id="a", user_input=text, retrieved_contexts=(text,), tags={"t": text})
    write(files, "x.parquet", ROW_SCHEMA, [row_record(row)])
    assert list(chain.from_iterable(StoredPart(files, "x.parquet").row_batches())) == [row]


def test_a_part_is_written_piece_by_piece(files: Files) -> None:
    """Memory is bounded by the size of a group; the order stays."""
    records = [row_record(LogRow(str(n), "q", ())) for n in range(50)]
    assert write(files, "x.parquet", ROW_SCHEMA, records, group_bytes=1_000).rows == 50
    assert [
        row.id for row in chain.from_iterable(StoredPart(files, "x.parquet").row_batches())
    ] == [str(n) for n in range(50)]
    with files.open("x.parquet") as file:
        assert pq.ParquetFile(file).num_row_groups == 5


def test_a_part_may_be_empty(files: Files) -> None:
    """A shard without rows is a part with the same columns."""
    write(files, "x.parquet", ROW_SCHEMA, [])
    assert list(chain.from_iterable(StoredPart(files, "x.parquet").row_batches())) == []


def test_nothing_is_there_before_it_is_finished(files: Files, tmp_path: Path) -> None:
    """A run killed at work leaves no half part, and a finished one no temporary file."""
    writer = PartWriter(tmp_path, ROW_SCHEMA)
    writer.add(row_record(FULL))
    assert not files.exists("x.parquet")
    writer.finish(files, "x.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_notes_travel_with_the_part(files: Files) -> None:
    """What a part cost is found with it."""
    write(files, "x.parquet", SCORE_SCHEMA, [])
    assert StoredPart(files, "x.parquet").notes() == {"usage": {"requests": 3}}


def test_a_footer_is_read_without_its_part(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a part in a bucket its size is asked for, and its end: two requests, however large it is.
    Where there is none, that takes no more."""
    with running("tests.fakes.flaky_s3", "--upstream", s3.endpoint) as port:
        counting = FlakyS3(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL", counting.endpoint)
        files, writer = Files(f"{s3.uri}/store"), PartWriter(tmp_path, SCORE_SCHEMA)
        for _ in range(3_000):
            writer.add(score_record(BARE, Score(0.5, os.urandom(200).hex())))
        writer.finish(files, "x.parquet", {"usage": {"requests": 3}})
        (part,) = files.below()
        assert part.size > 600_000
        counting.faults()  # counts anew
        assert StoredPart(files, "x.parquet").is_whole()
        assert StoredPart(files, "x.parquet").notes() == {"usage": {"requests": 3}}
        asked = counting.stats()
        assert (asked["requests"], asked["sent"] < 150_000) == (4, True)
        assert not StoredPart(files, "y.parquet").is_whole()
        assert counting.stats()["requests"] <= 6


def test_a_long_footer_is_read_whole(files: Files) -> None:
    """Each group of rows adds to it: it may be longer than the end that is looked at first."""
    records = [score_record(BARE, Score(1.0))] * 300
    write(files, "x.parquet", SCORE_SCHEMA, records, group_bytes=1)
    assert footer_bytes(files, "x.parquet") > 64 << 10
    assert StoredPart(files, "x.parquet").notes() == {"usage": {"requests": 3}}


def footer_bytes(files: Files, path: str) -> int:
    """The length of a part's footer, as the format has it."""
    return int.from_bytes(files.read(path)[-8:-4], "little")


def spoil(files: Files, path: str, *, footer: bool) -> None:
    """Overwrite all that a part holds before its footer, or the footer but for its length."""
    data, length = files.read(path), footer_bytes(files, path)
    start, end = (len(data) - 8 - length, len(data) - 8) if footer else (4, len(data) - 8 - length)
    files.write(path, data[:start] + b"\xff" * (end - start) + data[end:])


@pytest.mark.parametrize("damage", ["empty", "cut", "footer"])
def test_a_part_without_its_footer_is_made_again(
    files: Files, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is as good as none, and named."""
    write(files, "x.parquet", SCORE_SCHEMA, [score_record(BARE, Score(1.0))])
    if damage == "footer":
        spoil(files, "x.parquet", footer=True)
    else:
        files.write("x.parquet", files.read("x.parquet")[: 0 if damage == "empty" else -100])
    assert not StoredPart(files, "x.parquet").is_whole()
    assert "x.parquet is damaged" in caplog.text
    with pytest.raises(DamagedPart):
        StoredPart(files, "x.parquet").columns(["status"])


def test_damage_before_the_footer_is_told_by_whoever_reads(files: Files) -> None:
    """Columns, rows and copies: all name the part, and a copy is not begun."""
    write(files, "x.parquet", SCORE_SCHEMA, [score_record(BARE, Score(1.0))] * 100)
    write(files, "rows.parquet", ROW_SCHEMA, [row_record(FULL)])
    for path in ("x.parquet", "rows.parquet"):
        spoil(files, path, footer=False)
        assert StoredPart(files, path).is_whole()
    with pytest.raises(DamagedPart, match=r"x\.parquet is damaged"):
        StoredPart(files, "x.parquet").columns(["status"])
    with pytest.raises(DamagedPart, match=r"x\.parquet is damaged"):
        StoredPart(files, "x.parquet").copy("y.parquet", {})
    with pytest.raises(DamagedPart, match=r"rows\.parquet is damaged"):
        list(chain.from_iterable(StoredPart(files, "rows.parquet").row_batches()))
    assert not files.exists("y.parquet")


def test_a_copy_has_the_same_records_and_other_notes(files: Files) -> None:
    """Piece by piece, as it was written."""
    records = [score_record(FULL, Score(n / 50, "why", {"n": n})) for n in range(50)]
    write(files, "x.parquet", SCORE_SCHEMA, records, group_bytes=1_000)
    StoredPart(files, "x.parquet").copy("y.parquet", {"taken_over": "ab12"})
    names = SCORE_SCHEMA.names
    assert (
        StoredPart(files, "y.parquet")
        .columns(names)
        .equals(StoredPart(files, "x.parquet").columns(names))
    )
    assert StoredPart(files, "y.parquet").notes() == {"taken_over": "ab12"}


def test_paths_are_hive_partitions() -> None:
    """As DuckDB, Athena and pandas expect them."""
    assert REF.rows(1) == "rows/dt=2026-11-19/run=ab12/shard-001.parquet"
    assert REF.scores("context_recall", 0) == (
        "scores/dt=2026-11-19/run=ab12/metric=context_recall/shard-000.parquet"
    )


def test_pandas_reads_the_scores_of_a_store(files: Files) -> None:
    """A folder of parts is a table, with date, run and metric as columns."""
    write(files, REF.scores("mrr", 0), SCORE_SCHEMA, [score_record(FULL, Score(0.5))])
    write(files, REF.scores("mrr", 1), SCORE_SCHEMA, [score_record(BARE, Score(1.0))])
    table = pd.read_parquet(f"{files.root}/scores")
    assert sorted(table["value"]) == [0.5, 1.0]
    assert set(table["metric"].astype(str)) == {"mrr"}
    assert set(table["dt"].astype(str)) == {"2026-11-19"}


@pytest.mark.parametrize(
    "score",
    [
        Score(0.25, "one of four", {"grades": [1, 0, 0, 0]}),
        Score.not_applicable("no reference answer"),
        Score(None, "timeout", status=Status.JUDGE_FAILED),
    ],
)
def test_scores_come_back_with_their_rows(files: Files, score: Score) -> None:
    """By shard and position; a metric whose part is missing is left out."""
    write(files, REF.rows(1), ROW_SCHEMA, [row_record(BARE), row_record(FULL)])
    records = [score_record(BARE, Score(1.0)), score_record(FULL, score)]
    write(files, REF.scores("mrr", 1), SCORE_SCHEMA, records)
    found = scored_rows(files, REF, ["mrr", "ndcg"], {1: {1}})
    assert found[1, 1].row == FULL
    assert found[1, 1].scores == {"mrr": score}


def test_the_size_of_a_row_follows_its_texts() -> None:
    """So that a group of long rows is written early."""
    long = LogRow("a", "q", ("x" * 1_000_000,))
    assert row_size(long) > 1_000_000 > row_size(BARE)


@pytest.mark.parametrize("method", ["write_table", "close"])
def test_a_full_temporary_disk_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Arrow's own error comes out as one of storage, and says where there is no space."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "Error writing bytes to file")

    writer = PartWriter(tmp_path, ROW_SCHEMA)
    writer.add(row_record(FULL))
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, method, full)
        with pytest.raises(StoreError, match=r"TMPDIR sets their folder.*Error writing bytes"):
            writer.finish(Files(str(tmp_path / "store")), REF.rows(0))
    assert not (tmp_path / "store").exists()


def test_no_place_for_temporary_files_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder for them that is not there, or may not be written, is an error of storage."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StoreError, match=r"TMPDIR sets their folder.*nowhere"), workspace():
        pass

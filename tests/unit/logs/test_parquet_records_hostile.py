"""Parquet files that are made to hurt, and what a night keeps of them."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragmetrics.logs import FileTooLarge, LogSet, ReadCounts, find_logs, parquet_extent
from ragmetrics.records import LogRow, Rejected

GOOD: dict[str, Any] = {
    "id": ["a", "b"],
    "user_input": ["q", "r"],
    "retrieved_contexts": [["x"]] * 2,
}
TWINS = pa.StructArray.from_arrays([pa.array(["1", "2"]), pa.array(["3", "4"])], names=["k", "k"])
FAR = pa.array([0, 2**62], pa.timestamp("us"))


def read(
    folder: Path, columns: dict[str, Any], counts: ReadCounts | None = None, **how: Any
) -> list[LogRow | Rejected]:
    """What becomes of two good rows with such columns."""
    pq.write_table(pa.table(GOOD | columns), folder / "log.parquet", store_schema=False)
    return list(LogSet(*find_logs(str(folder / "log.parquet")), **how).read(counts))


@pytest.mark.parametrize(
    "cells",
    [
        FAR,
        pa.array([0, 10**9], pa.date32()),
        pa.array([0, 1], pa.timestamp("us", tz="Mars/Olympus")),
        TWINS,
        pa.array([b"\xff", b"\xfe"]).view(pa.string()),
    ],
    ids=["timestamp", "date", "zone", "twins", "bytes"],
)
def test_a_column_that_nobody_reads_costs_nothing(tmp_path: Path, cells: pa.Array) -> None:
    """Whatever stands in it."""
    rows = read(tmp_path, {"junk": cells})
    assert [row.id for row in rows if isinstance(row, LogRow)] == ["a", "b"]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"timestamp": FAR}, "timestamp: "),
        ({"timestamp": pa.array([0, 10**9], pa.date32())}, "timestamp: "),
        (
            {"tags": pa.array([None, [([1], "x")]], pa.map_(pa.list_(pa.int8()), pa.string()))},
            "tags: ",
        ),
        ({"response": pa.array([b"fine", b"\xff"]).view(pa.string())}, "response: "),
        ({"retrieved_context_scores": [[1.0], [math.nan]]}, "retrieved_context_scores: "),
    ],
    ids=["timestamp", "date", "keys", "bytes", "score"],
)
def test_a_cell_that_cannot_be_read_costs_itself(
    tmp_path: Path, columns: dict[str, Any], reason: str
) -> None:
    """It is left out of its row and counted with its column; the row beside it has its cell."""
    counts = ReadCounts()
    rows = read(tmp_path, columns, counts)
    assert [type(row) for row in rows] == [LogRow, LogRow]
    assert [one.partition(": ")[0] + ": " for one in counts.dropped] == [reason]
    assert [*counts.dropped.values()] == [1]


def test_a_context_that_cannot_be_read_costs_its_row(tmp_path: Path) -> None:
    """It is rejected with its number and its column."""
    texts = pa.array([b"fine", b"\xff"]).view(pa.string())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), texts)
    good, bad = read(tmp_path, {"retrieved_contexts": lists})
    assert isinstance(good, LogRow)
    assert isinstance(bad, Rejected)
    assert (bad.line, bad.reason, bad.whole_file) == (2, "retrieved_contexts: not UTF-8", False)


def test_equal_names_in_a_struct_cost_the_field(tmp_path: Path) -> None:
    """Nobody can tell which of the two is meant."""
    counts = ReadCounts()
    rows = read(tmp_path, {"tags": TWINS}, counts)
    assert [type(row) for row in rows] == [LogRow, LogRow]
    assert next(iter(counts.dropped)).startswith("tags: ")


def test_an_unknown_time_zone_is_no_matter(tmp_path: Path) -> None:
    """Parquet keeps moments; the zone only says how they were shown."""
    first, _ = read(tmp_path, {"timestamp": pa.array([0, 1], pa.timestamp("us", tz="Mars/X"))})
    assert isinstance(first, LogRow)
    assert first.timestamp == datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def test_a_column_whose_name_is_no_text_is_left_out(tmp_path: Path) -> None:
    """Its name is not UTF-8; the columns beside it are read."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(GOOD | {"zzzz": ["1", "2"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"z\xff\xfez"))
    rows = list(LogSet(*find_logs(str(path))).read())
    assert [row.id for row in rows if isinstance(row, LogRow)] == ["a", "b"]


def test_a_row_that_is_too_large_is_not_made(tmp_path: Path) -> None:
    """One long text in the dictionary, named many times by one row: the others are read."""
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 1_001], pa.int32()),
        pa.DictionaryArray.from_arrays(pa.array([0] * 1_001, pa.int32()), pa.array(["x" * 1_000])),
    )
    good, bad = read(tmp_path, {"retrieved_contexts": lists}, row_bytes=100_000)
    assert isinstance(good, LogRow)
    assert isinstance(bad, Rejected)
    assert bad.reason.startswith("too large: 1,")


def test_a_file_without_a_column_of_ours_is_told(tmp_path: Path) -> None:
    """With the names that it has, and whatever number of rows it claims."""
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "log.parquet")
    (bad,) = LogSet(*find_logs(str(tmp_path / "log.parquet"))).read()
    assert isinstance(bad, Rejected)
    assert bad.whole_file
    assert "none of its columns is one of a log: a, b" in bad.reason


@pytest.mark.parametrize("size", [10, 300])
def test_texts_that_repeat_are_read(tmp_path: Path, size: int) -> None:
    """Dictionaries, in a column and in a list, over several batches, come back as written."""
    rows = [
        {"user_input": f"q{n % 3}", "retrieved_contexts": [f"c{n % 7}"] * (n % 4)}
        for n in range(size)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet", row_group_size=100)
    found = [row for row in LogSet(*find_logs(str(tmp_path))).read() if isinstance(row, LogRow)]
    assert [(row.user_input, list(row.retrieved_contexts)) for row in found] == [
        (row["user_input"], row["retrieved_contexts"]) for row in rows
    ]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str, version: str) -> None:
    """As other writers choose them."""
    texts = ["user_input", "retrieved_contexts.list.element"]
    pq.write_table(
        pa.table(GOOD),
        tmp_path / "log.parquet",
        use_dictionary=False,
        column_encoding=dict.fromkeys(texts, encoding),
        data_page_version=version,
    )
    rows = LogSet(*find_logs(str(tmp_path))).read()
    assert [row.id for row in rows if isinstance(row, LogRow)] == ["a", "b"]


def test_a_file_of_very_many_columns_is_refused_before_its_schema_is_made(tmp_path: Path) -> None:
    """Arrow would take 270 MB and more for it; the number of columns is known before."""
    columns = pa.table(GOOD | {f"c{number}": [0, 1] for number in range(10_001)})
    pq.write_table(columns, tmp_path / "log.parquet", store_schema=False)
    (bad,) = LogSet(*find_logs(str(tmp_path / "log.parquet"))).read(ReadCounts())
    assert isinstance(bad, Rejected)
    assert bad.whole_file
    assert bad.reason.endswith("it has 10,004 columns, 10,000 allowed")
    with (tmp_path / "log.parquet").open("rb") as file, pytest.raises(FileTooLarge):
        parquet_extent(file)


def test_a_long_footer_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Its length is in the last bytes of the file."""
    path = tmp_path / "log.parquet"
    with path.open("wb") as file:
        file.truncate(18 << 20)
        file.seek(0, 2)
        file.write((17 << 20).to_bytes(4, "little") + b"PAR1")
    with path.open("rb") as file, pytest.raises(FileTooLarge, match="its footer has 17,825,792"):
        parquet_extent(file)

"""Logs that are made to hurt: bytes, sizes, names and links."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragmetrics.logs import LogSet, find_logs, formats
from ragmetrics.records import LogRow, Rejected

GOOD = b'{"user_input": "q", "retrieved_contexts": ["x"]}\n'
HEADER = b"user_input,retrieved_contexts,junk\n"

READ = """
import resource, sys
from ragmetrics.records.row import LogRow
from ragmetrics.logs.log_files import LogSet, find_logs
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
logs = LogSet(*find_logs(sys.argv[1]), row_bytes=1_000_000)
rows = sum(isinstance(one, LogRow) for one in logs.read())
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)
"""


def read(place: Path | str, **how: int) -> tuple[list[LogRow], list[Rejected]]:
    """The rows of a place, and what could not be read."""
    items = list(LogSet(*find_logs(str(place)), **how).read())
    rows = [item for item in items if isinstance(item, LogRow)]
    return rows, [item for item in items if isinstance(item, Rejected)]


def peak(path: Path) -> tuple[int, int]:
    """How many rows another process reads, and by how many MB its memory grows at most."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
    )
    rows, kilobytes = map(int, done.stdout.split())
    return rows, kilobytes // 1_000 // (1_000 if sys.platform == "darwin" else 1)


def test_bytes_with_quotes_between_them_are_no_text(tmp_path: Path) -> None:
    """Six bytes of CSV: two halves of a character that are whole again once the quotes are gone."""
    (tmp_path / "log.csv").write_bytes(HEADER + b'"\xc3"\xa9,[],\nq,"[""\xc3""\xa9]",\nr,[],\n')
    (row,), bad = read(tmp_path)
    assert row.user_input == "r"
    assert [(one.line, one.reason) for one in bad] == [
        (2, "user_input: not UTF-8"),
        (3, "retrieved_contexts: not UTF-8"),
    ]


def test_a_cell_that_nobody_reads_costs_nothing(tmp_path: Path) -> None:
    """Nor does the name of its column."""
    (tmp_path / "log.csv").write_bytes(b"user_input,retrieved_contexts,\xff\nq,[],\xfe\n")
    rows, bad = read(tmp_path)
    assert (len(rows), bad) == (1, [])


def test_a_header_that_is_too_large_is_told(tmp_path: Path) -> None:
    """No row below it can be read, so the file is broken."""
    (tmp_path / "log.csv").write_bytes(b"a," * 10_000 + b"\n1,2\n")
    _, (bad,) = read(tmp_path, row_bytes=1_000)
    assert bad.whole_file
    assert "header" in bad.reason


@pytest.mark.parametrize("ending", ["jsonl", "csv", "json"])
def test_a_file_whose_name_is_no_text_is_read(tmp_path: Path, ending: str) -> None:
    """Its rows are called after the place, in characters that may be written."""
    data = HEADER + b"q,[],\n,\n" if ending == "csv" else GOOD + b"[]\n"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff." + ending.encode())).write_bytes(data)
    (row,), (bad,) = read(tmp_path)
    line = {"jsonl": 1, "csv": 2, "json": 1}[ending]
    assert row.id == f"\\udcff.{ending}:{line}"
    assert bad.file == f"\\udcff.{ending}"


@pytest.mark.parametrize("ending", [".jsonl.gz", ".json.gz", ".jsonl.zst"])
def test_a_file_that_unpacks_to_too_much_is_left(tmp_path: Path, ending: str) -> None:
    """What stands before the limit is read, and the file is told; so are the other files' rows."""
    data = GOOD * 1_000
    packed = (
        gzip.compress(data) if ending.endswith("gz") else pa.compress(data, "zstd").to_pybytes()
    )
    (tmp_path / f"a{ending}").write_bytes(packed)
    (tmp_path / "b.jsonl").write_bytes(GOOD)
    rows, (bad,) = read(tmp_path, unpacked_bytes=len(GOOD) * 100)
    assert rows[-1].id == "b.jsonl:1"
    assert bad.whole_file
    assert "unpacks to more than" in bad.reason
    assert len(rows) > (1 if ".json." in ending else 90)


def test_a_large_file_that_is_made_of_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endless blank lines cost minutes of reading: what stands before them is read."""
    monkeypatch.setattr(formats, "FROM_BYTES", 200_000)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(GOOD + b"\n" * 2_000_000 + GOOD))
    rows, (bad,) = read(tmp_path)
    assert len(rows) == 1
    assert bad.whole_file
    assert "times its size" in bad.reason


def test_a_parquet_file_that_unpacks_to_too_much_is_left(tmp_path: Path) -> None:
    """As it is streamed: the rows before the limit are read."""
    texts = [f"{n} " + "x" * 1_000 for n in range(2_000)]
    pq.write_table(
        pa.table({"user_input": texts, "retrieved_contexts": [[]] * 2_000}), tmp_path / "a.parquet"
    )
    rows, (bad,) = read(tmp_path, unpacked_bytes=1_000_000)
    assert 900 < len(rows) < 1_000
    assert "unpacks to more than" in bad.reason


def bomb(path: Path) -> int:
    """A packed file of 200 MB in which one row or line is all there is beside two good ones; how
    many of them can be read.
    """
    million = b"x" * 1_000_000
    with gzip.open(path, "wb", compresslevel=1) as file:
        if ".csv" in path.name:
            file.write(HEADER + b"q,[],\n")
            for _ in range(200):
                file.write(b"," * 1_000_000 if "cells" in path.name else million)
            file.write(b"\nr,[],\n")
            return 2
        file.write(GOOD + b'{"user_input": "')
        for _ in range(200):
            file.write(million)
        file.write(b'"}\n' + GOOD)
    return 2


@pytest.mark.process
@pytest.mark.parametrize("name", ["line.csv.gz", "cells.csv.gz", "line.jsonl.gz", "line.json.gz"])
def test_a_line_of_hundreds_of_megabytes_takes_none(tmp_path: Path, name: str) -> None:
    """Memory is for the row that is allowed, and the rows around it are read."""
    rows = bomb(tmp_path / name)
    found, megabytes = peak(tmp_path / name)
    assert found == rows
    assert megabytes < 60


def parquet_bomb(kind: str, path: Path) -> None:
    """A few hundred bytes that take gigabytes where they are read as they are."""
    texts, lists = pa.array(["q"]), pa.array([[]], pa.list_(pa.string()))
    if kind == "texts":  # one long text in the dictionary, a thousand rows of it
        long = pa.array(["x" * 3_000_000])
        texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), long)
        lists = pa.array([[]] * 1_000, pa.list_(pa.string()))
    elif kind == "list":
        long = pa.DictionaryArray.from_arrays(
            pa.array([0] * 3_000, pa.int32()), pa.array(["x" * 900_000])
        )
        lists = pa.ListArray.from_arrays(pa.array([0, 3_000], pa.int32()), long)
    else:  # a list of nothing, a hundred million times
        many = 100_000_000
        lists = pa.ListArray.from_arrays(pa.array([0, many], pa.int32()), pa.nulls(many, pa.int8()))
    pq.write_table(
        pa.table({"user_input": texts, "retrieved_contexts": lists}),
        path,
        compression="zstd",
        dictionary_pagesize_limit=1 << 30,
        store_schema=False,
    )


@pytest.mark.process
@pytest.mark.parametrize("kind", ["texts", "list", "nothing"])
def test_a_small_parquet_file_takes_no_gigabytes(tmp_path: Path, kind: str) -> None:
    """What it would come to is known before it is unpacked."""
    parquet_bomb(kind, tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 10_000
    found, megabytes = peak(tmp_path / "a.parquet")
    assert (found, megabytes < 150) == (0, True)


def test_only_regular_files_of_the_folder_are_opened(tmp_path: Path) -> None:
    """A pipe never ends, a link may lead anywhere: both are told, and the rest is read."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(GOOD)
    (tmp_path / "secret.jsonl").write_bytes(GOOD)
    os.mkfifo(folder / "b.jsonl")
    (folder / "c.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (folder / "d.jsonl").symlink_to(folder / "a.jsonl")
    (folder / "e.jsonl").symlink_to("/dev/zero")
    (folder / "f.jsonl").symlink_to(folder / "f.jsonl")
    for place in (folder, f"{folder}/*.jsonl", f"{folder}/**/*.jsonl"):
        rows, bad = read(place)
        assert [row.id for row in rows] == ["a.jsonl:1", "d.jsonl:1"]
        assert {one.file: one.reason for one in bad} == {
            "b.jsonl": "not read: not a regular file",
            "c.jsonl": "not read: a link that leaves the folder of the logs",
            "e.jsonl": "not read: not a regular file",
            "f.jsonl": "not read: not a regular file",
        }
        assert all(one.whole_file for one in bad)


def test_a_linked_folder_leads_nowhere_else(tmp_path: Path) -> None:
    """A pattern does not walk out of its folder."""
    (tmp_path / "logs" / "in").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    for folder in ("logs/in", "out"):
        (tmp_path / folder / "a.jsonl").write_bytes(GOOD)
    (tmp_path / "logs" / "link").symlink_to(tmp_path / "out")
    (tmp_path / "logs" / "loop").symlink_to(tmp_path / "logs")
    for pattern in ("logs/**/*.jsonl", "logs/*/*.jsonl", "logs"):
        rows, _ = read(tmp_path / pattern)
        assert [row.id for row in rows] == ["in/a.jsonl:1"]


def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    """Whoever names a path means it; the folder of the logs may be a link, too."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.jsonl").write_bytes(GOOD)
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "a.jsonl")
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    for place in ("link.jsonl", "folder", "folder/", "folder/*.jsonl"):
        rows, bad = read(f"{tmp_path}/{place}")
        assert (len(rows), bad) == (1, [])

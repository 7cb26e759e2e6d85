"""Log readers under fire: whatever the bytes, rows come out, or rows told as bad, and no error."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import PRESETS
from ragmetrics.logs import GoldenSet, LogSet, find_logs
from ragmetrics.people.calibration.labelled import LabelledRow, read_labelled
from ragmetrics.records import FIELDS, LogRow, Rejected
from ragmetrics.storage import ROW_SCHEMA, row_of, row_record
from tests.fakes.fuzzing import JSON, damaged, fuzzed

ROWS: list[dict[str, Any]] = [
    {
        "id": f"r{n}",
        "user_input": "Where is it?",
        "retrieved_contexts": ["Here.", 'There, "and" so on.\n'],
        "timestamp": "2026-11-19T10:00:00+01:00",
        "reference": "größer",
        "retrieved_context_scores": [0.5, 1.0],
        "tags": {"app": "web"},
        "labels": {"chunk_relevance": [0, 1]},
    }
    for n in range(4)
]
SPANS: list[dict[str, Any]] = [
    {
        "type": "RETRIEVER",
        "run_type": "retriever",
        "span_kind": "RETRIEVER",
        "id": "1",
        "traceId": "t",
        "trace_id": "t",
        "input": "q",
        "inputs": {"query": "q"},
        "output": [{"content": "x"}],
        "outputs": {"documents": [{"page_content": "x"}]},
        "startTime": "2026-11-19T10:00:00Z",
        "context": {"trace_id": "t", "span_id": "1"},
        "attributes": {"gen_ai.operation.name": "retrieval", "input.value": "q"},
    },
    {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "n", "attributes": []}]}]}]},
]
ZONE = "zoneinfo.ZoneInfo(key='UTC')"
PRESET = st.sampled_from([None, *PRESETS.bundled_names])


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    """Rows, one a line."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def csv_of(rows: list[dict[str, Any]]) -> bytes:
    """Rows with the columns of the first; lists and mappings as JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    for row in rows:
        writer.writerow({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()})
    return text.getvalue().encode()


def parquet_of(rows: list[dict[str, Any]], **how: Any) -> bytes:
    """Rows without labels."""
    sink = io.BytesIO()
    plain = [{name: value for name, value in row.items() if name != "labels"} for row in rows]
    pq.write_table(pa.Table.from_pylist(plain), sink, **how)
    return sink.getvalue()


FILES = {
    "a.jsonl": jsonl(ROWS + SPANS),
    "a.json": json.dumps({"data": ROWS + SPANS}, indent=1).encode(),
    "b.json": json.dumps(ROWS).encode(),
    "a.csv": csv_of(ROWS),
    "a.jsonl.gz": gzip.compress(jsonl(ROWS), mtime=0),
    "a.csv.zst": pa.compress(csv_of(ROWS), "zstd").to_pybytes(),
    "a.parquet": parquet_of(ROWS),
    "b.parquet": parquet_of(ROWS, use_dictionary=False, data_page_version="2.0"),
    "c.parquet": parquet_of(ROWS, compression="zstd", store_schema=False),
}


def check(folder: Path, name: str, data: bytes, preset: str | None) -> None:
    """Read a file in every way that there is; what comes out can be kept."""
    path = folder / name
    path.write_bytes(data)
    logs = LogSet(*find_logs(str(path)), row_bytes=5_000, unpacked_bytes=100_000, preset=preset)
    for item in logs.read(Counter()):
        if isinstance(item, Rejected):
            f"{item.file}{item.reason}{item.excerpt}".encode()
        else:
            assert isinstance(item, LogRow)
            (record,) = pa.Table.from_pylist([row_record(item)], ROW_SCHEMA).to_pylist()
            assert repr(row_of(record)).replace(ZONE, "datetime.timezone.utc") == repr(item)
    if preset is None:
        GoldenSet(logs)
        assert all(isinstance(one, LabelledRow | Rejected) for one in read_labelled(logs))


@pytest.mark.parametrize("name", FILES)
def test_what_is_whole_is_read(tmp_path: Path, name: str) -> None:
    """Else the fuzzing would find nothing."""
    (tmp_path / name).write_bytes(FILES[name])
    assert sum(isinstance(one, LogRow) for one in LogSet(*find_logs(str(tmp_path))).read()) == 4


@pytest.mark.parametrize("name", FILES)
@fuzzed
@given(data=st.data(), preset=PRESET)
def test_damaged_files(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject, preset: str | None
) -> None:
    """Valid files with pieces of them changed."""
    folder = tmp_path_factory.mktemp("fuzz")
    check(folder, name, data.draw(damaged(FILES[name])), preset)


KEYS = st.sampled_from([*FIELDS, "labels", "meta", *SPANS[0], "observations", "child_runs"])
RECORDS = st.lists(st.dictionaries(KEYS, JSON, max_size=6), max_size=4)


@fuzzed
@given(records=RECORDS, preset=PRESET, ending=st.sampled_from(["jsonl", "json", "csv"]))
def test_any_values_in_known_fields(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[dict[str, Any]],
    preset: str | None,
    ending: str,
) -> None:
    """JSON of every kind where a text, a list or a mapping is expected."""
    folder = tmp_path_factory.mktemp("fuzz")
    whole = [{"user_input": "q", "retrieved_contexts": []} | record for record in records]
    names = {name: "" for one in whole for name in one}
    if ending == "csv":
        data = csv_of([names | one for one in whole] or ROWS)
    else:
        data = jsonl(whole) if ending == "jsonl" else json.dumps(whole).encode()
    check(folder, f"a.{ending}", data, preset)


CELLS = st.sampled_from(
    [
        pa.array([2**62, None], pa.timestamp("us")),
        pa.array([-(2**62), 0], pa.timestamp("ns", tz="Mars/X")),
        pa.array([10**9, 0], pa.date32()),
        pa.array([2**60, 0], pa.date64()),
        pa.array([2**62, 1], pa.duration("s")),
        pa.array([1, 2], pa.time64("ns")),
        pa.array([b"\xff", b"a"]).view(pa.string()),
        pa.array([b"\xff", b"a"]),
        pa.array([[b"\xff"], None]).cast(pa.list_(pa.binary())).view(pa.list_(pa.string())),
        pa.array([float("inf"), float("nan")]),
        pa.array([[("k", None)], []], pa.map_(pa.string(), pa.string())),
        pa.array([[([1], "x")], None], pa.map_(pa.list_(pa.int8()), pa.string())),
        pa.array([[[["x"]]], None]),
        pa.StructArray.from_arrays([pa.array(["1", "2"])] * 2, names=["k", "k"]),
        pa.array([{"a": {"b": [1]}}, None]),
        pa.array([True, None]),
        pa.nulls(2),
        pa.array(["x" * 9_000, ""]),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([1, 2], pa.decimal128(38, 0)),
        pa.array([1, 2], pa.uint64()),
    ]
)


@fuzzed
@given(columns=st.dictionaries(KEYS, CELLS, max_size=5), preset=PRESET)
def test_any_types_of_parquet(
    tmp_path_factory: pytest.TempPathFactory, columns: dict[str, pa.Array], preset: str | None
) -> None:
    """Columns of every type under the names that are read."""
    base = {"user_input": pa.array(["q", "r"]), "retrieved_contexts": pa.array([["x"], []])}
    sink = io.BytesIO()
    pq.write_table(pa.table(base | columns), sink)
    check(tmp_path_factory.mktemp("fuzz"), "a.parquet", sink.getvalue(), preset)

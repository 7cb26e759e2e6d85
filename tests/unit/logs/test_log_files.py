"""Logs: every format and every kind of place give the same rows, locally and from a bucket."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.errors import InputError
from ragmetrics.logs import LogSet, find_logs
from ragmetrics.logs.log_files import map_columns
from ragmetrics.records import LogRow, Rejected
from ragmetrics.storage import ROW_SCHEMA, row_record
from tests.fakes.examples import examples

Put = Callable[[str, bytes], str]
ROWS = (
    LogRow("a", "What is it?", ("One.", "Two\nlines, and a comma."), response="It is so."),
    LogRow("b", "Wie groß?", (), reference="Groß — „sehr“.", tags={"channel": "web"}),
    LogRow("c", "何?", ("はい",), datetime(2026, 11, 19, tzinfo=UTC), index_build="7"),
)
FORMATS = [".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".csv", ".csv.gz", ".csv.zst"]
FORMATS = [*FORMATS, ".parquet"]

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
_TEXTS = st.lists(_TEXT, max_size=3).map(tuple)
LOG_ROWS = st.builds(
    LogRow,
    id=_TEXT,
    user_input=_TEXT,
    retrieved_contexts=_TEXTS,
    timestamp=st.none() | st.datetimes(timezones=st.just(UTC)),
    response=st.none() | _TEXT,
    reference=st.none() | _TEXT,
    reference_contexts=st.none() | _TEXTS,
    retrieved_context_ids=st.none() | _TEXTS,
    reference_context_ids=st.none() | _TEXTS,
    retrieved_context_scores=st.none()
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3).map(tuple),
    index_build=st.none() | _TEXT,
    language=st.none() | _TEXT,
    tags=st.dictionaries(_TEXT, _TEXT, max_size=2),
)


def encode(rows: Iterable[LogRow], name: str) -> bytes:
    """Rows as a file of the format that the name says."""
    if name.endswith(".parquet"):
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([row_record(row) for row in rows], ROW_SCHEMA), sink)
        return sink.getvalue()
    data = _csv(rows) if ".csv" in name else _jsonl(rows)
    if name.endswith(".gz"):
        return gzip.compress(data)
    return pa.compress(data, "zstd", asbytes=True) if name.endswith(".zst") else data


def _jsonl(rows: Iterable[LogRow]) -> bytes:
    return "".join(json.dumps(asdict(row), default=str) + "\n" for row in rows).encode()


def _csv(rows: Iterable[LogRow]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(LogRow.__dataclass_fields__))
    writer.writeheader()
    for row in rows:
        cells = asdict(row)
        plain = (str, datetime, type(None))
        writer.writerow({k: v if isinstance(v, plain) else json.dumps(v) for k, v in cells.items()})
    return text.getvalue().encode()


def read(place: str | Path, day: date | None = None, **how: Any) -> list[LogRow | Rejected]:
    """All that the logs at a place give."""
    return list(LogSet(*find_logs(str(place), day=day), **how).read())


def ids(items: Sequence[LogRow | Rejected]) -> list[str]:
    """Names of rows that were all read well."""
    return [item.id for item in items if isinstance(item, LogRow)]


@pytest.fixture(params=["local", "s3"])
def put(request: pytest.FixtureRequest, tmp_path: Path) -> Put:
    """Puts a file somewhere and returns its address, in a folder or in a bucket."""
    if request.param == "local":

        def into_folder(name: str, data: bytes) -> str:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            return str(path)

        return into_folder
    bucket = request.getfixturevalue("s3")

    def into_bucket(name: str, data: bytes) -> str:
        bucket.client.put_object(Bucket=bucket.name, Key=name, Body=data)
        return f"{bucket.uri}/{name}"

    return into_bucket


@pytest.mark.process
@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_gives_the_same_rows(put: Put, ending: str) -> None:
    """One file, local or in a bucket: rows in order, texts to the letter."""
    assert read(put(f"logs/night{ending}", encode(ROWS, ending))) == list(ROWS)


@pytest.mark.parametrize("ending", FORMATS)
@settings(deadline=None, max_examples=examples(50))
@given(rows=st.lists(LOG_ROWS, max_size=4))
def test_rows_written_are_the_rows_read(
    tmp_path_factory: pytest.TempPathFactory, ending: str, rows: list[LogRow]
) -> None:
    """Whatever scripts, line breaks and quotes the texts hold."""
    path = tmp_path_factory.getbasetemp() / f"round-trip{ending}"
    path.write_bytes(encode(rows, ending))
    assert read(path) == rows


@pytest.mark.process
def test_a_folder_gives_its_logs_by_name(put: Put) -> None:
    """Formats may be mixed, folders nested; what is hidden, temporary or no log is passed over."""
    for name in ("b.jsonl", "a.csv", "part=1/c.parquet"):
        place = put(f"logs/{name}", encode([LogRow(name, "q", ())], name))
    other = encode([LogRow("no", "q", ())], ".jsonl")
    for name in ("_SUCCESS", ".hidden.jsonl", "_x.jsonl", "notes.txt", "_temporary/0/d.jsonl"):
        put(f"logs/{name}", other)
    put("logs/.trash/e.jsonl", other)
    folder = place[: place.index("/logs/") + 5]
    assert ids(read(folder)) == ids(read(folder + "/")) == ["a.csv", "b.jsonl", "part=1/c.parquet"]


@pytest.mark.process
def test_a_glob_gives_what_matches(put: Put) -> None:
    """Stars may stand in folders and in names."""
    for name in ("x/1.jsonl", "x/2.jsonl", "y/1.jsonl", "x/1.txt"):
        place = put(f"logs/{name}", encode([LogRow(name, "q", ())], name))
    logs = place[: place.index("/logs/") + 5]
    assert ids(read(f"{logs}/*/1.*")) == ["x/1.jsonl", "y/1.jsonl"]
    assert ids(read(f"{logs}/x/[2-9].jsonl")) == ["x/2.jsonl"]
    assert read(f"{logs}/z*/*.jsonl") == []


def test_a_folder_that_exists_is_no_glob(tmp_path: Path) -> None:
    """As where the settings lie in `[old] site`; a star below it still is one."""
    folder = tmp_path / "[old] site" / "logs"
    folder.mkdir(parents=True)
    (folder / "a[1].jsonl").write_bytes(encode([LogRow("a", "q", ())], ".jsonl"))
    assert ids(read(f"{folder}/")) == ids(read(f"{folder}/*.jsonl")) == ["a"]
    assert ids(read(f"{folder}/a[1].jsonl")) == ["a"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("dt=2026-11-19/a.jsonl", "dt={date}/"),
        ("2026/11/19/a.jsonl", "{date:%Y/%m/%d}"),
        ("night-2026-11-19.jsonl", "night-{date}.jsonl"),
        ("20261119/p-1.jsonl", "{date:%Y%m%d}/p-*.jsonl"),
    ],
)
def test_a_template_gives_the_logs_of_a_day(put: Put, name: str, template: str) -> None:
    """`{date}` is the ISO form of the day; a format after a colon makes any other."""
    place = put(f"logs/{name}", encode(ROWS, name))
    logs = place[: place.index("/logs/") + 5]
    assert ids(read(f"{logs}/{template}", date(2026, 11, 19))) == ["a", "b", "c"]
    assert read(f"{logs}/{template}", date(2026, 11, 20)) == []


def test_a_relative_place_is_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one types it: a file, a folder, a glob."""
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    Path("logs/a.jsonl").write_bytes(encode(ROWS, ".jsonl"))
    for place in ("logs/a.jsonl", "logs", "./logs/", "logs/*.jsonl", "*/a.jsonl"):
        assert ids(read(place)) == ["a", "b", "c"], place


def test_a_row_without_an_id_is_called_by_file_and_line(tmp_path: Path) -> None:
    """Blank lines count, so that the line is where an editor finds it."""
    line = '{"user_input": "q", "retrieved_contexts": []}\n'
    (tmp_path / "a.jsonl").write_text(line + "\n" + line, encoding="utf-8")
    assert ids(read(tmp_path)) == ["a.jsonl:1", "a.jsonl:3"]


def test_a_byte_order_mark_is_no_part_of_the_log(tmp_path: Path) -> None:
    """Windows writes one before JSON lines and CSV alike."""
    for name in ("a.jsonl", "b.csv"):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + encode(ROWS, name))
    assert ids(read(tmp_path)) == ["a", "b", "c"] * 2


def test_what_is_no_log_is_told(tmp_path: Path) -> None:
    """The message says which endings there are."""
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InputError, match=r"a\.txt: not a log; names end in \.jsonl, \.csv"):
        find_logs(str(tmp_path / "a.txt"))


def test_columns_lay_out_any_record() -> None:
    """Dotted paths go into objects, into lists item by item or by number, and fill tags."""
    record = {
        "request": {"body": {"question": "q"}},
        "spans": [{"doc": {"text": "one"}}, {"doc": {"text": "two"}}],
        "answers": ["first", "second"],
        "meta": {"channel": "web"},
        "flat.name": "r",
        "tags": {"kept": "yes"},
    }
    columns = {
        "user_input": "request.body.question",
        "retrieved_contexts": "spans.doc.text",
        "response": "answers.0",
        "reference": "flat.name",
        "language": "no.such.path",
        "index_build": "answers.9",
        "tags.channel": "meta.channel",
    }
    mapped = map_columns(record, columns)
    assert mapped["user_input"] == "q"
    assert mapped["retrieved_contexts"] == ["one", "two"]
    assert (mapped["response"], mapped["reference"]) == ("first", "r")
    assert (mapped["language"], mapped["index_build"]) == (None, None)
    assert mapped["tags"] == {"kept": "yes", "channel": "web"}


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_columns_work_for_every_format(tmp_path: Path, ending: str) -> None:
    """In CSV a column that is mapped to a list holds JSON as one of ours does."""
    path = tmp_path / f"log{ending}"
    record: dict[str, Any] = {"question": "q", "docs": ["one", "two"], "channel": "web"}
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist([record]), path)
    elif ending == ".csv":
        path.write_text('question,docs,channel\nq,"[""one"", ""two""]",web\n', encoding="utf-8")
    else:
        path.write_text(json.dumps(record), encoding="utf-8")
    columns = {"user_input": "question", "retrieved_contexts": "docs", "tags.channel": "channel"}
    (row,) = read(path, columns=columns)
    assert isinstance(row, LogRow)
    assert (row.user_input, row.retrieved_contexts) == ("q", ("one", "two"))
    assert row.tags == {"channel": "web"}

"""Bad input: what the user sees, and that no good row is lost."""

from __future__ import annotations

import gzip
import io
import json
import random
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import StoreError
from ragmetrics.logs import LogSet, find_logs
from ragmetrics.metrics import metrics
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.records import LogRow, Manifest, Rejected
from ragmetrics.storage import Runs, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.command import Run
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

ROWS = make_rows(6)


def jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def zstd(data: bytes) -> bytes:
    """A zstd frame."""
    return bytes(pa.compress(data, "zstd", asbytes=True))


def read(path: Path, **how: Any) -> tuple[list[str], list[Rejected]]:
    """Ids of the good rows, and what was rejected."""
    items = list(LogSet(*find_logs(str(path)), **how).read())
    good = [item.id for item in items if isinstance(item, LogRow)]
    return good, [item for item in items if isinstance(item, Rejected)]


def dataset(tmp_path: Path, **more: Any) -> Settings:
    """A dataset with its logs by date and a local store."""
    return make_settings(
        night_values(tmp_path, logs="logs/{date}/", metrics=["context_relevance"]) | more
    )


def short_night(settings: Settings) -> tuple[Manifest, str]:
    """A night that fails loudly: what it published all the same, and what it said."""
    with pytest.raises(CoverageShort) as error:
        run_night(settings, NIGHT)
    (manifest,) = Runs(open_store(settings)).nights()
    return manifest, str(error.value)


def levels(manifest: Manifest) -> dict[str, str]:
    """The level of each kind of finding."""
    return {finding.kind: finding.level for finding in manifest.findings}


def test_a_night_without_any_log_says_that_nothing_is_scored(tmp_path: Path) -> None:
    """And not that all other scores are published, as a night with gaps does."""
    _, said = short_night(dataset(tmp_path))
    assert said.startswith(f"night {NIGHT}: nothing to score: ")
    assert said.endswith("; no row has a score, and the night is published without data")


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".zst", zstd)])
def test_a_cut_file_gives_the_rows_before_the_cut(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    """All of them: as many as can be unpacked at all; then one rejection for the whole file."""
    noise = random.Random(1)
    rows = [{**row, "response": noise.randbytes(300).hex()} for row in make_rows(4_000)]
    packed = pack(jsonl(rows))
    path = tmp_path / f"log.jsonl{ending}"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    good, (bad,) = read(path)
    assert good == [row["id"] for row in rows[: len(good)]]
    assert len(good) == unpackable_lines(path)
    assert (bad.whole_file, bad.line) == (True, len(good) + 1)
    assert bad.reason.startswith(f"the file is truncated or damaged after row {len(good)}: ")


def unpackable_lines(path: Path) -> int:
    """Whole lines that come out of a cut file, byte by byte."""
    packing = "gzip" if path.suffix == ".gz" else "zstd"
    stream, got = pa.CompressedInputStream(io.BytesIO(path.read_bytes()), packing), bytearray()
    with pytest.raises(OSError, match="Truncated"):
        while True:
            got += stream.read(1)
    return got.count(b"\n")


@pytest.mark.parametrize("packed", ["log.jsonl.gz", "log.csv.gz"])
def test_a_cut_file_exits_with_1(run: Run, tmp_path: Path, packed: str) -> None:
    """Numbers on what was read, the file by name, exit code 1; as JSON under broken_files."""
    rows = make_rows(2_000)
    data = jsonl(rows)
    if ".csv" in packed:
        lines = (f'{row["id"]},{row["user_input"]},"[""{random.random()}""]"' for row in rows)
        data = "\n".join(["id,user_input,retrieved_contexts", *lines]).encode()
    whole = gzip.compress(data)
    path = tmp_path / packed
    path.write_bytes(whole[: len(whole) // 2])
    ended = run("score", path, "--metrics", "context_relevance")
    assert ended.code == 1
    assert f"Broken file {packed}: the file is truncated or damaged after row" in ended.out
    told = json.loads(run("score", path, "--metrics", "context_relevance", "--json").out)
    assert 0 < told["rows"] < 2_000
    assert told["broken_files"][0]["file"] == packed
    assert run("check", path).code == 1


def test_a_cut_file_is_told_by_the_night(tmp_path: Path) -> None:
    """The rows that came are scored and published; the night fails and alerts."""
    whole = gzip.compress(jsonl(make_rows(2_000)))
    folder = tmp_path / "logs" / str(NIGHT)
    write_jsonl(folder / "a.jsonl", ROWS)
    (folder / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    manifest, said = short_night(dataset(tmp_path))
    assert [one.file for one in manifest.source.broken] == ["b.jsonl.gz"]
    assert manifest.source.rows > len(ROWS)
    assert levels(manifest)["no_data"] == "breach"
    assert "1 log file(s) could not be read to the end: b.jsonl.gz" in said


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "not JSON: "),
        (b'{"user_input": "q", "retrieved_contexts": ["c"', "not JSON: "),
        (b"[" * 100_000, "not JSON: "),
        (b'{"retrieved_contexts": []}', "user_input: no question"),
        (b'{"user_input": ["q"], "retrieved_contexts": []}', "user_input: should be"),
        (b'{"user_input": "q", "retrieved_contexts": "c"}', "retrieved_contexts: should be"),
        (b'{"user_input": "\xff", "retrieved_contexts": []}', "not UTF-8"),
        (b'{"user_input": "\\ud800", "retrieved_contexts": []}', "not JSON: "),
        (b'"text"', "not an object but a text"),
    ],
)
def test_a_bad_line_costs_no_other(tmp_path: Path, line: bytes, reason: str) -> None:
    """The rows before and after it are read; the place and the reason are told."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(jsonl(ROWS[:3]) + line + b"\n" + jsonl(ROWS[3:]))
    good, (bad,) = read(path)
    assert good == [row["id"] for row in ROWS]
    assert (bad.file, bad.line, bad.whole_file) == ("log.jsonl", 4, False)
    assert bad.reason.startswith(reason)
    assert bad.excerpt


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"b,\xff,[]", "user_input: not UTF-8"),
        (b"b,q,text", "retrieved_contexts: should be a list"),
        (b'b,q,"' + b"[" * 100_000 + b'"', "retrieved_contexts: no list or mapping, as JSON or"),
        (b"b,q,[],more", "more cells than columns"),
        (b"b,,[]", "user_input: no question"),
        (b"b,q," + b"x" * 20_000, "not CSV, or too large"),
    ],
)
def test_a_bad_line_of_csv_costs_no_other(tmp_path: Path, line: bytes, reason: str) -> None:
    """As in JSON lines."""
    path = tmp_path / "log.csv"
    path.write_bytes(b"id,user_input,retrieved_contexts\na,q,[]\n" + line + b"\nc,q,[]\n")
    limit = 200_000 if b"[[" in line else 10_000
    good, (bad,) = read(path, row_bytes=limit)
    assert (good, bad.line) == (["a", "c"], 3)
    assert bad.reason.startswith(reason)


def test_a_bad_text_in_parquet_costs_no_other(tmp_path: Path) -> None:
    """A writer that did not check its bytes spoils the row, not the file."""
    texts = pa.array([b"one", b"\xff", b"three"]).view(pa.string())
    table = {"id": ["a", "b", "c"], "user_input": texts, "retrieved_contexts": [["x"]] * 3}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    good, (bad,) = read(tmp_path / "log.parquet")
    assert (good, bad.line, bad.reason) == (["a", "c"], 2, "user_input: not UTF-8")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_giant_line_is_passed_over(tmp_path: Path, ending: str) -> None:
    """50 MB on one line: the rows around it are read, in memory for the limit and no more."""
    data = jsonl(ROWS[:3]) + b"x" * 50_000_000 + b"\n" + jsonl(ROWS[3:])
    path = tmp_path / f"log.jsonl{ending}"
    path.write_bytes(gzip.compress(data, 1) if ending else data)
    del data
    tracemalloc.start()
    good, (bad,) = read(path, row_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert good == [row["id"] for row in ROWS]
    assert (bad.line, bad.reason) == (4, "too large: 50,000,001 bytes, 1,000,000 allowed")
    assert peak < 12_000_000


@pytest.mark.parametrize("data", [b"garbage", b"", b"PAR1 and then nothing PAR1"])
def test_a_corrupt_parquet_is_told(tmp_path: Path, data: bytes) -> None:
    """The other files of the folder are read."""
    (tmp_path / "a.parquet").write_bytes(data)
    write_jsonl(tmp_path / "b.jsonl", ROWS)
    good, (bad,) = read(tmp_path)
    assert len(good) == len(ROWS)
    assert (bad.file, bad.whole_file) == ("a.parquet", True)


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "an empty file", "a bad file"])
def test_an_empty_night_is_never_green(tmp_path: Path, there: str) -> None:
    """It is published as no_data, tells Slack's message so, and the run fails."""
    folder = tmp_path / "logs" / str(NIGHT)
    if there != "nothing":
        folder.mkdir(parents=True)
    if "file" in there:
        (folder / "a.jsonl").write_bytes(b"" if "empty" in there else b"nonsense\n")
    manifest, said = short_night(dataset(tmp_path))
    assert levels(manifest)["no_data"] == "no_data"
    assert [metric.mean for metric in manifest.metrics] == [None]
    assert f"night {NIGHT}: nothing to score: " in said
    expected = "the logs hold no row that can be read" if "file" in there else "no log file at "
    assert expected in said


def test_a_night_that_loses_many_rows_fails(tmp_path: Path) -> None:
    """The others are scored and published; the alert and the run say how many were lost, and why.
    Up to the share of the settings it is a good night."""
    bad = [{"user_input": "q", "retrieved_contexts": "x"}] * 3
    write_jsonl(tmp_path / "logs" / str(NIGHT) / "a.jsonl", [*make_rows(27), *bad])
    manifest, said = short_night(dataset(tmp_path))
    assert levels(manifest)["quarantine"] == "breach"
    assert (manifest.source.rows, manifest.metrics[0].scored) == (27, 27)
    assert "3 of 30 rows quarantined (10.0%); most often: retrieved_contexts: should be a" in said
    run_night(dataset(tmp_path, store=str(tmp_path / "b"), alerts={"max_quarantined": 0.1}), NIGHT)


def test_a_missing_bucket_is_a_night_without_data(s3: Bucket, tmp_path: Path) -> None:
    """The night is published where the store is, and says which bucket there is not."""
    manifest, said = short_night(dataset(tmp_path, logs="s3://nowhere/logs/{date}/"))
    assert levels(manifest)["no_data"] == "no_data"
    assert f"s3://nowhere/logs/{NIGHT}/" in said
    assert "no such bucket" in said


def test_a_missing_store_is_told(s3: Bucket, tmp_path: Path) -> None:
    """There is nowhere to publish to: one error that names the bucket."""
    write_jsonl(tmp_path / "logs" / str(NIGHT) / "a.jsonl", ROWS)
    with pytest.raises(StoreError, match=r"s3://nowhere/store/.*no such bucket"):
        run_night(dataset(tmp_path, store="s3://nowhere/store"), NIGHT)


def test_a_wrong_s3_key_is_told(
    run: Run, s3_strict: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A real 403: access denied, at which address; the nightly publishes a night without data."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    ended = run("score", f"{s3_strict.uri}/logs/a.jsonl")
    assert one_line(ended.err).startswith(f"ragmetrics: listing {s3_strict.uri}/logs/a.jsonl: ")
    assert "access denied" in ended.err
    assert "wrong-secret" not in ended.err
    assert ended.code == 2
    manifest, said = short_night(dataset(tmp_path, logs=f"{s3_strict.uri}/logs/{{date}}/"))
    assert levels(manifest)["no_data"] == "no_data"
    assert "access denied" in said


def test_a_wrong_judge_key_is_told_at_once(
    run: Run, judge_server: JudgeServer, tmp_path: Path
) -> None:
    """One line after few requests, not one failure per row; the nightly publishes and fails."""
    judge_server.faults(api_key="another")
    log = write_jsonl(tmp_path / "logs" / str(NIGHT) / "a.jsonl", make_rows(200))
    ended = run("score", log, "--judge", "openai", "--base-url", judge_server.base_url)
    assert judge_server.stats()["requests"] < 200
    assert ended.code == 2
    assert one_line(ended.err).startswith("ragmetrics: the judge refused the key: ")
    assert "testing" not in ended.err
    judge = judge_at(judge_server)
    manifest, said = short_night(dataset(tmp_path, judge=judge))
    assert manifest.metrics[0].status == {"judge_failed": 200}
    assert "200 of 200 rows got no usable verdict (100.0%): the judge refused the key" in said


def one_line(text: str) -> str:
    """An error as it should be printed: one line, no traceback."""
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    return text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch.jsonl"], "nosuch.jsonl: no such log"),
        (["nosuch/"], "nosuch/: no such log"),
        (["notes.txt"], "notes.txt: not a log; names end in .jsonl, .csv"),
        (["a.jsonl", "--judge", "gpt-4"], "recorded:PATH"),
        (["a.jsonl", "--judge", "openai"], "needs a key: set OPENAI_API_KEY"),
        (["a.jsonl", "--judge", "recorded:nosuch"], "recording nosuch: "),
        (
            ["a.jsonl", "--metrics", "recall"],
            f"no metric 'recall'; there are: {next(iter(metrics()))}, ",
        ),
        (["a.jsonl", "--golden", "nosuch.csv"], "golden set nosuch.csv: no such file"),
        (["a.jsonl", "--out", "scores.xlsx"], "should end in .parquet, .jsonl or .csv"),
        (["a.jsonl", "--out", "nosuch/scores.csv"], "there is no folder nosuch"),
        (["a.jsonl", "--record", "nosuch/tape.jsonl"], "recording nosuch/tape.jsonl: No such"),
        (["a.jsonl", "--settings", "bad.yaml"], "bad.yaml: colour: there is no such key"),
        (["a.jsonl", "--settings", "nosuch.yaml"], "nosuch.yaml: no such settings file"),
        (["empty.jsonl"], "the logs hold no row that can be read"),
        (["a.jsonl", "--judge", "recorded:bad.yaml"], "bad.yaml, line 1: not a recorded reply"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    """Nothing on stdout, no traceback; the line names what was wrong."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("a.jsonl"), ROWS)
    for name, text in (("notes.txt", "x"), ("empty.jsonl", ""), ("bad.yaml", "colour: red")):
        Path(name).write_text(text)
    ended = run("score", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in one_line(ended.err)

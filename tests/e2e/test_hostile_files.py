"""A night whose files attack the reader: it ends, scores the rest, and tells of each of them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from ragmetrics.config import load_settings
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.storage import Runs, open_store
from tests.fakes.command import Run
from tests.fakes.logs import NIGHT
from tests.fakes.slack import SlackServer

GOOD = b'{"user_input": "Where is it?", "retrieved_contexts": ["It is here."]}\n'
HEADER = b"user_input,retrieved_contexts\n"


def attack(folder: Path) -> None:
    """One file of each kind; four good rows are among them, and one with a bad time."""
    folder.mkdir(parents=True)
    (folder / "good.jsonl").write_bytes(GOOD)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.jsonl")).write_bytes(GOOD + b"[]\n")
    (folder / "half.csv").write_bytes(HEADER + b'"\xc3"\xa9,[]\nfine,"[""x""]"\n')
    (folder / "deep.jsonl").write_bytes(b"[" * 100_000 + b"\n" + b'{"a":' * 5_000 + b"\n")
    (folder / "half.jsonl").write_bytes(b'{"user_input": "\\ud800", "retrieved_contexts": []}\n')
    (folder / "bomb.csv.gz").write_bytes(gzip.compress(HEADER + b"x" * 5_000_000))
    (folder / "long.jsonl.gz").write_bytes(gzip.compress(GOOD[:-1] + b" " * 20_000_000))
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "link.jsonl").symlink_to("/etc/passwd")
    twins = pa.StructArray.from_arrays([pa.array(["1", "2"])] * 2, names=["k", "k"])
    table = {
        "user_input": ["q", "r"],
        "retrieved_contexts": [["x"], ["y"]],
        "timestamp": pa.array([0, 2**62], pa.timestamp("us", tz="Mars/Olympus")),
        "junk": twins,
        "zzzz": pa.array([b"\xff", b"a"]).view(pa.string()),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(table), sink, store_schema=False)
    (folder / "cell.parquet").write_bytes(sink.getvalue().replace(b"zzzz", b"z\xffzz"))


def test_a_night_of_hostile_files_ends_and_tells(
    tmp_path: Path, slack_server: SlackServer, run: Run
) -> None:
    """Good rows are scored, bad ones in quarantine, broken files told in Slack and on the page;
    the same files on the command line end with a table and a file of scores.
    """
    folder = tmp_path / "logs" / f"dt={NIGHT}"
    attack(folder)
    path = tmp_path / "ragmetrics.yaml"
    limits = {"row_bytes": 1_000_000, "unpacked_bytes": 10_000_000}
    settings = {"metrics": ["context_relevance"], "limits": limits}
    path.write_text(yaml.safe_dump({"dataset": "hostile", **settings}))
    with pytest.raises(CoverageShort):
        run_night(load_settings(path), NIGHT)
    files = open_store(load_settings(path))
    manifest = Runs(files).current(NIGHT)
    assert manifest is not None
    assert (manifest.source.rows, manifest.metrics[0].scored) == (5, 5)
    (reason,) = manifest.source.dropped
    assert reason.startswith("timestamp: ")
    assert {one.file for one in manifest.source.broken} >= {"link.jsonl", "pipe.jsonl"}
    (kept,) = files.below("quarantine")
    lines = [json.loads(line) for line in files.read(kept.path).decode().splitlines()]
    assert {(line["file"], line["line"]) for line in lines} >= {
        ("\\udcff.jsonl", 2),
        ("half.csv", 2),
        ("deep.jsonl", 1),
        ("deep.jsonl", 2),
        ("half.jsonl", 1),
    }
    assert len(lines) == manifest.source.quarantined + len(manifest.source.broken)
    assert "broken logs" in json.dumps(slack_server.delivered)
    page = files.read(f"dashboard/{NIGHT}/index.html").decode()
    assert "pipe.jsonl" in page

    scores = tmp_path / "scores.csv"
    ended = run("score", str(folder), "--metrics", "context_relevance", "--out", str(scores))
    assert "Traceback" not in ended.err
    with scores.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 5

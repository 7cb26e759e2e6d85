"""A bucket at its worst: requests that fail, and an outage. The night completes, all of it."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragmetrics.config import load_settings
from ragmetrics.errors import StoreError
from ragmetrics.pipeline import run_night
from ragmetrics.storage import Files
from tests.builders import judge_at, save_settings
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.flaky_s3 import FlakyS3
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.processes import running
from tests.fakes.slack import SlackServer

ROWS = 120
METRICS = ["context_relevance", "context_recall", "response_relevancy"]
CHAT = "/v1/chat/completions"
"""What is judged; how many texts go into one request for embeddings is a matter of timing."""
OUR_RETRIES_ALONE: dict[str, Any] = {"config_kwargs": {"retries": {"max_attempts": 0}}}
"""Storage options: botocore, which asks five times, and s3fs give up at once."""


@pytest.fixture
def flaky(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyS3]:
    """The bucket behind a proxy that fails when told to; the environment leads to the proxy."""
    with running("tests.fakes.flaky_s3", "--upstream", s3.endpoint) as port:
        server = FlakyS3(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        yield server


@pytest.fixture
def settings(tmp_path: Path, s3: Bucket, judge_server: JudgeServer) -> Callable[[str], str]:
    """Writes a settings file with a store of its own in the bucket."""
    for number in range(3):
        rows = make_rows(ROWS, good=0.7)[number::3]
        body = "".join(json.dumps(row) + "\n" for row in rows).encode()
        s3.client.put_object(Bucket=s3.name, Key=f"logs/dt={NIGHT}/{number}.jsonl", Body=body)

    def write(store: str) -> str:
        return str(
            save_settings(
                tmp_path,
                name=f"{store}.yaml",
                logs=f"{s3.uri}/logs/dt={{date}}/*.jsonl",
                store=f"{s3.uri}/{store}",
                metrics=METRICS,
                shards=4,
                judge=judge_at(judge_server, concurrency=8),
                alerts={"rules": [{"metric": "context_recall", "min": 0.9}]},
            )
        )

    return write


def scores(s3: Bucket, store: str) -> pd.DataFrame:
    """All scores of a store, in the order of their paths."""
    tables = []
    for key in s3.keys(f"{store}/scores/"):
        body = s3.client.get_object(Bucket=s3.name, Key=key)["Body"].read()
        tables.append(pd.read_parquet(io.BytesIO(body)).assign(part=key.split("run=")[1]))
    return pd.concat(tables, ignore_index=True)


def through_prefect(settings: str) -> Any:
    """The flow, run in this process."""
    from flows.nightly import nightly

    return nightly(settings, NIGHT)


def alone(settings: str) -> Any:
    """The night without Prefect."""
    return run_night(load_settings(settings), NIGHT)


@pytest.mark.parametrize("way", [alone, through_prefect])
def test_a_night_outlives_failing_requests_and_an_outage(
    request: pytest.FixtureRequest,
    s3: Bucket,
    flaky: FlakyS3,
    judge_server: JudgeServer,
    slack_server: SlackServer,
    settings: Callable[[str], str],
    way: Callable[[str], Any],
) -> None:
    """5% of all requests fail, of a third of them only the reply is lost, and in the middle the
    bucket is out for 20 s: the scores are those of an undisturbed night, the judge is asked
    nothing twice, and people are told once."""
    if way is through_prefect:
        request.getfixturevalue("prefect_server")
    flaky.faults()
    calm = way(settings("calm")).manifest
    needed, asked = flaky.stats()["requests"], judge_server.stats()["by_path"][CHAT]
    assert len(slack_server.delivered) == 1

    judge_server.reset()
    flaky.faults(share=0.05, late=0.33, outage_after=needed // 2, outage_seconds=20)
    rough = way(settings("rough")).manifest
    met = flaky.stats()
    assert met["failed"]["out"] > 0
    assert sum(times for how, times in met["failed"].items() if how != "out") > 0
    assert rough.source == calm.source.model_copy(update={"logs": rough.source.logs})
    assert rough.metrics == calm.metrics
    assert rough.problems == []
    pd.testing.assert_frame_equal(scores(s3, "rough"), scores(s3, "calm"))
    stats = judge_server.stats()
    assert stats["by_path"][CHAT] == asked == len(stats["by_messages"])
    assert len(slack_server.delivered) == 2
    assert s3.keys("rough/alerts/outbox/") == []


ACTS: dict[str, Callable[[Files, Path], Any]] = {
    "read": lambda files, _: files.read("here/a"),
    "find nothing": lambda files, _: files.find("here/nosuch"),
    "write": lambda files, _: (files.write("new", b"new"), files.read("new")),
    "put": lambda files, made: (files.put(made, "put"), files.read("put")),
    "remove": lambda files, _: (files.remove("here/b"), files.exists("here/b")),
    "exists": lambda files, _: (files.exists("here/a"), files.exists("nosuch")),
    "list": lambda files, _: [info.path for info in files.below("here")],
    "glob": lambda files, _: [info.path for info in files.glob("dt=*/a.jsonl")],
    "glob below": lambda files, _: [info.path for info in files.glob("deep/**/*.jsonl")],
    "stream": lambda files, _: streamed(files),
    "snapshot": lambda files, _: snapshot(files),
}
EXPECTED = {
    "read": b"a",
    "find nothing": None,
    "write": (None, b"new"),
    "put": (None, b"made"),
    "remove": (None, False),
    "exists": (True, False),
    "list": ["here/a", "here/b"],
    "glob": [f"dt={number}/a.jsonl" for number in range(9)],
    "glob below": ["deep/er/a.jsonl", "deep/er/still/b.jsonl"],
    "stream": 20_000,
    "snapshot": 20_000,
}


def streamed(files: Files) -> int:
    """The lines of a file, one by one."""
    with files.open("lines") as file:
        return sum(1 for _ in file)


def snapshot(files: Files) -> int:
    """The same, of the file as it is at one moment."""
    with files.open_as_is("lines") as file:
        return len(file.read().splitlines())


@pytest.mark.parametrize("act", list(ACTS))
def test_each_act_waits_out_what_may_pass(
    s3: Bucket, flaky: FlakyS3, tmp_path: Path, act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every other request fails, and nobody else asks again: whole answers, no error."""
    monkeypatch.setattr("ragmetrics.storage.retry._LONGEST_PAUSE", 0.5)
    (tmp_path / "made").write_bytes(b"made")
    contents = {"here/a": b"a", "here/b": b"b", "lines": b"x" * 999 + b"\n"}
    contents["lines"] *= 20_000
    contents |= {f"dt={number}/a.jsonl": b"" for number in range(9)}
    contents |= {"dt=0/b.txt": b"", "deep/er/a.jsonl": b"", "deep/er/still/b.jsonl": b""}
    for key, body in contents.items():
        s3.client.put_object(Bucket=s3.name, Key=key, Body=body)
    flaky.faults(share=0.4, late=0.5, seed=sum(act.encode()))
    files = Files(s3.uri, OUR_RETRIES_ALONE)
    assert ACTS[act](files, tmp_path / "made") == EXPECTED[act]


def test_a_large_file_is_whole_though_its_parts_fail(
    s3: Bucket, flaky: FlakyS3, tmp_path: Path
) -> None:
    """Put in several parts, some of which fail, and with the reply to its completion lost."""
    made = tmp_path / "made"
    made.write_bytes(bytes(range(256)) * (110 << 12))
    flaky.faults(share=0.3, late=0.7, seed=4)
    files = Files(s3.uri, OUR_RETRIES_ALONE)
    files.put(made, "large")
    head = s3.client.head_object(Bucket=s3.name, Key="large")
    assert head["ContentLength"] == made.stat().st_size
    assert flaky.stats()["failed"]


def test_a_bucket_that_stays_out_is_told(s3: Bucket, flaky: FlakyS3) -> None:
    """After the patience that the storage options say, with the file and what the bucket said."""
    flaky.faults(outage_after=0, outage_seconds=600)
    files = Files(s3.uri, {**OUR_RETRIES_ALONE, "patience_seconds": 2})
    start = time.monotonic()
    with pytest.raises(StoreError, match=rf"reading {s3.uri}/a: ") as error:
        files.read("a")
    assert error.value.transient
    assert 2 <= time.monotonic() - start < 120
    assert flaky.stats()["failed"]["out"] > 1


def test_connections_that_break_are_waited_out(s3: Bucket, flaky: FlakyS3) -> None:
    """A bucket that was there, and then closes connections without a word."""
    files = Files(s3.uri, OUR_RETRIES_ALONE)
    files.write("a", b"1")
    flaky.faults(outage_after=0, outage_seconds=3, refuse=True)
    assert files.read("a") == b"1"
    assert flaky.stats()["failed"]["out"] > 1


def test_an_address_where_nobody_is_ends_a_run_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No patience with an endpoint that never said a word: one sentence with its address."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    start = time.monotonic()
    with pytest.raises(StoreError, match=r"s3://nobody/.*http://127\.0\.0\.1:9"):
        Files("s3://nobody").read("a")
    assert time.monotonic() - start < 120

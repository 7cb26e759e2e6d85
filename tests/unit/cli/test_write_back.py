"""`ragmetrics write-back`, the night that ends with it, and what a killed process leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ragmetrics.config import Settings
from ragmetrics.records import Score
from tests.fakes.command import Run
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import FIRST
from tests.fakes.tracing import KEYS, LangfuseServer, OtlpReceiver, TracingServer, values
from tests.fakes.written_back import FAST, publish, settings_of, traced_row

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def langfuse() -> Iterator[LangfuseServer]:
    """A Langfuse that takes every score of its schema."""
    with LangfuseServer().running() as server:
        yield server


def settings_file(folder: Path, settings: Settings) -> Path:
    """A settings file of settings."""
    path = folder / "ragmetrics.yaml"
    values_ = settings.model_dump(mode="json", include={"store", "write_back"}, exclude_unset=True)
    path.write_text(yaml.safe_dump(values_))
    return path


def test_a_night_ends_with_its_scores_in_the_traces(
    run: Run, tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """A log in our own layout names trace and span; the command says what was sent."""
    rows = [
        {**row, "trace_id": f"trace-{n}", "span_id": f"span-{n}"}
        for n, row in enumerate(make_rows(30))
    ]
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", rows)
    path = tmp_path / "ragmetrics.yaml"
    write_back = {**FAST, "langfuse": {"base_url": langfuse.url}}
    path.write_text(yaml.safe_dump({"metrics": ["context_recall"], "write_back": write_back}))
    ended = run("nightly", "--settings", path, "--date", NIGHT)
    assert ended.code == 0
    assert f"langfuse: night {NIGHT}: 30 scores sent" in " ".join(ended.out.split())
    assert {one["traceId"] for one in langfuse.scores.values()} == {f"trace-{n}" for n in range(30)}


def test_a_target_that_is_down_does_not_fail_the_night(
    run: Run, tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """Its exit code is 0, and it says what waits; the command sends it, and then nothing waits."""
    rows = [{**row, "trace_id": row["id"]} for row in make_rows(30)]
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", rows)
    path = tmp_path / "ragmetrics.yaml"
    write_back = {"retry_seconds": 0, "langfuse": {"base_url": langfuse.url}}
    path.write_text(yaml.safe_dump({"metrics": ["context_recall"], "write_back": write_back}))
    langfuse.statuses = [503, 503]
    ended = run("nightly", "--settings", path, "--date", NIGHT)
    assert ended.code == 0
    assert "30 wait for the next run" in " ".join(ended.out.split())
    still = run("write-back", "--settings", path, "--json")
    assert still.code == 1
    assert json.loads(still.out)["targets"][0]["waiting"] == 30
    assert run("write-back", "--settings", path).code == 0
    assert len(langfuse.scores) == 30
    assert run("write-back", "--settings", path).out == "Nothing waits.\n"


def test_a_night_is_sent_again_by_its_date(
    run: Run, tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """--again sends also what was sent; the tool shows each score once."""
    settings = settings_of(tmp_path, langfuse={"base_url": langfuse.url})
    publish(settings, {"mrr": lambda _: Score(0.5)}, [traced_row(n) for n in range(5)])
    path = settings_file(tmp_path, settings)
    assert "5 scores sent" in run("write-back", "--settings", path, "--date", FIRST).out
    again = run("write-back", "--settings", path, "--date", FIRST)
    assert (again.code, "5 were sent before" in again.out) == (0, True)
    everything = run("write-back", "--settings", path, "--date", FIRST, "--again")
    assert "5 scores sent" in everything.out
    assert len(langfuse.scores) == 5
    assert run("write-back", "--settings", path, "--again").code == 2


def kill_at(request: int, server: TracingServer, path: Path, *arguments: str) -> None:
    """Run the command, and kill it when the server has stored a request and not answered it."""
    server.hold_at = request
    command = [sys.executable, "-m", "ragmetrics", "write-back", "--settings", str(path)]
    with subprocess.Popen([*command, *arguments], env={**os.environ}) as process:
        assert server.held.wait(240)
        process.send_signal(signal.SIGKILL)
        process.wait(240)
    server.released.set()


def test_a_killed_run_goes_on_where_it_was(
    run: Run, tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """Of 20,000 scores each is there once; only the batch in flight is sent twice."""
    settings = settings_of(tmp_path, langfuse={"base_url": langfuse.url})
    names = ["mrr", "hit_rate", "id_recall", "id_precision"]
    rows = [traced_row(number) for number in range(5_000)]
    publish(settings, {name: lambda n: Score(n / 5_000) for name in names}, rows, shards=2)
    path = settings_file(tmp_path, settings)
    kill_at(40, langfuse, path, "--date", FIRST.isoformat())
    assert len(langfuse.scores) == 8_000
    ended = run("write-back", "--settings", path)
    assert ended.code == 0
    assert len(langfuse.scores) == 20_000
    assert langfuse.requests == 101
    left = list((tmp_path / "store/write-back").rglob("*.json"))
    assert len(left) == 1  # one list of what was sent, and nothing in the outbox


def test_a_killed_run_repeats_one_batch_of_events(run: Run, tmp_path: Path) -> None:
    """A receiver of logs adds everything: the uid of an event shows which ones came twice."""
    with OtlpReceiver().running() as receiver:
        settings = settings_of(tmp_path, otlp={"endpoint": receiver.url}, batch_size=50)
        rows = [traced_row(number) for number in range(1_000)]
        publish(settings, {"mrr": lambda _: Score(0.5)}, rows)
        path = settings_file(tmp_path, settings)
        kill_at(5, receiver, path, "--date", FIRST.isoformat())
        assert run("write-back", "--settings", path).code == 0
        uids = [values(record)["log.record.uid"] for record in receiver.records]
        assert (len(uids), len(set(uids))) == (1_050, 1_000)

"""Processes that score at once against one endpoint share its limits by signs in their store.

Where places are counted the judge holds all requests, so that what is too much stays to be seen.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.judges.quota_sharing import EXPIRY_SECONDS
from ragmetrics.records import LogRow
from ragmetrics.scoring.sharding import shard_of
from tests.fakes.clients import JudgeServer
from tests.fakes.holding import HoldingServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.prefect_live import started
from tests.fakes.processes import ROOT, running

pytestmark = pytest.mark.timeout(1_200)

CEILING = 12
PATIENT = {"timeout_seconds": 3_600, "deadline_seconds": 3_600}
"""A judge is waited for as long as it holds what it was asked."""


@pytest.fixture
def holding(monkeypatch: pytest.MonkeyPatch) -> Iterator[HoldingServer]:
    """A judge that answers only what a test lets it."""
    monkeypatch.setenv("OPENAI_API_KEY", "testing")
    with running("tests.fakes.holding") as port:
        yield HoldingServer(port)


@contextmanager
def scoring(
    folder: Path,
    server: JudgeServer,
    name: str,
    rows: int,
    store: str = "store",
    **judge: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that scores rows of its own, ended with the block if it has not come to its end."""
    questions = make_rows(rows)
    for row in questions:
        row["user_input"] += f" Says {name}."
    settings = folder / f"{name}.yaml"
    chosen = {"name": "openai", "model": "fake", "base_url": server.base_url, **judge}
    settings.write_text(yaml.safe_dump({"judge": chosen}))
    log = write_jsonl(folder / f"{name}.jsonl", questions)
    command = [sys.executable, "-m", "ragmetrics", "score", str(log), "--json"]
    more = ["--settings", str(settings), "--store", str(folder / store)]
    process = subprocess.Popen(
        [*command, *more, "--metrics", "context_recall"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(what: Callable[[], bool], told: Callable[[], object], seconds: float = 400) -> None:
    """Wait until it is so; `told` is what is said where it never is."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, f"not within {seconds} s: {told()}"
        time.sleep(0.05)


def signs(folder: Path) -> list[Path]:
    """Those in the store."""
    return list((folder / "store" / "workers").rglob("*.json"))


def settle(folder: Path, processes: int) -> None:
    """Wait until all have their sign, and have renewed it four times since then.

    A process looks for others after each renewal and takes what follows before the next. At the
    third look a newcomer is none any more; or at the fourth, if a timer rang a moment early.
    """
    written: dict[Path, int] = {}
    renewals: Counter[Path] = Counter()

    def settled() -> bool:
        for sign in signs(folder):
            moment = sign.stat().st_mtime_ns
            renewals[sign] += len(written) == processes and written[sign] != moment
            written[sign] = moment
        return len(written) == processes and min(renewals.values()) >= 4

    until(settled, lambda: renewals)


def speaker(body: str) -> str:
    """The process that sent a request."""
    return re.findall(r"Says (\w+)\.", body)[0]


def share_out(
    server: HoldingServer, parts: dict[str, int], asker: Callable[[str], str] = speaker
) -> None:
    """See that each has its part of the places and no more, whatever is answered.

    First all that was asked before a part became smaller, then one of each by turns.
    """

    def shared() -> bool:
        return {name: len(numbers) for name, numbers in server.held(asker).items()} == parts

    for more in (0, 1, 1, 1, 1):
        for name, numbers in server.held(asker).items():
            server.answer(numbers[: max(0, len(numbers) - parts.get(name, 0) + more)])
        until(shared, lambda: server.held(asker))


def test_two_share_the_places_and_one_takes_over_from_the_dead(
    tmp_path: Path, holding: HoldingServer
) -> None:
    """The first has all places until the second is there, and half of them then. Killed with -9,
    a process leaves its half to the other when its sign is void, and not before."""
    with ExitStack() as stack:
        begin = lambda name: stack.enter_context(  # noqa: E731 - with what the block has
            scoring(tmp_path, holding, name, 200, concurrency=CEILING, **PATIENT)
        )
        first = begin("first")
        share_out(holding, {"first": CEILING})
        begin("second")
        settle(tmp_path, 2)
        share_out(holding, {"first": CEILING // 2, "second": CEILING // 2})

        first.send_signal(signal.SIGKILL)
        share_out(holding, {"second": CEILING})
        dead, alive = sorted(sign.stat().st_mtime for sign in signs(tmp_path))
        assert alive - dead > EXPIRY_SECONDS


def test_three_that_begin_at_once_share_the_places(tmp_path: Path, holding: HoldingServer) -> None:
    """Whoever was the first to look has no more than the others."""
    names = ("a", "b", "c")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(
                scoring(tmp_path, holding, name, 200, concurrency=CEILING, **PATIENT)
            )
        settle(tmp_path, 3)
        share_out(holding, dict.fromkeys(names, CEILING // 3))
        held = holding.held(speaker)
        assert {name: len(held[name]) for name in held} == dict.fromkeys(names, CEILING // 3)


def test_the_workers_of_one_night_share_the_places(tmp_path: Path, holding: HoldingServer) -> None:
    """A flow whose parts are scored by two processes asks no more at once than by one."""
    rows = make_rows(100)
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "log.jsonl", rows)
    judge = {"name": "openai", "base_url": holding.base_url, "concurrency": CEILING, **PATIENT}
    values = {
        "store": "store",
        "metrics": ["context_recall"],
        "shards": 2,
        "runner": {"name": "processes", "workers": 2},
        "judge": judge,
    }
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text(yaml.safe_dump(values))
    command = [sys.executable, "-m", "flows.nightly", "--settings", str(settings)]
    output = tmp_path / "output"

    def part(body: str) -> str:
        """The shard of the question: each worker has one."""
        (question,) = (row for row in rows if row["user_input"] in body)
        return f"shard {shard_of(LogRow('', question['user_input'], ()), 2)}"

    with started([*command, "--date", str(NIGHT)], ROOT, os.environ, output) as night:
        settle(tmp_path, 2)
        share_out(holding, dict.fromkeys(("shard 0", "shard 1"), CEILING // 2), part)
        holding.answer_all()
        assert night.wait(timeout=400) == 0, output.read_text()
    assert holding.stats()["requests"] == len(rows)


def test_two_share_the_requests_of_a_minute(tmp_path: Path, judge_server: JudgeServer) -> None:
    """Together they ask no more often than one alone may: 200 requests take them as long."""
    a_second, places = 20, 4
    limits = {"requests_per_minute": 60 * a_second, "concurrency": places}
    with ExitStack() as stack:
        for name in ("a", "b"):
            stack.enter_context(scoring(tmp_path, judge_server, name, 3_000, **limits))
        settle(tmp_path, 2)
        begin, before = time.monotonic(), requests(judge_server)
        until(lambda: requests(judge_server) >= before + 200, judge_server.stats)
        asked, seconds = requests(judge_server) - before, time.monotonic() - begin
    # A second's worth may be taken at once, by each its half and the request that ends it; and
    # what is in flight at the beginning arrives later.
    at_once = a_second + 2 + places
    assert asked <= a_second * seconds + at_once


def requests(server: JudgeServer) -> int:
    """How many the server has counted."""
    return int(server.stats()["requests"])


def test_where_the_endpoint_says_the_limit_none_starves(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Two processes that know nothing of each other, with stores of their own: what the endpoint
    refuses drives both, and both go on being answered."""
    judge_server.faults(latency_ms=100, max_in_flight=CEILING)
    names = ("a", "b")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(scoring(tmp_path, judge_server, name, 12_000, store=name))

        def gained(before: Mapping[str, int]) -> bool:
            """Whether each has twenty replies more than before."""
            return all(kept(tmp_path / name) >= before[name] + 20 for name in names)

        until(lambda: gained(Counter()), judge_server.stats)  # both are at work
        both = {name: kept(tmp_path / name) for name in names}
        until(lambda: gained(both), judge_server.stats)
        assert gained(both)


def kept(store: Path) -> int:
    """Replies that a run at work has so far."""
    journals = (store / "judgements").rglob("*.jsonl")
    return sum(len(journal.read_bytes().splitlines()) for journal in journals)

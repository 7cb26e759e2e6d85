"""Processes that score at once against one endpoint share its limits by signs in their store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.judges.sharing import GRACE_SECONDS, LOOK_SECONDS, VOID_SECONDS
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.prefect_live import started
from tests.fakes.processes import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CEILING = 12


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


class Watcher:
    """Looks at the server again and again: how many requests are at work."""

    def __init__(self, server: JudgeServer) -> None:
        self._server = server
        self._stop = threading.Event()
        self._seen: list[tuple[float, int]] = []
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self._seen.append((time.monotonic(), self._server.stats()["in_flight"]))

    def at_work(self, seconds: float) -> list[int]:
        """Requests at work, as seen in so many last seconds."""
        since = time.monotonic() - seconds
        return [busy for moment, busy in self._seen if moment >= since]

    @property
    def most(self) -> int:
        """The most that were ever at work, as the server counts them."""
        return int(self._server.stats()["max_in_flight"])

    def until_busy(self, requests: int, seconds: float = 60) -> None:
        """Wait until as many are at work."""
        self.until(lambda: max(self.at_work(1), default=0) >= requests, seconds)

    def until(self, what: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until it is so."""
        end = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < end, f"not within {seconds} s; seen: {self._seen[-20:]}"
            time.sleep(0.05)


def signs(folder: Path) -> list[Path]:
    """Those in the store."""
    return list((folder / "store" / "workers").rglob("*.json"))


def settle(folder: Path, processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until all have their sign, and each has seen all others'."""
    end = time.monotonic() + 60
    while len(signs(folder)) < len(processes):
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(GRACE_SECONDS + LOOK_SECONDS)
    assert all(one.poll() is None for one in processes), "the test has too few rows"


def test_two_share_the_places_and_one_takes_over_from_the_dead(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """The second begins with one place, and has its half once the first must have seen it: never
    are more requests at work than the ceiling and that one. Killed with -9, a process leaves its
    half to the other as soon as its sign is void."""
    judge_server.faults(latency_ms=300)
    with ExitStack() as stack:
        watcher = stack.enter_context(Watcher(judge_server))
        begin = lambda name: stack.enter_context(  # noqa: E731 - with what the block has
            scoring(tmp_path, judge_server, name, 3_000, concurrency=CEILING)
        )
        first = begin("first")
        watcher.until_busy(CEILING)
        second = begin("second")
        settle(tmp_path, [first, second])
        busy = watcher.at_work(3)
        assert max(busy) in (CEILING - 1, CEILING)
        assert watcher.most <= CEILING + 1

        first.send_signal(signal.SIGKILL)
        first.wait()
        time.sleep(1)
        assert max(watcher.at_work(0.5)) <= CEILING // 2
        watcher.until_busy(CEILING, VOID_SECONDS + 2 * LOOK_SECONDS + 10)
        assert watcher.most <= CEILING + 1


def test_three_that_begin_at_once_share_the_places(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Each newcomer has one place at most before its share."""
    judge_server.faults(latency_ms=300)
    with ExitStack() as stack:
        watcher = stack.enter_context(Watcher(judge_server))
        processes = [
            stack.enter_context(scoring(tmp_path, judge_server, name, 2_000, concurrency=CEILING))
            for name in ("a", "b", "c")
        ]
        settle(tmp_path, processes)
        assert max(watcher.at_work(3)) in (CEILING - 1, CEILING)
        assert watcher.most <= CEILING + 2


def test_the_workers_of_one_night_share_the_places(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """A flow whose parts are scored by two processes asks no more at once than by one."""
    judge_server.faults(latency_ms=300)
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "log.jsonl", make_rows(1_000))
    values = {
        "store": "store",
        "metrics": ["context_recall"],
        "shards": 2,
        "runner": {"name": "processes", "workers": 2},
        "judge": {"name": "openai", "base_url": judge_server.base_url, "concurrency": CEILING},
    }
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text(yaml.safe_dump(values))
    command = [sys.executable, "-m", "flows.nightly", "--settings", str(settings)]
    output = tmp_path / "output"
    most = 0
    with started([*command, "--date", str(NIGHT)], ROOT, os.environ, output) as night:
        while night.poll() is None:
            most = max(most, len(signs(tmp_path)))
            time.sleep(0.05)
    assert night.returncode == 0, output.read_text()
    assert most == 2
    stats = judge_server.stats()
    assert stats["requests"] == 1_000
    assert stats["max_in_flight"] in (CEILING, CEILING + 1)


def test_two_share_the_requests_of_a_minute(tmp_path: Path, judge_server: JudgeServer) -> None:
    """Together they ask as often as one alone may."""
    allowed = 1_200
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                scoring(tmp_path, judge_server, name, 2_000, requests_per_minute=allowed)
            )
            for name in ("a", "b")
        ]
        settle(tmp_path, processes)
        start, before = time.monotonic(), judge_server.stats()["requests"]
        time.sleep(10)
        asked = judge_server.stats()["requests"] - before
        minutes = (time.monotonic() - start) / 60
    assert 0.5 * allowed < asked / minutes < 1.15 * allowed


def test_where_the_endpoint_says_the_limit_none_starves(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Two processes that know nothing of each other, with stores of their own: what the endpoint
    refuses drives both. Their parts differ, and nobody's is next to nothing."""
    judge_server.faults(latency_ms=100, max_in_flight=CEILING)
    names = ("a", "b")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(scoring(tmp_path, judge_server, name, 12_000, store=name))
        deadline = time.monotonic() + 150
        while min(kept(tmp_path / name) for name in names) < 20:
            assert time.monotonic() < deadline, "one of them gets no answer"
            time.sleep(0.05)
        before = [kept(tmp_path / name) for name in names]
        time.sleep(20)
        gains = [kept(tmp_path / name) - then for name, then in zip(names, before, strict=True)]
    assert sum(gains) > 20 * CEILING
    assert min(gains) > max(gains) / 20


def kept(store: Path) -> int:
    """Replies that a run at work has so far."""
    journals = (store / "judgements").rglob("*.jsonl")
    return sum(len(journal.read_bytes().splitlines()) for journal in journals)

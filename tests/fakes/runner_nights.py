"""Nights on a runner of choice: their log and settings, their scores, and a worker's death."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from flows.runners import check_runner
from ragmetrics.config import make_settings
from ragmetrics.errors import SettingsError
from ragmetrics.pipeline import NightResult
from tests.builders import judge_at, save_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.offline import skip_or_fail

ROWS = 60
_METRICS = ["context_relevancy", "context_recall", "hit_rate"]
_WORKERS = ("spawn_main", "ray::score")
"""In the command line of a process that scores; servers and their helpers run modules."""


def need(extra: str) -> None:
    """Skip a test on a machine without the extra; in CI, where nothing may lack, fail it."""
    try:
        check_runner(make_settings({"runner": extra}))
    except SettingsError as error:
        skip_or_fail(str(error))


def write_log(folder: Path, night: date = NIGHT) -> None:
    """Write the log of a night."""
    ids = {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["b"]}
    log = folder / "logs" / f"dt={night}" / "log.jsonl"
    write_jsonl(log, make_rows(ROWS, good=0.6, night=night, **ids))


def write_settings(folder: Path, name: str, runner: Any, **changes: Any) -> str:
    """Write a settings file for one runner, with a store of its own; return its path."""
    return str(
        save_settings(
            folder,
            {
                "store": f"store-{name}",
                "metrics": _METRICS,
                "shards": 3,
                "runner": runner,
                "alerts": {"rules": []},
                **changes,
            },
            name=f"{name}.yaml",
        )
    )


def run(path: str) -> NightResult:
    """Run the flow in this process."""
    from flows.nightly import nightly

    found: NightResult = nightly(path, NIGHT)
    return found


def scores(folder: Path, name: str) -> pd.DataFrame:
    """All scores of a store, of nights and gates, row by row."""
    files = sorted((folder / f"store-{name}").glob("**/scores/**/*.parquet"))
    read = [pd.read_parquet(file, partitioning=None).assign(part=file.name) for file in files]
    return pd.concat(read, keys=[file.parent.name for file in files])


def slow(judge: JudgeServer) -> dict[str, Any]:
    """An endpoint that gives time to kill somebody."""
    judge.faults(latency_ms=300)
    return judge_at(judge, concurrency=2)


@contextmanager
def killing(judge: JudgeServer, after: int) -> Iterator[list[int]]:
    """Kill a worker process once the judge was asked so often; its id."""
    killed: list[int] = []
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(0.05):
            workers = [one.pid for one in psutil.Process().children(recursive=True) if _works(one)]
            if workers and judge.stats()["requests"] >= after:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])
                return

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def _works(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(name in word for word in process.cmdline() for name in _WORKERS)
    return False

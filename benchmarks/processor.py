"""The processor's share of a night, beside the targets and beside version 129524b.

    python -m benchmarks processor

Whole processes are timed as a user starts them: modules are compiled, as by an installation. The
lexical judge reads the labelled logs of `RAGMETRICS_DATA` (a folder), where there are any, else a
log of made-up words. Processor time is that of all processes of a command, without the start that a
log of ten rows takes. "Before" was measured by these functions on the machine of
docs/explanation/performance.md.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from benchmarks import engine_log
from benchmarks.engine_runs import Endpoint, Run, endpoint, ours
from benchmarks.engine_table import Figure, table
from benchmarks.scale import make_rows
from benchmarks.year import publish_tonight
from benchmarks.year_store import fill, make_night, unpublish
from ragmetrics.config.settings import DEFAULT_METRICS
from ragmetrics.storage import Files
from ragmetrics.text import sentences

ROOT = Path(__file__).parents[1]
FOLDER = "RAGMETRICS_DATA"
LOGS = ("azure_northwind", "chunkeval_bm25", "hotpot_multihop")
_TURNS = 3
_TEXTS = ("user_input", "response", "reference")
_OTHERS = ("PREFECT_", "PYTHONDONTWRITEBYTECODE")
"""Beginnings of variables that commands do not get."""
_LLM = {"latency_ms": 400, "token_ms": 10}


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    wall: float
    cpu: float


def report(rows: int) -> None:
    """Measure everything; `rows` are those of the requests' log."""
    parts: Mapping[str, Callable[[], Iterator[Figure]]] = {
        "Requests to a judge, default metrics, 64 in flight": lambda: requests(rows),
        "Lexical judge, one core": embedded,
        "Start": start,
        "Publishing, 20,000 rows": publishing,
        "Requests that hang": hanging,
    }
    for title, part in parts.items():
        print(table(title, list(part())), flush=True)


def requests(rows: int) -> Iterator[Figure]:
    """Processor time of a request, with the start and without."""
    with endpoint() as server, tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        folder = Path(name)
        logs = [
            engine_log.write(engine_log.night(n), folder / f"{n}.jsonl") for n in (rows // 4, rows)
        ]
        for log in logs:
            _judged(server, log, folder / f"warm-{log.stem}", 0)
        for latency, before in ((300, (1.58, 1.46)), (50, (1.46, 1.28))):
            few, many = (
                _judged(server, log, folder / f"{log.stem}-{latency}", latency) for log in logs
            )
            more = 1000 * (many.cpu - few.cpu) / (many.requests - few.requests)
            at = f"at {latency} ms"
            yield Figure(f"{at}: ms a request, whole process", many.cpu_ms, before=before[0])
            yield Figure(f"{at}: ms for one more request", more, most=0.5, before=before[1])


def _judged(server: Endpoint, log: Path, folder: Path, latency: float) -> Run:
    behaviour = {"latency_ms": latency}
    return ours(server, log, folder, behaviour=behaviour, metrics=DEFAULT_METRICS)


def embedded() -> Iterator[Figure]:
    """Megabytes of distinct text a second and core, by log."""
    before = {
        "azure_northwind": (0.30, 2.45, 0.83),
        "chunkeval_bm25": (0.21, 1.46, 0.82),
        "hotpot_multihop": (0.38, 2.57, 0.80),
        "made up": (0.30, 2.59, 0.76),
    }
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        folder = Path(name)
        ten = _write(folder / "ten.jsonl", 10)
        for log in _logs(folder):
            texts = _distinct(log)
            size = sum(map(len, texts)) / 1e6
            known = before.get(log.stem, (None, None, None))
            for what, metrics, least, was in (
                ("default metrics", DEFAULT_METRICS, 1.0, known[0]),
                ("context_relevance", ("context_relevance",), 5.0, known[1]),
            ):
                options = ("--metrics", ",".join(metrics), "--json")
                idle = _best(partial(_score, folder, ten, *options)).cpu
                busy = _best(partial(_score, folder, log, *options)).cpu
                speed = size / max(busy - idle, 1e-9)
                yield Figure(f"{log.stem}, {what}: MB a second", speed, least=least, before=was)
            begun = time.process_time()
            for text in texts:
                sentences(text, "en")
            took = time.process_time() - begun
            yield Figure(f"{log.stem}, sentences: MB a second", size / took, before=known[2])


def _logs(folder: Path) -> list[Path]:
    labelled = Path(os.environ.get(FOLDER, "-"))
    found = [file for name in LOGS if (file := labelled / f"{name}.jsonl").exists()]
    return [*found, _write(folder / "made up.jsonl", 2_000)]


def _distinct(log: Path) -> set[str]:
    """All texts of a log, each once."""
    texts: set[str] = set()
    for line in log.read_text("utf-8").splitlines():
        row = json.loads(line)
        texts.update(row["retrieved_contexts"], (row[name] for name in _TEXTS if row.get(name)))
    return texts


def start() -> Iterator[Figure]:
    """Seconds until small commands have ended."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        folder = Path(name)
        ten = _write(folder / "2026-11-19.jsonl", 10)
        helped = _best(lambda: _run(folder, "-m", "ragmetrics", "--help"))
        yield Figure("ragmetrics --help, seconds", helped.wall, most=0.25, before=0.51)
        scored = _best(lambda: _score(folder, ten, "--json"))
        yield Figure("ragmetrics score, ten rows, seconds", scored.wall, most=0.8, before=1.18)
        settings = folder / "ragmetrics.yaml"
        settings.write_text(
            yaml.safe_dump({"logs": str(folder / "{date}.jsonl"), "store": str(folder / "store")})
        )
        nightly = ("-m", "flows.nightly", "--settings", settings, "--date", "2026-11-19")

        def first() -> Cost:
            shutil.rmtree(folder / "store", ignore_errors=True)
            return _run(folder, *nightly)

        first()  # Prefect makes its database
        flow, again = _best(first), _best(lambda: _run(folder, *nightly))
        yield Figure("flow of ten rows with its server, seconds", flow.wall, most=5, before=9.7)
        yield Figure("the same night again, seconds", again.wall, most=3, before=9.7)


def publishing() -> Iterator[Figure]:
    """Seconds to publish and show one more night, after nine others and after 364."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        night = make_night(Path(name) / "demo", 20_000)
        for nights, before in ((10, 6.46), (365, 6.95)):
            files = Files(str(Path(name) / str(nights)))
            fill(night, files, nights)
            publish_tonight(night, files)
            unpublish(night, files)
            seconds = publish_tonight(night, files).seconds
            yield Figure(f"night {nights}, seconds", seconds, most=5, before=before)


def hanging() -> Iterator[Figure]:
    """Wall time with 0.4% of requests that hang, beside the clean run's."""
    with endpoint() as server, tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        folder = Path(name)
        log = engine_log.write(engine_log.night(300), folder / "log.jsonl")
        ours(server, log, folder / "warm", behaviour={})
        for what, latency, before in (
            ("at 300 ms", {"latency_ms": 300}, 1.10),
            ("at latencies of an LLM", _LLM, 1.13),
        ):
            clean = ours(server, log, folder / f"clean {what}", behaviour=latency)
            faults = {**latency, "fail": {"hang": 0.004}}
            hung = ours(server, log, folder / f"hung {what}", behaviour=faults)
            ratio = hung.wall / clean.wall
            yield Figure(f"{what}: wall / clean run's", ratio, most=1.5, before=before)


def _write(path: Path, rows: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in make_rows(rows))
    return path


def _score(folder: Path, log: Path, *options: str) -> Cost:
    return _run(folder, "-m", "ragmetrics", "score", log, *options)


def _run(folder: Path, *arguments: str | Path) -> Cost:
    """A whole Python process with its children. Exit code 1 says that an alert fires."""
    environment = {
        **{key: one for key, one in os.environ.items() if not key.startswith(_OTHERS)},
        "PYTHONPATH": str(ROOT),
        "PREFECT_HOME": str(folder / "prefect"),
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
    )
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise RuntimeError(
            f"{arguments}: exit code {done.returncode}\n{done.stderr.decode()[-2000:]}"
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu)


def _best(run: Callable[[], Cost]) -> Cost:
    """The medians of some runs."""
    found: Sequence[Cost] = [run() for _ in range(_TURNS)]
    return Cost(statistics.median(o.wall for o in found), statistics.median(o.cpu for o in found))

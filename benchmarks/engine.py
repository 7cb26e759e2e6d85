"""The judging engine beside a bare client, ragas and DeepEval: ratios from one run.

    python -m benchmarks engine [--rows 1000] [--peer-rows 100] [--only speed,tokens ...]

All ask one endpoint with set latency and faults, in a process of its own on the same machine.
ragmetrics is `python -m ragmetrics score` as a whole process in a fresh folder, 64 in flight. The
floor client sends the very requests of that run. Peers are measured without their imports, by the
row, so that fewer rows do; `--peer-rows 0` leaves them out. See `docs/explanation/performance.md`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import engine_log
from benchmarks.engine_runs import (
    DEEPEVAL,
    IN_FLIGHT,
    METRICS,
    RAGAS_BEST,
    RAGAS_DEFAULT,
    RAGAS_TUNED,
    Endpoint,
    Peer,
    Run,
    endpoint,
    floor,
    ours,
)
from benchmarks.engine_table import Figure, table
from ragmetrics.config import JudgeSettings
from ragmetrics.config.settings import DEFAULT_METRICS

_LLM = {"latency_ms": 400, "token_ms": 10}
_LLM_ROWS = 200
_FAULTS = {"429": 0.10, "500": 0.05, "drop": 0.03, "malformed": 0.03, "hang": 0.02}
FAULTY = {"latency_ms": 300, "fail": _FAULTS, "retry_after": 1}
_ALLOWED = 20
_BY_DEFAULT = JudgeSettings().concurrency
_PRICES = {
    "usd_per_million_prompt_tokens": 0.4,
    "usd_per_million_cached_tokens": 0.1,
    "usd_per_million_completion_tokens": 1.6,
}
_LAYOUTS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "task_first": {"prompt_layout": "task_first"},
}


@dataclass(frozen=True)
class Bench:
    """What all parts share."""

    server: Endpoint
    folder: Path
    rows: int
    peer_rows: int

    def log(self, name: str, rows: Sequence[engine_log.Row]) -> Path:
        """A log on disk."""
        return engine_log.write(rows, self.folder / f"{name}.jsonl")

    def ours(self, name: str, log: Path, latency_ms: float, **more: Any) -> Run:
        """One run of ragmetrics; equal names share a folder, and so a store."""
        behaviour = {"latency_ms": latency_ms, **more.pop("behaviour", {})}
        return ours(self.server, log, self.folder / name, behaviour=behaviour, **more)

    def peer(self, peer: Peer, log: Path, behaviour: Mapping[str, Any]) -> Run | None:
        """One run of a peer; None where none is wanted, or, with a word on it, none installed."""
        if not self.peer_rows:
            return None
        if not peer.installed:
            print(f"{peer.name}: not there ({peer.python}); `make bench` makes it", flush=True)
            return None
        return peer.run(self.server, log, self.folder / peer.name, behaviour=behaviour)


def speed(bench: Bench) -> Iterator[Figure]:
    """Wall and CPU beside the floor client, at two latencies, and beside peers at the shorter."""
    log = bench.log("plain", engine_log.night(bench.rows))
    few = bench.log("few", engine_log.night(bench.peer_rows))
    bench.ours("warm", log, 0)  # the endpoint has composed its replies, the files are read
    a_row = 0.0
    for latency, most in ((300, 1.3), (50, 2.0)):
        run = bench.ours(f"at-{latency}", log, latency)
        bodies = bench.server.write_bodies(bench.folder / "bodies")
        bare = floor(bench.server, bodies, bench.folder, behaviour={"latency_ms": latency})
        at = f"at {latency} ms"
        yield Figure(f"{at}: wall, seconds", run.wall)
        yield Figure(f"{at}: floor's wall, seconds", bare.wall)
        yield Figure(f"{at}: floor's wall without start-up, seconds", bare.told["seconds"])
        yield Figure(f"{at}: wall / floor's wall", run.wall / bare.wall, most=most)
        yield Figure(f"{at}: CPU a request, ms", run.cpu_ms, most=1.5)
        yield Figure(f"{at}: floor's CPU a request, ms", bare.cpu_ms)
        yield Figure(f"{at}: endpoint's share of a core", run.server_share)
        yield Figure(f"{at}: requests a row", run.requests / bench.rows)
        yield Figure(f"{at}: peak memory, MB", run.peak_mb, "{:.0f}")
        a_row = run.wall / bench.rows
    behaviour = {"latency_ms": 50}
    for peer, least in ((RAGAS_TUNED, 15), (RAGAS_BEST, 4), (DEEPEVAL, None)):
        yield from _beside(bench, peer, few, behaviour, a_row, bench.peer_rows, least)


def llm(bench: Bench) -> Iterator[Figure]:
    """An endpoint as slow as an LLM: 400 ms and 10 ms for each token of the reply.

    As many requests are in flight as the endpoint bears, up to the ceiling that we have by default.
    """
    rows = min(_LLM_ROWS, bench.rows)
    log = bench.log("llm", engine_log.night(rows))
    bench.ours("llm-warm", log, 0)
    run = bench.ours("llm", log, 0, behaviour=_LLM, judge={"concurrency": _BY_DEFAULT})
    bodies = bench.server.write_bodies(bench.folder / "bodies")
    bare = floor(bench.server, bodies, bench.folder, behaviour=_LLM, in_flight=_BY_DEFAULT)
    yield Figure(f"wall, at most {_BY_DEFAULT} in flight, seconds", run.wall)
    yield Figure("floor's wall, seconds", bare.wall)
    yield Figure("wall / floor's wall", run.wall / bare.wall)
    few = bench.ours("llm-few", log, 0, behaviour=_LLM)
    yield Figure(f"wall with at most {IN_FLIGHT} in flight, seconds", few.wall)
    for peer, least in ((RAGAS_DEFAULT, 5), (RAGAS_TUNED, None), (RAGAS_BEST, 2)):
        yield from _beside(bench, peer, log, _LLM, run.wall / rows, rows, least)
    count = min(bench.peer_rows, rows)
    short = bench.log("few", engine_log.night(count))
    yield from _beside(bench, DEEPEVAL, short, _LLM, run.wall / rows, count, None)


def _beside(
    bench: Bench,
    peer: Peer,
    log: Path,
    behaviour: Mapping[str, Any],
    a_row: float,
    rows: int,
    least: float | None,
) -> Iterator[Figure]:
    run = bench.peer(peer, log, behaviour)
    if run is None:
        return
    theirs = run.told["seconds"] / rows
    lost = sum(rows - scored for scored in run.told["scored"].values())
    name = f"{peer.name} {run.told['version']}"
    yield Figure(f"{name}: its time / ours, by the row", theirs / a_row, least=least)
    yield Figure(f"{name}: seconds for {rows} rows", run.told["seconds"])
    yield Figure(f"{name}: seconds of start-up, not counted", run.wall - run.told["seconds"])
    yield Figure(f"{name}: CPU a request, ms", run.cpu_ms)
    yield Figure(f"{name}: requests a row", run.requests / rows)
    yield Figure(f"{name}: prompt tokens a row", run.prompt_tokens / rows, "{:,.0f}")
    yield Figure(f"{name}: completion tokens a row", run.completion_tokens / rows, "{:,.0f}")
    if lost:
        yield Figure(f"{name}: scores lost", lost, "{:.0f}")


def tokens(bench: Bench) -> Iterator[Figure]:
    """Tokens a row: a log without repeats, and one where 30% of the pairs repeat."""
    plain = engine_log.night(bench.rows)
    again = engine_log.night(bench.rows, asked_again=0.30)
    moved = engine_log.night(bench.rows, asked_again=0.375, moved=1)
    for name, rows, most in (
        ("no repeats", plain, 3_700),
        ("30% of pairs repeat", again, 2_700),
        ("30% repeat, 1 of 5 contexts moved", moved, None),
    ):
        run = bench.ours(name, bench.log(name, rows), 0)
        yield Figure(f"{name}: prompt tokens a row", run.prompt_tokens / len(rows), "{:,.0f}", most)
        short = run.completion_tokens / len(rows)
        yield Figure(f"{name}: completion tokens a row", short, "{:,.0f}", 150)
        yield Figure(f"{name}: requests a row", run.requests / len(rows))
        if rows is plain:
            for words, (asked, sent, said) in run.seen["kinds"].items():
                print(f"  {asked:6,} requests, {sent / asked:7,.0f} characters, "
                      f"{said / asked:5,.0f} in reply: {words} ...", flush=True)  # fmt: skip


def nights(bench: Bench) -> Iterator[Figure]:
    """A second night that shares 80% of its pairs with the first."""
    first = engine_log.night(bench.rows)
    log = bench.log("first", first)
    for name, reworded, most in (("", False, 0.22), (", all responses reworded", True, None)):
        one = bench.ours(f"nights{name}", log, 0)
        later = engine_log.second_night(first, 0.8, reworded=reworded)
        two = bench.ours(f"nights{name}", bench.log(f"later{reworded}", later), 0)
        share = two.requests / one.requests
        yield Figure(f"second night's share of the requests{name}", share, "{:.1%}", most)


def faults(bench: Bench) -> Iterator[Figure]:
    """An endpoint that fails in five ways."""
    log = bench.log("plain", engine_log.night(bench.rows))
    clean = bench.ours("clean", log, 300)
    run = bench.ours("faults", log, 300, behaviour=FAULTY)
    scored = [run.told["metrics"][name]["scored"] for name in METRICS]
    yield Figure("wall, seconds", run.wall)
    yield Figure("clean run's wall, seconds", clean.wall)
    yield Figure("wall / clean run's wall", run.wall / clean.wall, most=3)
    yield Figure("rows lost", bench.rows - min(scored), "{:.0f}", most=0)
    yield Figure("requests / clean run's", run.requests / clean.requests)
    for kind, count in sorted(run.told["usage"]["failures"].items()):
        yield Figure(f"counted as {kind}", count, "{:.0f}")
    for status, count in sorted(run.seen["by_status"].items()):
        yield Figure(f"the endpoint's {status}", count, "{:.0f}")


def limit(bench: Bench) -> Iterator[Figure]:
    """An endpoint that allows 20 in flight and answers 429 beyond."""
    log = bench.log("plain", engine_log.night(bench.rows))
    allowed = {"latency_ms": 100, "max_in_flight": _ALLOWED}
    told = bench.ours("told", log, 100, judge={"concurrency": _ALLOWED}, behaviour=allowed)
    bodies = bench.server.write_bodies(bench.folder / "bodies")
    bare = floor(bench.server, bodies, bench.folder, behaviour=allowed, in_flight=_ALLOWED)
    run = bench.ours("untold", log, 100, behaviour=allowed)
    scored = [run.told["metrics"][name]["scored"] for name in METRICS]
    yield Figure(f"wall, told {_ALLOWED}, seconds", told.wall)
    yield Figure(f"floor's wall, told {_ALLOWED}, seconds", bare.wall)
    yield Figure(f"wall, told at most {IN_FLIGHT}, seconds", run.wall)
    yield Figure("throughput / that of ours when told", told.wall / run.wall, least=0.8)
    yield Figure("throughput / the floor's when told", bare.wall / run.wall)
    yield Figure("429 a request", run.seen["by_status"].get("429", 0) / run.requests, "{:.1%}")
    yield Figure("rows lost", bench.rows - min(scored), "{:.0f}", most=0)


def same(bench: Bench) -> Iterator[Figure]:
    """Scores with one request in flight and with 64."""
    rows = min(200, bench.rows)
    log = bench.log("same", engine_log.night(rows, asked_again=0.3))
    found = []
    for concurrency in (1, IN_FLIGHT):
        name = f"same-{concurrency}"
        options = ["--out", "scores.jsonl"]
        bench.ours(name, log, 5, judge={"concurrency": concurrency}, options=options)
        lines = (bench.folder / name / "scores.jsonl").read_text("utf-8").splitlines()
        found.append({(one["id"], one["metric"]): one["value"] for one in map(json.loads, lines)})
    alone, many = found
    differ = sum(alone[key] != many.get(key) for key in alone) + len(many.keys() - alone.keys())
    yield Figure(f"scores that differ, of {len(alone):,}", differ, "{:.0f}", most=0)


def caches(bench: Bench) -> Iterator[Figure]:
    """Prompt tokens in the endpoint's cache by layout, as `score --json` says, and their price.

    A cached token costs 0.5, 0.25 or 0.1 of another prompt token: what providers ask. The default
    is measured as users have it who set the prices of their model, cached tokens included.
    """
    plain = engine_log.night(bench.rows)
    again = engine_log.night(bench.rows, asked_again=0.375, moved=1)
    for name, rows in (("no repeats", plain), ("30% repeat, 1 of 5 contexts moved", again)):
        log = bench.log(f"caches {name}", rows)
        for layout, judge in _LAYOUTS.items():
            for kind in ("provider", "block"):
                run = bench.ours(
                    f"caches {name} {layout} {kind}",
                    log,
                    20,
                    behaviour={"prompt_cache": kind},
                    judge={**_PRICES, **judge},
                    metrics=DEFAULT_METRICS,
                )
                told = run.told["usage"]
                at = f"{name}, {layout}, {kind}"
                yield from _priced(at, told["prompt_tokens"], told["cached_tokens"], len(rows))
                yield Figure(f"{at}: said to be saved, $", told["usd_saved"] or 0, "{:.4f}")
                yield Figure(f"{at}: wall, seconds", run.wall)


def _priced(at: str, prompt: float, cached: float, rows: int) -> Iterator[Figure]:
    yield Figure(f"{at}: prompt tokens a row", prompt / rows, "{:,.0f}")
    yield Figure(f"{at}: cached", cached / prompt, "{:.1%}")
    for price in (0.5, 0.25, 0.1):
        paid = (prompt - cached * (1 - price)) / rows
        yield Figure(f"{at}: prompt tokens paid a row, cached at {price}", paid, "{:,.0f}")


PARTS: Mapping[str, tuple[str, Callable[[Bench], Iterator[Figure]]]] = {
    "speed": ("Speed, 64 in flight", speed),
    "llm": ("Latency as of an LLM: 400 ms and 10 ms a token, 200 rows", llm),
    "tokens": ("Tokens a row (characters / 4)", tokens),
    "caches": ("Prompt tokens by layout, in a cache as providers have", caches),
    "nights": ("A second night that shares 80% of its pairs", nights),
    "faults": ("Faults: 10% 429, 5% 500, 3% dropped, 3% malformed, 2% hanging", faults),
    "limit": ("An endpoint that allows 20 in flight", limit),
    "same": ("Scores at 1 and at 64 in flight", same),
}


def report(rows: int, peer_rows: int, only: Sequence[str] = ()) -> None:
    """Measure the parts named, or all, and print a table each as it is done."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{rows:,} rows, {peer_rows:,} of them for peers; {os.cpu_count()} cores, load {load}\n")
    for name, (title, part) in PARTS.items():
        if only and name not in only:
            continue
        with endpoint() as server, tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as place:
            figures = []
            for figure in part(Bench(server, Path(place), rows, peer_rows)):
                figures.append(figure)
                print(f"{name}: {', '.join(figure.cells()[:2])}", file=sys.stderr, flush=True)
        print(table(title, figures), flush=True)

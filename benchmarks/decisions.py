"""Decisions beside chat, on the engine's log, side by side in one run.

    python -m benchmarks decisions [--rows 400] [--data FOLDER]

Each way scores the default metrics of a log and of a longer one: "one more" is the difference, and
so without start-up and without the way up to 64 in flight. The floor client sends the very requests
of the run. A way that asks each question in a request of its own has a tenth of the rows. Dollars
are those of `gpt-6-luna` at the listed prices, by the tokens that the endpoint says; it caches
beginnings of chat prompts, but not those of single questions.

`--data`: a folder of labelled sets. AUC, calibration error, the variance of a night's mean and the
rows for a half width of 0.02, by verdicts and by probabilities: `python -m research probabilities`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import engine_log
from benchmarks.engine import FAULTY
from benchmarks.engine_runs import Endpoint, Run, endpoint, floor, ours
from benchmarks.engine_table import Figure
from ragmetrics.config import JudgeSettings
from ragmetrics.config.settings import DEFAULT_METRICS

_BEHAVIOUR = {"latency_ms": 300}
_PRICED = JudgeSettings(name="openai", model="gpt-6-luna")
_MOST = 1.2
"""Wall of decisions, in walls of the floor."""


@dataclass(frozen=True)
class Way:
    """One way to ask: the settings of the judge."""

    name: str
    judge: Mapping[str, Any]
    share: int = 1
    """One of so many rows is scored."""


_WAYS = (
    Way("chat, task first", {"prompt_layout": "task_first"}),
    Way("chat, row first", {"prompt_layout": "row_first"}),
    Way("decisions", {"name": "decision"}),
    Way("logprobs", {"name": "decision", "api": "logprobs"}, 10),
)


@dataclass(frozen=True)
class Measured:
    """A run over some rows, and the floor's with its requests."""

    rows: int
    run: Run
    bare: Run


def scored(server: Endpoint, place: Path, way: Way, rows: int, behaviour: Mapping[str, Any]) -> Run:
    """Score so many rows in a fresh folder."""
    place.mkdir()
    return ours(
        server,
        engine_log.write(engine_log.night(rows), place / "log.jsonl"),
        place,
        behaviour=behaviour,
        judge=way.judge,
        options=("--judge", way.judge.get("name", "openai")),
        metrics=DEFAULT_METRICS,
    )


def measure(server: Endpoint, folder: Path, way: Way, rows: int) -> Measured:
    """Score so many rows, and send the same requests."""
    place = folder / f"{way.name} {rows}"
    run = scored(server, place, way, rows, _BEHAVIOUR)
    bodies = server.write_bodies(place / "bodies")
    return Measured(rows, run, floor(server, bodies, place, behaviour=_BEHAVIOUR))


def figures(few: Measured, many: Measured, way: Way) -> Iterator[Figure]:
    """The figures of one way."""
    run, rows, more = many.run, many.rows, many.rows - few.rows
    prompt, cached, written = (run.seen[f"{kind}_tokens"] / rows for kind in _TOKENS)
    requests, cpu = run.requests - few.run.requests, 1000 * (run.cpu - few.run.cpu)
    waited, least = run.wall - few.run.wall, many.bare.wall - few.bare.wall
    usd = 1e6 * (_PRICED.usd(prompt, written, cached) or 0.0)
    most = _MOST if way.name == "decisions" else None
    yield Figure("rows", rows, "{:.0f}")
    yield Figure("requests a row", run.requests / rows)
    yield Figure("prompt tokens a row", prompt, "{:,.0f}")
    yield Figure("... of them cached", cached, "{:,.0f}")
    yield Figure("completion tokens a row", written, "{:,.0f}")
    yield Figure("dollars a million rows", usd, "{:,.0f}")
    yield Figure("CPU a request, start-up included, ms", run.cpu_ms)
    yield Figure("CPU of one more request, ms", cpu / requests)
    yield Figure("CPU of one more row, ms", cpu / more)
    yield Figure("wall, seconds", run.wall)
    yield Figure("floor's wall, seconds", many.bare.wall)
    yield Figure("wall / floor's wall", run.wall / many.bare.wall)
    yield Figure("wall of one more row / the floor's", waited / least, most=most)
    yield Figure("rows lost", lost(run, rows), "{:.0f}", most=0)


def lost(run: Run, rows: int) -> int:
    """Rows without a score of some metric."""
    counts: Mapping[str, Mapping[str, int]] = run.told["metrics"]
    return rows - min(metric["scored"] for metric in counts.values())


_TOKENS = ("prompt", "cached", "completion")


def side_by_side(columns: Mapping[str, Sequence[Figure]]) -> str:
    """A Markdown table of the same figures in columns; bold: misses its target."""
    lines = [("", *columns), ("---", *("---:" for _ in columns))]
    for same in zip(*columns.values(), strict=True):
        cells = (figure.form.format(figure.value) for figure in same)
        bold = (f"**{t}**" if f.met is False else t for t, f in zip(cells, same, strict=True))
        lines.append((same[0].what, *bold))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(rows: int, data: str = "") -> None:
    """Print the figures, a way at a time, then all side by side."""
    columns: dict[str, list[Figure]] = {}
    with tempfile.TemporaryDirectory() as name, endpoint() as server:
        for way in _WAYS:
            most = max(rows // way.share, 8)
            measure(server, Path(name), way, 4)  # modules are compiled, and the endpoint is warm
            few, many = (measure(server, Path(name), way, n) for n in (most // 4, most))
            columns[way.name] = list(figures(few, many, way))
            print(f"{way.name}: measured", file=sys.stderr, flush=True)
        faulty = scored(server, Path(name) / "faulty", _WAYS[2], rows, FAULTY)
    print(
        f"### Decisions beside chat, 300 ms, 64 in flight\n\n{side_by_side(columns)}\n", flush=True
    )
    print(f"Decisions under the faults of `engine`: {lost(faulty, rows)} of {rows} rows lost\n")
    if data:
        command = [sys.executable, "-m", "research", "probabilities", "--rows", "200"]
        subprocess.run(command, env={**os.environ, "RAGMETRICS_DATA": data}, check=True)

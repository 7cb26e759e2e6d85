"""Decisions beside chat requests, on the engine's log: one run for each way to ask.

    python -m benchmarks decisions [--rows 1000]

Requests and tokens a row, CPU a request, wall beside a floor that sends the very same requests, and
dollars a million rows at the listed prices of one model, in one process of the endpoint.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks import engine_log
from benchmarks.engine_runs import endpoint, floor, ours
from benchmarks.engine_table import Figure, table

_PROMPT, _COMPLETION = 0.10, 0.50  # US dollars a million tokens of gpt-6-luna
_LATENCY = 300
_WAYS: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "chat, task first": ({"prompt_layout": "task_first"}, ()),
    "chat, row first": ({"prompt_layout": "row_first"}, ()),
    "decisions": ({}, ("--judge", "decision")),
}


def figures(rows: int) -> Iterator[Figure]:
    """The figures of all ways."""
    with tempfile.TemporaryDirectory() as name, endpoint() as server:
        folder = Path(name)
        log = engine_log.write(engine_log.night(rows), folder / "log.jsonl")
        for way, (judge, options) in _WAYS.items():
            place, behaviour = folder / way.replace(" ", "-"), {"latency_ms": _LATENCY}
            run = ours(server, log, place, behaviour=behaviour, judge=judge, options=options)
            bare = floor(server, server.write_bodies(place / "bodies"), place, behaviour=behaviour)
            prompt, written = run.seen["prompt_tokens"], run.seen["completion_tokens"]
            usd = (prompt * _PROMPT + written * _COMPLETION) / rows
            yield Figure(f"{way}: requests a row", run.requests / rows)
            yield Figure(f"{way}: prompt tokens a row", prompt / rows, "{:,.0f}")
            yield Figure(f"{way}: completion tokens a row", written / rows, "{:,.0f}")
            yield Figure(f"{way}: CPU a request, ms", run.cpu_ms)
            yield Figure(f"{way}: CPU a row, ms", 1000 * run.cpu / rows)
            yield Figure(f"{way}: wall / floor's wall", run.wall / bare.wall)
            yield Figure(f"{way}: dollars a million rows", usd, "{:,.0f}")


def report(rows: int) -> None:
    """Print the figures."""
    print(table("Decisions beside chat", list(figures(rows))))

"""A million judgements: what it takes a night to find its own among them.

    python -m benchmarks.store_scale [--judgements 1000000] [--vectors 0] [--rows 10000]

The store is written as runs write it. The night is a process of its own: as many shards and
families as a night has, all loaded before the first request, as they are when parts run side by
side; then every request of every row is looked up. It knows nine in ten.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ragmetrics.judges import ReplyCache
from ragmetrics.judges.reply_cache import EMBEDDING, ReplyIndex
from ragmetrics.judges.reply_tables import SCHEMA, WantedReply, write
from ragmetrics.storage import Files
from ragmetrics.storage.run_index import shard_range

_JUDGE = "0123456789ab"
_FAMILIES = (("grade",), ("support",), ("questions", EMBEDDING))
_REQUESTS = {"grade": 5, "support": 1, "questions": 1}
_SHARDS = 3
_FILES = 8  # of a prompt and range: as many as there may be before they are merged
_VECTORS, _NUMBERS = 4, 1_536
_KNOWN = 0.9


@dataclass(frozen=True)
class Night:
    """What the process of one night measured."""

    lookups: int
    known: int
    load_seconds: float
    find_seconds: float
    wall_seconds: float
    """Of the whole process, imports included."""
    peak_mb: float


def report(judgements: int, rows: int = 10_000, vectors: int = 0) -> str:
    """Make the store, run the night and say what it took."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as folder:
        begun = time.monotonic()
        make_store(Files(folder), judgements, rows, vectors)
        made = time.monotonic() - begun
        megabytes = sum(info.size for info in Files(folder).below()) / 1e6
        night = measure(folder, rows, vectors > 0)
    return (
        f"{judgements:,} judgements and {vectors:,} vectors ({megabytes:.0f} MB, made in "
        f"{made:.0f} s), a night of {rows:,} rows: {night.known:,} of {night.lookups:,} known; "
        f"start-up {night.load_seconds:.1f} s, look-ups {night.find_seconds:.1f} s, the whole "
        f"process {night.wall_seconds:.1f} s and {night.peak_mb:.0f} MB at its peak"
    )


def measure(folder: str, rows: int, vectors: bool = False) -> Night:
    """Run the night in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.store_scale", "--night", folder]
    command += ["--rows", str(rows), "--vectors", str(int(vectors))]
    begun = time.monotonic()
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(process.stdout)
    return Night(**{**found, "wall_seconds": time.monotonic() - begun})


def make_store(files: Files, judgements: int, rows: int, vectors: int = 0) -> None:
    """Fill a store: nine in ten of what the night asks for, and what other nights asked for."""
    draw = np.random.default_rng(1)
    per_row = sum(_REQUESTS.values())
    for prompt, times in _REQUESTS.items():
        _fill(files, prompt, judgements * times // per_row, rows * times, draw)
    if vectors:
        _fill(files, EMBEDDING, vectors, rows * _VECTORS, draw)


def _fill(files: Files, prompt: str, count: int, asked: int, draw: np.random.Generator) -> None:
    per_row = asked // max(1, _rows(asked, prompt))
    mine = [_key(row, prompt, n) for row in range(_rows(asked, prompt)) for n in range(per_row)]
    mine = mine[: round(len(mine) * _KNOWN)][:count]
    others = draw.bytes(16 * (count - len(mine)))
    keys = np.concatenate([_array(b"".join(mine)), _array(others)])
    draw.shuffle(keys)
    folder = f"judgements/judge={_JUDGE}/prompt={prompt}"
    first = keys.view(">u4").reshape(-1, 4)[:, 0].astype(np.uint32)
    for shard in range(_SHARDS):
        low, high = shard_range(shard, _SHARDS)
        part = keys[(first >= int(low, 16)) & (first <= int(high, 16))]
        for some in np.array_split(part, _FILES):
            gathered = ReplyIndex(WantedReply())
            for start in range(0, len(some), 4_096):
                gathered.add(_table(some[start : start + 4_096], prompt, draw))
            write(files, folder, gathered, low, high)
            gathered.close()


def _rows(asked: int, prompt: str) -> int:
    return asked // (_VECTORS if prompt == EMBEDDING else _REQUESTS[prompt])


def _array(keys: bytes) -> np.ndarray[tuple[int], np.dtype[np.bytes_]]:
    return np.frombuffer(keys, "S16")


def _table(
    keys: np.ndarray[tuple[int], np.dtype[np.bytes_]], prompt: str, draw: np.random.Generator
) -> pa.Table:
    n = len(keys)
    stamps = np.full(n, time.time_ns() // 1_000)
    return pa.Table.from_arrays(
        [
            pa.Array.from_buffers(SCHEMA.field("key").type, n, [None, pa.py_buffer(keys.copy())]),
            pa.array(_replies(n, prompt, draw), pa.binary()),
            pa.array(draw.integers(200, 900, n), pa.int32()),
            pa.array(draw.integers(3, 120, n), pa.int32()),
            pa.array(stamps).cast(SCHEMA.field("judged_at").type),
        ],
        schema=SCHEMA,
    )


def _replies(count: int, prompt: str, draw: np.random.Generator) -> Sequence[bytes]:
    """As they look: a grade, verdicts, or questions, none of which repeats."""
    if prompt == EMBEDDING:
        vectors = draw.standard_normal((count, _NUMBERS), np.float32)
        return [vector.tobytes() for vector in vectors]
    if prompt == "grade":
        return [b'{"g": %d}' % grade for grade in draw.integers(0, 3, count)]
    if prompt == "support":
        return [
            b'{"v": %s}' % json.dumps(row).encode()
            for row in draw.integers(0, 2, (count, 4)).tolist()
        ]
    return [
        json.dumps({"q": [f"What does {a:x} do with {b:x}?" for a, b in row]}).encode()
        for row in draw.integers(0, 1 << 62, (count, 3, 2)).tolist()
    ]


def _question(row: int) -> bytes:
    return hashlib.blake2b(b"row %d" % row, digest_size=4).digest()


def _key(row: int, prompt: str, number: int) -> bytes:
    name = f"{prompt} {row} {number}".encode()
    return _question(row) + hashlib.blake2b(name, digest_size=12).digest()


def _night(folder: str, rows: int, vectors: bool) -> Night:
    """Load all parts, then look up all that the rows ask for."""
    # What a night has in memory besides: the client, and what scores are made with.
    import ragmetrics.scoring.part  # noqa: F401

    files = Files(folder)
    begun = time.monotonic()
    parts = {}
    for shard in range(_SHARDS):
        low, high = shard_range(shard, _SHARDS)
        mine = [row for row in range(rows) if low <= _question(row).hex() <= high]
        for family in _FAMILIES:
            part = ReplyCache(files, _JUDGE, low, high, prompts=family)
            part.load([_question(row).hex() for row in mine])
            parts[shard, family] = part, mine
    loaded = time.monotonic()
    lookups = known = 0
    for (_, family), (part, mine) in parts.items():
        for found in _looked_up(part, family, mine, vectors):
            lookups += 1
            known += found
    found_all = time.monotonic()
    peak = _peak_mb()
    return Night(lookups, known, loaded - begun, found_all - loaded, 0.0, peak)


def _peak_mb() -> float:
    """Most memory of this process. What getrusage says is also that of who started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


def _looked_up(
    part: ReplyCache, family: Sequence[str], rows: Sequence[int], vectors: bool
) -> Iterator[bool]:
    for row in rows:
        for prompt in family:
            if prompt != EMBEDDING:
                keys = (_key(row, prompt, n).hex() for n in range(_REQUESTS[prompt]))
                yield from (part.find(key) is not None for key in keys)
            elif vectors:
                keys = (_key(row, prompt, n).hex() for n in range(_VECTORS))
                yield from (part.find_vector(key) is not None for key in keys)


def main() -> None:
    """Print what the night took; or, with `--night`, be the night."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_scale")
    parser.add_argument("--judgements", type=int, default=1_000_000)
    parser.add_argument("--vectors", type=int, default=0, help="of 1536 numbers each")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--night", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.night:
        print(json.dumps(asdict(_night(given.night, given.rows, given.vectors > 0))))
    else:
        print(report(given.judgements, given.rows, given.vectors))


if __name__ == "__main__":
    main()

"""Several writers of judgements at once, some of them killed: nothing is lost, nothing invented."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.judges import ReplyCache, reply_files as journal
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.storage import FileInfo, Files
from ragmetrics.storage.run_index import shard_range
from tests.fakes.examples import examples

WHOLE = ("00000000", "ffffffff")
FOLDER = "judgements/judge=f00d/prompt=grade"
NOW = datetime.now(UTC)


def key(number: int) -> str:
    """A key whose question hash spreads evenly."""
    return f"{number * 0x9E3779B1 % (1 << 32):08x}{'a' * 24}"


def opened(files: Files, span: tuple[str, str] = WHOLE, ttl_days: int | None = None) -> ReplyCache:
    """The judgements as a part finds them at its start."""
    judgements = ReplyCache(files, "f00d", *span, ttl_days=ttl_days)
    judgements.load()
    return judgements


def keep(judgements: ReplyCache, number: int, reply: str, at: datetime | None = None) -> None:
    """Keep one reply."""
    asyncio.run(judgements.add(CachedReply(key(number), "grade", reply, judged_at=at)))


def journals(files: Files) -> list[str]:
    """The journals in the store."""
    return [info.path for info in files.below() if info.path.endswith(".jsonl")]


class Nights:
    """A store, its writers, and what it should hold: each reply by its key and time."""

    def __init__(self, folder: str) -> None:
        self.files = Files(folder)
        self.writers: dict[int, tuple[ReplyCache, tuple[str, str]]] = {}
        self.durable: dict[int, tuple[datetime, str]] = {}

    def step(self, action: str, who: int, number: int) -> None:
        """One thing that happens in some run."""
        if who not in self.writers:
            span = shard_range(number % (1 + who), 1 + who)
            self.writers[who] = opened(self.files, span), span
        writer, span = self.writers[who]
        if action == "keep" and span[0] <= key(number)[:8] <= span[1]:
            # Some clocks are behind.
            at = NOW - timedelta(hours=number * 7919 % 1_000 + len(self.durable))
            reply = f"{number} by {who} at {at}"
            keep(writer, number, reply, at)
            if number not in self.durable or self.durable[number][0] <= at:
                self.durable[number] = at, reply
        elif action == "compact":
            writer.compact()
        elif action == "kill":
            self.kill(who, number)

    def kill(self, who: int, torn: int) -> None:
        """End a writer while it writes one more line, which is torn at some byte."""
        writer, _ = self.writers.pop(who)
        before = set(journals(self.files))
        writer.close()
        line = CachedReply(key(torn), "grade", "never durable").line(0).rstrip(b"\n")
        for path in before:
            mine = self.files.local and self.files.local / path
            if mine and path in writer._written:
                with mine.open("ab") as file:
                    file.write(line[: torn * 7 % len(line)])

    def check(self, shards: int, ttl_days: int | None = None) -> None:
        """Each shard finds the newest durable reply to each of its keys, and nothing else."""
        for shard in range(shards):
            span = shard_range(shard, shards)
            found = opened(self.files, span, ttl_days)
            for number in range(40):
                at, reply = self.durable.get(number, (NOW, None))
                late = ttl_days is not None and at < NOW - timedelta(days=ttl_days)
                mine = span[0] <= key(number)[:8] <= span[1]
                assert found.find(key(number)) == (reply if mine and not late else None)
            found.close()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["keep", "keep", "keep", "compact", "kill"]),
        st.integers(0, 3),
        st.integers(0, 39),
    ),
    max_size=60,
)


@settings(max_examples=examples(60), deadline=None)
@given(steps=STEPS, shards=st.integers(1, 4))
def test_every_durable_reply_is_found_and_none_is_invented(
    steps: list[tuple[str, int, int]], shards: int
) -> None:
    """Whatever writers, kills and compactions came in whatever order."""
    with tempfile.TemporaryDirectory() as folder:
        nights = Nights(folder)
        for step in steps:
            nights.step(*step)
        nights.check(shards)
        nights.check(shards, ttl_days=20)
        for who in list(nights.writers):
            nights.kill(who, 5)
        opened(nights.files).compact()
        assert journals(nights.files) == []
        nights.check(shards)
        nights.check(shards, ttl_days=20)


@given(cut=st.integers(0, 400))
@settings(max_examples=examples(40), deadline=None)
def test_a_journal_torn_at_any_byte_gives_its_whole_lines(cut: int) -> None:
    """The last line may be cut; those before it are good."""
    lines = [CachedReply(key(n), "grade", f"réply {n}").line(n) for n in range(3)]
    data = b"".join(lines)[:cut]
    tables = journal.read_lines(data.splitlines(keepends=True))
    found = [reply for table in tables for reply in table["reply"].to_pylist()]
    # A line that lacks nothing but its end is whole.
    whole = sum(len(b"".join(lines[: n + 1])) - 1 <= cut for n in range(3))
    assert [one.decode() for one in found] == [f"réply {n}" for n in range(whole)]


WRITER = """
import asyncio, sys
from ragmetrics.storage.files import Files
from ragmetrics.judges.reply_cache import ReplyCache
from ragmetrics.judges.reply_tables import CachedReply
async def write():
    judgements = ReplyCache(Files(sys.argv[1]), "f00d", "00000000", "ffffffff")
    for number in range(1_000_000):
        key = f"{number * 0x9E3779B1 % (1 << 32):08x}" + "a" * 24
        await judgements.add(CachedReply(key, "grade", f"reply {number}"))
        print(number, flush=True)
asyncio.run(write())
"""


@pytest.mark.process
def test_kill_9_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    """While a process lives its journal is left to it; once killed, it becomes Parquet."""
    files = Files(str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    with process:
        said = [int(process.stdout.readline()) for _ in range(100)]
        opened(files).compact()
        alive = journals(files)
        os.kill(process.pid, signal.SIGKILL)
        said += [int(line) for line in process.stdout if line.endswith("\n")]
    assert len(alive) == 1
    for _ in range(2):
        found = opened(files)
        assert [n for n in said if found.find(key(n)) != f"reply {n}"] == []
        found.compact()
    assert journals(files) == []


def test_without_locks_others_journals_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can tell then whether their writers live; they are read, and one's own are taken."""
    monkeypatch.setattr(journal, "lock", lambda handle: False)
    files = Files(str(tmp_path))
    other, mine = opened(files), opened(files)
    keep(other, 1, "theirs")
    other.close()
    keep(mine, 2, "mine")
    mine.compact()
    found = opened(files)
    assert (len(journals(files)), found.find(key(1)), found.find(key(2))) == (1, "theirs", "mine")


def test_a_write_that_fails_half_way_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the line is torn: what is kept after it stands in another file."""
    files = Files(str(tmp_path))
    writer = opened(files)
    keep(writer, 1, "one")
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: real(handle, data[: len(data) // 2]))
        with pytest.raises(journal.StoreError, match="no space left"):
            keep(writer, 2, "two")
    keep(writer, 3, "three")
    found = opened(files)
    assert [found.find(key(n)) for n in (1, 2, 3)] == ["one", None, "three"]
    writer.compact()
    assert journals(files) == []
    found = opened(files)
    assert [found.find(key(n)) for n in (1, 2, 3)] == ["one", None, "three"]


def test_a_file_merged_away_while_it_is_read_is_found_in_the_merged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader whose files go away lists again, as often as that happens."""
    files = Files(str(tmp_path))
    keep(opened(files), 0, "reply")
    real, merges = Files.below, []

    def below(self: Files, folder: str = "") -> list[FileInfo]:
        infos = real(self, folder)
        if len(merges) < 4:
            merges.append(folder)
            # Another process compacts between this listing and the reading of what it names.
            for info in infos:
                (tmp_path / info.path).rename(tmp_path / FOLDER / f"0-{len(merges)}")
                kind = info.path.rsplit(".", 1)[-1]
                (tmp_path / FOLDER / f"0-{len(merges)}").rename(
                    tmp_path / FOLDER / f"00000000-ffffffff.{len(merges)}.{kind}"
                )
        return infos

    monkeypatch.setattr(Files, "below", below)
    assert opened(files).find(key(0)) == "reply"
    assert len(merges) == 4


@pytest.mark.process
@pytest.mark.parametrize("place", ["local", "s3"])
def test_readers_and_compactors_side_by_side(
    request: pytest.FixtureRequest, tmp_path: Path, place: str
) -> None:
    """Two runs write and compact, a third reads all the time: it finds all that was durable."""
    root = str(tmp_path) if place == "local" else request.getfixturevalue("s3").uri + "/store"
    files, durable, ended = Files(root), [], threading.Event()
    count = 60 if place == "local" else 20

    def write(who: int) -> None:
        for number in range(who, count, 2):
            writer = opened(files)
            keep(writer, number, f"reply {number}")
            durable.append(number)
            writer.compact()

    def read() -> int:
        times = 0
        while not ended.is_set() or not times:
            known = list(durable)
            found = opened(files)
            assert [n for n in known if found.find(key(n)) != f"reply {n}"] == []
            found.close()
            times += 1
        return times

    with ThreadPoolExecutor(3) as pool:
        reader = pool.submit(read)
        try:
            for writer in [pool.submit(write, who) for who in range(2)]:
                writer.result()
        finally:
            ended.set()
        assert reader.result()
    found = opened(files)
    assert [n for n in range(count) if found.find(key(n)) != f"reply {n}"] == []


@pytest.mark.process
def test_two_writers_in_a_bucket(request: pytest.FixtureRequest) -> None:
    """One compacts the other's journals while it still writes: both find everything."""
    files = Files(request.getfixturevalue("s3").uri + "/store")
    draw = random.Random(1)
    writers, kept = [opened(files), opened(files)], []
    for number in range(20):
        keep(draw.choice(writers), number, f"reply {number}")
        kept.append(number)
        if draw.random() < 0.3:
            draw.choice(writers).compact()
    for writer in (*writers, opened(files)):
        writer.load()
        assert [n for n in kept if writer.find(key(n)) != f"reply {n}"] == []

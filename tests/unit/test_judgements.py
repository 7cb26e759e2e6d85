"""Judgements: a reply that was paid for is never lost, whoever dies and whoever else writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ragmetrics.errors import StoreError
from ragmetrics.store.files import Files
from ragmetrics.store.judgements import Judgement, Judgements

WHOLE = ("00000000", "ffffffff")
LOW, HIGH = ("00000000", "7fffffff"), ("80000000", "ffffffff")


@pytest.fixture(params=["local", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """An empty store, in a folder or in a bucket."""
    if request.param == "local":
        return Files(str(tmp_path / "store"))
    return Files(request.getfixturevalue("s3").uri + "/store")


def load(files: Files, span: tuple[str, str] = WHOLE, judge: str = "f00d") -> Judgements:
    """The judgements as a run finds them at its start."""
    judgements = Judgements(files, judge, *span)
    judgements.load()
    return judgements


def key(number: int) -> str:
    """A key whose question hash spreads evenly."""
    return f"{number * 0x9E3779B1 % (1 << 32):08x}{'a' * 24}"


def keep(judgements: Judgements, keys: Iterable[str]) -> None:
    """Keep replies all at once, as a run does."""

    async def all_at_once() -> None:
        replies = (Judgement(one, "grade", f"reply to {one}", 10, 2) for one in keys)
        await asyncio.gather(*(judgements.keep(reply) for reply in replies))

    asyncio.run(all_at_once())


def lost(judgements: Judgements, keys: Iterable[str]) -> list[str]:
    """Keys whose reply is not found, or is another's."""
    return [one for one in keys if judgements.find(one) != f"reply to {one}"]


def names(files: Files, ending: str) -> list[str]:
    """The store's files of one kind."""
    return [info.path for info in files.below() if info.path.endswith(ending)]


def test_keep_is_durable_when_it_returns(files: Files) -> None:
    """A run killed right after finds the reply again: nothing was closed, nothing compacted."""
    keep(load(files), [key(1)])
    assert load(files).find(key(1)) == f"reply to {key(1)}"


def test_replies_that_come_together_are_written_together(files: Files) -> None:
    """A hundred replies at once are a few writes, not a hundred."""
    keep(load(files), map(key, range(100)))
    assert len(names(files, ".jsonl")) <= 2
    assert lost(load(files), map(key, range(100))) == []


def test_compaction_leaves_one_file(files: Files) -> None:
    """At the end of a shard: one sorted Parquet file, and no journal."""
    judgements = load(files)
    for number in range(3):
        keep(judgements, [key(number)])
    judgements.compact()
    assert (len(names(files, ".parquet")), names(files, ".jsonl")) == (1, [])
    with files.open(names(files, ".parquet")[0]) as file:
        table = pq.read_table(file)
    assert table["key"].to_pylist() == sorted(map(key, range(3)))
    assert set(table["prompt_tokens"].to_pylist()) == {10}
    assert lost(load(files), map(key, range(3))) == []


def test_nothing_new_writes_nothing(files: Files) -> None:
    """A rerun that finds everything leaves the store as it was."""
    judgements = load(files)
    keep(judgements, [key(1)])
    judgements.compact()
    before = files.below()
    load(files).compact()
    assert files.below() == before


def test_a_shard_reads_its_own_range(files: Files) -> None:
    """Of a file that spans several shards, each knows its share, and all of it."""
    everything = load(files)
    keep(everything, map(key, range(40)))
    everything.compact()
    for low, high in (LOW, HIGH):
        shard = load(files, (low, high))
        mine = [key(n) for n in range(40) if low <= key(n)[:8] <= high]
        others = [key(n) for n in range(40) if not low <= key(n)[:8] <= high]
        assert lost(shard, mine) == []
        assert [one for one in others if shard.find(one)] == []


def test_the_bounds_of_a_range_belong_to_it(files: Files) -> None:
    """The first and the last hash of a shard are its own."""
    edges = ["00000000" + "a" * 24, "7fffffff" + "f" * 24]
    keep(load(files, LOW), edges)
    assert lost(load(files, LOW), edges) == []
    load(files, LOW).compact()
    assert lost(load(files, LOW), edges) == []


def test_a_killed_run_with_other_shards_is_found(files: Files) -> None:
    """Journals of a run that was cut otherwise are read, kept, and compacted."""
    keep(load(files, WHOLE), map(key, range(20)))
    low = load(files, LOW)
    low.compact()
    assert names(files, ".jsonl") == []
    assert lost(load(files, WHOLE), map(key, range(20))) == []


def test_judges_do_not_mix(files: Files) -> None:
    """Another fingerprint is another judge."""
    keep(load(files, judge="f00d"), [key(1)])
    assert load(files, judge="beef").find(key(1)) is None


def test_two_writers_lose_nothing(files: Files) -> None:
    """Two runs at once, each compacting while the other has journals: all replies are found."""
    first, second = load(files), load(files)
    keep(first, map(key, range(10)))
    third = load(files)  # sees the first one's journals
    keep(second, map(key, range(10, 20)))
    keep(third, map(key, range(20, 30)))
    third.compact()
    keep(first, map(key, range(30, 40)))
    first.compact()
    second.compact()
    assert names(files, ".jsonl") == []
    assert lost(load(files), map(key, range(40))) == []


def test_a_store_that_fails_tells_everyone_who_waits(tmp_path: Path) -> None:
    """Whoever keeps a reply hears of the failure, also where another has given up waiting."""
    (tmp_path / "store").write_text("a file where the folder should be")
    judgements = Judgements(Files(str(tmp_path / "store")), "f00d", *WHOLE)

    async def three() -> list[object]:
        tasks = [asyncio.create_task(judgements.keep(Judgement(key(n), "p", ""))) for n in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return list(await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5))

    given_up, *told = asyncio.run(three())
    assert isinstance(given_up, asyncio.CancelledError)
    assert all(isinstance(error, StoreError) for error in told)

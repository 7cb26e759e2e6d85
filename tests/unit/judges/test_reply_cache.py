"""Judgements: a reply that was paid for is never lost, whoever dies and whoever else writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ragmetrics.errors import StoreError
from ragmetrics.judges import ReplyCache
from ragmetrics.judges.reply_cache import EMBEDDING
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.storage import Files

pytestmark = pytest.mark.process

WHOLE = ("00000000", "ffffffff")
LOW, HIGH = ("00000000", "7fffffff"), ("80000000", "ffffffff")


@pytest.fixture(params=["local", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """An empty store, in a folder or in a bucket."""
    if request.param == "local":
        return Files(str(tmp_path / "store"))
    return Files(request.getfixturevalue("s3").uri + "/store")


def load(
    files: Files,
    span: tuple[str, str] = WHOLE,
    judge: str = "f00d",
    questions: Sequence[str] | None = None,
    **options: Any,
) -> ReplyCache:
    """The judgements as a run finds them at its start."""
    judgements = ReplyCache(files, judge, *span, **options)
    judgements.load(questions)
    return judgements


def key(number: int) -> str:
    """A key whose question hash spreads evenly."""
    return f"{number * 0x9E3779B1 % (1 << 32):08x}{'a' * 24}"


def keep(
    judgements: ReplyCache,
    keys: Iterable[str],
    reply: str | None = None,
    prompt: str = "grade",
    judged_at: datetime | None = None,
) -> None:
    """Keep replies all at once, as a run does."""

    async def all_at_once() -> None:
        replies = (
            CachedReply(
                name, prompt, f"reply to {name}" if reply is None else reply, 10, 2, judged_at
            )
            for name in keys
        )
        await asyncio.gather(*(judgements.add(reply) for reply in replies))

    asyncio.run(all_at_once())


def lost(judgements: ReplyCache, keys: Iterable[str]) -> list[str]:
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
    """A hundred replies at once are one file that grows, or two objects: not a hundred."""
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
    assert [one.hex() for one in table["key"].to_pylist()] == sorted(map(key, range(3)))
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
        assert [other for other in others if shard.find(other)] == []


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


def test_a_family_reads_its_own_prompts(files: Files) -> None:
    """A part is given the prompts of its metrics, and nothing of others is read or compacted."""
    both = load(files)
    keep(both, [key(1)], prompt="grade")
    keep(both, [key(2)], prompt="a name/of, someone's")
    both.close()
    part = load(files, prompts=["a name/of, someone's"])
    assert part.find(key(2)) and not part.find(key(1))
    part.compact()
    assert [("prompt=grade/" in name) for name in names(files, ".jsonl")] == [True]


def test_only_the_questions_of_a_part_are_loaded(files: Files) -> None:
    """A part names its questions, and its memory holds nothing else."""
    keep(load(files), map(key, range(10)))
    part = load(files, questions=[key(1)[:8], key(3)[:8]])
    assert [n for n in range(10) if part.find(key(n))] == [1, 3]


def test_what_is_kept_is_found_at_once(files: Files) -> None:
    """Also where it is much, and where an older reply was there before."""
    keep(load(files), map(key, range(100)))
    judgements = load(files)
    keep(judgements, [key(n) for n in range(5_000)], reply="new")
    assert {judgements.find(key(n)) for n in range(5_000)} == {"new"}
    assert judgements.find(key(5_000)) is None


def test_the_newest_reply_counts(files: Files) -> None:
    """Whatever the order in which files are read, before a compaction and after it."""
    for reply, day in (("old", 1), ("newest", 3), ("newer", 2)):
        keep(load(files), [key(1)], reply=reply, judged_at=datetime(2026, 11, day, tzinfo=UTC))
    assert load(files).find(key(1)) == "newest"
    load(files).compact()
    assert load(files).find(key(1)) == "newest"


def test_replies_expire(files: Files) -> None:
    """Beyond `ttl_days` a reply is not found, and a compaction drops it."""
    now = datetime.now(UTC)
    for number, days in ((1, 6), (2, 8)):
        keep(load(files), [key(number)], judged_at=now - timedelta(days=days))
    assert lost(load(files, ttl_days=7), [key(1), key(2)]) == [key(2)]
    assert lost(load(files), [key(1), key(2)]) == []
    load(files, ttl_days=7).compact()
    assert lost(load(files), [key(1), key(2)]) == [key(2)]


def test_a_file_of_expired_replies_is_written_anew(files: Files) -> None:
    """Not only where there are many files: nothing stays for ever."""
    old = datetime.now(UTC) - timedelta(days=8)
    writer = load(files)
    keep(writer, map(key, range(4)), judged_at=old)
    keep(writer, [key(4)])
    writer.compact()
    load(files, ttl_days=7).compact()
    (left,) = names(files, ".parquet")
    assert left.split("/")[-1].startswith(f"{key(4)[:8]}-{key(4)[:8]}.")


@pytest.mark.parametrize("text", ["\ud800 alone", "a\0b", "\u2028\r\n", "", "🙂" * 3_000])
def test_any_reply_survives(files: Files, text: str) -> None:
    """Through journal, compaction and reading, letter for letter."""
    writer = load(files)
    keep(writer, [key(1)], reply=text)
    assert (writer.find(key(1)), load(files).find(key(1))) == (text, text)
    writer.compact()
    assert load(files).find(key(1)) == text


def test_vectors_survive_to_the_last_bit(files: Files) -> None:
    """What is read back equals what the first run used, and takes four bytes a number."""
    vector = np.random.default_rng(1).standard_normal(1_536).astype(np.float32)
    writer = load(files)
    asyncio.run(writer.add(CachedReply(key(1), EMBEDDING, vector)))
    for _ in range(2):
        for stored in (writer.find_vector(key(1)), load(files).find_vector(key(1))):
            assert stored is not None and stored.dtype == np.float32
            assert stored.tobytes() == vector.tobytes()
        writer.compact()
    assert files.below()[0].size < 4 * 1_536 + 4_000
    assert load(files).find_vector(key(2)) is None


def test_a_key_of_another_range_is_not_kept(files: Files) -> None:
    """It would never be found again."""
    with pytest.raises(ValueError, match="not a key of this range"):
        keep(load(files, LOW), ["ff" * 16])


@pytest.mark.parametrize("files", ["s3"], indirect=True)
def test_a_store_that_fails_tells_everyone_who_waits(files: Files) -> None:
    """Whoever keeps a reply hears of the failure, also where another has given up waiting."""
    judgements = ReplyCache(Files("s3://no-such-bucket/store"), "f00d", *WHOLE)

    async def three() -> list[object]:
        tasks = [
            asyncio.create_task(judgements.add(CachedReply(key(n), "p", ""))) for n in range(3)
        ]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return list(await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60))

    given_up, *told = asyncio.run(three())
    assert isinstance(given_up, asyncio.CancelledError)
    assert all(isinstance(error, StoreError) for error in told)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With its name; and the reply does not pass for kept."""
    (tmp_path / "store").write_text("a file where the folder should be")
    judgements = ReplyCache(Files(str(tmp_path / "store")), "f00d", *WHOLE)
    with pytest.raises(StoreError, match=r"writing .*store/judgements"):
        keep(judgements, [key(1)])
    assert judgements.find(key(1)) is None


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    """Everyone who is about to ask hears of it."""
    (tmp_path / "store").write_text("a file where the folder should be")
    judgements = ReplyCache(Files(str(tmp_path / "store")), "f00d", *WHOLE)

    async def prepare(these: ReplyCache) -> list[object]:
        return await asyncio.gather(*(these.prepare() for _ in range(3)), return_exceptions=True)

    told = asyncio.run(prepare(judgements))
    assert len(set(map(id, told))) == 3  # an error each: tracebacks grow
    assert all(isinstance(one, StoreError) and "writing to" in str(one) for one in told)


def test_a_store_that_can_be_written_bears_no_trace_of_the_trial(files: Files) -> None:
    """Hidden while it is there, and removed."""
    asyncio.run(ReplyCache(files, "f00d", *WHOLE).prepare())
    assert not files._fs[0].find(files._fs[1])


@pytest.mark.parametrize("files", ["s3"], indirect=True)
def test_a_bucket_that_is_not_there_is_told_before_anything_is_asked(files: Files) -> None:
    """As a folder is."""
    judgements = ReplyCache(Files("s3://no-such-bucket/store"), "f00d", *WHOLE)
    with pytest.raises(StoreError, match="writing to s3://no-such-bucket/store/judgements/"):
        asyncio.run(judgements.prepare())

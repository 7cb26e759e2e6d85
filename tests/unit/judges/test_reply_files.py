"""Files of judgements: many nights leave few of them, and a damaged one stops nothing."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq
import pytest

from ragmetrics.errors import StoreError
from ragmetrics.judges import ReplyCache, reply_cache as compaction, reply_tables
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.storage import Files
from ragmetrics.storage.run_index import shard_range
from tests.fakes.clients import Bucket

FOLDER = "judgements/judge=f00d/prompt=grade"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """An empty store."""
    return Files(str(tmp_path / "store"))


def load(files: Files, shard: int = 0, shards: int = 1, ttl_days: int | None = None) -> ReplyCache:
    """The judgements of one shard, as a part finds them at its start."""
    judgements = ReplyCache(files, "f00d", *shard_range(shard, shards), ttl_days=ttl_days)
    judgements.load()
    return judgements


def key(number: int) -> str:
    """A key whose question hash spreads evenly."""
    return f"{number * 0x9E3779B1 % (1 << 32):08x}{'a' * 24}"


def night(
    files: Files, numbers: Iterable[int], shards: int = 1, at: datetime | None = None
) -> None:
    """A night's parts: each loads, keeps its share of the replies, and compacts."""
    keys = [key(number) for number in numbers]
    for shard in range(shards):
        low, high = shard_range(shard, shards)
        part = load(files, shard, shards)
        for digest in keys:
            if low <= digest[:8] <= high:
                reply = CachedReply(digest, "grade", f"reply to {digest}", judged_at=at)
                asyncio.run(part.add(reply))
        part.compact()


def lost(files: Files, numbers: Iterable[int], shards: int = 1) -> list[int]:
    """The numbers whose reply is not found by the shard that asks for it."""
    parts = [(load(files, shard, shards), *shard_range(shard, shards)) for shard in range(shards)]
    return [
        number
        for number in numbers
        for part, low, high in parts
        if low <= key(number)[:8] <= high and part.find(key(number)) != f"reply to {key(number)}"
    ]


# Merging


def test_a_year_of_nights_is_few_files(files: Files) -> None:
    """However many nights: no more files than are merged at once."""
    for number in range(40):
        night(files, range(number * 5, number * 5 + 7))
        assert len(files.below()) <= compaction.MOST_FILES
    assert lost(files, range(202)) == []


def test_nights_with_other_numbers_of_shards_are_few_files_too(files: Files) -> None:
    """Files that reach beyond a range are cut at its bounds, once there are many of them."""
    for number in range(60):
        night(files, range(number * 6, number * 6 + 8), shards=1 + number % 5)
    assert len(files.below()) <= 5 * 2 * compaction.MOST_FILES
    for shards in range(1, 6):
        assert lost(files, range(362), shards) == []


def test_a_file_that_reaches_beyond_the_range_is_left(files: Files) -> None:
    """While such files are few, each part merges its own alone."""
    night(files, range(20))
    (whole,) = files.below()
    for number in range(20, 40):
        night(files, [number], shards=2)
    assert whole in files.below()
    assert lost(files, range(40), shards=2) == []


def test_merging_drops_what_is_double_and_what_has_expired(files: Files) -> None:
    """The merged file holds each key once, the newest of it, and nothing that is too old."""
    now = datetime.now(UTC)
    for age in range(compaction.MOST_FILES, 0, -1):
        night(files, [1, 10 + age], at=now - timedelta(days=age))
    sizes = len(files.below())
    part = load(files, ttl_days=5)
    asyncio.run(part.add(CachedReply(key(2), "grade", "new")))
    part.compact()
    assert (sizes, len(files.below())) == (compaction.MOST_FILES, 1)
    part = load(files)
    assert [n for n in range(20) if part.find(key(n))] == [1, 2, 11, 12, 13, 14]


def test_a_full_file_is_merged_no_more(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a night's work does not grow with the store; a merge fills one file after another."""
    monkeypatch.setattr(reply_tables, "FULL", 1)
    monkeypatch.setattr(compaction, "FULL", 1)
    monkeypatch.setattr("ragmetrics.judges.reply_cache._BATCH_ROWS", 3)
    night(files, range(10))
    before = files.below()
    assert len(before) == 4
    for number in range(10, 20):
        night(files, [number])
    assert len(files.below()) == 14
    assert set(before) <= set(files.below())
    assert lost(files, range(20)) == []


# Damage


LINE = {
    "key": "0" * 32,
    "reply": "yes",
    "prompt_tokens": 1,
    "completion_tokens": 1,
    "judged_at": 1,
}
MUTE = {name: value for name, value in LINE.items() if name != "reply"}
HOSTILE = [
    json.dumps(line).encode() + b"\n"
    for line in (
        {**LINE, "reply": {"a": 1}},
        {**LINE, "reply": None},
        {**LINE, "reply": ["x"]},
        {**LINE, "key": "00 " * 10 + "00"},
        {**LINE, "key": [0] * 32},
        {**LINE, "prompt_tokens": "1"},
        {**LINE, "judged_at": 1e300},
        MUTE,
        {**MUTE, "vector": {"a": 1}},
        "reply",
    )
]
"""Lines that are good JSON, and no judgements."""


def damages(folder: Path) -> dict[str, bytes]:
    """What may be found in place of a file, given a good one."""
    (good,) = folder.glob("*.parquet")
    data = good.read_bytes()
    changed = bytearray(data)
    changed[len(data) // 3] ^= 0xFF
    return {
        "00000000-ffffffff.0a.parquet": data[: len(data) // 2],
        "00000000-ffffffff.0b.parquet": b"",
        "00000000-ffffffff.0c.parquet": b"no parquet at all" * 99,
        "00000000-ffffffff.0d.parquet": bytes(changed),
        "00000000-ffffffff.0e.jsonl": b'{"key": 1}\n[]\nnull\n\xff\n' + b"[" * 99_999 + b"\n",
        **{f"00000000-ffffffff.{n:02x}.jsonl": line for n, line in enumerate(HOSTILE, 0x10)},
        "notes.txt": b"mine",
    }


def test_damaged_files_are_left_aside(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    """Each is named in a warning, none is removed, and the night goes on with all the others."""
    night(files, range(50))
    assert files.local
    folder = files.local / FOLDER
    bad = damages(folder)
    for name, data in bad.items():
        (folder / name).write_bytes(data)
    (folder / "00000000-ffffffff.0f.parquet").mkdir()
    (folder / "00000000-ffffffff.0f.parquet" / "inside").write_bytes(b"?")
    with caplog.at_level(logging.WARNING):
        assert lost(files, range(50)) == []
    for name in (*bad, "00000000-ffffffff.0f.parquet"):
        assert name in caplog.text
    for number in range(50, 60):
        night(files, [number])
    assert {name for name in bad if (folder / name).exists()} == set(bad)
    assert lost(files, range(60)) == []


def test_a_reply_of_the_wrong_kind_answers_nothing(files: Files) -> None:
    """A vector in place of a text, and a text in place of a vector, are asked anew."""
    part = load(files)
    asyncio.run(part.add(CachedReply(key(1), "grade", [float("nan")] * 3)))
    asyncio.run(part.add(CachedReply(key(2), "embedding", "yes")))
    asyncio.run(part.add(CachedReply(key(3), "embedding", "")))
    part.compact()
    part = load(files)
    assert part.find(key(1)) is None
    assert part.find_vector(key(2)) is None
    assert part.find_vector(key(3)) is None


def test_what_a_damaged_file_held_is_asked_anew(files: Files) -> None:
    """The reply is not found, is kept again, and is found."""
    night(files, [1])
    assert files.local
    (path,) = (files.local / FOLDER).glob("*.parquet")
    path.write_bytes(path.read_bytes()[:-9])
    assert lost(files, [1]) == [1]
    night(files, [1])
    assert lost(files, [1]) == []


def test_a_file_that_is_listed_but_not_there_stops_nothing(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """A link to nowhere is looked for again, once, and then named."""
    night(files, [1])
    assert files.local
    (files.local / FOLDER / "00000000-ffffffff.0a.parquet").symlink_to("nowhere")
    assert lost(files, [1]) == []
    assert "00000000-ffffffff.0a.parquet" in caplog.text
    night(files, [2])
    assert lost(files, [1, 2]) == []


def test_a_bucket_that_refuses_is_no_damage(
    s3_strict: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong credentials end the run, and nothing passes for unknown."""
    import s3fs

    files = Files(s3_strict.uri + "/store")
    night(files, [1])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(StoreError, match="store/judgements"):
        load(Files(s3_strict.uri + "/store"))


@pytest.mark.parametrize("error", [OSError("connection lost"), PermissionError("denied")])
def test_an_outage_while_reading_is_no_damage(
    files: Files, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A file that cannot be read to its end just now is not taken for a bad one."""
    night(files, range(50))
    real = Files.open

    class Failing:
        """A file that opens, and whose connection is lost then."""

        def __init__(self, file: BinaryIO) -> None:
            self.seek, self.tell = file.seek, file.tell

        def read(self, size: int = -1) -> bytes:
            raise error

    @contextmanager
    def failing(self: Files, path: str) -> Iterator[Failing]:
        with real(self, path) as file:
            yield Failing(file)

    monkeypatch.setattr(Files, "open", failing)
    with pytest.raises(StoreError, match=str(error)):
        load(files)


def test_an_empty_store_is_an_empty_store(files: Files) -> None:
    """Nothing is found, and compacting it makes no folder."""
    judgements = load(files)
    assert judgements.find(key(1)) is None
    judgements.compact()
    assert not Path(files.root).exists()


# What goes away


def removed_midway(files: Files) -> ReplyCache:
    """A part's judgements whose store was deleted after the first reply of two."""
    part = load(files)
    asyncio.run(part.add(CachedReply(key(1), "grade", f"reply to {key(1)}", 7, 3)))
    shutil.rmtree(files.root)
    asyncio.run(part.add(CachedReply(key(2), "grade", f"reply to {key(2)}")))
    return part


def test_a_store_removed_while_it_is_written_gets_its_replies_back(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """What was paid for is kept, tokens and all, and the warning names the file that was gone."""
    removed_midway(files).compact()
    assert lost(files, [1, 2]) == []
    (kept,) = files.below()
    assert files.local
    tokens = pq.read_table(files.local / kept.path)["prompt_tokens"].to_pylist()
    assert sorted(tokens) == [0, 7]
    assert "was removed while it was open: its replies are written again" in caplog.text


def test_a_store_put_back_from_a_copy_loses_nothing(files: Files, tmp_path: Path) -> None:
    """The copy of a journal under its old name is not the journal, and is not overwritten."""
    part = load(files)
    asyncio.run(part.add(CachedReply(key(1), "grade", f"reply to {key(1)}")))
    shutil.copytree(files.root, tmp_path / "copy")
    asyncio.run(part.add(CachedReply(key(2), "grade", f"reply to {key(2)}")))
    shutil.rmtree(files.root)
    shutil.copytree(tmp_path / "copy", files.root)
    part.compact()
    assert lost(files, [1, 2]) == []


def test_replies_that_cannot_be_kept_again_are_told(files: Files) -> None:
    """A store whose place is taken meanwhile is an error, not a silent loss."""
    part = removed_midway(files)
    Path(files.root).write_bytes(b"a file")
    with pytest.raises(StoreError, match="store/judgements"):
        part.compact()


@pytest.fixture
def full_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary database that cannot grow: the disk it is on is full."""
    small = compaction._TABLE.replace("BEGIN;", "PRAGMA max_page_count = 4; BEGIN;")
    monkeypatch.setattr(compaction, "_TABLE", small)


def test_a_full_temporary_disk_is_no_damage(
    files: Files, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be gathered is not taken for a bad file and asked anew: the run ends."""
    night(files, range(500))
    request.getfixturevalue("full_scratch")
    with pytest.raises(StoreError, match=r"TMPDIR sets their folder.*disk is full"):
        load(files)
    assert "is damaged" not in caplog.text


def test_a_full_temporary_disk_ends_compaction_with_a_word(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's own error says where there is no space, and the journals stay."""
    part = load(files)
    asyncio.run(part.add(CachedReply(key(1), "grade", f"reply to {key(1)}")))

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(StoreError, match=r"TMPDIR sets their folder.*Error writing bytes"):
            part.compact()
    assert lost(files, [1]) == []

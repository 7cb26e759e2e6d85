"""Judgements: every usable reply, kept so that it is never paid for twice.

    judgements/judge=FINGERPRINT/LOW-HIGH.ID.parquet     sorted by key
    judgements/judge=FINGERPRINT/LOW-HIGH.ID.jsonl       journal of a run at work, or killed

Keys begin with the hash of the row's question, as shards do, so a shard reads only the files
whose range LOW-HIGH meets its own. Replies are journalled in groups: `keep` returns when the
reply is durable, and its request counts as in flight until then. So a killed run repeats no
request beyond those in flight. At the end of a shard its journals become one Parquet file.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from ragmetrics.errors import StoreError
from ragmetrics.store.files import FileInfo, Files

_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("prompt", pa.string()),
        ("reply", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("completion_tokens", pa.int32()),
        ("judged_at", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A reply worth keeping."""

    key: str
    prompt: str
    reply: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    judged_at: str = ""


class Judgements:
    """The judgements of one judge in one range of keys, for one writer at a time.

    Several writers may share a folder: each has files of its own.
    """

    def __init__(self, files: Files, fingerprint: str, low: str, high: str) -> None:
        self._files = files
        self._folder = f"judgements/judge={fingerprint}"
        self._range = (low, high)
        self._known: dict[str, str] = {}
        self._mine: list[Judgement] = []
        self._journals: list[str] = []
        self._waiting: list[tuple[Judgement, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Read what is known in this range."""
        for info in self._listed():
            for judgement in self._read(info):
                self._known[judgement.key] = judgement.reply
                if info.path.endswith(".jsonl"):
                    self._mine.append(judgement)
            if info.path.endswith(".jsonl"):
                self._journals.append(info.path)

    def find(self, key: str) -> str | None:
        """The kept reply to a request."""
        return self._known.get(key)

    async def keep(self, judgement: Judgement) -> None:
        """Make a reply durable; returns when it is."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((judgement, future))
        if self._writer is None or self._writer.done():
            self._writer = loop.create_task(self._write_waiting())
        await future

    async def _write_waiting(self) -> None:
        """Write all that wait as one journal; whoever comes meanwhile goes in the next one."""
        while self._waiting:
            group, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._journal, [judgement for judgement, _ in group])
            except StoreError as error:
                for _, future in group:
                    if not future.done():
                        future.set_exception(error)
                continue
            for _, future in group:
                if not future.done():
                    future.set_result(None)

    def _journal(self, group: list[Judgement]) -> None:
        name = self._name("jsonl", *self._range)
        now = datetime.now(UTC).isoformat()
        stamped = [Judgement(**{**asdict(one), "judged_at": now}) for one in group]
        lines = [json.dumps(asdict(one)) for one in stamped]
        self._files.write(name, ("\n".join(lines) + "\n").encode())
        self._journals.append(name)
        self._mine.extend(stamped)
        self._known.update((one.key, one.reply) for one in stamped)

    def compact(self) -> None:
        """Turn the journals, a killed run's among them, into one sorted Parquet file."""
        if not self._journals:
            return
        distinct = sorted({one.key: one for one in self._mine}.values(), key=lambda one: one.key)
        columns = [asdict(one) for one in distinct]
        for column in columns:
            column["judged_at"] = datetime.fromisoformat(column["judged_at"])
        sink = BytesIO()
        pq.write_table(pa.Table.from_pylist(columns, _SCHEMA), sink, compression="zstd")
        # Named by what it holds: a killed run may have had another range than this one.
        self._files.write(
            self._name("parquet", distinct[0].key[:8], distinct[-1].key[:8]), sink.getvalue()
        )
        for journal in self._journals:
            self._files.remove(journal)
        self._journals, self._mine = [], []

    def _name(self, kind: str, low: str, high: str) -> str:
        return f"{self._folder}/{low}-{high}.{uuid.uuid4().hex[:12]}.{kind}"

    def _listed(self) -> list[FileInfo]:
        low, high = self._range
        return [
            info
            for info in self._files.below(self._folder)
            if _first(info.path) <= high and low <= _last(info.path)
        ]

    def _read(self, info: FileInfo) -> Iterator[Judgement]:
        # A journal that another writer has just compacted is gone; what it held was its own.
        with suppress(_Gone):
            data = self._files.find(info.path)
            if data is None:
                raise _Gone
            if info.path.endswith(".jsonl"):
                for line in data.splitlines():
                    yield Judgement(**json.loads(line))
            else:
                low, high = self._range
                inside = [("key", ">=", low), ("key", "<=", high + "~")]
                table = pq.read_table(BytesIO(data), columns=["key", "reply"], filters=inside)
                for key, reply in zip(*table.to_pydict().values(), strict=True):
                    yield Judgement(key, "", reply)


class _Gone(Exception):
    pass


def _first(path: str) -> str:
    return path.rsplit("/", 1)[-1][:8]


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1][9:17]

"""The driver: plays metrics over rows against a judge.

Each distinct request is asked once; an unreadable reply is asked again, a bounded number of
times; what cannot be answered becomes a status of its row, never an exception of the run. Rows
come out in the order they went in, with a bounded number of them in play.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import BaseModel

from ragmetrics.errors import JudgeError, JudgeRefused, Unanswered, UnreadableReply
from ragmetrics.judges.base import Embedder, Judge, Reply
from ragmetrics.protocol import Answer, Ask, Request, Score, Status, Steps, Vector
from ragmetrics.records import Usage
from ragmetrics.registry import Metric
from ragmetrics.rows import LogRow
from ragmetrics.store.judgements import Judgement, Judgements
from ragmetrics.store.parts import ScoredRow

_REMEMBERED = 4_096


@dataclass
class Tally:
    """Counts what is asked while it is asked."""

    requests: int = 0
    answered_from_store: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def usage(self) -> Usage:
        """The counts as a record."""
        return Usage(
            requests=self.requests,
            answered_from_store=self.answered_from_store,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            failures=dict(sorted(self.failures.items())),
        )


class Broker:
    """Stands between metrics and judges: asks each distinct request once and keeps the answer."""

    def __init__(
        self,
        judge: Judge,
        embedder: Embedder,
        *,
        reasks: int = 2,
        kept: Judgements | None = None,
        kept_vectors: Judgements | None = None,
        record: Callable[[Ask, Reply], None] | None = None,
    ) -> None:
        self.tally = Tally()
        self._judge, self._embedder, self._reasks = judge, embedder, reasks
        self._kept = kept if judge.keeps else None
        self._kept_vectors = kept_vectors if embedder.keeps else None
        self._record = record
        self._judging = asyncio.Semaphore(judge.concurrency)
        self._embedding = asyncio.Semaphore(embedder.concurrency)
        self._asked: OrderedDict[str, asyncio.Future[Answer]] = OrderedDict()

    @property
    def rows_in_play(self) -> int:
        """Enough rows to keep the judge busy, few enough to stay small."""
        return max(16, 2 * self._judge.concurrency)

    async def answer(self, row_key: str, request: Request) -> Answer:
        """The answer to a request; equal requests, of whatever row, wait for the same one."""
        key = request.key
        future = self._asked.get(key)
        if future is None:
            # Kept under the question of the row that came first, whose shard reads it again.
            future = asyncio.ensure_future(self._find(row_key + key, request))
            # A refusal ends the run through the first row that meets it; others need not.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._asked[key] = future
            self._forget_old()
        else:
            self._asked.move_to_end(key)
        return await future

    async def stop(self) -> None:
        """Give up what is still waiting for an answer."""
        waiting = [future for future in self._asked.values() if not future.done()]
        for future in waiting:
            future.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _forget_old(self) -> None:
        while len(self._asked) > _REMEMBERED and next(iter(self._asked.values())).done():
            self._asked.popitem(last=False)

    async def _find(self, key: str, request: Request) -> Answer:
        try:
            if isinstance(request, Ask):
                return await self._verdict(key, request)
            return await self._vector(key, request.input)
        except JudgeRefused:
            raise
        except JudgeError as error:
            self.tally.failures["judge_failed"] += 1
            return Unanswered(Status.JUDGE_FAILED, str(error))

    async def _verdict(self, key: str, request: Ask) -> Answer:
        if self._kept and (text := self._kept.find(key)) is not None:
            try:
                verdict: BaseModel = request.prompt.parse(text, request.data)
            except UnreadableReply:
                self.tally.failures["unreadable_in_store"] += 1
            else:
                self.tally.answered_from_store += 1
                return verdict
        reason = ""
        for attempt in range(1 + self._reasks):
            async with self._judging:
                try:
                    return await self._asked_once(key, request, attempt)
                except UnreadableReply as error:
                    reason = str(error)
                    self.tally.failures["unreadable"] += 1
        return Unanswered(Status.UNREADABLE, reason)

    async def _asked_once(self, key: str, request: Ask, attempt: int) -> BaseModel:
        self.tally.requests += 1
        reply = await self._judge.reply(request, attempt)
        self.tally.prompt_tokens += reply.prompt_tokens
        self.tally.completion_tokens += reply.completion_tokens
        if self._record:
            self._record(request, reply)
        if reply.verdict is not None:
            return reply.verdict
        verdict: BaseModel = request.prompt.parse(reply.text, request.data)
        if self._kept:
            tokens = (reply.prompt_tokens, reply.completion_tokens)
            await self._kept.keep(Judgement(key, request.prompt.name, reply.text, *tokens))
        return verdict

    async def _vector(self, key: str, text: str) -> Vector:
        if self._kept_vectors and (packed := self._kept_vectors.find(key)) is not None:
            self.tally.answered_from_store += 1
            return np.frombuffer(base64.b64decode(packed), dtype=np.float32)
        async with self._embedding:
            vector = await self._embedder.embed(text)
            if self._kept_vectors:
                packed = base64.b64encode(vector.astype(np.float32).tobytes()).decode()
                await self._kept_vectors.keep(Judgement(key, "embedding", packed))
        return vector


async def drive(
    rows: Iterable[LogRow], metrics: Sequence[Metric], broker: Broker
) -> AsyncIterator[ScoredRow]:
    """Score rows by metrics, in order. Raises JudgeRefused where no request can succeed."""
    playing: deque[asyncio.Task[ScoredRow]] = deque()
    try:
        for row in rows:
            playing.append(asyncio.create_task(_score(row, metrics, broker)))
            if len(playing) >= broker.rows_in_play:
                yield await playing.popleft()
        while playing:
            yield await playing.popleft()
    finally:
        for task in playing:
            task.cancel()
        await broker.stop()
        await asyncio.gather(*playing, return_exceptions=True)


async def _score(row: LogRow, metrics: Sequence[Metric], broker: Broker) -> ScoredRow:
    prefix = row.question_key

    def answer(request: Request) -> Awaitable[Answer]:
        return broker.answer(prefix, request)

    scores = await asyncio.gather(*(play(one.play(row), answer) for one in metrics))
    return ScoredRow(row, {one.name: score for one, score in zip(metrics, scores, strict=True)})


async def play(steps: Steps[Score], answer: Callable[[Request], Awaitable[Answer]]) -> Score:
    """Play one metric to its end: send each wave's answers back until it returns a score."""
    try:
        requests = next(steps)
        while True:
            answers = await asyncio.gather(*(answer(request) for request in requests))
            requests = steps.send(answers)
    except StopIteration as stop:
        score: Score = stop.value
        return score
    except Unanswered as error:
        return Score.unanswered(error)

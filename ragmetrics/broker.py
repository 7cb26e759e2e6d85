"""The broker: stands between metrics and one judge.

Each distinct request is asked once, whoever asks; an unreadable reply is asked again, a bounded
number of times; what cannot be answered becomes a status of its row, never an exception of the run.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import numpy as np
from pydantic import BaseModel

from ragmetrics.errors import JudgeError, JudgeRefused, Unanswered, UnreadableReply
from ragmetrics.judges.base import Embedder, Judge, Reply
from ragmetrics.protocol import Answer, Ask, Embed, Request, Status, Vector
from ragmetrics.records import Usage
from ragmetrics.store.judgements import Judgement, Judgements

_REMEMBERED = 4_096


@dataclass
class Tally:
    """Counts what is asked while it is asked."""

    requests: int = 0
    answered_from_store: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def usage(self) -> Usage:
        """The counts as a record."""
        return Usage(
            requests=self.requests,
            answered_from_store=self.answered_from_store,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            failures=dict(sorted(self.failures.items())),
        )


class Once:
    """Asks each distinct thing once: whoever asks again, meanwhile or later, gets that answer."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, asyncio.Future[Answer]] = OrderedDict()

    async def get(self, key: str, find: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer under a key, found on first need."""
        future = self._asked.get(key)
        if future is None:
            future = asyncio.ensure_future(find())
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


class Vectors:
    """The embedder at work, shared by all judges: each distinct text is embedded once."""

    def __init__(self, embedder: Embedder, kept: Judgements | None = None) -> None:
        self.tally = Tally()
        self.refusal: JudgeRefused | None = None
        """Why nothing can be embedded: after it, nothing more is asked for."""
        self._embedder = embedder
        self._kept = kept if embedder.keeps else None
        self._embedding = asyncio.Semaphore(embedder.concurrency)
        self._once = Once()

    async def answer(self, row_key: str, request: Embed) -> Answer:
        """The vector of a text, or why there is none."""
        key = request.key
        return await self._once.get(key, lambda: self._find(row_key + key, request.input))

    async def _find(self, key: str, text: str) -> Answer:
        try:
            return await self._vector(key, text)
        except JudgeRefused as error:
            self.refusal = error
            raise JudgeRefused(f"embeddings: {error}") from error
        except JudgeError as error:
            self.tally.failures["judge_failed"] += 1
            return Unanswered(Status.JUDGE_FAILED, str(error))

    async def _vector(self, key: str, text: str) -> Vector:
        if self._kept and (packed := self._kept.find(key)) is not None:
            self.tally.answered_from_store += 1
            return np.frombuffer(base64.b64decode(packed), dtype=np.float32)
        async with self._embedding:
            if self.refusal:
                raise JudgeRefused(str(self.refusal))
            vector = await self._embedder.embed(text)
            if self._kept:
                packed = base64.b64encode(vector.astype(np.float32).tobytes()).decode()
                await self._kept.keep(Judgement(key, "embedding", packed))
        return vector

    async def stop(self) -> None:
        """Give up what is still waiting for a vector."""
        await self._once.stop()


class Broker:
    """Stands between metrics and a judge: asks each distinct request once and keeps the answer."""

    def __init__(
        self,
        judge: Judge,
        vectors: Vectors,
        *,
        reasks: int = 2,
        kept: Judgements | None = None,
        record: Callable[[Judge, Ask, Reply], None] | None = None,
    ) -> None:
        self.tally = Tally()
        self.judge = judge
        self.refusal: JudgeRefused | None = None
        """Why the judge cannot be asked: after it, nothing more is."""
        self._vectors, self._reasks = vectors, reasks
        self._kept = kept if judge.keeps else None
        self._record = record
        self._judging = asyncio.Semaphore(judge.concurrency)
        self._once = Once()

    async def answer(self, row_key: str, request: Request) -> Answer:
        """The answer to a request; equal requests, of whatever row, wait for the same one."""
        if isinstance(request, Embed):
            return await self._vectors.answer(row_key, request)
        key = request.key
        # Kept under the question of the row that came first, whose shard reads it again.
        return await self._once.get(key, lambda: self._find(row_key + key, request))

    async def stop(self) -> None:
        """Give up what is still waiting for an answer."""
        await self._once.stop()
        await self._vectors.stop()

    async def _find(self, key: str, request: Ask) -> Answer:
        try:
            return await self._verdict(key, request)
        except JudgeRefused as error:
            self.refusal = error
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
                if self.refusal:
                    raise JudgeRefused(str(self.refusal))
                try:
                    return await self._asked_once(key, request, attempt)
                except UnreadableReply as error:
                    reason = str(error)
                    self.tally.failures["unreadable"] += 1
        return Unanswered(Status.UNREADABLE, reason)

    async def _asked_once(self, key: str, request: Ask, attempt: int) -> BaseModel:
        self.tally.requests += 1
        reply = await self.judge.reply(request, attempt)
        self.tally.prompt_tokens += reply.prompt_tokens
        self.tally.completion_tokens += reply.completion_tokens
        if self._record:
            self._record(self.judge, request, reply)
        if reply.verdict is not None:
            return reply.verdict
        verdict: BaseModel = request.prompt.parse(reply.text, request.data)
        if self._kept:
            tokens = (reply.prompt_tokens, reply.completion_tokens)
            await self._kept.keep(Judgement(key, request.prompt.name, reply.text, *tokens))
        return verdict

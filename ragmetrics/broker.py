"""The broker: stands between metrics and one judge.

Each distinct request is asked once, whoever asks; an unreadable reply is asked again, a bounded
number of times; what cannot be answered becomes a status of its row, never an exception of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from ragmetrics.errors import JudgeError, JudgeRefused, Unanswered, UnreadableReply
from ragmetrics.fusing import Fused, fusible
from ragmetrics.judges.base import Judge, Reply
from ragmetrics.once import Asker, Once
from ragmetrics.protocol import Answer, Ask, Embed, Request, Status
from ragmetrics.store.judgements import Judgement, Judgements
from ragmetrics.tally import Tallies, Tally
from ragmetrics.vectors import Vectors

Record = Callable[[str, Ask, Reply], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request of a row, and the metric that asks."""

    request: Request
    metric: str = ""


_Waiting = Mapping[str, tuple[Wanted, asyncio.Future[Answer]]]


class Broker:
    """Stands between metrics and a judge: asks each distinct request once and keeps the answer.

    `once` is shared by all brokers of one judge in this process. With `fuse`, what a row asks at
    one time goes in one request.
    """

    def __init__(
        self,
        judge: Judge,
        vectors: Vectors,
        *,
        name: str | None = None,
        reasks: int = 2,
        kept: Judgements | None = None,
        once: Once | None = None,
        fuse: bool = False,
        record: Record | None = None,
    ) -> None:
        self.judge = judge
        self.name = name or judge.name
        self.tallies = Tallies()
        self.refusal: JudgeRefused | None = None
        """Why the judge cannot be asked: after it, nothing more is."""
        self._vectors, self._reasks = vectors, reasks
        self._kept = kept if judge.keeps else None
        self._record = record
        self._fuse = fuse
        self._judging = asyncio.Semaphore(judge.concurrency)
        self._asker = Asker(once)
        self._fusing: set[asyncio.Task[None]] = set()

    async def answer(self, row_key: str, request: Request, metric: str = "") -> Answer:
        """The answer to a request; equal requests, of whatever row, wait for the same one."""
        (found,) = await self.answer_all(row_key, [Wanted(request, metric)])
        return found

    async def answer_all(self, row_key: str, wanted: Sequence[Wanted]) -> list[Answer]:
        """The answers to what a row asks at one time, in order."""
        if self._fuse:
            self._begin_fused(row_key, [one for one in wanted if fusible(one.request)])
        waiting = [self._begin(row_key, one) for one in wanted]
        return [await one for one in waiting]

    def _begin(self, row_key: str, wanted: Wanted) -> Awaitable[Answer]:
        """Put a request on its way at once; what is returned waits for its answer."""
        request, metric = wanted.request, wanted.metric
        if isinstance(request, Embed):
            return self._vectors.begin(row_key, request, metric)

        # Kept under the question of the row that came first, whose shard reads it again.
        def find() -> Awaitable[Answer]:
            return self._find(row_key + request.key, request, self.tallies[metric])

        return self._asker.ask(request.key, find)

    async def stop(self) -> None:
        """Give up what is still waiting for an answer."""
        await self._asker.stop()
        if self._fusing:
            for task in self._fusing:
                task.cancel()
            await asyncio.gather(*self._fusing, return_exceptions=True)
        await self._vectors.stop()

    async def _find(self, key: str, request: Ask, tally: Tally) -> Answer:
        known = self._known(key, request, tally)
        return known if known is not None else await self._asked(key, request, tally)

    def _known(self, key: str, request: Ask, tally: Tally) -> BaseModel | None:
        """The verdict that the store has."""
        text = self._kept.find(key) if self._kept else None
        if text is None:
            return None
        try:
            verdict: BaseModel = request.prompt.parse(text, request.data)
        except UnreadableReply:
            tally.failures["unreadable_in_store"] += 1
            return None
        tally.answered_from_store += 1
        return verdict

    async def _asked(self, key: str, request: Ask, tally: Tally) -> Answer:
        """The judge's verdict, or why there is none."""
        reason = ""
        try:
            for attempt in range(1 + self._reasks):
                async with self._judging:
                    reply = await self._reply(request, attempt, tally)
                    self._note(request, reply)
                    try:
                        verdict = _read(request, reply)
                    except UnreadableReply as error:
                        reason = _unreadable(reply, error, tally)
                        continue
                    await self._keep(key, request, reply)
                    return verdict
        except JudgeError as error:
            return self._given_up(error, tally)
        return Unanswered(Status.UNREADABLE, reason)

    async def _reply(self, request: Ask, attempt: int, tally: Tally) -> Reply:
        if self.refusal:
            raise JudgeRefused(str(self.refusal))
        try:
            reply = await self.judge.reply(request, attempt)
        except JudgeError as error:
            tally.fail(error.failures)
            raise
        tally.add(reply)
        return reply

    def _note(self, request: Ask, reply: Reply) -> None:
        if self._record:
            self._record(self.name, request, reply)

    async def _keep(self, key: str, request: Ask, reply: Reply) -> None:
        """Returns when the reply is durable; until then its request counts as in flight."""
        if self._kept and reply.verdict is None:
            tokens = (reply.prompt_tokens, reply.completion_tokens)
            await self._kept.keep(Judgement(key, request.prompt.name, reply.text, *tokens))

    def _given_up(self, error: JudgeError, tally: Tally) -> Unanswered:
        if isinstance(error, JudgeRefused):
            self.refusal = error
            raise error
        tally.failures["judge_failed"] += 1
        return Unanswered(Status.JUDGE_FAILED, str(error))

    def _begin_fused(self, row_key: str, wanted: Sequence[Wanted]) -> None:
        """Put what nobody asked yet, and the store does not know, on its way in one request."""
        fresh = {
            one.request.key: one
            for one in wanted
            if not self._asker.is_asked(one.request.key)
            and not (self._kept and self._kept.find(row_key + one.request.key))
        }
        if len(fresh) < 2:
            return
        loop = asyncio.get_running_loop()
        waiting = {key: (one, loop.create_future()) for key, one in fresh.items()}
        for key, (_, future) in waiting.items():
            self._asker.put(key, future)
        task = loop.create_task(self._fused(row_key, waiting))
        self._fusing.add(task)
        task.add_done_callback(self._fusing.discard)

    async def _fused(self, row_key: str, waiting: _Waiting) -> None:
        """Answer several requests by one; what is unreadable in it is asked alone."""
        metrics = dict.fromkeys(one.metric for one, _ in waiting.values())
        tally = self.tallies[" + ".join(metrics)]
        try:
            async with self._judging:
                await self._ask_fused(row_key, waiting, tally)
            left = {key: pair for key, pair in waiting.items() if not pair[1].done()}
            await asyncio.gather(*(self._alone(row_key + key, *left[key]) for key in left))
        except asyncio.CancelledError:
            for _, future in waiting.values():
                future.cancel()
            raise
        except Exception as error:
            for _, future in waiting.values():
                if not future.done():
                    future.set_exception(error)

    async def _ask_fused(self, row_key: str, waiting: _Waiting, tally: Tally) -> None:
        fused = Fused([_ask(one) for one, _ in waiting.values()])
        try:
            reply = await self._reply(fused.ask, 0, tally)
        except JudgeError as error:
            if not isinstance(error, JudgeRefused) and not error.transient:
                return  # too long for the model, say: its parts may not be
            given_up = self._given_up(error, tally)
            for _, future in waiting.values():
                future.set_result(given_up)
            return
        try:
            parts = list(fused.split(reply.text))
        except UnreadableReply as error:
            _unreadable(reply, error, tally)
            return
        tokens = (reply.prompt_tokens, reply.completion_tokens)
        for ask, text in parts:
            part = Reply(text, prompt_tokens=tokens[0], completion_tokens=tokens[1])
            self._note(ask, part)
            try:
                verdict = _read(ask, part)
            except UnreadableReply as error:
                _unreadable(reply, error, tally)
                continue
            await self._keep(row_key + ask.key, ask, part)
            waiting[ask.key][1].set_result(verdict)
            tokens = (0, 0)  # stand with the first part

    async def _alone(self, key: str, wanted: Wanted, future: asyncio.Future[Answer]) -> None:
        future.set_result(await self._asked(key, _ask(wanted), self.tallies[wanted.metric]))


def _ask(wanted: Wanted) -> Ask:
    if not isinstance(wanted.request, Ask):
        raise TypeError(f"expected a request for a verdict, was sent {wanted.request!r}")
    return wanted.request


def _read(request: Ask, reply: Reply) -> BaseModel:
    if reply.verdict is not None:
        return reply.verdict
    verdict: BaseModel = request.prompt.parse(reply.text, request.data)
    return verdict


def _unreadable(reply: Reply, error: UnreadableReply, tally: Tally) -> str:
    """Count a reply of no use; the reason to tell."""
    tally.failures["cut_off" if reply.cut_off else "unreadable"] += 1
    return f"{error} (cut off: max_tokens)" if reply.cut_off else str(error)

"""The broker: stands between metrics and one judge.

Each distinct request is asked once, whoever asks; an unreadable reply is asked again, a bounded
number of times; what cannot be answered becomes a status of its row, never an exception of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel

from ragmetrics.errors import (
    Declined,
    JudgeError,
    JudgePending,
    JudgeRefused,
    OverBudget,
    OverDeadline,
    Unanswered,
    UnreadableReply,
)
from ragmetrics.judges.base import Judge, Reply, TracksRequests
from ragmetrics.judges.cache.judgements import CachedReply, ReplyCache
from ragmetrics.judges.deadline import before_deadline
from ragmetrics.judges.embedding_client import EmbeddingClient
from ragmetrics.judges.fused_prompt import Fused, fusible
from ragmetrics.judges.metered_judge import MeteredJudge
from ragmetrics.judges.single_flight import SingleFlight, SingleFlightScope
from ragmetrics.judges.usage_counter import UsageCounter, UsageCounters
from ragmetrics.model import Answer, Ask, Embed, Request, Status
from ragmetrics.text import is_refusal, shorten

_REFUSALS = 2
"""Times that a request is refused before it is given up: it is asked again once."""

Record = Callable[[str, Ask, Reply], None]


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A request of a row, and the metric that asks."""

    request: Request
    metric: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """A request that went with others in one."""

    ask: Ask
    metric: str
    future: asyncio.Future[Answer]

    def answer(self, answer: Answer) -> None:
        """Tell who waits, if they still do."""
        if not self.future.done():
            self.future.set_result(answer)


class JudgeClient:
    """Stands between metrics and a judge: asks each distinct request once and keeps the answer.

    `once` is shared by all brokers of one judge in this process. With `fuse`, what a row asks at
    one time goes in one request.
    """

    def __init__(
        self,
        judge: Judge,
        vectors: EmbeddingClient,
        *,
        name: str | None = None,
        reasks: int = 2,
        kept: ReplyCache | None = None,
        once: SingleFlight | None = None,
        fuse: bool = False,
        record: Record | None = None,
        account: MeteredJudge | None = None,
    ) -> None:
        self.judge = judge
        self._notary = judge if isinstance(judge, TracksRequests) else None
        self.name = name or judge.name
        self.tallies = UsageCounters()
        self.refusal: JudgeRefused | None = None
        """Why the judge cannot be asked: after it, nothing more is."""
        self.overdue: OverDeadline | None = None
        """Set where the run's deadline ended a request."""
        self._vectors, self._reasks = vectors, reasks
        self._kept = kept if judge.keeps else None
        self._record, self._account = record, account
        self._fuse = fuse
        self._judging = asyncio.Semaphore(judge.concurrency)
        self._asker = SingleFlightScope(once)
        self._fusing: set[asyncio.Task[None]] = set()

    async def answer(self, row_key: str, request: Request, metric: str = "") -> Answer:
        """The answer to a request; equal requests, of whatever row, wait for the same one."""
        (found,) = await self.answer_all(row_key, [MetricRequest(request, metric)])
        return found

    async def answer_all(self, row_key: str, wanted: Sequence[MetricRequest]) -> list[Answer]:
        """The answers to what a row asks at one time, in order."""
        self._count_shared(wanted)
        if self._fuse:
            self._begin_fused(row_key, wanted)
        waiting = [self._begin(row_key, one) for one in wanted]
        return [await one for one in waiting]

    def _count_shared(self, wanted: Sequence[MetricRequest]) -> None:
        new: set[str] = set()
        for one in wanted:
            if isinstance(one.request, Embed):
                continue
            key = one.request.key
            self.tallies[one.metric].shared += key in new or self._asker.is_asked(key)
            new.add(key)

    def _begin(self, row_key: str, wanted: MetricRequest) -> Awaitable[Answer]:
        """Put a request on its way at once; what is returned waits for its answer."""
        request, metric = wanted.request, wanted.metric
        if isinstance(request, Embed):
            return self._vectors.begin(row_key, request, metric)

        # Kept under the question of the row that came first, whose shard reads it again.
        def find() -> Awaitable[Answer]:
            return self._find(row_key + request.key, request, self.tallies[metric])

        return self._asker.ask(request.key, find)

    @property
    def may_go_on(self) -> bool:
        """Whether a run goes on after a refusal: whoever refuses has answered before, and what is
        there is worth writing.
        """
        judge = self.refusal is None or self._asker.has_answered
        return judge and (self._vectors.refusal is None or self._vectors.has_answered)

    async def stop(self) -> None:
        """Give up what is still waiting for an answer."""
        await self._asker.stop()
        if self._fusing:
            for task in self._fusing:
                task.cancel()
            await asyncio.gather(*self._fusing, return_exceptions=True)
        await self._vectors.stop()

    async def _find(self, key: str, request: Ask, tally: UsageCounter) -> Answer:
        known = self._known(key, request, tally)
        return known if known is not None else await self._asked(key, request, tally)

    def _known(self, key: str, request: Ask, tally: UsageCounter) -> BaseModel | None:
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
        self._note(request, Reply(text))
        return verdict

    async def _asked(self, key: str, request: Ask, tally: UsageCounter) -> Answer:
        """The judge's verdict, or why there is none."""
        answer = await self._verdict(key, request, tally)
        self._settle(request)
        return answer

    async def _verdict(self, key: str, request: Ask, tally: UsageCounter) -> Answer:
        reason, refusals = "", 0
        try:
            for attempt in range(1 + self._reasks):
                async with self._judging:
                    reply = await self._reply(request, attempt, tally)
                    try:
                        verdict = _read(request, reply)
                    except UnreadableReply as error:
                        self._note(request, reply)
                        reason = _unreadable(reply, error, tally)
                        refusals += _is_refused(reply)
                        if refusals >= _REFUSALS:
                            return Unanswered(Status.REFUSED, _refusal(reply))
                        continue
                    await self._keep(key, request, reply)
                    self._note(request, reply)
                    return verdict
        except JudgeError as error:
            return self._given_up(error, tally)
        return Unanswered(Status.UNREADABLE, reason)

    async def _reply(self, request: Ask, attempt: int, tally: UsageCounter) -> Reply:
        if self.refusal:
            raise JudgeRefused(str(self.refusal))
        if self._kept:
            await self._kept.prepare()
        try:
            async with before_deadline():
                if self._account:
                    reply = await self._account.reply(self.judge, request, attempt)
                else:
                    reply = await self.judge.reply(request, attempt)
        except JudgeError as error:
            tally.fail(error.failures)
            raise
        tally.add(reply)
        return reply

    def _note(self, request: Ask, reply: Reply) -> None:
        """Show it to whoever watches; what is kept is shown after that, as watching may fail."""
        if self._record:
            self._record(self.name, request, reply)

    async def _keep(self, key: str, request: Ask, reply: Reply) -> None:
        """Returns when the reply is durable; until then its request counts as in flight."""
        if self._kept and reply.verdict is None:
            tokens = (reply.prompt_tokens, reply.completion_tokens)
            await self._kept.keep(CachedReply(key, request.prompt.name, reply.text, *tokens))

    def _settle(self, request: Ask) -> None:
        if self._notary:
            self._notary.settled(request)

    def _given_up(self, error: JudgeError, tally: UsageCounter) -> Unanswered:
        if isinstance(error, JudgeRefused):
            self.refusal = error
        if isinstance(error, OverDeadline):
            self.overdue = error
        if isinstance(error, JudgeRefused | JudgePending):
            raise error
        if isinstance(error, OverBudget):
            return Unanswered(Status.OVER_BUDGET, str(error))
        if isinstance(error, Declined):
            tally.failures["refusal"] += 1
            return Unanswered(Status.REFUSED, str(error))
        tally.failures["judge_failed"] += 1
        return Unanswered(Status.JUDGE_FAILED, str(error))

    def _begin_fused(self, row_key: str, wanted: Sequence[MetricRequest]) -> None:
        """Put what nobody asked yet, and the store does not know, on its way in one request, and
        each repeat in one of its own.
        """
        loop = asyncio.get_running_loop()
        fresh: dict[tuple[int, ...], dict[str, _Part]] = {}
        for one in wanted:
            ask = one.request
            if fusible(ask) and not self._is_known(row_key, ask):
                parts = fresh.setdefault(ask.repeat, {})
                parts.setdefault(ask.key, _Part(ask, one.metric, loop.create_future()))
        for parts in fresh.values():
            if len(parts) > 1:
                for key, part in parts.items():
                    self._asker.put(key, part.future)
                task = loop.create_task(self._fused(row_key, parts))
                self._fusing.add(task)
                task.add_done_callback(self._fusing.discard)

    def _is_known(self, row_key: str, ask: Ask) -> bool:
        kept = self._kept is not None and self._kept.find(row_key + ask.key) is not None
        return kept or self._asker.is_asked(ask.key)

    async def _fused(self, row_key: str, parts: Mapping[str, _Part]) -> None:
        """Answer several requests by one; what is unreadable in it is asked alone."""
        tally = self.tallies[" + ".join(dict.fromkeys(one.metric for one in parts.values()))]
        try:
            fused = Fused([one.ask for one in parts.values()])
            async with self._judging:
                await self._ask_fused(row_key, fused, parts, tally)
            left = [one for one in parts.values() if not one.future.done()]
            await asyncio.gather(*(self._alone(row_key, one) for one in left))
            self._settle(fused.ask)
        except asyncio.CancelledError:
            for one in parts.values():
                one.future.cancel()
            raise
        except Exception as error:
            for one in parts.values():
                if not one.future.done():
                    one.future.set_exception(error)

    async def _ask_fused(
        self, row_key: str, fused: Fused, parts: Mapping[str, _Part], tally: UsageCounter
    ) -> None:
        try:
            reply = await self._reply(fused.ask, 0, tally)
        except JudgeError as error:
            if not isinstance(error, JudgeRefused | OverBudget) and not error.transient:
                return  # too long for the model, say: its parts may not be
            given_up = self._given_up(error, tally)
            for one in parts.values():
                one.answer(given_up)
            return
        readable = self._read_parts(fused, reply, tally)
        await asyncio.gather(
            *(self._keep(row_key + ask.key, ask, part) for ask, part, _ in readable)
        )
        for ask, part, verdict in readable:
            self._note(ask, part)
            parts[ask.key].answer(verdict)

    def _read_parts(
        self, fused: Fused, reply: Reply, tally: UsageCounter
    ) -> list[tuple[Ask, Reply, BaseModel]]:
        """What can be read of a reply; one of which some cannot counts as one that is unreadable.

        Its tokens stand with the first part.
        """
        readable, spoilt = [], None
        try:
            texts = fused.split(reply.text)
        except UnreadableReply as error:
            texts, spoilt = [], error
        for place, (ask, text) in enumerate(texts):
            part = Reply(text) if place else replace(reply, text=text)
            try:
                readable.append((ask, part, _read(ask, part)))
            except UnreadableReply as error:
                self._note(ask, part)
                spoilt = error
        if spoilt:
            _unreadable(reply, spoilt, tally)
        return readable

    async def _alone(self, row_key: str, part: _Part) -> None:
        tally = self.tallies[part.metric]
        part.answer(await self._asked(row_key + part.ask.key, part.ask, tally))


def _read(request: Ask, reply: Reply) -> BaseModel:
    if reply.verdict is not None:
        return reply.verdict
    if reply.refused and (request.prompt.verbatim or not reply.text):  # any text would be a verdict
        raise UnreadableReply(f"{request.prompt.name}: {_refusal(reply)}")
    verdict: BaseModel = request.prompt.parse(reply.text, request.data)
    return verdict


def _is_refused(reply: Reply) -> bool:
    """Whether a reply without a verdict is a refusal."""
    return reply.refused or is_refusal(reply.text)


def _refusal(reply: Reply) -> str:
    said = shorten(reply.text)
    return f"the judge refused to answer: {said}" if said else "the judge's content filter refused"


def _unreadable(reply: Reply, error: UnreadableReply, tally: UsageCounter) -> str:
    """Count a reply of no use; the reason to tell."""
    kind = "refusal" if _is_refused(reply) else "cut_off" if reply.cut_off else "unreadable"
    tally.failures[kind] += 1
    return f"{error} (cut off: max_tokens)" if reply.cut_off else str(error)

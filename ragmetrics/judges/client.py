"""Client of one judge: sends the requests of metrics and reads the verdicts.

Each distinct request is sent once. After an unreadable reply it is sent again, a bounded number of
times. A request without a verdict becomes a status of its row, not an exception of the run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from pydantic import BaseModel

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import JudgeError, Unanswered, UnreadableReply
from ragmetrics.judges.base import ChangesParameters, Judge, RepliesAtOnce, Reply, TracksRequests
from ragmetrics.judges.client_base import (
    ClientBase,
    MeteredJudge,
    PendingAnswer,
    SingleFlight,
    UsageCounter,
)
from ragmetrics.judges.embeddings import EmbeddingClient
from ragmetrics.judges.factory import layout_of
from ragmetrics.judges.reply_cache import ReplyCache
from ragmetrics.judges.reply_reading import (
    UnreadableStreak,
    check_read,
    find_fit,
    is_refused,
    read_verdict,
    recalibrated,
    refusal_of,
    unreadable,
)
from ragmetrics.judges.reply_tables import CachedReply
from ragmetrics.judges.row_first import Layout, RowFirst, is_cacheable
from ragmetrics.judges.spending import budget_in_use
from ragmetrics.judges.verdict_items import VerdictCounts
from ragmetrics.records import (
    Answer,
    Ask,
    AskedWay,
    Embed,
    Recalibration,
    Request,
    Status,
    before_deadline,
    check_deadline,
)
from ragmetrics.storage import Files
from ragmetrics.text import shorten

_REFUSALS = 2
"""Refused replies to one request after which the client gives it up."""

Record = Callable[[str, Ask, Reply], None]


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A request of a row, and the metric that makes it."""

    request: Request
    metric: str = ""


class JudgeClient(ClientBase):
    """Sends each distinct request once and caches the reply.

    With `live`, requests can wait for the reply to another one. The first of a row's requests with
    a common beginning is answered before the others are sent, so that they find the beginning in
    the endpoint's cache.
    """

    def __init__(
        self,
        judge: Judge,
        embeddings: EmbeddingClient,
        *,
        name: str | None = None,
        reasks: int = 2,
        cache: ReplyCache | None = None,
        single_flight: SingleFlight | None = None,
        live: bool = False,
        record: Record | None = None,
        meter: MeteredJudge | None = None,
        layout: Layout | None = None,
        fit: Recalibration | None = None,
        gives_probabilities: bool = False,
    ) -> None:
        super().__init__(judge, cache, single_flight)
        self.judge = judge
        self._at_once = judge if isinstance(judge, RepliesAtOnce) else None
        self.name = name or judge.name
        self._tracker = judge if isinstance(judge, TracksRequests) else None
        self._sent = judge.request_parameters if isinstance(judge, ChangesParameters) else None
        self._embeddings, self._reasks = embeddings, reasks
        self._record, self._meter = record, meter or MeteredJudge()
        self._live, self._fit = live, fit
        self.gives_probabilities = gives_probabilities
        """Whether its verdicts have probabilities."""
        chosen = self._meter.settings
        self.repeats_vary = not (chosen and chosen.kind.writes and chosen.temperature == 0)
        """Whether repeats of a request may have other replies: at temperature 0 they are equal."""
        self.layout = layout
        """The layout of its prompts. None: instructions first."""
        self.verdicts = VerdictCounts()
        """Its verdicts. Those of a judge that computes them at once are not counted."""

    @classmethod
    def of(
        cls,
        chosen: JudgeSettings,
        judge: Judge,
        embeddings: EmbeddingClient,
        *,
        files: Files | None = None,
        **more: Any,
    ) -> Self:
        """The client of a judge by its settings, whose requests are charged to the budget in use
        if it is paid for. A `calibration` is read from the store `files`. `more` goes to the
        constructor. Raises JudgeRefused for a calibration that cannot be used.
        """
        meter = MeteredJudge(budget_in_use() if chosen.remote else None, chosen)
        return cls(
            judge,
            embeddings,
            reasks=chosen.reasks,
            live=chosen.live,
            meter=meter,
            layout=layout_of(chosen, judge),
            fit=find_fit(chosen, judge, files) if files else None,
            gives_probabilities=chosen.decides or chosen.calibration is not None,
            **more,
        )

    @property
    def changed_parameters(self) -> str:
        """What the judge is sent in place of parameters that its model does not take."""
        return self._sent.changes if self._sent else ""

    @property
    def asked(self) -> AskedWay | None:
        """How the judge was asked otherwise than planned; None if it was sent nothing."""
        return self._sent.asked if self._sent else None

    async def answer(self, row_key: str, request: Request, metric: str = "") -> Answer:
        """The answer to a request; equal requests of all rows share one answer."""
        (answer,) = await self.answer_all(row_key, [MetricRequest(request, metric)])
        return answer

    async def answer_all(self, row_key: str, wanted: Sequence[MetricRequest]) -> list[Answer]:
        """The answers to the requests that a row makes at one time, in order."""
        self._count_shared(wanted)
        row_first = self._live and isinstance(self.layout, RowFirst)
        later = self._after_head(row_key, wanted) if row_first else ()
        begun = {
            place: self._begin(row_key, metric_request)
            for place, metric_request in enumerate(wanted)
            if place not in later
        }
        if later:
            head, *others = later
            begun[head] = self._begin(row_key, wanted[head])
            await _answered(begun[head])
            begun |= {place: self._begin(row_key, wanted[place]) for place in others}
        return [await _answered(begun[place]) for place in range(len(wanted))]

    def _after_head(self, row_key: str, wanted: Sequence[MetricRequest]) -> Sequence[int]:
        """Places of the requests with a common beginning that an endpoint would cache, if there are
        several to send.
        """
        places = [
            place
            for place, metric_request in enumerate(wanted)
            if isinstance(metric_request.request, Ask)
            and is_cacheable(metric_request.request)
            and not self._flight.is_asked(key := metric_request.request.key)
            and not (self._cache and self._cache.find(row_key + key) is not None)
        ]
        return places if len(places) > 1 else ()

    def _count_shared(self, wanted: Sequence[MetricRequest]) -> None:
        new: set[Hashable] = set()
        for metric_request in wanted:
            if isinstance(metric_request.request, Embed):
                continue
            key = self._key(metric_request.request)
            self.counters[metric_request.metric].shared += key in new or self._flight.is_asked(key)
            new.add(key)

    def _begin(self, row_key: str, wanted: MetricRequest) -> Answer | PendingAnswer:
        """The answer to a request if it takes no waiting; else the request is started now."""
        request, metric = wanted.request, wanted.metric
        if isinstance(request, Embed):
            return self._embeddings.begin(row_key, request, metric)
        key = self._key(request)
        if (known := self._flight.known(key)) is not None:
            return known
        if self._at_once:
            answer = self._compute(self._at_once, request, self.counters[metric])
            self._flight.remember(key, answer)
            return answer
        # Cached under the question of the first row: the shard of that row reads it in later runs.
        find = partial(self._find, row_key + request.key, request, self.counters[metric])
        return self._requests.ask(key, find)

    def _key(self, request: Ask) -> Hashable:
        """What equal requests share. The text of a request is made only if it is sent or stored."""
        return request.identity if self._at_once else request.key

    def _compute(self, judge: RepliesAtOnce, request: Ask, counter: UsageCounter) -> Answer:
        try:
            self._check_refusal()
            check_deadline()
            reply = judge.reply_at_once(request)
        except JudgeError as error:
            return self._failed_answer(error, counter)
        counter.add(reply)
        self._note(request, reply)
        return self._expected(request, read_verdict(request, reply))

    def _expected(self, request: Ask, verdict: BaseModel) -> BaseModel:
        """The verdict, or its expectation by the judge's `calibration`."""
        return recalibrated(self._fit, self.judge, request, verdict) if self._fit else verdict

    @property
    def can_continue(self) -> bool:
        """Whether a run continues after a refusal: there were answers before it, and their scores
        are worth writing.
        """
        judge = self.refusal is None or self.has_answered
        return judge and (self._embeddings.refusal is None or self._embeddings.has_answered)

    async def stop(self) -> None:
        """Cancel the requests that have no answer yet."""
        await super().stop()
        await self._embeddings.stop()

    async def _find(self, key: str, request: Ask, counter: UsageCounter) -> Answer:
        """The verdict, stored or the judge's, or the reason why there is none."""
        if (known := self._cached(key, request, counter)) is not None:
            return known
        answer = await self._verdict(key, request, counter)
        if self._tracker:
            self._tracker.settled(request)
        return answer

    def _cached(self, key: str, request: Ask, counter: UsageCounter) -> BaseModel | None:
        """The verdict of the cached reply, if there is one."""
        text = self._cache.find(key) if self._cache else None
        if text is None:
            return None
        try:
            verdict: BaseModel = request.prompt.parse(text, request.data)
        except UnreadableReply:
            counter.failures["unreadable_in_store"] += 1
            return None
        verdict = self._expected(request, verdict)
        counter.answered_from_store += 1
        self._flight.streak(request.prompt).readable()
        self._note(request, Reply(text))
        self.verdicts.add(request, verdict)
        return verdict

    async def _verdict(self, key: str, request: Ask, counter: UsageCounter) -> Answer:
        """The judge's verdict, or the reason why there is none."""
        reason, refusals, asked, last = "", 0, request, ""
        streak = self._flight.streak(request.prompt)
        # Requests of a row may share one: they are held up together, or not at all.
        shared = key.removesuffix(request.key) if self._joins > 1 else key
        try:
            for attempt in range(1 + self._reasks):
                if attempt and streak.is_long:
                    break
                async with self._slot(streak, shared) as is_sent:
                    if not is_sent:
                        return Unanswered(Status.UNREADABLE, streak.reason)
                    reply = await self._reply(asked, attempt, counter)
                    check_read(request, reply)
                    try:
                        verdict = self._expected(request, read_verdict(request, reply))
                    except UnreadableReply as error:
                        self._note(request, reply)
                        reason = unreadable(request, reply, error, counter)
                        refusals += is_refused(reply)
                        if refusals >= _REFUSALS:
                            return Unanswered(Status.REFUSED, refusal_of(reply))
                        last = reason if reply.cut_by_reasoning else reply.text
                        if not reply.cut_by_reasoning:  # the model can do nothing about that
                            asked = replace(request, problem=shorten(reason))
                        continue
                    streak.readable()
                    await self._store(key, request, reply)
                    self._note(request, reply)
                    self.verdicts.add(request, verdict)
                    return verdict
        except JudgeError as error:
            return self._failed_answer(error, counter)
        streak.unreadable(last)
        return Unanswered(Status.UNREADABLE, reason)

    @asynccontextmanager
    async def _slot(self, streak: UnreadableStreak, key: str) -> AsyncIterator[bool]:
        """Wait for a slot; whether the request is sent in it.

        A slot is not held while other requests show whether the prompt is ever answered.
        """
        while True:
            async with self._slots:
                if not (self._live and streak.is_full(key, self._joins)):
                    with streak.turn(key) as is_sent:
                        yield is_sent
                    return
            await streak.news.wait()

    async def _reply(self, request: Ask, attempt: int, counter: UsageCounter) -> Reply:
        await self._prepare()
        bill, counted = self._meter.bill(request), 0
        bill.is_proven = lambda: self.has_answered
        try:
            async with before_deadline():
                reply = await self._meter.reply(self.judge, request, attempt, bill)
            counted = counter.add(reply)
        except JudgeError as error:
            counted = counter.fail(error.failures)
            raise
        finally:
            counter.add_sent(bill, counted)
        return reply

    def _note(self, request: Ask, reply: Reply) -> None:
        """Pass the reply to `record`, after it is cached: `record` may fail."""
        if self._record:
            self._record(self.name, request, reply)

    async def _store(self, key: str, request: Ask, reply: Reply) -> None:
        """Cache the reply; return when it is durable. Until then the request is in flight."""
        if self._cache and reply.verdict is None:
            tokens = (reply.prompt_tokens, reply.completion_tokens)
            await self._cache.add(CachedReply(key, request.prompt.name, reply.text, *tokens))


async def _answered(begun: Answer | PendingAnswer) -> Answer:
    return await begun if isinstance(begun, PendingAnswer) else begun

"""The batch judge: the live judge's requests through the Batch API, at half the price.

What is asked is gathered until nobody asks for a moment, and goes out as one batch or several;
metrics that ask in waves make successive batches. Batches are on record in the store: a run that
was killed, or that ended while they were at work, goes on with them, and pays nothing twice.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import tempfile
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics.errors import (
    Declined,
    JudgeError,
    JudgeRefused,
    OverBudget,
    RagmetricsError,
    StoreError,
)
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_api import BatchApi
from ragmetrics.judges.batch_files import Fault, FaultAction, InputFile, write_inputs
from ragmetrics.judges.batch_lifecycle import BatchGone, BatchRun, ProgressDeadline
from ragmetrics.judges.batch_registry import Item, Job, Jobs
from ragmetrics.judges.cache.batches import BatchRecord, BatchRecords
from ragmetrics.judges.chat_completions import FORMATS, chat_fingerprint, request_body
from ragmetrics.judges.http_errors import no_model
from ragmetrics.model import Ask
from ragmetrics.storage import temporary_file

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from ragmetrics.config import JudgeSettings
    from ragmetrics.storage import Files

log = logging.getLogger(__name__)

_AT_ONCE = 1_000
_ERRORS: dict[FaultAction, type[JudgeError]] = {
    FaultAction.REFUSE: JudgeRefused,
    FaultAction.DECLINED: Declined,
}


class BatchJudge:
    """Answers by batches. Limits are those of OpenAI's API; `quiet_seconds` ends the gathering.

    After `settle_seconds` a batch that was asked for is in the endpoint's list, or never will be.
    """

    note = ""
    keeps = True
    concurrency = 1_000_000
    """All that a night asks may wait at once."""

    def __init__(
        self,
        client: AsyncOpenAI,
        settings: JudgeSettings,
        files: Files | None = None,
        *,
        most_requests: int = 50_000,
        most_bytes: int = 200_000_000,
        quiet_seconds: float = 1.0,
        settle_seconds: float = 30.0,
    ) -> None:
        # A reply is the model's, however it was asked: judgements are shared with the live judge.
        self.name = f"openai:{settings.model}"
        self.fingerprint = chat_fingerprint(settings, str(client.base_url))
        self._settings, self._api = settings, BatchApi(client, settings.max_reply_bytes)
        self._records = BatchRecords(files, self.fingerprint)
        self._resumable = files is not None
        self._most_requests, self._most_bytes = most_requests, most_bytes
        self._quiet, self._settle = quiet_seconds, settle_seconds
        self._patience = ProgressDeadline(settings.wait_seconds)
        self._turn: asyncio.Semaphore | None = None
        self._form = 0
        self._heard = 0.0
        self._items: dict[str, Item] = {}
        self._asked: list[Item] = []
        self._jobs = Jobs()
        self._gathering: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Wait for the answer that a batch brings.

        Raises JudgePending where the batch takes longer than the settings let a run wait.
        """
        name = f"{request.key}-{attempt}"
        item = self._items.get(name)
        if item is None:
            answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            # One who waits takes the error; where all have gone meanwhile, nobody has to.
            answer.add_done_callback(lambda done: done.cancelled() or done.exception())
            item = self._items[name] = Item(name, request, answer)
            self._ask(item)
        return await asyncio.shield(item.answer)

    def settled(self, request: Ask) -> None:
        """Told by who asks: the request has its final answer, which is kept if it ever will be.

        A batch of which all is settled goes off the record.
        """
        names = [f"{request.key}-{attempt}" for attempt in range(1 + self._settings.reasks)]
        for job in self._jobs.settle(names):
            self._begin(self._forget(job))

    def evidence(self, request: Ask) -> None:
        """Nothing: its verdict is all it says."""

    async def close(self) -> None:
        """Give back connections. Batches at work stay at work, on record for the next run."""
        at_work = [job for job in self._jobs.all() if job.is_followed]
        for job in at_work:
            if job.task:
                job.task.cancel()
        if self._gathering:
            self._gathering.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._put_rest()
        if self._folder:
            await asyncio.to_thread(self._folder.cleanup)
        if names := [job.record.batch for job in at_work if job.record.batch]:
            log.warning("%s", self._left_behind(names))
        await self._api.close()

    def _left_behind(self, names: Sequence[str]) -> str:
        told = f"batches are still at work, and will be paid for: {', '.join(names)}"
        if not self._resumable:
            return f"{told}; without a store, no later run can use them"
        stop = "`ragmetrics batches STORE --cancel ID` stops one"
        return f"{told}. The same command goes on with them; {stop}"

    # Gathering

    def _ask(self, item: Item) -> None:
        self._asked.append(item)
        self._heard = asyncio.get_running_loop().time()
        if self._gathering is None or self._gathering.done():
            self._gathering = self._begin(self._gather())

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _gather(self) -> None:
        """Wait until nobody has asked for a moment, then place all that was asked."""
        clock = asyncio.get_running_loop().time
        while self._asked:
            while (left := self._heard + self._quiet - clock()) > 0:
                await asyncio.sleep(left)
            wave, self._asked = self._asked, []
            try:
                await self._place(wave)
            except Exception as error:  # raised again where each of them was asked
                self._fail(wave, error)

    async def _place(self, wave: Sequence[Item]) -> None:
        """Let each request wait for a batch that has it; the others go in new batches."""
        for record in await asyncio.to_thread(self._records.refresh):
            self._jobs.add(record)
        fresh = []
        for number, item in enumerate(wave):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if not self._attach(item) and self._pay(item):
                fresh.append(item)
        if not fresh:
            return
        form = FORMATS[self._form]
        bodies = [
            (item.name, partial(request_body, self._settings, item.request, form)) for item in fresh
        ]
        limits = {"most_requests": self._most_requests, "most_bytes": self._most_bytes}
        with temporary_file():
            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="ragmetrics-batches-")
            folder = Path(tempfile.mkdtemp(dir=self._folder.name))
            files, too_long = await asyncio.to_thread(write_inputs, bodies, folder, **limits)
        by_name = {item.name: item for item in fresh}
        told = f"a request is longer than a batch may be ({self._most_bytes:,} bytes)"
        self._fail([by_name[name] for name in too_long], JudgeError(told))
        for file in files:
            await self._send(file, form, [by_name[name] for name in file.ids])

    async def _send(self, file: InputFile, form: str, items: Sequence[Item]) -> None:
        record = BatchRecord(requests=file.ids, form=form).claimed()
        job = self._jobs.add(await asyncio.to_thread(self._records.put, record))
        job.file = file.path
        job.waiting = {item.name: item for item in items}
        self._follow(job)

    def _attach(self, item: Item) -> bool:
        """Answer a request from a batch that has ended, or let it wait for one at work."""
        if reply := self._jobs.reply_to(item.name):
            self._answer(item, reply)
            return True
        if job := self._jobs.at_work_on(item.name):
            job.waiting[item.name] = item
            self._follow(job)
            return True
        return False

    def _pay(self, item: Item) -> bool:
        """Whether the budget has a place for one more attempt."""
        try:
            item.pay()
        except OverBudget as error:
            self._fail([item], error)
            return False
        return True

    # Following a batch to its end

    def _follow(self, job: Job) -> None:
        if not job.is_followed:
            job.task = self._begin(self._followed(job))

    async def _followed(self, job: Job) -> None:
        """See a batch to its end and hand out what it brought."""
        run = BatchRun(
            self._api, self._records, self._settings, self._patience, job.record, self._settle
        )
        try:
            async with self._turn or asyncio.Semaphore():
                await run.submit(job.file)
                if job.file:
                    job.file.unlink()
                    job.file = None
                outcomes = await run.outcomes()
            await self._hand_out(job, run.failure, outcomes)
        except BatchGone:
            await self._forget(job)
            for item in job.waiting.values():
                self._ask(item)
        except Exception as error:  # raised again where each request was asked
            self._fail(list(job.waiting.values()), error)
        finally:
            job.record = run.record
            job.waiting = {}

    async def _hand_out(
        self, job: Job, failure: Fault | None, outcomes: dict[str, Reply | Fault]
    ) -> None:
        job.outcomes = outcomes
        self._patience.renew()
        if failure is not None:
            await self._forget(job)
            if failure.kind == "rate_limited":  # smaller batches then, one after another
                self._most_requests = max(1, len(job.record.requests) // 2)
                self._turn = self._turn or asyncio.Semaphore(1)
        for number, item in enumerate(list(job.waiting.values())):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            outcome = outcomes.get(item.name)
            if outcome is None:  # the record that was found says less than the one waited for
                self._ask(item)
            elif isinstance(outcome, Reply):
                self._answer(item, outcome)
            else:
                self._missed(item, outcome, job.record.form)
            del job.waiting[item.name]  # whom an error leaves waiting is told of it

    def _missed(self, item: Item, fault: Fault, form: str) -> None:
        """A request came to nothing: ask it again, or give it up."""
        if fault.then is FaultAction.ASK_OTHERWISE and self._turn_from(form):
            self._ask(item)
            return
        item.failures[fault.kind] += 1
        tries = item.failures.total()
        if fault.then is FaultAction.ASK_AGAIN and tries <= self._settings.retries:
            self._ask(item)
            return
        kind = _ERRORS.get(fault.then, JudgeError)
        told = fault.message if tries == 1 else f"{fault.message} (after {tries} batches)"
        told = no_model(self._settings.model, told) if fault.of_model else told
        again = fault.then is FaultAction.ASK_AGAIN
        self._fail([item], kind(told, transient=again, failures=dict(item.failures)))

    def _turn_from(self, form: str) -> bool:
        """Turn to the next form of structured output, or see that another batch made us turn."""
        refused = FORMATS.index(form)
        self._form = max(self._form, min(refused + 1, len(FORMATS) - 1))
        return self._form > refused

    # Answers

    def _answer(self, item: Item, reply: Reply) -> None:
        self._items.pop(item.name, None)
        if not item.answer.done():
            failures = dict(item.failures)
            item.answer.set_result(replace(reply, failures=failures) if failures else reply)

    def _fail(self, items: Sequence[Item], error: Exception) -> None:
        for item in items:
            self._items.pop(item.name, None)
            if not item.answer.done():
                # Those who wait must not share a traceback, which grows with each of them.
                own = copy.copy(error) if isinstance(error, RagmetricsError) else error
                item.answer.set_exception(own)

    async def _forget(self, job: Job) -> None:
        """Take a batch off the record."""
        self._jobs.forget(job)
        with _tolerated():
            await asyncio.to_thread(self._records.remove, job.record.nonce)

    async def _put_rest(self) -> None:
        """Leave on record only what no answer was kept of."""
        for job in self._jobs.all():
            if rest := job.rest:
                with _tolerated():
                    await asyncio.to_thread(self._records.put, rest)


@contextmanager
def _tolerated() -> Iterator[None]:
    """A record that says too much costs the next run a look, and no answer."""
    try:
        yield
    except StoreError as error:
        log.warning("the record of a batch stays as it is: %s", error)

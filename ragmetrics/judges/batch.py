"""The batch judge: sends the requests of the live judge through the Batch API, at half the price.

Requests are collected until none comes for a moment, and then sent as one or more batches. Metrics
that ask in several rounds make successive batches. The store holds a record of each batch: after a
run that was killed, or that ended first, the next run continues with them and pays nothing twice.

"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import Declined, JudgeError, JudgeRefused, OverBudget
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_api import BatchApi
from ragmetrics.judges.batch_files import Fault, FaultAction, InputFile, write_inputs
from ragmetrics.judges.batch_jobs import Item, Job, Jobs
from ragmetrics.judges.batch_lifecycle import BatchGone, BatchRun, ProgressDeadline
from ragmetrics.judges.batch_records import BatchRecord, BatchRecords, log_store_errors
from ragmetrics.judges.live import FORMATS, chat_fingerprint, request_body
from ragmetrics.judges.request_parameters import PARAMETERS, RequestParameters
from ragmetrics.judges.responses import no_model
from ragmetrics.records import Ask
from ragmetrics.storage import AskedWays, Files, temporary_file

if TYPE_CHECKING:
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)
_AT_ONCE = 1_000
_PARAMETERS_OF_OLD = {"max_tokens": 0.0, "temperature": 0.0}
"""What the batches of earlier versions sent; their records do not say it."""
_ERRORS: dict[FaultAction, type[JudgeError]] = {
    FaultAction.REFUSE: JudgeRefused,
    FaultAction.DECLINED: Declined,
}


class BatchJudge:
    """Answers by batches. The default limits are those of OpenAI's API.

    A batch is sent `quiet_seconds` after the last request. `settle_seconds` after its creation a
    batch is in the endpoint's list, or was not created.
    """

    note = ""
    cacheable = True
    concurrency = 1_000_000
    """All requests of a night may wait at once."""

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
        # The live judge has the same fingerprint: both get the same replies from the model.
        self.name = f"openai:{settings.model}"
        self.fingerprint = chat_fingerprint(settings, str(client.base_url))
        self._settings, self._api = settings, BatchApi(client, settings.max_reply_bytes)
        self._records = BatchRecords(files, self.fingerprint)
        self._resumable = files is not None
        self._most_requests, self._most_bytes = most_requests, most_bytes
        self._quiet, self._settle = quiet_seconds, settle_seconds
        self._progress = ProgressDeadline(settings.wait_seconds)
        self._sequential: asyncio.Semaphore | None = None
        self._form = 0
        learned = AskedWays(files).find(self.fingerprint) if files else None
        self.request_parameters = RequestParameters(settings, learned)
        self._last_request = 0.0
        self._items: dict[str, Item] = {}
        self._queue: list[Item] = []
        self._jobs = Jobs()
        self._collecting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Wait for the answer of a batch.

        Raises JudgePending if the batch takes longer than the settings let a run wait.
        """
        name = f"{request.key}-{attempt}"
        item = self._items.get(name)
        if item is None:
            answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            # Reads the error, in case nobody awaits the future any more.
            answer.add_done_callback(lambda done: done.cancelled() or done.exception())
            item = self._items[name] = Item(name, request, answer)
            self._enqueue(item)
        return await asyncio.shield(item.answer)

    def settled(self, request: Ask) -> None:
        """Note that the final answer to a request is cached, or never will be.

        The record of a batch is removed when all its requests are settled.
        """
        names = [f"{request.key}-{attempt}" for attempt in range(1 + self._settings.reasks)]
        for job in self._jobs.settle(names):
            self._begin(self._remove_record(job))

    def evidence(self, request: Ask) -> None:
        """Always None: the judge gives a verdict alone."""

    async def close(self) -> None:
        """Close the connections. Batches in progress continue, on record for the next run."""
        at_work = [job for job in self._jobs.all() if job.is_followed]
        for job in at_work:
            if job.task:
                job.task.cancel()
        if self._collecting:
            self._collecting.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._reduce_records()
        if self._folder:
            await asyncio.to_thread(self._folder.cleanup)
        if names := [job.record.batch for job in at_work if job.record.batch]:
            log.warning("%s", self._pending_message(names))
        await self._api.close()

    def _pending_message(self, names: Sequence[str]) -> str:
        message = f"batches are still in progress and will be charged: {', '.join(names)}"
        if not self._resumable:
            return f"{message}; without a store, no later run can use them"
        stop = "`ragmetrics batches STORE --cancel ID` stops one"
        return f"{message}. The same command continues with them; {stop}"

    # Collecting requests

    def _enqueue(self, item: Item) -> None:
        self._queue.append(item)
        self._last_request = asyncio.get_running_loop().time()
        if self._collecting is None or self._collecting.done():
            self._collecting = self._begin(self._collect())

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _collect(self) -> None:
        """Wait until no request comes for a moment, then assign the collected ones to batches."""
        clock = asyncio.get_running_loop().time
        while self._queue:
            while (left := self._last_request + self._quiet - clock()) > 0:
                await asyncio.sleep(left)
            wave, self._queue = self._queue, []
            try:
                await self._place(wave)
            except Exception as error:  # raised again for each request
                self._fail(wave, error)

    async def _place(self, wave: Sequence[Item]) -> None:
        """Let each request wait for a batch that has it; put the others in new batches."""
        for record in await asyncio.to_thread(self._records.refresh):
            self._jobs.add(record)
        fresh = []
        for number, item in enumerate(wave):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if not self._attach(item) and self._take_attempt(item):
                fresh.append(item)
        if not fresh:
            return
        form = FORMATS[self._form]
        bodies = [(item.name, partial(self._body, item.request, form)) for item in fresh]
        limits = {"most_requests": self._most_requests, "most_bytes": self._most_bytes}
        with temporary_file():
            self._folder = self._folder or tempfile.TemporaryDirectory(prefix="ragmetrics-batches-")
            folder = Path(tempfile.mkdtemp(dir=self._folder.name))
            files, too_long = await asyncio.to_thread(write_inputs, bodies, folder, **limits)
        by_name = {item.name: item for item in fresh}
        message = f"a request is longer than a batch may be ({self._most_bytes:,} bytes)"
        self._fail([by_name[name] for name in too_long], JudgeError(message))
        for file in files:
            await self._send(file, form, [by_name[name] for name in file.ids])

    def _body(self, request: Ask, form: str) -> dict[str, Any]:
        return self.request_parameters.fit(request_body(self._settings, request, form))

    async def _send(self, file: InputFile, form: str, items: Sequence[Item]) -> None:
        sent = self.request_parameters.sent
        record = BatchRecord(requests=file.ids, form=form, parameters=sent).claimed()
        job = self._jobs.add(await asyncio.to_thread(self._records.put, record))
        job.file = file.path
        job.waiting = {item.name: item for item in items}
        self._follow(job)

    def _attach(self, item: Item) -> bool:
        """Answer a request from a batch that has ended, or let it wait for one in progress."""
        if reply := self._jobs.reply_to(item.name):
            self._answer(item, reply)
            return True
        if job := self._jobs.at_work_on(item.name):
            job.waiting[item.name] = item
            self._follow(job)
            return True
        return False

    def _take_attempt(self, item: Item) -> bool:
        """Take one attempt from the budget, before sending; whether it has one left."""
        try:
            if item.budget:
                item.budget.attempt()
        except OverBudget as error:
            error.failures = dict(item.failures)
            self._fail([item], error)
            return False
        return True

    # Waiting for a batch

    def _follow(self, job: Job) -> None:
        if not job.is_followed:
            job.task = self._begin(self._run_job(job))

    async def _run_job(self, job: Job) -> None:
        """Wait for the end of a batch and set the answers."""
        run = BatchRun(
            self._api, self._records, self._settings, self._progress, job.record, self._settle
        )
        try:
            async with self._sequential or asyncio.Semaphore():
                await run.submit(job.file)
                if job.file:
                    job.file.unlink()
                    job.file = None
                outcomes = await run.outcomes()
            await self._set_answers(job, run.failure, outcomes)
        except BatchGone:
            await self._remove_record(job)
            for item in job.waiting.values():
                self._enqueue(item)
        except Exception as error:  # raised again for each request
            self._fail(list(job.waiting.values()), error)
        finally:
            job.record = run.record
            job.waiting = {}

    async def _set_answers(
        self, job: Job, failure: Fault | None, outcomes: dict[str, Reply | Fault]
    ) -> None:
        job.outcomes = outcomes
        self._progress.renew()
        if failure is not None:
            await self._remove_record(job)
            if failure.kind == "rate_limited":  # send smaller batches, one after another
                self._most_requests = max(1, len(job.record.requests) // 2)
                self._sequential = self._sequential or asyncio.Semaphore(1)
        for number, item in enumerate(list(job.waiting.values())):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            outcome = outcomes.get(item.name)
            if outcome is None:  # the record that was found lists fewer requests
                self._enqueue(item)
            elif isinstance(outcome, Reply):
                self._answer(item, outcome)
                self._note_parameters(outcome, job.record)
            else:
                self._handle_fault(item, outcome, job.record)
            del job.waiting[item.name]  # an error reaches those that still wait

    def _note_parameters(self, reply: Reply, record: BatchRecord) -> None:
        if record.parameters:  # a batch of an earlier version does not say what was sent
            self.request_parameters.note(record.parameters)
        if reply.cut_by_reasoning:
            self.request_parameters.widen(record.parameters)

    def _handle_fault(self, item: Item, fault: Fault, record: BatchRecord) -> None:
        """Handle a failed request: send it again, or give it up."""
        if fault.then is FaultAction.ASK_OTHERWISE and self._turn(fault, record):
            self._enqueue(item)
            return
        item.failures[fault.kind] += 1
        tries = item.failures.total()
        if fault.then is FaultAction.ASK_AGAIN and tries <= self._settings.retries:
            self._enqueue(item)
            return
        kind = _ERRORS.get(fault.then, JudgeError)
        message = fault.message if tries == 1 else f"{fault.message} (after {tries} batches)"
        message = no_model(self._settings.model, message) if fault.of_model else message
        again = fault.then is FaultAction.ASK_AGAIN
        self._fail([item], kind(message, transient=again, failures=dict(item.failures)))

    def _turn(self, fault: Fault, record: BatchRecord) -> bool:
        """Learn what the endpoint refuses; whether to send the request again without it."""
        if fault.parameter not in PARAMETERS:
            return self._switch_format(record.form)
        sent = record.parameters or _PARAMETERS_OF_OLD
        return self.request_parameters.turn(fault.parameter, sent, fault.message)

    def _switch_format(self, form: str) -> bool:
        """Switch to the next output format, unless another batch did; whether there is one."""
        refused = FORMATS.index(form)
        self._form = max(self._form, min(refused + 1, len(FORMATS) - 1))
        return self._form > refused

    # Answers

    def _answer(self, item: Item, reply: Reply) -> None:
        self._items.pop(item.name, None)
        item.answered(reply)

    def _fail(self, items: Sequence[Item], error: Exception) -> None:
        for item in items:
            self._items.pop(item.name, None)
            item.failed(error)

    async def _remove_record(self, job: Job) -> None:
        """Remove the record of a batch."""
        self._jobs.forget(job)
        with log_store_errors():
            await asyncio.to_thread(self._records.remove, job.record.nonce)

    async def _reduce_records(self) -> None:
        """Reduce each record to the requests whose answers are not cached."""
        for job in self._jobs.all():
            if rest := job.rest:
                with log_store_errors():
                    await asyncio.to_thread(self._records.put, rest)

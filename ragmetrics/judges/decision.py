"""The judge `decision`: a decision model answers all questions about a row in one request.

What is asked about a row within a moment shares a request, up to the most questions that the server
takes; more are split by question, and each part has the whole row. Rows that are too long for the
server are split by context: questions about one context go with it, and those that may be asked of
a part of the contexts (`by_part`) are asked of each, and the highest probability or level counts.
What is too long even so fails with its length. Nothing is cut.

With `api: logprobs` each question is a request of its own. Those about a row begin with all that is
asked about it and follow each other, so that a server finds this beginning in its cache.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any

from ragmetrics.errors import JudgeError, JudgeRefused, UnreadableReply
from ragmetrics.judges.base import Access, Reply
from ragmetrics.judges.decision_batches import Batch, Outcome, Piece, parts_of
from ragmetrics.judges.decision_forms import FORMS, WORDING, Decided, Form, Logprobs, Worded
from ragmetrics.judges.decision_layout import (
    READ,
    Asked,
    DecidedPrompts,
    DecisionPrompt,
    RowState,
    decision_prompt,
)
from ragmetrics.judges.endpoint import Call, Endpoint
from ragmetrics.judges.gathering import JOINED, Gathering, Turns, Waiting, forecast, settle
from ragmetrics.judges.kinds.decision import DecisionSettings
from ragmetrics.judges.reply_reading import why_cut
from ragmetrics.judges.request_parameters import RequestParameters
from ragmetrics.judges.responses import RequestRejected, Unserved
from ragmetrics.judges.spending import bill_in_use
from ragmetrics.records import Ask, fingerprint

_ROWS_PER_SLOT = 4
"""Rows per slot: while one waits before a retry, another one uses its slot."""
_UNSERVED = (404, 405, 501)
"""Statuses of a server that lacks a protocol, or the model for it."""
_TOO_LONG = re.compile(
    r"\b413\b|context.{0,20}(?:length|window|size)|maximum.{0,20}(?:context|length|tokens)"
    r"|too (?:long|large|many tokens)|(?:prompt|input|state).{0,30}(?:exceed|long)",
    re.IGNORECASE,
)
_OF_QUESTIONS = re.compile(r"question", re.IGNORECASE)
_TOO_MANY = re.compile(
    r"(?:at most|too many|maximum|limit|more than).{0,40}question"
    r"|question(?!s?[\[.]\d).{0,60}(?:at most|too (?:many|long)|maximum|limit|more than)",
    re.IGNORECASE,
)
"""The number of all questions, and not what one of them holds."""
_OF_TEXT = re.compile(r"token|context|character", re.IGNORECASE)


class DecisionJudge:
    """Asks a decision model. `Endpoint` does the retries and keeps to the limits."""

    note = "a decision model: scores are expectations by its probabilities"
    cacheable = True
    joins = JOINED
    only: Set[str] = DecidedPrompts()

    def __init__(self, access: Access, settings: DecisionSettings) -> None:
        self.name = f"decision:{settings.model}"
        self.concurrency = _ROWS_PER_SLOT * settings.concurrency
        rounded = ("round",) if settings.round else ()
        parameters = RequestParameters(settings)
        self._forms = _forms_of(settings, parameters)
        self._one_question = self._forms[0].one_question
        way: tuple[object, ...] = ()
        if self._one_question:
            self.request_parameters = parameters
            effort = (settings.planned_effort,) if settings.planned_effort else ()
            way = ("logprobs", WORDING, *effort)
        self._parameters = parameters
        self.fingerprint = fingerprint(
            "decision", settings.model, access.address, READ, *rounded, *way
        )
        self._endpoint = Endpoint(access, settings, settings.model)
        self._turns = Turns(lambda: self._endpoint.in_parallel)
        self._model = settings.model
        self._settled = False
        """Whether the endpoint has answered in the first of the forms."""
        self._unserved: list[str] = []
        """Why the endpoint serves no protocol that was tried."""
        self._refusal: JudgeRefused | None = None
        """Why no request can succeed. Requests that wait for the first one are then not sent."""
        self._most = 1 if self._one_question else settings.max_questions
        self._gathering: Gathering[RowState, Asked, Reply] = Gathering(self._send)

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The probabilities of the answers. Raises JudgeError for a prompt without questions."""
        prompt = request.prompt
        if not isinstance(prompt, DecisionPrompt):
            prompt = decision_prompt(prompt)
        try:
            asked = prompt.asked(request.data)
        except UnreadableReply as error:
            raise JudgeError(f"the judge {self.name} cannot answer: {error}") from error
        if not asked.questions:
            return Reply('{"answers":[]}', shares_request=True)
        return await self._gathering.ask(asked.row, asked)

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """The expected level of each item, as a share of the highest one."""
        prompt = request.prompt
        return prompt.strengths(request.text) if isinstance(prompt, DecisionPrompt) else None

    async def close(self) -> None:
        """Close the connections."""
        self._gathering.close()
        await self._endpoint.close()

    async def _send(self, row: RowState, waiting: list[Waiting[Asked, Reply]]) -> None:
        """Ask all questions about a row, and give each request its answers or its error."""
        asked = [one.part for one in waiting]
        outcome, everything = Outcome(), frozenset(range(len(row.contexts)))
        parts = parts_of(asked, self._most)  # the first request may have shown that it is less
        batches = [Batch(asked, one, everything, self._one_question) for one in parts]
        if self._one_question:  # one after another
            async with self._turns.turn():
                for batch in batches:
                    await self._ask(batch, outcome)
        else:
            await self._ask_all(batches, outcome)
        replies = [
            outcome.reply([Piece(n, i) for i in range(len(one.questions))])
            for n, one in enumerate(asked)
        ]
        settle(waiting, replies, outcome.tokens, outcome.failures)

    async def _ask_all(self, batches: Sequence[Batch], outcome: Outcome) -> None:
        await asyncio.gather(*(self._ask(batch, outcome) for batch in batches))

    async def _ask(self, batch: Batch, outcome: Outcome) -> None:
        """Add the answers to a batch of questions, or the error. Raises JudgeRefused."""
        if self._refusal:
            raise self._refusal
        form, (state, worded) = self._forms[0], batch.composed()
        sent = self._parameters.sent
        call = Call(
            form.path,
            "decision",
            form.body(self._model, state, worded),
            partial(self._read, form, worded),
            unserved=() if self._settled else _UNSERVED,
        )
        try:
            decided, failures = await self._endpoint.ask(call)
        except Unserved as error:
            self._turn(form, error)
            await self._ask(batch, outcome)
        except RequestRejected as error:
            outcome.failures.update(error.failures)
            if self._one_question and self._parameters.turn(error.parameter, sent, str(error)):
                await self._ask(batch, outcome)
            else:
                await self._ask_in_parts(batch, error, f"{len(state):,} characters", outcome)
        except JudgeRefused as error:
            self._refusal = error
            raise
        except JudgeError as error:
            outcome.failures.update(error.failures)
            outcome.note(batch.pieces, [error] * len(batch.pieces))
        else:
            self._note(decided, sent)
            if outcome.is_paid:
                bill_in_use().free()  # the sum of all tokens is paid at once
            text = "".join([state, *(words for words, _ in worded)])
            if cut := why_cut(text, decided.tokens.prompt):
                outcome.add((), Decided((), decided.tokens), failures)
                await self._ask_in_parts(batch, RequestRejected(cut), "", outcome)
            else:
                outcome.add(batch.pieces, decided, failures)

    def _note(self, decided: Decided, sent: Mapping[str, Any]) -> None:
        """Note that the endpoint has answered a request with these parameters."""
        self._settled = True
        self._parameters.note(sent)
        if decided.cut_by_reasoning:
            self._parameters.widen(sent)

    def _read(self, form: Form, worded: Sequence[Worded], payload: dict[str, Any]) -> Decided:
        """The answers. Raises JudgeRefused for a server that cannot give any, ValueError where it
        has given some before.
        """
        try:
            return form.read(worded, payload)
        except JudgeRefused as error:
            if self._settled:
                raise ValueError(str(error)) from error
            raise

    async def _ask_in_parts(
        self, batch: Batch, error: RequestRejected, size: str, outcome: Outcome
    ) -> None:
        """Ask again in smaller requests, if that may help after a rejection."""
        text, smaller, left = str(error), list[Batch](), batch.pieces
        too_many = _TOO_MANY.search(text) and not _OF_TEXT.search(text)
        if _TOO_LONG.search(text) and not too_many:
            error = RequestRejected(f"too long for the judge: {size}: {error}" if size else text)
            if batch.whole:
                smaller, left = [replace(batch, whole=False)], []
            elif batch.splits:
                smaller, left = batch.by_context()
        elif len(batch.pieces) > 1 and (self._settled or _OF_QUESTIONS.search(text)):
            smaller, left = batch.halves(), []
            if too_many:
                self._most = min(self._most, max(1, len(batch.pieces) // 2))
        noted = error if smaller else self._endpoint.note_rejected(error)
        if isinstance(noted, JudgeRefused):
            raise noted
        outcome.note(left, [noted] * len(left))
        await self._ask_all(smaller, outcome)

    def _turn(self, form: Form, error: Unserved) -> None:
        """Switch to the other protocol, unless another request has. Raises JudgeRefused."""
        if form is not self._forms[0]:
            return
        self._unserved.append(f"{form.path}: {error}")
        if len(self._forms) == 1:
            self._refusal = JudgeRefused(
                f"the endpoint does not serve {self._model!r} as a decision model: "
                f"{self._endpoint.address}: {'; '.join(self._unserved)}; `api: logprobs` asks a "
                "chat model"
            )
            raise self._refusal from error
        del self._forms[0]


def forecast_decisions(settings: DecisionSettings) -> Callable[[Ask], Awaitable[Reply]]:
    """Replies for a dry run, with a quarter of the characters as tokens; a chat model writes one
    for each request.
    """
    form = _forms_of(settings, RequestParameters(settings))[0]
    most = 1 if form.one_question else settings.max_questions

    def tokens(asked: Sequence[Asked]) -> list[int]:
        everything = frozenset(range(len(asked[0].row.contexts)))
        parts = parts_of(asked, most)
        batches = [Batch(asked, part, everything, form.one_question) for part in parts]
        return [-(-len(form.body("", *batch.composed())) // 4) for batch in batches]

    ask = forecast(tokens)

    async def reply(request: Ask) -> Reply:
        prompt = request.prompt
        if not isinstance(prompt, DecisionPrompt):
            raise JudgeError(f"no decision model can answer {prompt.name!r}")
        asked = prompt.asked(request.data)
        counted = await ask(asked.row, asked)
        sent = counted.more_requests + (not counted.shares_request)
        return replace(counted, completion_tokens=sent * form.one_question)

    return reply


def _forms_of(settings: DecisionSettings, parameters: RequestParameters) -> list[Form]:
    """The protocols in the order in which they are tried."""
    if settings.api == "auto":
        return [*FORMS.values()]
    return [Logprobs(parameters) if settings.api == "logprobs" else FORMS[settings.api]]

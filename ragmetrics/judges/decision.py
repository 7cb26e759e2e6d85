"""The judge `decision`: a decision model answers all questions about a row in one request.

What is asked about a row within a moment shares a request, up to the most questions that the server
takes; more are split by question, and each part has the whole row. Rows that are too long for the
server are split by context: questions about one context go with it, and those that may be asked of
a part of the contexts (`Predicate.by_part`) are asked of each, and the highest probability counts.
What is too long even so fails with its length. Nothing is cut.

With `api: logprobs` each question is a request of its own. Those about a row begin with all that is
asked about it and follow each other, so that a server finds this beginning in its cache.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ragmetrics.errors import JudgeError, JudgeRefused, UnreadableReply
from ragmetrics.judges.base import Reply
from ragmetrics.judges.decision_forms import FORMS, REFUSED, Answer, Decided, Form, Worded
from ragmetrics.judges.decision_layout import (
    READ,
    Asked,
    DecidedPrompts,
    DecisionPrompt,
    compose,
    decision_prompt,
)
from ragmetrics.judges.decision_logprobs import WORDING, Logprobs
from ragmetrics.judges.endpoint import Call, Endpoint
from ragmetrics.judges.gathering import JOINED, Gathering, Turns, Waiting, forecast, settle
from ragmetrics.judges.live import FirstAlone
from ragmetrics.judges.responses import RequestRejected, Tokens, Unserved
from ragmetrics.judges.spending import bill_in_use
from ragmetrics.records import Ask, Predicate, Question, dump_json, fingerprint

if TYPE_CHECKING:
    from ragmetrics.judges.decision_layout import RowState
    from ragmetrics.judges.factory import Access
    from ragmetrics.judges.kinds.decision import DecisionSettings

_ROWS_PER_SLOT = 4
"""Rows per slot: while one waits before a retry, another one uses its slot."""
_UNSERVED = (404, 405, 501)
"""Statuses of a server that lacks a protocol, or the model for it."""
_TOO_LONG = re.compile(
    r"\b413\b|context.{0,20}(?:length|window|size)|maximum.{0,20}(?:context|length|tokens)"
    r"|too (?:long|large|many tokens)|(?:prompt|input|state).{0,30}(?:exceed|long)",
    re.IGNORECASE,
)
_TOO_MANY = re.compile(r"question", re.IGNORECASE)


@dataclass(frozen=True)
class _Piece:
    """One question: that of which request, and which of its questions."""

    asked: int
    number: int


@dataclass
class _Outcome:
    """What became of the questions about one row."""

    answers: dict[_Piece, list[Answer | JudgeError]] = field(default_factory=dict)
    masses: dict[_Piece, float] = field(default_factory=dict)
    tokens: Tokens = field(default_factory=Tokens)
    is_paid: bool = False
    """Whether a request has brought answers."""
    failures: Counter[str] = field(default_factory=Counter)

    def note(self, pieces: Sequence[_Piece], answers: Sequence[Answer | JudgeError]) -> None:
        """Add the answers to some questions."""
        for piece, answer in zip(pieces, answers, strict=True):
            self.answers.setdefault(piece, []).append(answer)

    def add(self, pieces: Sequence[_Piece], decided: Decided, failures: Counter[str]) -> None:
        """Add what a request brought."""
        self.is_paid = True
        self.note(pieces, decided.answers)
        self.masses.update(zip(pieces, decided.masses, strict=False))
        self.failures.update(failures)
        pairs = zip(self.tokens, decided.tokens, strict=True)
        self.tokens = Tokens(*(before + more for before, more in pairs))

    def reply(self, pieces: Sequence[_Piece]) -> Reply | JudgeError:
        """The reply to a request by the answers to each of its questions, or the first error."""
        for answer in (one for piece in pieces for one in self.answers[piece]):
            if isinstance(answer, JudgeError):
                return answer
            if answer == REFUSED:
                return Reply(refused=True)
        answers: dict[str, Any] = {"answers": [_highest(self.answers[one]) for one in pieces]}
        if masses := [round(self.masses[one], 4) for one in pieces if one in self.masses]:
            answers["label_mass"] = masses
        return Reply(dump_json(answers))


@dataclass(frozen=True)
class _Batch:
    """Questions that share one request."""

    asked: Sequence[Asked]
    """All requests of the row that wait."""
    pieces: Sequence[_Piece]
    contexts: Set[int]
    """The contexts of the row that are shown."""
    whole: bool = False
    """Whether all that is asked about the row is shown, whatever these questions are about."""

    @property
    def shown(self) -> Set[int]:
        """The contexts that its questions are about."""
        return self.contexts & {one for n in self._used for one in self.asked[n].contexts}

    @property
    def _used(self) -> list[int]:
        return list(dict.fromkeys(piece.asked for piece in self.pieces))

    def question(self, piece: _Piece) -> Question:
        """A question."""
        return self.asked[piece.asked].questions[piece.number]

    def context_of(self, piece: _Piece) -> int | None:
        """The only context that a question is about."""
        return self.asked[piece.asked].context_of(self.question(piece))

    def composed(self) -> tuple[str, list[Worded]]:
        """The state, and the questions in words."""
        shown = list(range(len(self.asked))) if self.whole else self._used
        state, labels = compose([self.asked[n] for n in shown], self.contexts)
        label_of = dict(zip(shown, labels, strict=True))
        worded = []
        for piece in self.pieces:
            asked, question = self.asked[piece.asked], self.question(piece)
            worded.append((asked.wording(label_of[piece.asked], question), question))
        return state, worded

    def halves(self) -> list[_Batch]:
        """The questions in two parts."""
        half = len(self.pieces) // 2
        return [replace(self, pieces=part) for part in (self.pieces[:half], self.pieces[half:])]

    def by_context(self) -> tuple[list[_Batch], list[_Piece]]:
        """The questions by halves of the contexts, and those that need all contexts at once."""
        places = sorted(self.shown)
        half = len(places) // 2
        batches: list[_Batch] = []
        for part in (set(places[:half]), set(places[half:])):
            pieces = [one for one in self.pieces if self._is_about(one, part)]
            batches += [replace(self, pieces=pieces, contexts=part)] if pieces else []
        kept = {piece for batch in batches for piece in batch.pieces}
        return batches, [piece for piece in self.pieces if piece not in kept]

    def _is_about(self, piece: _Piece, contexts: Set[int]) -> bool:
        place, question = self.context_of(piece), self.question(piece)
        if place is not None:
            return place in contexts
        return isinstance(question, Predicate) and question.by_part


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
        self._forms = _forms_of(settings)
        self._one_question = self._forms[0].one_question
        way = ("logprobs", WORDING) if self._one_question else ()
        self.fingerprint = fingerprint(
            "decision", settings.model, access.address, READ, *rounded, *way
        )
        self._endpoint = Endpoint(access, settings, settings.model)
        self._turns = Turns(lambda: self._endpoint.in_parallel)
        self._model = settings.model
        self._settled = False
        """Whether the endpoint has answered in the first of the forms."""
        self._refusal: JudgeRefused | None = None
        """Why no request can succeed. Requests that wait for the first one are then not sent."""
        self._most = 1 if self._one_question else settings.max_questions
        self._first = FirstAlone()
        self._gathering: Gathering[RowState, Asked] = Gathering(self._send)

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

    async def _send(self, row: RowState, waiting: list[Waiting[Asked]]) -> None:
        """Ask all questions about a row, and give each request its answers or its error."""
        asked = [one.part for one in waiting]
        outcome, everything = _Outcome(), frozenset(range(len(row.contexts)))
        async with self._first.passage():
            parts = _parts(asked, self._most)  # the first request may have shown that it is less
            batches = [_Batch(asked, one, everything, self._one_question) for one in parts]
            if self._one_question:  # one after another
                async with self._turns.turn():
                    for batch in batches:
                        await self._ask(batch, outcome)
            else:
                await self._ask_all(batches, outcome)
        prompt, cached, completion, _ = outcome.tokens
        cost = Reply(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion)
        replies = [
            outcome.reply([_Piece(n, i) for i in range(len(one.questions))])
            for n, one in enumerate(asked)
        ]
        settle(waiting, replies, cost, outcome.failures)

    async def _ask_all(self, batches: Sequence[_Batch], outcome: _Outcome) -> None:
        await asyncio.gather(*(self._ask(batch, outcome) for batch in batches))

    async def _ask(self, batch: _Batch, outcome: _Outcome) -> None:
        """Add the answers to a batch of questions, or the error. Raises JudgeRefused."""
        if self._refusal:
            raise self._refusal
        form, (state, worded) = self._forms[0], batch.composed()
        call = Call(
            form.path,
            "decision",
            form.body(self._model, state, worded),
            partial(form.read, worded),
            unserved=() if self._settled else _UNSERVED,
        )
        try:
            decided, failures = await self._endpoint.ask(call)
        except Unserved as error:
            self._turn(form, error)
            await self._ask(batch, outcome)
        except RequestRejected as error:
            outcome.failures.update(error.failures)
            await self._ask_in_parts(batch, error, f"{len(state):,} characters", outcome)
        except JudgeRefused as error:
            self._refusal = error
            raise
        except JudgeError as error:
            outcome.failures.update(error.failures)
            outcome.note(batch.pieces, [error] * len(batch.pieces))
        else:
            self._settled = True
            if outcome.is_paid:
                bill_in_use().free()  # the sum of all tokens is paid at once
            outcome.add(batch.pieces, decided, failures)

    async def _ask_in_parts(
        self, batch: _Batch, error: RequestRejected, size: str, outcome: _Outcome
    ) -> None:
        """Ask again in smaller requests, if that may help after a rejection."""
        text, smaller, left = str(error), list[_Batch](), batch.pieces
        if _TOO_LONG.search(text):
            error = RequestRejected(f"too long for the judge: {size}: {error}")
            if batch.whole:
                smaller, left = [replace(batch, whole=False)], []
            elif len(batch.shown) > 1:
                smaller, left = batch.by_context()
        elif len(batch.pieces) > 1 and (self._settled or _TOO_MANY.search(text)):
            smaller, left = batch.halves(), []
            if _TOO_MANY.search(text):
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
        if len(self._forms) == 1:
            self._refusal = JudgeRefused(
                f"the endpoint does not serve {self._model!r} as a decision model: "
                f"{self._endpoint.address}: {error}; `api: logprobs` asks a chat model"
            )
            raise self._refusal from error
        del self._forms[0]


def forecast_decisions(settings: DecisionSettings) -> Callable[[Ask], Awaitable[Reply]]:
    """Replies for a dry run, with a quarter of the characters as tokens."""
    form = _forms_of(settings)[0]
    most = 1 if form.one_question else settings.max_questions

    def tokens(asked: Sequence[Asked]) -> list[int]:
        everything = frozenset(range(len(asked[0].row.contexts)))
        parts = _parts(asked, most)
        batches = [_Batch(asked, part, everything, form.one_question) for part in parts]
        return [-(-len(form.body("", *batch.composed())) // 4) for batch in batches]

    ask = forecast(tokens)

    async def reply(request: Ask) -> Reply:
        prompt = request.prompt
        if not isinstance(prompt, DecisionPrompt):
            raise JudgeError(f"no decision model can answer {prompt.name!r}")
        asked = prompt.asked(request.data)
        return await ask(asked.row, asked)

    return reply


def _forms_of(settings: DecisionSettings) -> list[Form]:
    """The protocols in the order in which they are tried."""
    if settings.api == "auto":
        return [*FORMS.values()]
    return [Logprobs() if settings.api == "logprobs" else FORMS[settings.api]]


def _parts(asked: Sequence[Asked], most: int) -> list[list[_Piece]]:
    """All questions, in parts of at most so many."""
    pieces = [_Piece(n, i) for n, one in enumerate(asked) for i in range(len(one.questions))]
    return [pieces[start : start + most] for start in range(0, len(pieces), most)]


def _highest(several: Sequence[Answer | JudgeError]) -> Answer | JudgeError:
    """The answer to a question, or the highest of those that parts of the contexts gave."""
    first, *others = several
    numbers = [one for one in several if isinstance(one, int | float)]
    return max(numbers) if others and len(numbers) == len(several) else first

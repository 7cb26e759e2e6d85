"""The live judge: an OpenAI-compatible endpoint, one chat completion per request.

The batch judge sends the same bodies, and reads the same answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from ragmetrics.config import JudgeSettings
from ragmetrics.judges.base import Access, Reply
from ragmetrics.judges.endpoint import Call, Endpoint, json_body
from ragmetrics.judges.request_parameters import (
    KEYWORDS,
    FirstAlone,
    ReplyBounds,
    RequestParameters,
    Sizes,
    bounded_schema,
    reply_tokens,
    sizes_of,
)
from ragmetrics.judges.responses import RequestRejected, tokens_of
from ragmetrics.judges.row_first import ROW_FIRST, RowFirstPrompt
from ragmetrics.judges.spending import bill_in_use
from ragmetrics.records import Ask, Prompt, fingerprint

_REQUESTS_PER_SLOT = 4
"""Requests per slot: while one waits before a retry, another one uses its slot."""
PATH = "/chat/completions"
FORMATS = ("json_schema", "json_object", "text")
"""Formats of structured output, best first."""
_END = '""}]}'  # end of a body with an empty user message
_MOST_STARTS = 200  # beginnings of bodies that are kept for each prompt


class LiveJudge:
    """Asks one endpoint. `Endpoint` does the retries and keeps to the limits."""

    note = ""
    cacheable = True

    def __init__(self, access: Access, settings: JudgeSettings) -> None:
        self.name = f"openai:{settings.model}"
        self.concurrency = _REQUESTS_PER_SLOT * settings.concurrency
        self.fingerprint = chat_fingerprint(settings, access.address)
        self._endpoint = Endpoint(access, settings, settings.model)
        self._settings = settings
        self._envelopes: dict[str, Envelope] = {}
        self._form = 0  # first format to try: the last one that another prompt turned to
        self.request_parameters = RequestParameters(settings)
        # OpenAI compiles each schema that it has not seen, which takes seconds: one for all sizes.
        self._bounds = ReplyBounds(refused=KEYWORDS if settings.is_at_openai else ())
        self._first = FirstAlone()

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The text of the reply, in the best format and by the parameters that the endpoint
        supports.
        """
        async with self._first.passage():
            reply = await self._reply(request, full=attempt > 0)
            bound = self._envelope(request.prompt).tokens(sizes_of(request), full=attempt > 0)
            if not reply.cut_off or bound == self._settings.max_tokens:
                return reply
            longer = await self._reply(request, full=True)
            bill_in_use().free()  # of two answers: the sum of their tokens is paid at once
            self._bounds.note(longer, bound)
            return _sum(reply, longer)

    async def _reply(self, request: Ask, *, full: bool) -> Reply:
        """One reply; with `full` it may have all tokens of the settings."""
        envelope = self._envelope(request.prompt)
        failures: Counter[str] = Counter()
        while True:
            body, form = envelope.fill(request, full), envelope.form
            sent, bounds = self.request_parameters.sent, self._bounds.version
            call = Call(PATH, request.prompt.name, body, read_reply)
            try:
                reply, met = await self._endpoint.ask(call)
            except RequestRejected as error:
                failures.update(error.failures)
                turned = self.request_parameters.turn(error.parameter, sent, str(error))
                turned = turned or (form == 0 and self._bounds.turn(str(error), bounds))
                if not (turned or envelope.turn(form, str(error))):
                    error.failures = dict(failures)
                    noted = self._endpoint.note_rejected(error)
                    raise noted from (None if noted is error else error)
                self._form = max(self._form, envelope.form)
                continue
            envelope.settled = True
            self.request_parameters.note(sent)
            if reply.cut_by_reasoning:
                self.request_parameters.widen(sent)
            failures.update(met)
            return replace(reply, failures=dict(failures)) if failures else reply

    def evidence(self, request: Ask) -> None:
        """Always None: the judge gives a verdict alone."""

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    def _envelope(self, prompt: Prompt[Any]) -> Envelope:
        envelope = self._envelopes.get(prompt.digest)
        if envelope is None:
            envelope = Envelope(
                self._settings, prompt, self._form, self.request_parameters, self._bounds
            )
            self._envelopes[prompt.digest] = envelope
        return envelope


class Envelope:
    """Template of a prompt's requests: all but the data, serialised once for each size."""

    def __init__(
        self,
        settings: JudgeSettings,
        prompt: Prompt[Any],
        form: int,
        parameters: RequestParameters | None = None,
        bounds: ReplyBounds | None = None,
    ) -> None:
        self.form = max(form, FORMATS.index(format_for(prompt, FORMATS[0])))
        """Index of the requested format."""
        self.settled = False
        """Whether the endpoint has accepted that format."""
        self._settings, self._prompt = settings, prompt
        self._known = parameters or RequestParameters(settings)
        self._bounds = bounds or ReplyBounds()
        self._starts: dict[Hashable, bytes] = {}

    def fill(self, request: Ask, full: bool = False) -> bytes:
        """The body of one request; with `full` its reply may have all tokens of the settings."""
        sizes = sizes_of(request)
        if self._prompt.verbatim:
            return json_body(self._body(sizes, request.messages, full=full))
        key = (sizes, full, self.form, self._known.version, self._bounds.version)
        if (start := self._starts.get(key)) is None:
            if len(self._starts) >= _MOST_STARTS:
                self._starts.clear()
            start = self._starts[key] = self._start(sizes, full=full)
        return start + json_body(request.sent) + b"}]}"

    def tokens(self, sizes: Sizes, *, full: bool = False) -> int:
        """The most tokens that a reply of these sizes may have."""
        most = self._settings.max_tokens
        return most if full or not self._bounds.tokens else reply_tokens(self._prompt, sizes, most)

    def turn(self, form: int, message: str) -> bool:
        """Switch to the next format after a rejection; whether to send the request again."""
        if form != self.form:
            return True  # another request has switched meanwhile
        named = "response_format" in message or FORMATS[form] in message
        if self.settled or self._prompt.verbatim or not named or form + 1 == len(FORMATS):
            return False
        self.form = form + 1
        return True

    def _body(self, sizes: Sizes, messages: Any, *, full: bool) -> dict[str, Any]:
        schema = bounded_schema(self._prompt, sizes, self._bounds.refused)
        tokens = self.tokens(sizes, full=full)
        head = _head(self._settings, self._prompt, FORMATS[self.form], schema, tokens)
        return self._known.fit(head) | {"messages": messages}

    def _start(self, sizes: Sizes, *, full: bool) -> bytes:
        messages = [
            {"role": "system", "content": self._prompt.system},
            {"role": "user", "content": ""},
        ]
        return json_body(self._body(sizes, messages, full=full)).removesuffix(_END.encode())


def chat_fingerprint(settings: JudgeSettings, base_url: str) -> str:
    """Fingerprint of the model, its parameters and the layout of prompts, as they are planned:
    what the endpoint refuses is covered by `AskedWays`.
    """
    layout = ("row_first", ROW_FIRST) if settings.begins_with_row else ()
    effort = ("reasoning_effort", settings.planned_effort) if settings.planned_effort else ()
    sampling = settings.temperature, settings.max_tokens
    return fingerprint("openai", settings.model, base_url, *sampling, *layout, *effort)


def format_for(prompt: Prompt[Any], form: str) -> str:
    """The format for a prompt, if the endpoint supports `form`. A provider reads a schema before
    the first message, so requests with an equal beginning have no schema.
    """
    return FORMATS[1] if form == FORMATS[0] and isinstance(prompt, RowFirstPrompt) else form


def request_body(settings: JudgeSettings, request: Ask, form: str) -> dict[str, Any]:
    """The body of a request: the prompt, then the data as the user's message."""
    prompt = request.prompt
    head = _head(settings, prompt, format_for(prompt, form), prompt.schema, settings.max_tokens)
    return head | {"messages": request.messages}


def read_reply(answer: dict[str, Any]) -> Reply:
    """Read an answer. Raises ValueError, LookupError or TypeError if it is not one."""
    choice = answer["choices"][0] if answer["choices"] else {"message": {}}
    message, tokens = choice["message"], tokens_of(answer)
    refusal, end = message.get("refusal"), choice.get("finish_reason")
    text = message.get("content") or refusal or ""
    if not isinstance(text, str):
        raise TypeError("a reply is text")
    # Some servers send what a model reasoned, and do not count it.
    reasoned = message.get("reasoning_content") or message.get("reasoning")
    return Reply(
        text=text,
        prompt_tokens=tokens.prompt,
        cached_tokens=tokens.cached,
        completion_tokens=tokens.completion,
        reasoning_tokens=tokens.reasoning or (0 if text or not reasoned else tokens.completion),
        cut_off=end == "length",
        refused=bool(refusal) or end == "content_filter",
    )


def _sum(cut: Reply, longer: Reply) -> Reply:
    """The second reply to a request, with the tokens and failures of both."""
    kind = "cut_by_reasoning" if cut.cut_by_reasoning else "cut_off"
    failures = Counter(cut.failures) + Counter(longer.failures) + Counter([kind])
    return replace(longer.with_tokens(cut.tokens.plus(longer.tokens)), failures=dict(failures))


def _head(
    settings: JudgeSettings, prompt: Prompt[Any], form: str, schema: dict[str, Any], tokens: int
) -> dict[str, Any]:
    named = {"name": prompt.name, "schema": schema, "strict": True}
    formats: dict[str, dict[str, Any]] = {
        "json_schema": {"type": "json_schema", "json_schema": named},
        "json_object": {"type": "json_object"},
    }
    wanted = form in formats and not prompt.verbatim
    return {
        "model": settings.model,
        "temperature": settings.temperature,
        "max_tokens": tokens,
        **({"response_format": formats[form]} if wanted else {}),
    }

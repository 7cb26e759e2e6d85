"""A judge to test against: an OpenAI-compatible server on localhost, in a process of its own.

    python -m tests.fakes.judge --port 0 --behaviour '{"latency_ms": 200, "fail": {"429": 0.1}}'

It prints `{"port": N}` once it listens. `Behaviour` lists what it can be made to do, at the
start or by `POST /faults`. Faults are drawn from the request's hash and its attempt number, so
that a run repeats itself exactly.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeAlias

from aiohttp import web

from tests.fakes import reasoning
from tests.fakes.decider import PATHS as DECIDING, Deciders
from tests.fakes.judge_batches import Batches
from tests.fakes.processes import UNTIL_EOF, announce
from tests.fakes.prompt_cache import KINDS, PromptCache
from tests.fakes.ragas_replies import ragas_reply
from tests.fakes.reranker import Rerankers
from tests.fakes.verdicts import Json, embedding, endless, nonsense, reply, stricter, with_grade

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

FAULTS = (
    *("401", "403", "429", "quota", "500", "503", "drop", "hang"),
    *("late", "malformed", "prose", "truncated"),
)
"""Kinds of `fail`. The last three spoil a reply, and `late` never sends it: these four are billed,
and so is `drop`. The others take its place."""
ENDPOINTS = ("/v1/chat/completions", "/v1/embeddings", "/v1/rerank", "/v1/score", *DECIDING)
HANG_SECONDS = 3600
MAX_BODY_BYTES = 64 << 20


@dataclass(frozen=True)
class Behaviour:
    """What the server does; everything but the defaults is a way to be difficult."""

    latency_ms: float = 0
    """Before each reply,"""
    token_ms: float = 0
    """and for each token of the reply."""
    fail: Mapping[str, float] = field(default_factory=dict)
    """Kind of fault -> its share of the attempts."""
    fail_attempts: int | None = None
    """Only so many first attempts of each distinct request can fail; None: all."""
    retry_after: float = 0
    """Seconds that a 429 or 503 asks to wait."""
    good_for: int | None = None
    """Only so many requests are answered; None: all."""
    then: str = "hang"
    """The fault that happens to the others."""
    exhausted_for: str | None = None
    """All answers say that no request is left, and for how long: `8h0m0s`."""
    max_in_flight: int | None = None
    """Requests at work beyond which the next is answered 429."""
    rate_limit: tuple[int, float] | None = None
    """So many requests in so many seconds; headers say how many are left and until when."""
    max_prompt_chars: int | None = None
    """Longer messages are too much for the model: 400,"""
    reads: int | None = None
    """Tokens of a prompt that it reads: the rest is cut, and nobody is told."""
    quotes: bool = False
    """which quotes them."""
    api_key: str | None = None
    """The key to show; None: any, or none."""
    models: tuple[str, ...] | None = None
    """The models that exist; None: any."""
    json_schema: bool = True
    """Whether response_format may be a JSON schema,"""
    json_object: bool = True
    """and whether it may be json_object."""
    refuses: tuple[str, ...] = ()
    """Parameters that a chat request is refused for: 400, by name, as OpenAI's current models do.
    `max_tokens` and `temperature` are what these refuse; `*` refuses every request."""
    extra_tokens: int = 0
    """Tokens of each completion besides its text; of reasoning, for a model that reasons."""
    efforts: tuple[str, ...] = ()
    """The `reasoning_effort`s that all models take; none: `tests.fakes.reasoning` knows models that
    reason, by their names."""
    shutdown_date: str | None = None
    """When all models end, as the list of models says."""
    thoughts: int = 0
    """Characters of thoughts before each reply."""
    endless: bool = False
    """Lists without a bound in the schema go on until `max_tokens`."""
    refused_keywords: tuple[str, ...] = ()
    """Words of a JSON schema that this server does not take: 400, by name."""
    grade: int | None = None
    """Every grade is this one, as that of a model that cannot judge."""
    nonsense: bool = False
    """Replies are no verdicts."""
    reranker: str = "vllm"
    """Whose form `/v1/rerank` has: that of vllm, cohere, jina or tei."""
    most_documents: int | None = None
    """More documents in a request are refused: 422."""
    strict: float = 0
    """Share of the requests, by their hash, whose grade is one lower: a judge that drifted."""
    seed: int = 0
    """Changes which requests the faults hit."""
    decides: str = "both"
    """Which protocol of decision models it serves: `both`, `decisions`, `systemone` or `none`."""
    most_questions: int = 400
    """More in one request are refused: 400."""
    logprobs: bool = True
    """Whether chat completions of one token have the likeliest tokens, if asked for."""
    declines: tuple[str, ...] = ()
    """Questions that a decision model declines to answer, word by word."""
    rejects: tuple[str, ...] = ()
    """Questions for which it refuses the whole request: 400, by their number."""
    lacks_logprobs: int | None = None
    """Number of the request whose answer has no likeliest tokens."""
    prompt_cache: str = "provider"
    """How prompts are cached: `provider`, `block` or `off`; see `tests.fakes.prompt_cache`."""

    def __post_init__(self) -> None:
        if unknown := set(self.fail) - set(FAULTS):
            raise ValueError(f"fail: {', '.join(sorted(unknown))}; there are: {', '.join(FAULTS)}")
        if sum(self.fail.values()) > 1:
            raise ValueError("fail: the shares add up to more than 1")
        if self.prompt_cache not in (*KINDS, "off"):
            raise ValueError(f"prompt_cache: {self.prompt_cache}; there are: {[*KINDS, 'off']}")
        if self.then not in FAULTS:
            raise ValueError(f"then: {self.then}; there are: {', '.join(FAULTS)}")

    def changed(self, changes: Json) -> Behaviour:
        """A copy with some settings changed; raise ValueError for one that does not exist."""
        if unknown := set(changes) - {item.name for item in fields(self)}:
            raise ValueError(f"no such behaviour: {', '.join(sorted(unknown))}")
        return replace(self, **changes)

    def draw(self, key: str, attempt: int) -> str | None:
        """The fault that hits this attempt, if any."""
        if self.fail_attempts is not None and attempt >= self.fail_attempts:
            return None
        digest = hashlib.blake2b(f"{self.seed}|{key}|{attempt}".encode(), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        for kind, share in self.fail.items():
            if place < share:
                return kind
            place -= share
        return None


@dataclass
class Stats:
    """What the server was asked and what it answered since the last reset."""

    requests: int = 0
    admitted: int = 0
    """Those that passed all checks."""
    in_flight: int = 0
    max_in_flight: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Of prompts whose beginning was in the cache."""
    completion_tokens: int = 0
    by_path: Counter[str] = field(default_factory=Counter)
    by_status: Counter[str] = field(default_factory=Counter)
    """Status sent, or `drop` and `hang`."""
    by_hash: Counter[str] = field(default_factory=Counter)
    """Attempts of each distinct request."""
    by_messages: Counter[str] = field(default_factory=Counter)
    """Completions of each distinct list of messages, whatever its other parameters."""
    by_model: Counter[str] = field(default_factory=Counter)
    headers: Counter[str] = field(default_factory=Counter)
    """Names of the headers seen, in lower case."""
    texts: Counter[str] = field(default_factory=Counter)
    """Texts embedded."""
    last_chat: Json | None = None
    """The body of the latest chat request."""
    last_decision: Json | None = None
    """The body of the latest request to a decision model."""


class HttpError(Exception):
    """An answer other than 200, in OpenAI's error format."""

    def __init__(
        self, status: int, message: str, *, kind: str = "invalid_request_error", **more: Any
    ) -> None:
        super().__init__(message)
        error = {"message": message, "type": kind, "param": None, "code": None, **more}
        self.status = status
        self.body = {"error": error}


_REFUSALS: Mapping[str, Callable[[], HttpError]] = {
    "401": lambda: HttpError(401, "Incorrect API key provided.", code="invalid_api_key"),
    "403": lambda: HttpError(403, "Your key has no access.", code="forbidden"),
    "429": lambda: HttpError(
        429, "Rate limit reached for requests", kind="requests", code="rate_limit_exceeded"
    ),
    "quota": lambda: HttpError(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        kind="insufficient_quota",
        code="insufficient_quota",
    ),
    "500": lambda: HttpError(500, "The server had an error", kind="server_error"),
    "503": lambda: HttpError(503, "The server is overloaded", kind="server_error"),
}


class Judge:
    """The server: endpoints, and the middleware that counts and spoils."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.start = behaviour
        self.behaviour = behaviour
        self.stats = Stats()
        self.prompts = PromptCache()
        self.window = (0.0, 0)  # when the rate limit's began, and requests since
        self.batches = Batches(self, HttpError)
        self.rerankers = Rerankers(self)
        self.deciders = Deciders(self, HttpError)

    def app(self) -> web.Application:
        """The application with all its routes."""
        app = web.Application(middlewares=[self.refuse, self.count], client_max_size=MAX_BODY_BYTES)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self.chat),
                web.post("/v1/embeddings", self.embeddings),
                web.get("/v1/models", self.models),
                web.get("/stats", self.show_stats),
                web.post("/reset", self.reset),
                web.post("/faults", self.faults),
                *self.batches.routes(),
                *self.rerankers.routes(),
                *self.deciders.routes(),
            ]
        )
        return app

    @web.middleware
    async def refuse(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turn refusals into responses."""
        try:
            response = await handler(request)
        except HttpError as refusal:
            response = web.json_response(refusal.body, status=refusal.status)
            if refusal.status == 429 or (refusal.status == 503 and self.behaviour.retry_after):
                response.headers["Retry-After"] = f"{self.behaviour.retry_after:g}"
        if not response.prepared:
            response.headers.update(request.get("limits", {}))
            if reset := self.behaviour.exhausted_for:
                named = {"remaining": "0", "reset": reset}
                told = {f"x-ratelimit-{key}-requests": said for key, said in named.items()}
                response.headers.update(told)
        return response

    @web.middleware
    async def count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count what the judge is asked and what it answers; control endpoints stay out of it."""
        if request.path not in ENDPOINTS:
            return await handler(request)
        stats = self.stats
        stats.requests += 1
        stats.by_path[request.path] += 1
        stats.headers.update({name.lower() for name in request.headers})
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        try:
            response = await handler(request)
            stats.by_status["drop" if _is_dropped(request) else str(response.status)] += 1
            return response
        except HttpError as refusal:
            stats.by_status[str(refusal.status)] += 1
            raise
        finally:
            stats.in_flight -= 1

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """Answer one chat completion."""
        body, fault = await self.admit(request)
        self.stats.last_chat = body
        self.check_parameters(body)
        if body.get("logprobs"):
            return await self.deciders.one_token(body, fault)
        schema = self.check_format(body.get("response_format") or {})
        messages, kind = body["messages"], self.behaviour.prompt_cache
        cached = self.prompts.cached_tokens(messages, kind, schema)
        contents, usage, cut = self.complete(body, schema, fault, cached)
        await self.wait(usage["completion_tokens"])
        if fault == "late":
            await asyncio.sleep(HANG_SECONDS)
        self.prompts.add(messages, kind, schema)
        choices = [
            {
                "index": index,
                "message": {"role": "assistant", "content": content, "refusal": None},
                "logprobs": None,
                "finish_reason": "length" if cut else "stop",
            }
            for index, content in enumerate(contents)
        ]
        return web.json_response(
            {
                "id": f"chatcmpl-{self.stats.requests}",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": choices,
                "usage": usage,
            }
        )

    def complete(
        self, body: Json, schema: Json | None, fault: str | None, cached: int = 0
    ) -> tuple[list[str], Json, bool]:
        """The texts of a completion, what they use, and whether a limit cut them off."""
        messages = body["messages"]
        texts = [self.content(messages, schema, fault) for _ in range(body.get("n") or 1)]
        thought, more = 0, self.behaviour.extra_tokens
        if self.efforts(body["model"]):
            limited = [reasoning.limited(body, text, more) for text in texts]
            texts, more = [text for text, _, _ in limited], 0
            thought = sum(tokens for _, tokens, _ in limited)
            cut = any(is_cut for _, _, is_cut in limited)
        else:
            texts, cut = self.fit(texts, body, schema)
        cut = cut or fault == "truncated"
        written = sum(map(len, texts)) + 4 * (more + thought)
        usage = self.use(sum(len(turn["content"]) for turn in messages), written, cached)
        if self.efforts(body["model"]):
            usage["completion_tokens_details"] = {"reasoning_tokens": thought}
        return texts, usage, cut

    def efforts(self, model: str) -> tuple[str, ...]:
        """The efforts that a model takes; none for one that does not reason."""
        return self.behaviour.efforts or reasoning.EFFORTS.get(model, ())

    async def embeddings(self, request: web.Request) -> web.StreamResponse:
        """Embed one text or a list of them, as floats or in base64."""
        body, _ = await self.admit(request)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.stats.texts.update(texts)
        usage = self.use(sum(map(len, texts)), 0)
        await self.wait(0)
        encode = _base64 if body.get("encoding_format") == "base64" else list
        data = [
            {"object": "embedding", "index": index, "embedding": encode(embedding(text))}
            for index, text in enumerate(texts)
        ]
        return web.json_response(
            {"object": "list", "model": body["model"], "data": data, "usage": usage}
        )

    async def models(self, request: web.Request) -> web.StreamResponse:
        """List the models."""
        self.check_key(request)
        names = self.behaviour.models or ("judge", "gpt-6-luna")
        more = {"created": 0, "owned_by": "tests", "shutdown_date": self.behaviour.shutdown_date}
        data = [{"id": name, "object": "model", **more} for name in names]
        return web.json_response({"object": "list", "data": data})

    async def show_stats(self, request: web.Request) -> web.StreamResponse:
        """Show the counts."""
        return web.json_response(vars(self.stats))

    async def reset(self, request: web.Request) -> web.StreamResponse:
        """Forget the counts and go back to the behaviour of the start."""
        self.behaviour, self.stats = self.start, Stats()
        self.prompts.clear()
        self.window = (0.0, 0)
        self.batches.reset()
        return web.json_response({"ok": True})

    async def faults(self, request: web.Request) -> web.StreamResponse:
        """Change the behaviour, setting by setting."""
        try:
            self.behaviour = self.behaviour.changed(await request.json())
        except ValueError as error:
            raise HttpError(400, str(error)) from None
        return web.json_response(asdict(self.behaviour))

    async def admit(self, request: web.Request) -> tuple[Json, str | None]:
        """Read a request that passes all checks, with the fault that is to spoil its reply."""
        body = json.loads(await request.read())
        self.stats.by_model[body["model"]] += 1
        self.check_model(body["model"])
        texts = body["input"] if "input" in body else [one["content"] for one in body["messages"]]
        return body, await self.admit_texts(request, texts)

    async def admit_texts(self, request: web.Request, texts: str | list[str]) -> str | None:
        """The same for a request about some texts, of any form."""
        raw = await request.read()
        key = hashlib.blake2b(request.path.encode() + raw, digest_size=8).hexdigest()
        attempt = self.stats.by_hash[key]
        self.stats.by_hash[key] += 1
        self.check_key(request)
        limit = self.behaviour.max_in_flight
        if limit is not None and self.stats.in_flight > limit:
            raise _REFUSALS["429"]()
        self.check_rate(request)
        self.check_length(texts)
        return await self.strike(request, self.fault(key, attempt))

    def fault(self, key: str, attempt: int) -> str | None:
        """What happens to a request that passed all checks, if anything."""
        self.stats.admitted += 1
        good_for = self.behaviour.good_for
        if good_for is not None and self.stats.admitted > good_for:
            return self.behaviour.then
        return self.behaviour.draw(key, attempt)

    async def strike(self, request: web.Request, fault: str | None) -> str | None:
        """Let a fault happen that takes the place of a reply; return any other."""
        if fault and fault in _REFUSALS:
            raise _REFUSALS[fault]()
        if fault == "hang":
            self.stats.by_status["hang"] += 1
            await asyncio.sleep(HANG_SECONDS)
        if fault == "drop" and request.transport is not None:
            request.transport.abort()
        return fault

    def content(self, messages: list[Json], schema: Json | None, fault: str | None) -> str:
        """The text of a reply, spoilt as the fault says."""
        text = json.dumps(messages, sort_keys=True)
        key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        number = self.stats.by_messages[key]
        self.stats.by_messages[key] += 1
        turns = {message["role"]: message["content"] for message in messages}
        system, user = turns.get("system", ""), turns["user"]
        if self.behaviour.nonsense:
            return nonsense(len(user))
        content = ragas_reply(user, number)
        if content is None:
            content = with_grade(reply(system, user, schema), self.behaviour.grade)
        if int(key, 16) / 2**64 < self.behaviour.strict:
            content = stricter(content)
        if fault in ("malformed", "truncated"):
            return content[: len(content) // 2]
        if fault == "prose":
            return f"Sure! Here is my verdict:\n```json\n{content}\n```\nI hope this helps."
        return content

    def fit(self, contents: list[str], body: Json, schema: Json | None) -> tuple[list[str], bool]:
        """The replies with what this model writes besides, as far as `max_tokens` goes; whether
        one is cut there.
        """
        if self.behaviour.endless and schema:
            contents = [endless(content, schema) for content in contents]
        thoughts = f"<think>{'hm ' * (self.behaviour.thoughts // 3)}</think>"
        contents = [f"{thoughts if self.behaviour.thoughts else ''}{text}" for text in contents]
        most = 4 * (body.get("max_completion_tokens") or body.get("max_tokens") or 1_000_000)
        return [text[:most] for text in contents], any(len(text) > most for text in contents)

    def use(self, prompt_chars: int, completion_chars: int, cached: int = 0) -> Json:
        """Count tokens, at four characters each, and return them in OpenAI's form."""
        prompt, completion = -(-prompt_chars // 4), -(-completion_chars // 4)
        prompt = min(prompt, self.behaviour.reads or prompt)
        self.stats.prompt_tokens += prompt
        self.stats.cached_tokens += cached
        self.stats.completion_tokens += completion
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    async def wait(self, tokens: int) -> None:
        """Take as long as the behaviour says."""
        if milliseconds := self.behaviour.latency_ms + self.behaviour.token_ms * tokens:
            await asyncio.sleep(milliseconds / 1000)

    def check_key(self, request: web.Request) -> None:
        """Refuse any key but the right one."""
        wanted = self.behaviour.api_key
        if wanted is None or request.headers.get("Authorization") == f"Bearer {wanted}":
            return
        raise HttpError(401, "Incorrect API key provided.", code="invalid_api_key")

    def check_model(self, name: str) -> None:
        """Refuse a model that does not exist."""
        known = self.behaviour.models
        if known is not None and name not in known:
            message = f"The model `{name}` does not exist or you do not have access to it."
            raise HttpError(404, message, code="model_not_found")

    def check_rate(self, request: web.Request) -> None:
        """Count against the rate limit, and refuse what is beyond it."""
        if self.behaviour.rate_limit is None:
            return
        most, seconds = self.behaviour.rate_limit
        now = asyncio.get_running_loop().time()
        since, count = self.window
        if now - since >= seconds:
            since, count = now, 0
        self.window = (since, count + 1)
        request["limits"] = {
            "x-ratelimit-remaining-requests": str(max(most - count - 1, 0)),
            "x-ratelimit-reset-requests": f"{int((since + seconds - now) * 1000)}ms",
        }
        if count >= most:
            raise _REFUSALS["429"]()

    def check_length(self, texts: str | list[str]) -> None:
        """Refuse texts that are too much for the model."""
        most = self.behaviour.max_prompt_chars
        if most is not None and sum(map(len, texts)) > most:
            message = "This model's maximum context length is exceeded. Please reduce the length."
            message += f" Input: {texts[-1]}" if self.behaviour.quotes else ""
            raise HttpError(400, message, code="context_length_exceeded")

    def check_parameters(self, body: Json) -> None:
        """Refuse parameters that this model does not take."""
        refused = self.behaviour.refuses
        if "*" in refused:
            raise HttpError(400, "This model takes no requests today.")
        reasoning.check(body, self.efforts(body["model"]), HttpError)
        for name in body:
            if name not in refused or (name == "temperature" and body[name] == 1):
                continue
            if name == "temperature":
                message = (
                    f"Unsupported value: 'temperature' does not support {body[name]} with this "
                    "model. Only the default (1) value is supported."
                )
                raise HttpError(400, message, param=name, code="unsupported_value")
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            message += " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            raise HttpError(400, message, param=name, code="unsupported_parameter")

    def check_format(self, response_format: Json) -> Json | None:
        """The JSON schema asked for, if any; refuse a format that this server lacks."""
        kind = response_format.get("type", "text")
        if kind in ("json_schema", "json_object") and not getattr(self.behaviour, kind):
            raise HttpError(
                400,
                f"Invalid parameter: 'response_format' of type '{kind}' is not supported "
                "with this model.",
                param="response_format",
            )
        schema: Json | None = response_format.get("json_schema", {}).get("schema")
        for word in self.behaviour.refused_keywords:
            if f'"{word}"' in json.dumps(schema):
                message = f"Invalid schema for response_format 'x': '{word}' is not permitted."
                raise HttpError(400, message, param="response_format")
        return schema if kind == "json_schema" else None


def _base64(vector: list[float]) -> str:
    return base64.b64encode(array("f", vector).tobytes()).decode()


def _is_dropped(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


async def serve(judge: Judge, port: int, *, until_eof: bool) -> None:
    """Listen on localhost and say where, until killed."""
    runner = web.AppRunner(judge.app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    announce(runner.addresses[0][1], until_eof=until_eof)
    await asyncio.Event().wait()


def main(kind: type[Judge] = Judge) -> None:
    """Run the server from the command line."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible judge for tests.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--behaviour", type=json.loads, default={}, metavar="JSON")
    parser.add_argument(UNTIL_EOF, action="store_true", help="stop when stdin closes")
    options = parser.parse_args()
    judge = kind(Behaviour().changed(options.behaviour))
    asyncio.run(serve(judge, options.port, until_eof=options.until_eof))


if __name__ == "__main__":
    main()

"""The Batch API of the fake judge: files and batches, as OpenAI's behaves.

`Behaviour.fail` of the judge spoils lines: `429`, `500`, `503` and `quota` become error lines,
`drop` and `hang` are missing from both files, the others spoil the reply. `BatchBehaviour` says
what else can happen, set by `POST /batches/faults`; `GET /batches/stats` tells what was asked.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from aiohttp import web

HOLD_SECONDS = 3600
WINDOW_SECONDS = 24 * 3600
_ENDED = ("completed", "failed", "expired", "cancelled")
_LINE_ERRORS: Mapping[str, tuple[int, str]] = {
    "429": (429, "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota"),
    "500": (500, "server_error"),
    "503": (503, "server_error"),
}


@dataclass(frozen=True)
class BatchBehaviour:
    """What the Batch API does; everything but the defaults is a way to be difficult."""

    delay_seconds: float = 0
    """From the creation of a batch to its end."""
    expire_at: float | None = None
    """The share of a batch's lines after which it expires."""
    expire_batches: int | None = None
    """Only so many batches expire; None: all."""
    invalid: Mapping[str, str] | None = None
    """The error, as code and message, with which every batch fails."""
    enqueued_limit: int | None = None
    """Requests of batches at work beyond which the next batch fails."""
    hold: Mapping[str, int] = field(default_factory=dict)
    """Step -> from which time on it is done, but never answered; steps are those of `steps`."""
    fail_steps: Mapping[str, int] = field(default_factory=dict)
    """Step -> how many of the next calls are answered 500, and not done."""
    drop_steps: Mapping[str, int] = field(default_factory=dict)
    """Step -> how many of the next calls are done, and then dropped without an answer."""
    keeps_files: bool = True
    """Whether output can still be read."""


@dataclass
class BatchStats:
    """What the Batch API was asked since the last reset."""

    steps: Counter[str] = field(default_factory=Counter)
    """Calls of `upload`, `create`, `look`, `list`, `cancel` and `content`."""
    created: int = 0
    requests: int = 0
    """Requests of all batches created."""
    submitted: Counter[str] = field(default_factory=Counter)
    """Times that each distinct request was put in a batch,"""
    answered: Counter[str] = field(default_factory=Counter)
    """and times that it was answered: what is paid."""
    sizes: list[int] = field(default_factory=list)
    """Requests of each batch created."""
    bytes: list[int] = field(default_factory=list)
    """Length of each file uploaded."""


@dataclass
class _Batch:
    """A batch at work."""

    number: int
    input_file: str
    metadata: dict[str, str]
    lines: list[dict[str, Any]]
    created: float = field(default_factory=time.time)
    status: str = "validating"
    cancelled_at: float | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"batch_{self.number:06d}"


class Batches:
    """The endpoints of files and batches, beside a fake judge who answers the lines."""

    def __init__(self, judge: Any, refusal: type[Exception]) -> None:
        self._judge, self._refusal = judge, refusal
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.behaviour, self.stats = BatchBehaviour(), BatchStats()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, _Batch] = {}
        self.attempts: Counter[str] = Counter()
        self.expired = 0

    def routes(self) -> list[web.RouteDef]:
        """What the server serves besides."""
        return [
            web.post("/v1/files", self.upload),
            web.get("/v1/files/{id}/content", self.content),
            web.post("/v1/batches", self.create),
            web.get("/v1/batches", self.list),
            web.get("/v1/batches/{id}", self.look),
            web.post("/v1/batches/{id}/cancel", self.cancel),
            web.post("/batches/faults", self.faults),
            web.get("/batches/stats", self.show),
        ]

    async def faults(self, request: web.Request) -> web.StreamResponse:
        """Change the behaviour, setting by setting."""
        self.behaviour = replace(self.behaviour, **await request.json())
        return web.json_response(asdict(self.behaviour))

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the counts."""
        return web.json_response(vars(self.stats))

    async def upload(self, request: web.Request) -> web.StreamResponse:
        """Store a file."""
        self._judge.check_key(request)
        form = await request.post()
        if form.get("purpose") != "batch":
            return _error(400, "Invalid purpose", "invalid_purpose")
        if refused := self._failing("upload"):
            return refused
        data = form["file"].file.read()  # type: ignore[union-attr]
        name = f"file-{len(self.files):06d}"
        self.files[name] = data
        self.stats.bytes.append(len(data))
        told = {"id": name, "object": "file", "bytes": len(data), "created_at": int(time.time())}
        told |= {"filename": "input.jsonl", "purpose": "batch", "status": "processed"}
        return await self._done("upload", request, told)

    async def content(self, request: web.Request) -> web.StreamResponse:
        """A file's bytes."""
        self._judge.check_key(request)
        if refused := self._failing("content"):
            return refused
        data = self.files.get(request.match_info["id"])
        if data is None or not self.behaviour.keeps_files:
            return _error(404, "No such File object", None)
        return await self._done("content", request, data)

    async def create(self, request: web.Request) -> web.StreamResponse:
        """Create a batch of an uploaded file."""
        self._judge.check_key(request)
        body = await request.json()
        if refused := self._failing("create"):
            return refused
        data = self.files.get(body["input_file_id"])
        if data is None:
            return _error(400, "Invalid input_file_id", "invalid_file")
        lines = [json.loads(line) for line in data.split(b"\n") if line]
        batch = _Batch(len(self.batches), body["input_file_id"], body.get("metadata") or {}, lines)
        self._validate(batch, body["endpoint"])
        self.batches[batch.id] = batch
        self.stats.created += 1
        if batch.status != "failed":
            self.stats.requests += len(lines)
            self.stats.sizes.append(len(lines))
            self.stats.submitted.update(_key(line) for line in lines)
        return await self._done("create", request, self._told(batch))

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Batches, the newest first, page by page."""
        self._judge.check_key(request)
        if refused := self._failing("list"):
            return refused
        names = sorted(self.batches, reverse=True)
        if after := request.query.get("after"):
            names = names[names.index(after) + 1 :]
        limit = int(request.query.get("limit", 20))
        data = [self._told(self.batches[name]) for name in names[:limit]]
        page = {"object": "list", "data": data, "has_more": len(names) > limit}
        ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
        return await self._done("list", request, page | ends)

    async def look(self, request: web.Request) -> web.StreamResponse:
        """One batch as it stands."""
        self._judge.check_key(request)
        if refused := self._failing("look"):
            return refused
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return _error(404, "No batch found with id", None)
        self._advance(batch)
        return await self._done("look", request, self._told(batch))

    async def cancel(self, request: web.Request) -> web.StreamResponse:
        """Stop a batch; it is `cancelling` until it is looked at again."""
        self._judge.check_key(request)
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return _error(404, "No batch found with id", None)
        self._advance(batch)
        if batch.status in _ENDED:
            return _error(409, f"Cannot cancel a batch with status '{batch.status}'.", None)
        batch.status, batch.cancelled_at = "cancelling", time.time()
        return await self._done("cancel", request, self._told(batch))

    def _validate(self, batch: _Batch, endpoint: str) -> None:
        names = Counter(line["custom_id"] for line in batch.lines)
        models = self._judge.behaviour.models
        if self.behaviour.invalid:
            batch.errors = [dict(self.behaviour.invalid)]
        elif any(line["url"] != endpoint or line["method"] != "POST" for line in batch.lines):
            batch.errors = [{"code": "mismatched_endpoint", "message": "The URLs do not match."}]
        elif max(names.values(), default=0) > 1:
            batch.errors = [
                {"code": "duplicate_custom_id", "message": "A custom_id is there twice."}
            ]
        elif models and any(line["body"]["model"] not in models for line in batch.lines):
            message = "The provided model does not exist or is not supported by the Batch API."
            batch.errors = [{"code": "model_not_found", "message": message, "line": 1}]
        elif self._is_full(batch):
            message = "Enqueued token limit reached. Please try again once batches have completed."
            batch.errors = [{"code": "token_limit_exceeded", "message": message}]
        if batch.errors:
            batch.status = "failed"

    def _is_full(self, batch: _Batch) -> bool:
        limit = self.behaviour.enqueued_limit
        if limit is None:
            return False
        for known in self.batches.values():
            self._advance(known)
        at_work = [batch for batch in self.batches.values() if batch.status not in _ENDED]
        return sum(len(one.lines) for one in (*at_work, batch)) > limit

    def _advance(self, batch: _Batch) -> None:
        """Let time pass: statuses come in order, and at the end the files are there."""
        if batch.status in _ENDED:
            return
        passed = time.time() - batch.created
        share = min(passed / self.behaviour.delay_seconds, 1) if self.behaviour.delay_seconds else 1
        if batch.status == "cancelling":
            share = ((batch.cancelled_at or 0) - batch.created) / (
                self.behaviour.delay_seconds or 1
            )
            self._finish(batch, "cancelled", min(share, 1), "batch_cancelled")
        elif self._expires() and share >= (self.behaviour.expire_at or 0):
            self.expired += 1
            self._finish(batch, "expired", self.behaviour.expire_at or 0, "batch_expired")
        elif share >= 1:
            self._finish(batch, "completed", 1, "")
        else:
            batch.status = (
                "validating" if share < 0.1 else "in_progress" if share < 0.9 else "finalizing"
            )

    def _expires(self) -> bool:
        most = self.behaviour.expire_batches
        return self.behaviour.expire_at is not None and (most is None or self.expired < most)

    def _finish(self, batch: _Batch, status: str, share: float, code: str) -> None:
        """Answer that share of the lines and write the files, in no order."""
        shuffled = random.Random(batch.number).sample(batch.lines, len(batch.lines))
        done = round(share * len(shuffled))
        output: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for line in shuffled[:done]:
            answer = self._answer(line)
            if answer is not None:
                (output if answer["response"]["status_code"] == 200 else errors).append(answer)
        # Half of the lines that were not got to are told as errors, half are missing.
        for line in shuffled[done::2]:
            error = {"code": code, "message": "This request could not be executed."}
            errors.append({"custom_id": line["custom_id"], "response": None, "error": error})
        for kind, lines in (("output", output), ("error", errors)):
            if lines:
                name = f"file-{len(self.files):06d}"
                self.files[name] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
                batch.files[kind] = name
        batch.counts = {"completed": len(output), "failed": len(errors)}
        batch.status = status

    def _answer(self, line: dict[str, Any]) -> dict[str, Any] | None:
        """The line of output or of errors for one request; None where it goes missing."""
        key, body = _key(line), line["body"]
        fault = self._judge.behaviour.draw(key, self.attempts[key])
        self.attempts[key] += 1
        if fault in ("drop", "hang"):
            return None
        status, content = 200, {}
        try:
            self._judge.check_parameters(body)
            schema = self._judge.check_format(body.get("response_format") or {})
            if fault in _LINE_ERRORS:
                status, code = _LINE_ERRORS[fault]
                content = {"error": {"message": f"fault {fault}", "code": code}}
            else:
                self.stats.answered[key] += 1
                content = self._completion(body, schema, fault)
        except self._refusal as refusal:
            status, content = refusal.status, refusal.body  # type: ignore[attr-defined]
        response = {"status_code": status, "request_id": f"req_{key}", "body": content}
        return {"id": key, "custom_id": line["custom_id"], "response": response, "error": None}

    def _completion(self, body: Any, schema: Any, fault: str | None) -> dict[str, Any]:
        (text,), usage, cut = self._judge.complete(body, schema, fault)
        reason = "length" if cut else "stop"
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        head = {"id": "chatcmpl-b", "object": "chat.completion", "created": 0}
        return {**head, "model": body["model"], "choices": [choice], "usage": usage}

    def _told(self, batch: _Batch) -> dict[str, Any]:
        counts = {"completed": 0, "failed": 0, **batch.counts, "total": len(batch.lines)}
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "input_file_id": batch.input_file,
            "created_at": int(batch.created),
            "expires_at": int(batch.created) + WINDOW_SECONDS,
            "status": batch.status,
            "metadata": batch.metadata,
            "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
            "output_file_id": batch.files.get("output"),
            "error_file_id": batch.files.get("error"),
            "request_counts": counts,
        }

    def _failing(self, step: str) -> web.Response | None:
        self.stats.steps[step] += 1
        if not self._used_up("fail_steps", step):
            return None
        return _error(500, "The server had an error", "server_error")

    def _used_up(self, kind: str, step: str) -> bool:
        """Whether one of the next calls of this step is hit; it is counted down."""
        left: Mapping[str, int] = getattr(self.behaviour, kind)
        if not left.get(step):
            return False
        changes: dict[str, Any] = {kind: {**left, step: left[step] - 1}}
        self.behaviour = replace(self.behaviour, **changes)
        return True

    async def _done(self, step: str, request: web.Request, told: Any) -> web.StreamResponse:
        """Answer a step that was done, unless its answer is to be lost."""
        since = self.behaviour.hold.get(step)
        if since is not None and self.stats.steps[step] >= since:
            await asyncio.sleep(HOLD_SECONDS)
        if self._used_up("drop_steps", step) and request.transport is not None:
            request.transport.abort()
        if isinstance(told, bytes):
            return web.Response(body=told)
        return web.json_response(told)


def _key(line: Mapping[str, Any]) -> str:
    text = json.dumps(line["body"], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _error(status: int, message: str, code: str | None) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return web.json_response({"error": error}, status=status)

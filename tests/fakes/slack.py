"""Slack to test against, webhook and API: it records what is posted and fails when told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from tests.fakes.http_server import Handler, serving

Failure: TypeAlias = Literal["500", "429", "hang", "not_ok", "blocks"]

_OK = (200, b"ok")
_ANSWERS: dict[str, tuple[int, bytes]] = {
    "500": (500, b"server_error"),
    "429": (429, b"rate_limited"),
    "not_ok": (200, b"no_service"),
    "blocks": (400, b"invalid_blocks"),
}


_API_ANSWERS: dict[str, tuple[int, dict[str, Any]]] = {
    "500": (500, {"ok": False, "error": "internal_error"}),
    "429": (429, {"ok": False, "error": "ratelimited"}),
    "not_ok": (200, {"ok": False, "error": "channel_not_found"}),
    "blocks": (200, {"ok": False, "error": "invalid_blocks"}),
}
TOKEN = "xoxb-a-secret-token"


_MOST = {"blocks": 50, "fields": 10, "elements": 10, "text": 40_000, "url": 3_000}
_LONGEST = {"header": 150, "section": 3_000, "field": 2_000, "context": 3_000, "button": 75}
_HAS = {
    "header": {"text"},
    "section": {"text", "fields"},
    "context": {"elements"},
    "actions": {"elements"},
    "divider": set[str](),
}
"""Parts of each type of block that this server knows; Slack knows more types."""


def refusal_of(message: dict[str, Any]) -> str:
    """The error that Slack gives for a message, by its documented limits; empty: it is taken."""
    if not str(message.get("text", "")).strip():
        return "no_text"
    if len(message["text"]) > _MOST["text"]:
        return "msg_too_long"
    blocks = message.get("blocks") or []
    wrong = len(blocks) > _MOST["blocks"] or not all(map(_is_valid, blocks))
    return "invalid_blocks" if wrong else ""


def _is_valid(block: dict[str, Any]) -> bool:
    """Whether a block has the parts of its type, each within Slack's limits."""
    kind = block.get("type", "")
    parts = set(block) - {"type"}
    if kind not in _HAS or not parts <= _HAS[kind] or (_HAS[kind] and not parts):
        return False
    fields, elements = block.get("fields", []), block.get("elements", [])
    if max(len(fields), len(elements)) > _MOST["fields"]:
        return False
    if {"fields", "elements"} & {name for name in parts if not block[name]}:
        return False
    texts = [(block["text"], kind)] if "text" in block else []
    texts += [(field, "field") for field in fields]
    if kind == "actions":
        if any(len(element["url"]) > _MOST["url"] for element in elements):
            return False
        texts += [(element["text"], element["type"]) for element in elements]
    else:
        texts += [(element, kind) for element in elements]
    return all(_is_valid_text(one, where) for one, where in texts)


def _is_valid_text(text: dict[str, Any], where: str) -> bool:
    """Whether a text is there, not too long, and of a kind that this place can have."""
    kinds = ("plain_text",) if where in ("header", "button") else ("plain_text", "mrkdwn")
    return text.get("type") in kinds and 0 < len(text["text"]) <= _LONGEST[where]


class SlackServer:
    """A webhook, and chat.postMessage of the API, on localhost."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        """All messages posted,"""
        self.delivered: list[dict[str, Any]] = []
        """and those answered with ok."""
        self.posted: list[dict[str, Any]] = []
        """What a bot posted and was told the `ts` of, which is in it."""
        self.url = ""
        self.api = ""
        self.retry_after = "0"
        """Seconds that a 429 asks for."""
        self._about = ""
        self._failures: list[Failure] = []
        self._always: Failure | None = None
        self._stopped = threading.Event()

    def fail(self, how: Failure | None, times: int | None = None, about: str = "") -> None:
        """Fail the next posts: so many `times`, or until told otherwise (`None`: be well).

        `blocks`: those that have any. Messages that do not hold the text `about` are taken.
        """
        self._about = about
        self._always = how if times is None else None
        self._failures = [how] * times if how and times else []

    @contextmanager
    def running(self) -> Iterator[SlackServer]:
        """Serve until the end of the block."""
        with serving(_Handler, slack=self) as url:
            self.url = f"{url}/services/T0/B0/secret"
            self.api = f"{url}/api/"
            try:
                yield self
            finally:
                self._stopped.set()

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """Record a message; return the status and text that Slack answers."""
        try:
            message = json.loads(body)
        except ValueError:
            return 400, b"invalid_payload"
        self.received += [message] if message else []
        failure = self._failure_of(message)
        if failure:
            return _ANSWERS.get(failure, _OK)
        if refusal := refusal_of(message):
            return 400, refusal.encode()
        self.delivered.append(message)
        return _OK

    def _failure_of(self, message: dict[str, Any]) -> Failure | None:
        if self._about not in json.dumps(message):
            return None
        failure = self._failures.pop(0) if self._failures else self._always
        if failure == "hang":
            self._stopped.wait()
        return None if failure == "blocks" and not message.get("blocks") else failure

    def answer_auth(self, token: str) -> tuple[int, bytes]:
        """Say whose a token is, as auth.test does."""
        known = {"ok": True, "team": "Towers", "user": "ragmetrics"}
        answer = known if token == f"Bearer {TOKEN}" else {"ok": False, "error": "invalid_auth"}
        return 200, json.dumps(answer).encode()

    def answer_api(self, body: bytes, token: str) -> tuple[int, bytes]:
        """Take a bot's message; return the status and JSON that Slack's API answers."""
        message = json.loads(body)
        self.received.append(message)
        failure = self._failure_of(message)
        status, said = _API_ANSWERS.get(failure or "", (200, {"ok": True}))
        answer = dict(said)
        if answer["ok"] and (refusal := refusal_of(message)):
            answer = {"ok": False, "error": refusal}
        if answer["ok"] and token != f"Bearer {TOKEN}":
            answer = {"ok": False, "error": "invalid_auth"}
        known = {one["ts"] for one in self.posted}
        if answer["ok"] and message.get("thread_ts") not in {None, *known}:
            answer = {"ok": False, "error": "thread_not_found"}
        if answer["ok"]:
            answer["ts"] = f"1763430000.{len(self.posted):06d}"
            self.posted.append({**message, "ts": answer["ts"]})
        return status, json.dumps(answer).encode()


class _Handler(Handler):
    slack: SlackServer

    def take(self) -> None:
        headers = {}
        token = self.headers.get("Authorization", "")
        if self.path.startswith("/api/auth.test"):
            status, text = self.slack.answer_auth(token)
            headers["Content-Type"] = "application/json"
        elif self.path.startswith("/api/chat.postMessage"):
            status, text = self.slack.answer_api(self.body(), token)
            headers["Content-Type"] = "application/json"
        else:
            status, text = self.slack.answer(self.body())
        if status == 429:
            headers["Retry-After"] = self.slack.retry_after
        self.answer(status, text, headers)

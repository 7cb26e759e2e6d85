"""A judge that answers what a test tells it to, byte by byte; and answers that never end."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.http_server import Handler, serving
from tests.fakes.verdicts import embedding

Asked = Mapping[str, Any]
GRADE = '{"grade": 2}'


@dataclass
class Said:
    """One answer."""

    body: bytes | str | Mapping[str, Any] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bytes = b""
    """Sent again and again, as long as somebody reads."""


class _Odd(Handler):
    answer_to: Callable[[str, Asked], Said]
    asked: list[tuple[str, Asked]]

    def take(self) -> None:
        body = json.loads(self.body() or b"{}")
        self.asked.append((self.path, body))
        said = type(self).answer_to(self.path, body)
        if said.endless:
            self._send_for_ever(said)
            return
        text = json.dumps(said.body) if isinstance(said.body, dict) else said.body
        data = text.encode() if isinstance(text, str) else bytes(text)
        self.answer(said.status, data, {"Content-Type": "application/json", **said.headers})

    def _send_for_ever(self, said: Said) -> None:
        self.close_connection = True
        self.send_response(said.status)
        for name, value in said.headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            while True:
                self.wfile.write(said.endless)
        except OSError:
            return


@contextmanager
def odd_judge(
    answer_to: Callable[[str, Asked], Said],
) -> Iterator[tuple[str, list[tuple[str, Asked]]]]:
    """The base URL of a server, and what it was asked so far."""
    asked: list[tuple[str, Asked]] = []
    with serving(_Odd, answer_to=staticmethod(answer_to), asked=asked) as url:
        yield f"{url}/v1", asked


def chat(content: str | None = GRADE, usage: Any = None, **choice: Any) -> dict[str, Any]:
    """A chat completion."""
    message = {"role": "assistant", "content": content, **choice.pop("message", {})}
    one = {"index": 0, "message": message, "finish_reason": "stop", **choice}
    return {"id": "x", "object": "chat.completion", "choices": [one], "usage": usage}


def vectors(texts: list[str], replaced: Mapping[str, Any]) -> dict[str, Any]:
    """Embeddings of texts, but for those that are replaced by what a test says."""
    data = [
        {"object": "embedding", "index": n, "embedding": replaced.get(text, embedding(text))}
        for n, text in enumerate(texts)
    ]
    return {"object": "list", "data": data, "usage": {"prompt_tokens": 5}}


def bomb(size: int) -> bytes:
    """Spaces before a verdict that pack a thousandfold."""
    squeeze = zlib.compressobj(9, wbits=31)
    block = b" " * (1 << 20)
    return b"".join(squeeze.compress(block) for _ in range(size >> 20)) + squeeze.flush()


def packed(body: Mapping[str, Any]) -> bytes:
    """A body as an honest server packs it."""
    return gzip.compress(json.dumps(body).encode())

"""Posting to a Slack webhook: confirmed, or an error that says why and hides the address."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import SecretStr

from ragmetrics.delivery.channel_kinds.slack_webhook import (
    LONGEST_WAIT,
    OF_CONTENT,
    SlackError,
    send,
)
from ragmetrics.messages import Message, Note
from tests.fakes.formats import slack_blocks

pytestmark = pytest.mark.process


class Server(ThreadingHTTPServer):
    """A stand-in for Slack that plays answers in order, the last one for ever."""

    daemon_threads = True

    def __init__(self, *answers: tuple[int, str, dict[str, str]] | float) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []

    @property
    def webhook(self) -> SecretStr:
        """Its address, shaped as Slack's."""
        return SecretStr(f"http://127.0.0.1:{self.server_port}/services/T0/B0/s3cr3t")


class Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Note the request and play the next answer; a number hangs for as many seconds."""
        assert isinstance(self.server, Server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(json.loads(body))
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if not isinstance(answer, tuple):
            time.sleep(answer)
            return
        status, text, headers = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Starts servers and stops them."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    servers: list[Server] = []

    def start(*answers: tuple[int, str, dict[str, str]] | float) -> Server:
        servers.append(Server(*answers))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


HELLO = Message(text="hello", blocks=[Note("a line")])
OK = (200, "ok", {})


def test_confirmed_message_returns(serve: Any) -> None:
    """Status 200 with the body ok is a confirmation, and the message went as composed."""
    server = serve(OK)
    send(HELLO, server.webhook)
    assert server.bodies == [
        {"text": "hello", "blocks": slack_blocks(HELLO), "unfurl_links": False}
    ]


@pytest.mark.parametrize(
    "first", [(500, "oops", {}), (503, "", {}), (429, "", {"Retry-After": "0"}), (429, "", {})]
)
def test_passing_trouble_is_tried_again(serve: Any, first: tuple[int, str, dict[str, str]]) -> None:
    """A server error or a rate limit is tried again, and the caller sees nothing of it."""
    server = serve(first, OK)
    send(HELLO, server.webhook, pause=0)
    assert len(server.bodies) == 2


@pytest.mark.parametrize(
    ("answer", "transient", "tries"),
    [
        ((200, "invalid_token", {}), False, 1),
        ((200, "<html>a proxy's login page</html>", {}), False, 1),
        ((400, "invalid_blocks", {}), False, 1),
        ((403, "invalid_token", {}), False, 1),
        ((404, "no_service: POST /services/T0/B0/s3cr3t", {}), False, 1),
        ((500, "server_error", {}), True, 2),
        ((502, "bad gateway", {}), True, 1),
        ((429, "slow down", {"Retry-After": str(LONGEST_WAIT + 1)}), True, 1),
        ((429, "slow down", {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}), True, 1),
    ],
)
def test_unconfirmed_message_raises(
    serve: Any, answer: tuple[int, str, dict[str, str]], transient: bool, tries: int
) -> None:
    """Anything but a confirmation raises, says what Slack said, and hides the webhook."""
    server = serve(answer)
    with pytest.raises(SlackError, match=f"status {answer[0]}") as caught:
        send(HELLO, server.webhook, pause=0)
    assert caught.value.transient is transient
    assert answer[1][:9] in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert len(server.bodies) == tries


def test_hanging_slack_times_out(serve: Any) -> None:
    """A server that never answers costs one timeout, and is not asked again; the error is
    transient.
    """
    server = serve(3_600.0)
    with pytest.raises(SlackError, match="cannot be reached: no answer within 5 s") as caught:
        send(HELLO, server.webhook, timeout=5)
    assert len(server.bodies) == 1
    assert caught.value.transient


def test_unreachable_slack_is_transient_and_silent(caplog: pytest.LogCaptureFixture) -> None:
    """A refused connection raises a transient error; neither it nor any log has the webhook."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/services/T0/B0/s3cr3t"
        with (
            caplog.at_level(logging.DEBUG),
            pytest.raises(SlackError, match="no connection") as caught,
        ):
            send(HELLO, SecretStr(url), pause=0)
    assert caught.value.transient
    assert "s3cr3t" not in str(caught.value) + caplog.text


@pytest.mark.parametrize("url", ["s3cr3t", "ftp://s3cr3t", "http://[s3cr3t", "http://h/a s3cr3t"])
def test_malformed_webhook_is_told_without_showing_it(url: str) -> None:
    """What is no web address can never work, and is not repeated in the error."""
    with pytest.raises(SlackError, match="cannot be used") as caught:
        send(HELLO, SecretStr(url), pause=0)
    assert not caught.value.transient
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("answer", sorted(OF_CONTENT))
def test_a_refusal_of_the_message_is_told_from_one_of_its_sender(serve: Any, answer: str) -> None:
    """The message would be refused for ever, as it is written."""
    with pytest.raises(SlackError) as caught:
        send(HELLO, serve((400, answer, {})).webhook)
    assert caught.value.of_content
    with pytest.raises(SlackError) as caught:
        send(HELLO, serve((403, "action_prohibited", {})).webhook)
    assert not caught.value.of_content

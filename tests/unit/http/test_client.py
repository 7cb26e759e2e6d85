"""The HTTP client: what it reads, whom it follows, what it repeats, and what it never shows."""

from __future__ import annotations

import asyncio
import gzip
import string
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import HttpError, InputError
from ragmetrics.http import Backoff, HttpClient, Redactor, TooLarge, Unreachable, run_coroutine
from tests.fakes.http_server import Handler, free_port, serving

SECRET = "sk-live/4711+abcdef"


class Server:
    """It answers each request with the next of its answers; the last one stays."""

    def __init__(self, *answers: tuple[int, dict[str, str], bytes]) -> None:
        self.answers = list(answers)
        self.paths: list[str] = []
        self.released = Event()
        self.holds = False

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve until the end of the block."""
        with serving(_Handler, server_=self) as url:
            yield url


class _Handler(Handler):
    server_: Server

    def take(self) -> None:
        """Answer, or wait until the test is over."""
        self.body()
        self.server_.paths.append(self.path)
        if self.server_.holds:
            self.server_.released.wait(60)
            return
        many = len(self.server_.answers) > 1
        status, headers, body = self.server_.answers.pop(0) if many else self.server_.answers[0]
        with suppress(ConnectionError):  # the client may not want all of it
            self.answer(status, body, headers)


def failed(server: Server, **more: float) -> HttpError:
    """The error of one request."""
    with server.running() as url, HttpClient(url, secrets=[SECRET], **more) as client:  # type: ignore[arg-type]
        with pytest.raises(HttpError) as caught:
            client.request("GET", "/x")
        server.released.set()
        return caught.value


@pytest.mark.process
def test_no_redirect_is_followed() -> None:
    """It could send the key to another server; the error says where it leads, without the key."""
    server = Server((302, {"Location": f"/x?key={SECRET}"}, b""))
    assert str(failed(server)) == "answered 302: it redirects to /x?key=***"
    assert server.paths == ["/x"]


@pytest.mark.process
def test_an_answer_that_does_not_come_is_transient() -> None:
    """The server holds the request; nothing says whether it was acted on."""
    server = Server((200, {}, b""))
    server.holds = True
    error = failed(server, timeout=2)
    assert (str(error), error.transient, error.sent) == ("no answer within 2 s", True, True)


@pytest.mark.process
def test_a_closed_port_is_transient_and_nothing_was_sent() -> None:
    """A server that is being restarted."""
    client = HttpClient(f"http://127.0.0.1:{free_port()}")
    with client, pytest.raises(HttpError, match="no connection") as caught:
        client.request("POST", "/x", body=b"{}")
    assert (caught.value.transient, caught.value.sent) == (True, False)


@pytest.mark.process
@pytest.mark.parametrize("packed", [False, True])
def test_a_body_is_read_up_to_a_limit(packed: bool) -> None:
    """Announced, or unpacked from a thousandth of its size."""
    body = bytes(3 << 20)
    headers = {"Content-Encoding": "gzip"} if packed else {}
    server = Server((200, headers, gzip.compress(body) if packed else body))

    async def ask(url: str) -> None:
        client = HttpClient(url, most_bytes=2 << 20)
        try:
            await client.send("GET")
        finally:
            await client.aclose()

    with server.running() as url, pytest.raises(TooLarge, match="2,097,152"):
        run_coroutine(ask(url))


@pytest.mark.process
def test_of_an_error_64_kb_are_read() -> None:
    """A page of 16 MB is no error message; it is cut before anybody looks at it."""
    server = Server((404, {}, b"x" * (16 << 20)))
    with server.running() as url, HttpClient(url, most_bytes=64 << 20) as client:
        answer = client.request("GET", "/x", passing=[404])
    assert len(answer.body) == 64 << 10


@pytest.mark.process
def test_no_answer_holds_a_secret() -> None:
    """Neither one that is taken nor an error: as it is, and as JSON may write it."""
    said = b'{"a": "sk-live/4711+abcdef", "b": "\\u0073k-live\\/4711\\u002Babcdef"}'
    server = Server((200, {}, said), (400, {}, said))
    with server.running() as url, HttpClient(url, secrets=[SECRET]) as client:
        assert client.request("GET", "/x").body == b'{"a": "***", "b": "***"}'
        with pytest.raises(HttpError) as caught:
            client.request("GET", "/x")
    assert "4711" not in str(caught.value)


def test_a_header_holds_one_line() -> None:
    """A token with a line break would be another header; it is not repeated."""
    with pytest.raises(InputError, match="the header Authorization") as caught:
        HttpClient("http://x", {"Authorization": "Bearer a\nb"})
    assert "Bearer" not in str(caught.value)


@given(st.text(string.ascii_letters + string.digits + "-_/+=.", min_size=8, max_size=40), st.data())
def test_a_secret_is_found_however_json_escapes_it(secret: str, data: st.DataObject) -> None:
    """Each of its characters as it is, with a backslash, or as its number, also in JSON in JSON."""
    forms = [
        data.draw(st.sampled_from([sign, f"\\u{ord(sign):04x}", f"\\\\u{ord(sign):04X}"]))
        for sign in secret
    ]
    shown = Redactor([secret]).body(f"<{''.join(forms)}>".encode())
    assert shown == b"<***>"


def test_digits_of_an_escape_are_no_part_of_a_secret() -> None:
    """The eight zeros in a row are not those of the secret, whose first one is escaped."""
    redactor = Redactor(["00000000"])
    assert redactor.body(rb"<\u00300000000>") == b"<***>"
    assert redactor.text(r"<\u00300000000>") == "<***>"


def test_short_words_are_no_secrets() -> None:
    """The key `none` of a local server occurs in texts."""
    assert Redactor(["none", "", " "]).body(b"none of them") == b"none of them"
    assert Redactor(["abc"]).text("abc") == "abc"


def test_pauses_double_and_a_server_may_ask_for_more() -> None:
    """Half of each pause is chance, so that many clients do not come back together."""
    pauses: list[float] = []
    errors = [HttpError("no", transient=True, wait=wait) for wait in (0, 0, 9, 0)]

    def act() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    assert Backoff(first=1, longest=4, sleep=pauses.append).call(act) == "done"
    assert [0.5 <= pauses[0] <= 1, 1 <= pauses[1] <= 2, pauses[2] == 9] == [True] * 3
    assert 2 <= pauses[3] <= 4


@pytest.mark.parametrize(
    ("limits", "error", "calls"),
    [
        ({"attempts": 3}, HttpError("no", transient=True), 3),
        ({"seconds": 5.0}, HttpError("no", transient=True, wait=2.0), 3),
        ({"longest_wait": 60.0}, HttpError("no", transient=True, wait=61.0), 1),
        ({}, HttpError("no"), 1),
    ],
)
def test_limits_end_the_repetition(limits: dict[str, float], error: HttpError, calls: int) -> None:
    """Attempts, the time of all, a wait that is too long, and an error that stays."""
    made = []

    def act() -> None:
        made.append(1)
        raise error

    with pytest.raises(HttpError):
        Backoff(first=1e-9, sleep=lambda _: None, **limits).call(act)
    assert len(made) == calls


@pytest.mark.parametrize("while_opening", [False, True])
def test_a_late_request_opens_no_connection(while_opening: bool) -> None:
    """One after `aclose`, or one whose connection is being opened meanwhile: nobody would close
    it.
    """

    async def late() -> None:
        client = HttpClient("http://127.0.0.1:9")
        request = asyncio.ensure_future(client.send("GET")) if while_opening else None
        await asyncio.sleep(0)
        await client.aclose()
        await (request or client.send("GET"))

    with pytest.raises(Unreachable, match="the client is closed"):
        asyncio.run(late())

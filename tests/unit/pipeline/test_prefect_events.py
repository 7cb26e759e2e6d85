"""`ragmetrics emit-build`: one event to Prefect by plain HTTP, or one clear sentence why not."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from ragmetrics.errors import InputError
from ragmetrics.pipeline.prefect_events import EventError, built_event, events_api, post_event
from ragmetrics.records import IndexBuild
from tests.fakes.command import Run
from tests.fakes.events import Answer, EventServer

pytestmark = pytest.mark.process

BUILD = IndexBuild(dataset="towers", build="b2", logs="s3://bucket/b2/", serving="b1")
SECRET = "pnu_secret0123456789"
VARIABLES = (
    "PREFECT_API_URL",
    "PREFECT_API_KEY",
    "PREFECT_API_AUTH_STRING",
    "PREFECT_API_SSL_CERT_FILE",
)


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of the machine."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EventServer]:
    """A server that takes events; PREFECT_API_URL is set to it."""
    with EventServer().running() as running:
        monkeypatch.setenv("PREFECT_API_URL", running.url)
        yield running


def post(server: EventServer, **environ: str) -> None:
    """Post one event with an environment."""
    api = events_api(environ={"PREFECT_API_URL": server.url, **environ})
    post_event(built_event(BUILD), api, pause=0.01)


# The event


def test_the_event_has_what_the_server_demands(run: Run, server: EventServer) -> None:
    """An id and a time of its own, the name, the resource, and the build as payload."""
    ended = run("emit-build", "--build", "b2", "--dataset", "towers", "--against", "b1")
    assert ended.code == 0
    [(_, [event])] = server.posts
    assert UUID(event["id"])
    assert datetime.fromisoformat(event["occurred"]).tzinfo is not None
    assert event["event"] == "rag.index.built"
    assert event["resource"]["prefect.resource.id"] == "rag.index.towers.b2"
    assert event["payload"] == {"dataset": "towers", "build": "b2", "serving": "b1"}
    assert event["id"] in ended.out


def test_the_payload_is_what_the_gate_reads(server: EventServer) -> None:
    """It comes out as the build that went in."""
    post(server)
    [(_, [event])] = server.posts
    assert IndexBuild.model_validate(event["payload"]) == BUILD


def test_json_is_the_event(run: Run, server: EventServer) -> None:
    """As it was sent."""
    ended = run("emit-build", "--build", "b2", "--dataset", "towers", "--json")
    assert [json.loads(ended.out)] == server.posts[0][1]


def test_the_dataset_is_that_of_the_settings(run: Run, server: EventServer) -> None:
    """Where it is not said."""
    assert run("emit-build", "--build", "b2").code == 0
    assert server.posts[0][1][0]["payload"]["dataset"] == "default"


@pytest.mark.parametrize("build", ["../b2", "", "b2\n"])
def test_a_wrong_build_is_never_sent(run: Run, server: EventServer, build: str) -> None:
    """The flow could do nothing with it."""
    ended = run("emit-build", "--build", build, "--dataset", "towers")
    assert ended.code == 2
    assert ended.err.startswith("ragmetrics: index build: build: ")
    assert server.posts == []


# Keys


@pytest.mark.parametrize(
    ("environ", "header"),
    [
        ({}, None),
        ({"PREFECT_API_KEY": SECRET}, f"Bearer {SECRET}"),
        (
            {"PREFECT_API_AUTH_STRING": "admin:pass"},
            f"Basic {base64.b64encode(b'admin:pass').decode()}",
        ),
        (
            {"PREFECT_API_AUTH_STRING": "admin:pass", "PREFECT_API_KEY": SECRET},
            f"Basic {base64.b64encode(b'admin:pass').decode()}",
        ),
    ],
)
def test_keys_are_shown_as_prefect_shows_them(
    server: EventServer, environ: dict[str, str], header: str | None
) -> None:
    """The auth string of a server of one's own goes before the key of Prefect Cloud."""
    post(server, **environ)
    assert server.posts[0][0].get("Authorization") == header


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("environ", "fix"),
    [
        ({}, "set PREFECT_API_KEY, or PREFECT_API_AUTH_STRING"),
        ({"PREFECT_API_KEY": SECRET}, "PREFECT_API_KEY is wrong"),
        ({"PREFECT_API_AUTH_STRING": SECRET}, "PREFECT_API_AUTH_STRING is wrong"),
    ],
)
def test_a_refusal_says_which_key_to_look_at(
    server: EventServer, status: int, environ: dict[str, str], fix: str
) -> None:
    """Asked once, and without giving the key away."""
    server.answers = [Answer(status, "Unauthorized")]
    with pytest.raises(EventError, match=fix) as error:
        post(server, **environ)
    assert SECRET not in str(error.value)
    assert SECRET not in repr(events_api(server.url, environ))
    assert len(server.posts) == 1


def test_a_key_that_is_none_is_told_without_it() -> None:
    """As one with a line break in it."""
    with pytest.raises(InputError, match="PREFECT_API_KEY") as error:
        events_api("http://h/api", {"PREFECT_API_KEY": f"{SECRET}\nmore"})
    assert SECRET not in str(error.value)


# What goes wrong


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "set PREFECT_API_URL"),
        ("prefect.example.com/api", "should be http://HOST:PORT/api"),
        ("ftp://prefect.example.com/api", "should be http://HOST:PORT/api"),
        ("http://", "should be http://HOST:PORT/api"),
        ("http://host:port/api", "should be http://HOST:PORT/api"),
        ("http://[::1/api", "should be http://HOST:PORT/api"),
        (f"http://me:{SECRET}@host/api", "contains a password"),
    ],
)
def test_an_address_that_is_none_is_told(url: str, message: str) -> None:
    """Before anything is sent, and without the password that stood in it."""
    with pytest.raises(InputError, match=message) as error:
        events_api(url, {})
    assert SECRET not in str(error.value)


def test_nobody_there_is_one_sentence(run: Run) -> None:
    """With exit code 2."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/api"
    ended = run("emit-build", "--build", "b2", "--dataset", "towers", "--api-url", url)
    assert ended.code == 2
    assert ended.err == f"ragmetrics: Prefect cannot be reached at {url}: Connection refused\n"


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_what_may_pass_is_tried_once_more(server: EventServer, status: int) -> None:
    """With the same id, by which the server knows it again."""
    server.answers = [Answer(status)]
    post(server)
    first, second = (body[0]["id"] for _, body in server.posts)
    assert first == second


def test_what_does_not_pass_is_told(server: EventServer) -> None:
    """After two attempts, with what the server said."""
    server.answers = [Answer(503, "maintenance")] * 3
    with pytest.raises(EventError, match="status 503, maintenance"):
        post(server)
    assert len(server.posts) == 2


def test_a_long_pause_is_not_waited_for(server: EventServer) -> None:
    """A pipeline is told now."""
    server.answers = [Answer(429, "later", {"Retry-After": "3600"})]
    with pytest.raises(EventError, match="status 429"):
        post(server)
    assert len(server.posts) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(404, "Not Found"), "does the address of Prefect's API end in /api?"),
        (Answer(405, "no"), "does the address of Prefect's API end in /api?"),
        (
            Answer(200, "<html>", {"Content-Type": "text/html; charset=utf-8"}),
            "does the address of Prefect's API end in /api?",
        ),
        (Answer(422, '{"detail": "id"}'), 'cannot read the event: .* {"detail": "id"}'),
        (Answer(301, "", {"Location": "https://new/api/events"}), "moved to https://new/api"),
        (Answer(400, "\x1b[2Jbad\nthing"), r"status 400, \[2Jbad thing"),
    ],
)
def test_each_answer_has_its_sentence(server: EventServer, answer: Answer, message: str) -> None:
    """With the fix, in one line, whatever the server says."""
    server.answers = [answer]
    with pytest.raises(EventError, match=message) as error:
        post(server)
    assert "\n" not in str(error.value)
    assert "\x1b" not in str(error.value)
    assert len(server.posts) == 1


def test_the_address_of_the_pages_is_told_from_that_of_the_api(server: EventServer) -> None:
    """The most frequent mistake: without /api."""
    api = events_api(server.url.removesuffix("/api"), {})
    with pytest.raises(EventError, match="end in /api"):
        post_event(built_event(BUILD), api)


def test_a_file_of_certificates_that_is_none_is_told(server: EventServer, tmp_path: Any) -> None:
    """By the variable that names it."""
    with pytest.raises(InputError, match="PREFECT_API_SSL_CERT_FILE"):
        post(server, PREFECT_API_SSL_CERT_FILE=str(tmp_path / "none.pem"))

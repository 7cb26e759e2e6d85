"""Builds and verdicts announced to a real Prefect server that asks for a password."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

from ragmetrics.config import make_settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline.prefect_events import EventError, built_event, events_api, post_event
from ragmetrics.records import BUILT, HELD, IndexBuild
from tasks.events import NotEmitted
from tasks.index_build import announce
from tests.fakes import gated
from tests.fakes.command import Run
from tests.fakes.offline import skip_or_fail
from tests.fakes.prefect_live import Live, prefect_live
from tests.fakes.processes import ROOT

PASSWORD = "admin:correct-horse"
BUILD = IndexBuild(dataset="towers", build="b2", serving="b1")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server with a password."""
    environment = {
        "PREFECT_SERVER_API_AUTH_STRING": PASSWORD,
        "PREFECT_API_AUTH_STRING": PASSWORD,
    }
    with prefect_live(tmp_path_factory.mktemp("prefect"), **environment) as live:
        yield live


def recorded(live: Live, kind: str = BUILT) -> list[dict[str, Any]]:
    """The events of a kind that the server knows."""
    asked = {"filter": {"event": {"name": [kind]}}, "limit": 50}
    events: list[dict[str, Any]] = live.post("/events/filter", asked)["events"]
    return events


def test_the_server_has_the_event(live: Live, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was sent, with the payload that the flow reads."""
    monkeypatch.setenv("PREFECT_API_URL", live.api)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", PASSWORD)
    ended = run("emit-build", "--build", "b2", "--dataset", "towers", "--against", "b1")
    assert ended.code == 0
    event = live.wait_for(lambda: recorded(live))[0]
    assert event["id"] in ended.out
    assert event["resource"]["prefect.resource.id"] == "rag.index.towers.b2"
    assert IndexBuild.model_validate(event["payload"]) == BUILD


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "set PREFECT_API_KEY, or PREFECT_API_AUTH_STRING"),
        ({"PREFECT_API_AUTH_STRING": "admin:mistyped"}, "PREFECT_API_AUTH_STRING is wrong"),
        ({"PREFECT_API_KEY": "pnu_mistyped"}, "PREFECT_API_KEY is wrong"),
    ],
)
def test_a_wrong_password_is_told(live: Live, environ: dict[str, str], message: str) -> None:
    """By the variable to look at."""
    with pytest.raises(EventError, match=message) as error:
        post_event(built_event(BUILD), events_api(live.api, environ))
    assert "mistyped" not in str(error.value)


def test_the_address_of_the_pages_is_told(live: Live) -> None:
    """Without /api the server shows its pages, and takes no events."""
    api = events_api(live.api.removesuffix("/api"), {"PREFECT_API_AUTH_STRING": PASSWORD})
    with pytest.raises(EventError, match="end in /api"):
        post_event(built_event(BUILD), api)


def test_what_the_server_cannot_read_is_told(live: Live) -> None:
    """An event without an id: as a server of another version might answer to ours."""
    event = {name: value for name, value in built_event(BUILD).items() if name != "id"}
    with pytest.raises(EventError, match="cannot read the event"):
        post_event(event, events_api(live.api, {"PREFECT_API_AUTH_STRING": PASSWORD}))


def test_a_password_in_the_address_is_not_used(live: Live) -> None:
    """It would stand in logs."""
    with pytest.raises(InputError, match="PREFECT_API_AUTH_STRING"):
        events_api(live.api.replace("://", f"://{PASSWORD}@"), {})


def example(language: str) -> str:
    """The one example of docs/how-to/gates.md that posts the event in a language, unchanged."""
    page = (ROOT / "docs/how-to/gates.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    [found] = [block for block in blocks if "rag.index.built" in block]
    return str(found)


def ids(live: Live, build: str = "2026-11-20") -> set[str]:
    """The events of the build of the examples that the server knows."""
    wanted = {"dataset": "help-centre", "build": build}
    return {one["id"] for one in recorded(live) if one["payload"] == wanted}


def test_the_example_for_builders_in_other_languages_works(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/how-to/gates.md posts with curl; it is run as it stands there."""
    if not shutil.which("curl"):
        skip_or_fail("no curl: apt-get install curl")
    monkeypatch.setenv("PREFECT_API_URL", live.api)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", PASSWORD)
    before = ids(live)
    command = ["bash", "-ec", example("bash")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    live.wait_for(lambda: ids(live) - before)


def test_emit_event_is_sent_before_python_ends_but_nobody_hears_where_it_is_not_taken(
    live: Live, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/how-to/gates.md: a script that ends at once loses nothing; with a wrong password it ends
    as well as one whose event was taken; `emit-build` does not."""
    before = ids(live)
    for password in ("admin:mistyped", PASSWORD):
        done = subprocess.run(
            [sys.executable, "-c", example("python")],
            env={**live.environment, "PREFECT_API_AUTH_STRING": password},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    # The server writes events in the order in which they come.
    assert len(live.wait_for(lambda: ids(live) - before)) == 1
    monkeypatch.setenv("PREFECT_API_URL", live.api)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "admin:mistyped")
    assert run("emit-build", "--build", "b3", "--dataset", "towers").code == 2


def test_a_verdict_is_announced_only_when_the_server_has_it(live: Live, tmp_path: Path) -> None:
    """With a wrong password, or where nobody listens, the task fails and may be tried again; the
    password is not told."""
    settings = make_settings({"dataset": "helpdesk", "store": str(tmp_path)})
    gate = gated.gate()
    nowhere = "http://127.0.0.1:9/api"
    for url, password in ((live.api, "admin:mistyped"), (nowhere, PASSWORD)):
        with (
            temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: password}),
            pytest.raises(NotEmitted, match=f"did not take {HELD}: ") as error,
        ):
            announce.fn(settings, gate)
        assert error.value.transient
        assert password not in str(error.value)
    assert recorded(live, HELD) == []
    with temporary_settings({PREFECT_API_URL: live.api, PREFECT_API_AUTH_STRING: PASSWORD}):
        assert announce.fn(settings, gate) == gate
    [held] = live.wait_for(lambda: recorded(live, HELD))
    assert held["resource"]["prefect.resource.id"] == "rag.index.helpdesk.idx-43"
    assert held["payload"]["verdict"] == "hold"

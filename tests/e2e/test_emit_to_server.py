"""`ragmetrics emit-build` against a real Prefect server that asks for a password."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from ragmetrics.errors import InputError
from ragmetrics.events import EventError, built_event, events_api, post_event
from ragmetrics.gates.records import BUILT, IndexBuild
from tests.fakes.command import Run
from tests.fakes.offline import skip_or_fail
from tests.fakes.prefect_live import Live, prefect_live
from tests.fakes.processes import ROOT

pytestmark = pytest.mark.e2e

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


def recorded(live: Live) -> list[dict[str, Any]]:
    """The events of builds that the server knows."""
    asked = {"filter": {"event": {"name": [BUILT]}}, "limit": 50}
    events: list[dict[str, Any]] = live.post("/events/filter", asked)["events"]
    return events


def test_the_server_has_the_event(live: Live, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was sent, with the payload that the flow reads."""
    monkeypatch.setenv("PREFECT_API_URL", live.api)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", PASSWORD)
    ended = run("emit-build", "--build", "b2", "--dataset", "towers", "--against", "b1")
    assert ended.code == 0
    event = live.wait_for(lambda: recorded(live), seconds=30)[0]
    assert event["id"] in ended.out
    assert event["resource"]["prefect.resource.id"] == "rag.index.towers.b2"
    assert IndexBuild.model_validate(event["payload"]) == BUILD


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "set PREFECT_API_KEY, or PREFECT_API_AUTH_STRING"),
        ({"PREFECT_API_AUTH_STRING": "admin:wrong"}, "PREFECT_API_AUTH_STRING is not the one"),
        ({"PREFECT_API_KEY": "pnu_wrong"}, "PREFECT_API_KEY is not the one"),
    ],
)
def test_a_wrong_password_is_told(live: Live, environ: dict[str, str], message: str) -> None:
    """By the variable to look at."""
    with pytest.raises(EventError, match=message) as error:
        post_event(built_event(BUILD), events_api(live.api, environ))
    assert "wrong" not in str(error.value)


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


def test_the_example_for_builders_in_other_languages_works(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/gates.md posts with curl; it is run as it stands there."""
    if not shutil.which("curl"):
        skip_or_fail("no curl: apt-get install curl")
    page = (ROOT / "docs/gates.md").read_text(encoding="utf-8")
    [command] = re.findall(r"```bash\n(curl .*?)```", page, re.DOTALL)
    monkeypatch.setenv("PREFECT_API_URL", live.api)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", PASSWORD)
    done = subprocess.run(["bash", "-ec", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    payload = {"dataset": "helpdesk", "build": "2026-11-20.1"}
    live.wait_for(lambda: payload in [one["payload"] for one in recorded(live)], seconds=30)

"""The automations on a real Prefect server: who is told what, without a worker."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flows.run_state import TOLD
from tests.fakes.prefect_live import Live, prefect_live
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("first")

Automations = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A Prefect server, and no worker."""
    with prefect_live(tmp_path_factory.mktemp("prefect")) as server:
        yield server


@pytest.fixture(scope="module")
def slack() -> Iterator[SlackServer]:
    """The webhook that all tests here share: each looks for what is about its own runs."""
    with SlackServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def automations(live: Live, slack: SlackServer) -> Automations:
    """Runs `python -m flows.automations` against the server, with Slack's address to tell."""

    def run(*arguments: str, code: int = 0, **changes: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            # The shortest wait that Prefect takes: here nobody reports a crash a second time.
            [sys.executable, "-m", "flows.automations", *arguments, "--crashed-after", "10s"],
            cwd=ROOT,
            env={**live.environment, "SLACK_WEBHOOK_URL": slack.url, **changes},
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "secret" not in done.stdout + done.stderr  # it ends the webhook's address
        return done

    return run


@pytest.fixture(scope="module")
def first(automations: Automations) -> str:
    """What the first `apply` on the server said; from then on the automations are there."""
    return automations("apply").stdout


def deploy(live: Live, name: str) -> str:
    """A deployment of the nightly with our tag; returns its id."""
    flow = live.post("/flows/", {"name": "nightly"})["id"]
    body = {"name": name, "flow_id": flow, "tags": ["ragmetrics"]}
    deployment: str = live.post("/deployments/", body)["id"]
    return deployment


def start(live: Live, deployment: str, name: str) -> str:
    """A run of a deployment, under way for all that the server knows."""
    run: str = live.post(f"/deployments/{deployment}/create_flow_run", {"name": name})["id"]
    for state in ("PENDING", "RUNNING"):
        go(live, run, state)
    return run


def go(live: Live, run: str, kind: str, message: str = "", name: str | None = None) -> None:
    """Set the state of a run, as its engine would."""
    state = {"type": kind, "message": message, **({"name": name} if name else {})}
    live.post(f"/flow_runs/{run}/set_state", {"state": state})


def told(slack: SlackServer, about: str) -> list[dict[str, Any]]:
    """The delivered messages that hold a text."""
    return [message for message in slack.delivered if about in json.dumps(message)]


def body(message: dict[str, Any]) -> str:
    """The plain text of a message."""
    block = message["blocks"][1]["text"]
    assert block["type"] == "plain_text"
    text: str = block["text"]
    return text


def test_applying_twice_changes_nothing(automations: Automations, first: str) -> None:
    """The first makes the block and all automations, the second finds them; check agrees."""
    assert first.count(" created") == 8
    again = automations("apply").stdout
    assert again.count(" unchanged") == 8
    assert not any(word in again for word in ("created", "updated", "deleted"))
    assert automations("check").stdout.count(" as in the file") == 8


def test_what_was_changed_by_hand_is_seen_and_mended(live: Live, automations: Automations) -> None:
    """An automation that was switched off, one of an earlier release, and another window than the
    file's: check fails, apply mends, and nobody else's automation is touched."""
    live.cli("automation", "pause", "ragmetrics: run failed")
    for name in ("ragmetrics: of an earlier release", "theirs"):
        live.post(
            "/automations/",
            {
                "name": name,
                "trigger": {"type": "event", "posture": "Reactive", "expect": ["nothing"]},
                "actions": [{"type": "do-nothing"}],
            },
        )
    seen = automations("check", "--missing-after", "30h", code=1).stdout
    assert "not in the file" in seen
    assert seen.count(" differs") == 2
    mended = automations("apply").stdout
    assert mended.count(" updated") == 1
    assert mended.count(" deleted") == 1
    automations("check")
    names = {one["name"] for one in live.post("/automations/filter")}
    assert "theirs" in names
    assert "ragmetrics: of an earlier release" not in names


def test_a_moved_webhook_is_noticed(
    live: Live, automations: Automations, slack: SlackServer
) -> None:
    """Another address in the environment: the block differs, and apply updates it alone."""
    moved = slack.url + "-moved"
    assert automations("check", code=1, SLACK_WEBHOOK_URL=moved).stdout.count(" differs") == 1
    assert automations("apply", SLACK_WEBHOOK_URL=moved).stdout.count(" updated") == 1
    shown = json.dumps(live.post("/block_documents/filter", {"include_secrets": False}))
    assert "ragmetrics-slack" in shown
    assert slack.url not in shown
    automations("apply")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"SLACK_WEBHOOK_URL": ""}, "SLACK_WEBHOOK_URL is not set to the address"),
        ({"PREFECT_API_URL": ""}, "set PREFECT_API_URL"),
        ({"PREFECT_API_URL": "http://127.0.0.1:9/api"}, "no Prefect server at"),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    automations: Automations, changes: dict[str, str], message: str
) -> None:
    """No server, or nobody to tell: exit code 2 and the fix."""
    done = automations("apply", code=2, **changes)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_failed_run_is_told_once_and_cannot_speak_for_us(live: Live, slack: SlackServer) -> None:
    """The message has the run's reason, as plain text whatever it holds, and a link to the run."""
    run = start(live, deploy(live, "failing"), "night-of-failure")
    go(live, run, "FAILED", "<!channel> {{ webhook }} *bold* <https://evil.example|click>")
    (message,) = live.wait_for(lambda: told(slack, "night-of-failure"))
    assert "<!channel> {{ webhook }} *bold* <https://evil.example|click>" in body(message)
    assert "evil" not in message["text"]
    assert "nightly failed" in message["text"]
    assert f"/runs/flow-run/{run}|open the run>" in message["text"]


def test_a_failure_that_the_run_told_itself_is_not_told_again(
    live: Live, slack: SlackServer
) -> None:
    """It ends as failed under another name; the next failure, which nobody told, is told."""
    deployment = deploy(live, "telling")
    go(live, start(live, deployment, "night-of-its-own-words"), "FAILED", "no log", TOLD)
    go(live, start(live, deployment, "night-of-no-words"), "FAILED", "no bucket")
    live.wait_for(lambda: told(slack, "night-of-no-words"))
    assert told(slack, "night-of-its-own-words") == []


def test_slack_down_for_a_moment_loses_no_message(live: Live, slack: SlackServer) -> None:
    """The server posts again what Slack answered with a 500, and stops when it has got through."""
    slack.fail("500", times=2, about="two-failures")
    run = start(live, deploy(live, "unlucky"), "night-of-two-failures")
    go(live, run, "FAILED", "and Slack is down")
    live.wait_for(lambda: told(slack, "night-of-two-failures"))
    posted = [message for message in slack.received if "two-failures" in json.dumps(message)]
    assert len(posted) == 3
    assert len(told(slack, "two-failures")) == 1


def test_a_run_that_its_worker_never_started_is_told(
    live: Live, automations: Automations, slack: SlackServer
) -> None:
    """It would hold its place in the work queue for ever: it is crashed, for good, as it never
    began."""
    automations("apply", "--zombie-after", "10s")
    deployment = deploy(live, "stuck")
    body = {"name": "night-that-never-began"}
    run: str = live.post(f"/deployments/{deployment}/create_flow_run", body)["id"]
    go(live, run, "PENDING")
    [message] = live.wait_for(lambda: told(slack, "did not start it"))
    assert "crashed, and is not run again" in message["text"]
    assert state(live, run) == "Crashed"


def test_a_crashed_run_is_run_again_three_times_and_then_left(
    live: Live, slack: SlackServer
) -> None:
    """Each crash is told once; three times the same run waits for a worker again, and the fourth
    crash is the last."""
    deployment = deploy(live, "crashing")
    run = start(live, deployment, "night-of-crashes")
    for crash in (1, 2, 3):
        go(live, run, "CRASHED", "out of memory")
        live.wait_for(lambda: state(live, run) == "AwaitingRetry")
        wait_for_messages(live, slack, crash)
        go(live, run, "PENDING")
        go(live, run, "RUNNING")
    go(live, run, "CRASHED", "out of memory")
    live.wait_for(lambda: told(slack, "crashed, and is not run again"))
    assert state(live, run) == "Crashed"
    assert live.get(f"/flow_runs/{run}")["run_count"] == 4
    wait_for_messages(live, slack, 4)
    assert len(told(slack, "and is run again")) == 3


def wait_for_messages(live: Live, slack: SlackServer, count: int) -> None:
    """Wait until so many crashes were told."""
    live.wait_for(lambda: len(told(slack, "night-of-crashes")) == count)


def state(live: Live, run: str) -> str:
    """The name of a run's state."""
    name: str = live.get(f"/flow_runs/{run}")["state_name"]
    return name


def test_an_index_build_that_starts_nothing_is_told(live: Live, slack: SlackServer) -> None:
    """Where the trigger of a deployment fires and no run can begin, the reason reaches Slack."""
    live.post(
        "/automations/",
        {
            "name": "index-build__automation_1",
            "trigger": {"type": "event", "posture": "Reactive", "expect": ["rag.index.built"]},
            "actions": [
                {
                    "type": "run-deployment",
                    "source": "selected",
                    "deployment_id": deploy(live, "gate"),
                    "parameters": {"build": "{{ event.payload.build.name.short }}"},
                }
            ],
        },
    )

    def announced() -> list[dict[str, Any]]:
        """A server takes up to five seconds to know an automation: announced until then."""
        event = {
            "id": str(uuid.uuid4()),
            "occurred": dt.datetime.now(dt.UTC).isoformat(),
            "event": "rag.index.built",
            "resource": {"prefect.resource.id": "rag.index"},
            "payload": {"dataset": "towers"},
        }
        live.post("/events", [event])
        return told(slack, "could not act")

    message = live.wait_for(announced, seconds=120, every=3)[0]
    assert "index-build__automation_1" in message["text"]
    assert body(message).startswith("run-deployment: ")


def test_a_nightly_that_never_ran_is_missed(
    live: Live, automations: Automations, slack: SlackServer
) -> None:
    """From `apply` on a night is expected: without worker, schedule or run, Slack is told."""
    deploy(live, "forgotten")
    assert "forgotten" in automations("apply", "--missing-after", "12s").stdout
    (message,) = live.wait_for(lambda: told(slack, "forgotten"))
    assert "the nightly is missing" in message["text"]
    assert "No run of forgotten has ended for 12 seconds." in body(message)
    assert "since the automations were set up" in body(message)


def test_a_nightly_that_stopped_running_is_missed_from_its_last_end(
    live: Live, automations: Automations, slack: SlackServer
) -> None:
    """The wait begins with each end, and the message says which was the last."""
    deployment = deploy(live, "stopped")
    automations("apply", "--missing-after", "12s")
    go(live, start(live, deployment, "the-last-night"), "COMPLETED")
    # On a busy machine that end may come after 12 s, which then have a message of their own.
    (message,) = live.wait_for(lambda: told(slack, "the-last-night"))
    assert "No run of stopped has ended for 12 seconds." in body(message)
    assert "The last was the-last-night, at 20" in body(message)

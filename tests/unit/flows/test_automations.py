"""The file of automations: what Prefect would take silently is refused, and texts stay harmless."""

from __future__ import annotations

import argparse
import re
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prefect.events.schemas.automations import Automation, AutomationCore
from prefect.server.events.actions import SendNotification
from prefect.server.events.schemas.automations import AutomationCreate, EventTrigger
from prefect.server.events.schemas.events import ReceivedEvent
from prefect.server.utilities.user_templates import render_user_template_sync

from flows.automation_file import PREFIX, plan, read_automations, without_telling
from flows.automations import BLOCK, FILE, MESSAGE, TAG, block_values, seconds
from flows.run_state import TOLD
from ragmetrics.errors import InputError
from tests.builders import save_settings
from tests.fakes.processes import ROOT

BLOCK_ID = uuid.UUID(int=7)
VALUES = {
    "SLACK_BLOCK_ID": str(BLOCK_ID),
    "MISSING_AFTER_SECONDS": 26 * 3600.0,
    "ZOMBIE_AFTER_SECONDS": 600.0,
    "CRASHED_AFTER_SECONDS": 45.0,
}
SLACK_LIMIT = 3_000
RUN = uuid.uuid4()
HOSTILE = "<!channel> *now* {{ webhook }} {% raw %} <https://evil.example|click> " * 200


def automations() -> dict[str, AutomationCreate]:
    """Those of the file, as the server reads them, by name."""
    read = read_automations(FILE, VALUES)
    return {
        automation.name: AutomationCreate.model_validate(
            automation.model_dump(mode="json", exclude={"owner_resource"})
        )
        for automation in read
    }


def short(name: str) -> str:
    """What the name says beyond being ours."""
    return name.removeprefix(PREFIX)


def trigger(name: str) -> EventTrigger:
    """The trigger of an automation of the file."""
    found = automations()[PREFIX + name].trigger
    assert isinstance(found, EventTrigger)
    return found


def state_event(
    state: str, kind: str, *, starts: int = 1, tag: str = TAG, flow: str = "nightly", why: str = ""
) -> ReceivedEvent:
    """A run of a deployment going into a state, as the server announces it."""
    return ReceivedEvent.model_validate(
        {
            "id": uuid.uuid4(),
            "occurred": "2026-11-20T05:31:00Z",
            "event": f"prefect.flow-run.{state}",
            "resource": {
                "prefect.resource.id": f"prefect.flow-run.{RUN}",
                "prefect.resource.name": why[:300] or "nightly 2026-11-19",
                "prefect.run-count": str(starts),
                "prefect.state-message": why,
                "prefect.state-name": state,
                "prefect.state-type": kind,
            },
            "related": [
                {
                    "prefect.resource.id": f"prefect.flow.{uuid.uuid4()}",
                    "prefect.resource.role": "flow",
                    "prefect.resource.name": flow,
                },
                {
                    "prefect.resource.id": f"prefect.deployment.{uuid.uuid4()}",
                    "prefect.resource.role": "deployment",
                    "prefect.resource.name": "nightly",
                },
                {"prefect.resource.id": f"prefect.tag.{tag}", "prefect.resource.role": "tag"},
            ],
        }
    )


def interested(event: ReceivedEvent) -> set[str]:
    """Names of the automations that a state fires, at once or if nothing follows for a minute."""
    found = set()
    for name, automation in automations().items():
        trigger = automation.trigger
        assert isinstance(trigger, EventTrigger)
        soon = trigger.within.total_seconds() < 60 and trigger.starts_after(event.event)
        if trigger.covers(event) and (trigger.immediate or soon):
            found.add(short(name))
    return found


@pytest.mark.parametrize(
    ("state", "kind", "starts", "fired"),
    [
        ("Failed", "FAILED", 1, {"run failed"}),
        ("TimedOut", "FAILED", 2, {"run failed"}),
        (TOLD, "FAILED", 1, set()),
        ("Crashed", "CRASHED", 0, {"run crashed for good"}),
        ("Crashed", "CRASHED", 1, {"run crashed"}),
        ("Crashed", "CRASHED", 3, {"run crashed"}),
        ("Crashed", "CRASHED", 4, {"run crashed for good"}),
        ("Crashed", "CRASHED", 12, {"run crashed for good"}),
        ("Completed", "COMPLETED", 1, set()),
        ("Waiting", "COMPLETED", 1, set()),
        ("Cancelled", "CANCELLED", 1, set()),
    ],
)
def test_each_bad_end_fires_one_automation(
    state: str, kind: str, starts: int, fired: set[str]
) -> None:
    """A failure is told, but not where the run has told it itself; a crash is told once too, and by
    its number says if it is run again."""
    assert interested(state_event(state, kind, starts=starts)) == fired


def test_a_crash_is_left_alone_until_all_have_reported_it() -> None:
    """Whatever the run does next ends the wait, a second report of the same crash begins it anew:
    a run that is started at once would be crashed by that report, and be started twice."""
    crashed = trigger("run crashed")
    assert not crashed.immediate
    assert crashed.for_each == {"prefect.resource.id"}
    assert crashed.within.total_seconds() > 3 * 13  # the worker reports 13 s after the runner
    kinds = {"Crashed": "CRASHED", "AwaitingRetry": "SCHEDULED", "Running": "RUNNING"}
    for state, kind in kinds.items():
        event = state_event(state, kind, starts=2)
        assert crashed.covers(event)
        assert crashed.expects(event.event)
        assert crashed.starts_after(event.event) == (state == "Crashed")


def test_other_peoples_runs_are_not_touched() -> None:
    """On a shared server a run without our tag fires nothing, whatever its flow is called."""
    for state, kind in [("Failed", "FAILED"), ("Crashed", "CRASHED")]:
        assert not interested(state_event(state, kind, tag="theirs"))
    assert not trigger("nightly missing").covers(state_event("Completed", "COMPLETED", tag="x"))
    assert not trigger("nightly missing").covers(state_event("Completed", "COMPLETED", flow="x"))


def test_a_run_that_ends_in_any_way_is_no_zombie() -> None:
    """Each final state ends the wait for a heartbeat, those named by our flows included: a run
    that waits for batches has ended."""
    zombie = trigger("zombie run")
    for state in ["Completed", "Waiting", "Failed", TOLD, "TimedOut", "Crashed", "Cancelled"]:
        assert zombie.expects(f"prefect.flow-run.{state}")
    assert not zombie.expects("prefect.flow-run.Running")
    waiting = (ROOT / "flows" / "run_state.py").read_text("utf-8")
    assert 'name="Waiting"' in waiting


def test_a_run_that_no_worker_starts_gives_up_its_place() -> None:
    """A worker that dies between taking a run and starting it would block its work queue."""
    stuck = trigger("run stuck")
    pending = state_event("Pending", "PENDING", starts=0)
    assert stuck.covers(pending)
    assert stuck.starts_after(pending.event)
    assert stuck.expects("prefect.flow-run.Running")


def test_the_zombie_window_is_longer_than_three_of_prefects_heartbeats() -> None:
    """By default a run that lives is never marked as dead, on a worker with no settings at all."""
    from prefect.settings import get_current_settings

    every = get_current_settings().flows.heartbeat_frequency
    assert every is not None
    assert trigger("zombie run").within.total_seconds() > 3 * every


def test_a_nightly_is_missed_from_its_last_end_on() -> None:
    """Every end starts the wait anew; one that failed has a message of its own and counts."""
    missing = trigger("nightly missing")
    ends = {"Completed": "COMPLETED", "Waiting": "COMPLETED", "Failed": "FAILED", TOLD: "FAILED"}
    for state, kind in ends.items():
        event = state_event(state, kind)
        assert missing.covers(event)
        assert missing.starts_after(event.event)
        assert missing.expects(event.event)
    assert not missing.expects("ragmetrics.nightly.expected")
    assert missing.starts_after("ragmetrics.nightly.expected")


def test_the_last_resort_watches_all_but_itself() -> None:
    """A failed action of any of ours is told, and that of a deployment's trigger; its own is not,
    for it would fail for ever."""
    last = trigger("action failed")

    def covers(name: str) -> bool:
        event = {
            "id": uuid.uuid4(),
            "occurred": "2026-11-20T05:31:00Z",
            "event": "prefect.automation.action.failed",
            "resource": {
                "prefect.resource.id": f"prefect.automation.{uuid.uuid4()}",
                "prefect.resource.name": name,
            },
        }
        return last.covers(ReceivedEvent.model_validate(event))

    names = set(automations())
    assert {name for name in names if covers(name)} == names - {f"{PREFIX}action failed"}
    assert covers("index-build__automation_1")
    assert not covers("their automation")


@pytest.mark.parametrize("name", sorted(automations()))
def test_what_runs_say_stands_in_plain_text_alone_and_fits(name: str) -> None:
    """However long and hostile it is, text of a run is in the body, which Slack does not read as
    markup, and within Slack's limit; the subject is ours, with a link."""
    for action in automations()[name].actions:
        if not isinstance(action, SendNotification):
            continue
        event = state_event("Failed", "FAILED", why=HOSTILE)
        event.payload = {"action_type": "run-deployment", "reason": HOSTILE}
        context = {
            "event": event,
            "flow": SimpleNamespace(name="nightly"),
            "deployment": SimpleNamespace(name="nightly"),
            "automation": automations()[name],
            "flow_run": None,
        }
        body = render_user_template_sync(action.body, context)
        assert "evil.example" in body
        assert 0 < len(body) <= SLACK_LIMIT
        if name != f"{PREFIX}action failed":  # it names an automation
            subject = render_user_template_sync(action.subject, context)
            assert "evil.example" not in subject
            assert subject.startswith(":")
    body_block = MESSAGE["blocks"][1]["text"]
    assert body_block == {"type": "plain_text", "text": "{{body}}", "emoji": False}


def test_a_night_with_gaps_and_a_broken_run_are_told_apart() -> None:
    """Of a night that was published the message says what the night itself does; of any other
    failure that its work was not done."""
    (action,) = automations()[f"{PREFIX}run failed"].actions
    assert isinstance(action, SendNotification)

    def told(why: str) -> str:
        event = state_event("Failed", "FAILED", why=why)
        return render_user_template_sync(action.body, {"event": event})

    gaps = told("Flow run encountered an exception: CoverageShort: night 2026-11-19: 5 of 9 rows")
    empty = told("CoverageShort: night 2026-11-19: no log file; no row has a score")
    broken = told("Flow run encountered an exception: StoreError: no such bucket")
    assert gaps.endswith("5 of 9 rows")
    assert empty.endswith("no row has a score")
    assert broken.endswith(
        "no such bucket\nThe run ended before its work was done, and is not run again by itself."
    )
    assert "published" not in broken


def test_the_file_is_what_prefects_own_command_takes() -> None:
    """With the names filled in as text, `prefect automation create` reads it too."""
    text = FILE.read_text("utf-8")
    for name, value in VALUES.items():
        text = text.replace(f"${{{name}}}", str(value))
    listed = yaml.safe_load(text)["automations"]
    read = [AutomationCore.model_validate(one) for one in listed]
    assert [one.name for one in read] == list(automations())


def test_without_slack_what_else_they_do_is_left() -> None:
    """A crashed run is still run again, and a dead one still marked; nothing needs a webhook."""
    left = without_telling(read_automations(FILE, VALUES))
    assert {short(one.name): [do.type for do in one.actions] for one in left} == {
        "run crashed": ["change-flow-run-state"],
        "zombie run": ["change-flow-run-state"],
        "run stuck": ["change-flow-run-state"],
    }


def write(folder: Path, **changes: Any) -> Path:
    """A file with one automation."""
    one = {
        "name": "ragmetrics: test",
        "trigger": {"expect": ["prefect.flow-run.Failed"]},
        "actions": [{"type": "do-nothing"}],
    } | changes
    return save_settings(folder, name="automations.yaml", automations=[one])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "their automation"}, "the name should begin with 'ragmetrics: '"),
        ({"trigger": {"expct": ["x"]}}, "Prefect knows no 'trigger.expct'"),
        ({"actions": [{"type": "do-nothing", "boddy": "x"}]}, "Prefect knows no 'actions.boddy'"),
        ({"trigger": {"posture": "Proactive", "within": 5}}, "10 seconds"),
        ({"actions": [{"type": "ring-a-bell"}]}, "actions"),
        ({"trigger": {"within": "${SOON}"}}, r"\$\{SOON\} has no value; there are: CRASHED_AFTER"),
    ],
)
def test_a_mistake_in_the_file_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """What Prefect would reject, and what it would drop without a word, is an error here."""
    with pytest.raises(InputError, match=message):
        read_automations(write(tmp_path, **changes), VALUES)


@pytest.mark.parametrize("text", ["", "automations: {}", "- a list", "automations: [1]", "a: b: c"])
def test_a_file_that_lists_no_automations_is_refused(tmp_path: Path, text: str) -> None:
    """It would delete all that there are."""
    path = tmp_path / "automations.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"automations\.yaml"):
        read_automations(path, VALUES)


def on_server(core: AutomationCore) -> Automation:
    """The same, with the id that a server gives."""
    return Automation(id=uuid.uuid4(), **core.model_dump())


def test_only_what_differs_is_changed(tmp_path: Path) -> None:
    """A plan keeps what is as in the file, mends what differs or was switched off, and deletes a
    second one of the same name and what the file no longer has."""
    wanted = read_automations(FILE, VALUES)
    same, paused, twin, old = (on_server(one) for one in (*wanted[:2], wanted[0], wanted[0]))
    paused.enabled = False
    old.name = f"{PREFIX}of an earlier release"
    steps = plan(wanted, [same, paused, twin, old])
    assert [step.change for step in steps[:2]] == ["keep", "update"]
    assert {step.change for step in steps[2 : len(wanted)]} == {"create"}
    assert [(step.change, step.id) for step in steps[len(wanted) :]] == [
        ("delete", twin.id),
        ("delete", old.id),
    ]


def test_the_servers_setting_in_the_docs_is_one_that_it_starts_with() -> None:
    """Prefect's server does not start with a duration that it cannot read."""
    from datetime import timedelta

    from prefect.settings.models.server.events import ServerEventsSettings

    docs = (ROOT / "docs" / "how-to" / "automations.md").read_text("utf-8")
    found = re.search(r"PREFECT_SERVER_EVENTS_EXPIRED_BUCKET_BUFFER=(\w+)", docs)
    assert found
    read = ServerEventsSettings.model_validate({"expired_bucket_buffer": found[1]})
    assert read.expired_bucket_buffer == timedelta(days=1)


def test_durations_are_read_with_their_unit() -> None:
    """A bare number is refused: 26 of what?"""
    assert [seconds(text) for text in ("26h", "10m", "45s", "1.5h", "2d")] == [
        93_600,
        600,
        45,
        5_400,
        172_800,
    ]
    for text in ("26", "h", "-1h", "1 hour", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="write 26h"):
            seconds(text)


def test_all_deployments_are_watched() -> None:
    """Each deployment of prefect.yaml carries the tag that the automations look for."""
    listed = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text("utf-8"))
    assert listed["deployments"]
    for deployment in listed["deployments"]:
        assert TAG in deployment.get("tags", []), deployment["name"]


def test_the_block_takes_its_address_from_a_secret() -> None:
    """The webhook's address is kept where Prefect hides it, and the block accepts the message."""
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    block = CustomWebhookNotificationBlock(**block_values("https://hooks.example/T0/secret"))
    assert block.name == BLOCK
    assert "secret" not in block.url
    request = block._build_request_args("{{webhook}} <!here>", "Subject")
    assert request["url"] == "https://hooks.example/T0/secret"
    assert request["json"]["blocks"][1]["text"]["text"] == "{{webhook}} <!here>"
    assert request["json"]["text"] == "Subject"


def test_a_slow_slack_has_time_to_answer() -> None:
    """Prefect posts a message again that it has no answer to: not after its own ten seconds."""
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    block = CustomWebhookNotificationBlock(**block_values("https://hooks.example/T0/secret"))
    assert block._build_request_args("Body", "Subject")["timeout"] == 60

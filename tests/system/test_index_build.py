"""The gate of an index build on a live server: an event by plain HTTP, a worker, a verdict."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ragmetrics.comparison import load_gate
from ragmetrics.storage import Files, Runs
from tests.builders import judge_at, save_settings
from tests.fakes.builds import make_builds
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.prefect_live import Live, prefect_live
from tests.fakes.slack import SlackServer
from tests.fakes.sound import assert_sound

pytestmark = pytest.mark.timeout(1200)

SECONDS = 15
"""From the event to the gate's run: what is promised."""
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}


@dataclass(frozen=True)
class Plant:
    """An installation: a server with the deployments of the checkout, a worker, a bucket with logs
    and store, Slack."""

    live: Live
    slack: SlackServer
    bucket: Bucket
    folder: Path
    """On the worker's machine, with the settings."""

    @property
    def store(self) -> Files:
        """What the worker's runs write to."""
        return Files(f"{self.bucket.uri}/store")

    @contextmanager
    def settings(self, **changes: Any) -> Iterator[None]:
        """Settings with some changes, for the runs of a block."""
        write_settings(self.folder, self.bucket, **changes)
        try:
            yield
        finally:
            write_settings(self.folder, self.bucket)

    def announce(self, payload: Any = None, **more: Any) -> str:
        """Post `rag.index.built` as a builder in any language would; return the event's id."""
        event = {
            "id": str(uuid4()),
            "occurred": datetime.now(UTC).isoformat(),
            "event": "rag.index.built",
            "resource": {"prefect.resource.id": "rag.index.plant", "rag.dataset": "plant"},
            **({} if payload is None else {"payload": payload}),
            **more,
        }
        body = json.dumps([event]).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.live.api}/events", body, headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            assert answer.status == 204
        return str(event["id"])

    def run_of(self, event: str, seconds: float = 180) -> dict[str, Any]:
        """The run that an event started, as soon as the server has it."""

        def found() -> list[dict[str, Any]]:
            runs = self.live.post("/flow_runs/filter", {})
            return [run for run in runs if run["parameters"].get("event_id") == event]

        return self.live.wait_for(found, seconds=seconds, every=0.1)[0]

    def ended(self, event: str) -> dict[str, Any]:
        """The run that an event started, once it is over."""
        return self.over(self.run_of(event)["id"])

    def over(self, run: str) -> dict[str, Any]:
        """A run, once it is over."""

        def over() -> dict[str, Any] | None:
            now: dict[str, Any] = self.live.get(f"/flow_runs/{run}")
            return now if now["state_type"] in ENDED else None

        found = self.live.wait_for(over)
        assert found is not None
        return found

    def emitted(self, kind: str, build: str, seconds: float = 120) -> list[dict[str, Any]]:
        """The events of a verdict, once there is one: the server writes them now and then."""
        resource = {"id": [f"rag.index.plant.{build}"]}
        where = {"filter": {"event": {"name": [kind]}, "resource": resource}}
        return self.live.wait_for(
            lambda: self.live.post("/events/filter", where)["events"], seconds=seconds
        )

    def told(self, about: str) -> list[str]:
        """The delivered messages that hold a text."""
        texts = (json.dumps(message, ensure_ascii=False) for message in self.slack.delivered)
        return [text for text in texts if about in text]

    def page(self) -> str:
        """The page of builds."""
        return self.store.read("dashboard/builds.html").decode()


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory, bucket: Bucket) -> Iterator[Plant]:
    """Deployed by deployments/prefect.yaml, with three builds' logs and one worker."""
    folder = tmp_path_factory.mktemp("plant")
    make_builds(folder / "builds", seed=1)
    for log in folder.glob("builds/*/log.jsonl"):
        Files(bucket.uri).write(str(log.relative_to(folder)), log.read_bytes())
    write_settings(folder, bucket)
    with SlackServer().running() as slack:
        accounts = {"SLACK_WEBHOOK_URL": slack.url, "OPENAI_API_KEY": "testing"}
        with prefect_live(folder / "prefect", **accounts) as live:
            live.post("/work_pools/", {"name": "ragmetrics", "type": "process"})
            live.post(
                "/variables/",
                {"name": "ragmetrics_settings", "value": str(folder / "ragmetrics.yaml")},
            )
            live.cli("deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
            with live.worker():
                yield Plant(live, slack, bucket, folder)


def write_settings(folder: Path, bucket: Bucket, **changes: Any) -> None:
    """Settings of the plant, judged without network."""
    save_settings(
        folder,
        {
            "dataset": "plant",
            "logs": f"{bucket.uri}/logs/dt={{date}}/",
            "store": f"{bucket.uri}/store",
            "gate": {"logs": f"{bucket.uri}/builds/{{build}}/"},
            **changes,
        },
    )


def write_log(bucket: Bucket, place: str, rows: list[dict[str, Any]], **fields: Any) -> None:
    """Write a log to the bucket, with some fields set in all of its rows."""
    text = "".join(json.dumps({**row, **fields}) + "\n" for row in rows)
    Files(bucket.uri).write(f"{place}/log.jsonl", text.encode())


@dataclass(frozen=True)
class Held:
    """The damaged build's run, which one event started that was posted twice."""

    event: str
    posted: datetime
    answered: datetime
    run: dict[str, Any]


DAMAGED = {"dataset": "plant", "build": "damaged", "serving": "serving"}


@pytest.fixture(scope="module")
def held(plant: Plant) -> Held:
    """Announced by a builder that posts its event once more, as one that heard no answer does."""
    posted = datetime.now(UTC)
    event = plant.announce(DAMAGED)
    answered = datetime.now(UTC)
    plant.announce(DAMAGED, id=event)
    return Held(event, posted, answered, plant.ended(event))


def test_a_damaged_build_is_held_within_seconds_and_told(plant: Plant, held: Held) -> None:
    """Event by HTTP, run within 15 s, verdict in the store, on the page, in Slack, as an event."""
    created, begun, done = moments = [
        datetime.fromisoformat(held.run[what]) for what in ("created", "start_time", "end_time")
    ]
    after = [f"{(moment - held.posted).total_seconds():.1f} s" for moment in moments]
    print("created, begun and ended", *after, "after the event")
    print(f"created -> start_time: {(begun - created).total_seconds():.1f} s")
    assert created < begun < done
    assert (created - held.posted).total_seconds() < SECONDS
    assert (held.run["state_type"], held.run["name"]) == ("COMPLETED", "index build damaged")
    gate = load_gate(plant.store, "damaged")
    assert gate is not None
    assert (gate.verdict, gate.serving, gate.told) == ("hold", "serving", True)
    assert gate.built_at is not None  # the event's time, not when the gate came to run
    assert held.posted <= gate.built_at <= held.answered
    assert 'id="build-damaged"' in plant.page()
    assert 'href="builds.html"' in plant.store.read("dashboard/index.html").decode()
    (message,) = plant.told("index build damaged is held")
    assert "against serving" in message
    (emitted,) = plant.emitted("rag.index.held", "damaged")
    assert emitted["payload"]["verdict"] == "hold"
    assert emitted["payload"]["metrics"][0]["questions"] > 100
    assert emitted["payload"]["page"].endswith("builds/damaged.html")


def test_task_runs_of_a_gate_are_named_by_its_build(plant: Plant, held: Held) -> None:
    """So that those of two gates at once can be told apart, and the two builds' in one gate."""
    where = {"flow_runs": {"id": {"any_": [held.run["id"]]}}}
    steps = {f"{step} · damaged" for step in ("stage", "verdict", "publish", "announce", "tell")}

    def names() -> set[str]:
        return {task["name"] for task in plant.live.post("/task_runs/filter", where)}

    def builds() -> set[str]:
        return {name.rpartition(" · ")[2] for name in names() if " · shard 1/" in name}

    # The server writes task runs a little later.
    plant.live.wait_for(lambda: names() >= steps and len(builds()) == 2)
    assert builds() == {"damaged", "serving for damaged"}


def test_the_verdict_is_an_artifact(plant: Plant, held: Held) -> None:
    """Whoever looks at the run sees the table."""
    where = {"artifacts": {"key": {"any_": ["ragmetrics-plant-gate"]}}}
    artifacts = plant.live.post("/artifacts/filter", where)
    assert {found["flow_run_id"] for found in artifacts} >= {held.run["id"]}
    assert any("| Context recall |" in str(found["data"]).replace("\\", "") for found in artifacts)


def test_the_same_build_again_changes_and_tells_nothing(plant: Plant, held: Held) -> None:
    """Posted twice by one builder, and once more by another: one record, one message, and one
    event of the verdict."""
    known = plant.store.read("gates/damaged.json")
    assert plant.ended(plant.announce(DAMAGED))["state_type"] == "COMPLETED"
    runs = [run["parameters"].get("event_id") for run in plant.live.post("/flow_runs/filter", {})]
    assert runs.count(held.event) == 1
    assert plant.store.read("gates/damaged.json") == known
    assert len(plant.told("index build damaged is held")) == 1
    assert len({event["id"] for event in plant.emitted("rag.index.held", "damaged")}) == 1


def test_a_healthy_build_is_promoted_and_nobody_is_disturbed(plant: Plant) -> None:
    """The serving build comes from the event; what swaps indexes hears `rag.index.passed`."""
    before = len(plant.slack.received)
    event = plant.announce({"dataset": "plant", "build": "healthy", "serving": "serving"})
    assert plant.ended(event)["state_type"] == "COMPLETED"
    gate = load_gate(plant.store, "healthy")
    assert gate is not None
    assert gate.verdict == "promote", gate.reasons
    (passed,) = plant.emitted("rag.index.passed", "healthy")
    assert passed["payload"]["build"] == "healthy"
    assert len(plant.slack.received) == before


DEEP: dict[str, Any] = {}
for _ in range(100):
    DEEP = {"more": DEEP}
BAD: dict[str, tuple[Any, str]] = {
    "words for the server, and depth": (
        {"dataset": "plant", "build": {"__prefect_kind": "json", "value": "{", "more": DEEP}},
        "build: should be a valid string",
    ),
    "hostile text": (
        {
            "dataset": "plant",
            "build": "<!channel> *b* \u202e\x07 {{ 7 * 7 }} <script>\n\"'\\ {% raw %}",
        },
        "build: ",
    ),
    "a megabyte": ({"dataset": "plant", "build": "b" * 1_000_000}, "the payload is no JSON"),
}
"""What may go another way through the server than through a call, or is found later than the other
mistakes, which tests/unit/records/test_gate.py has."""


def test_every_payload_that_cannot_be_followed_ends_in_a_message(plant: Plant) -> None:
    """Each is a failed run and a message that says which field is wrong, in nobody's markup."""
    events = {what: plant.announce(payload) for what, (payload, _) in BAD.items()}
    for what, (_, why) in BAD.items():
        event = events[what]
        run = plant.ended(event)
        assert (run["state_type"], run["state_name"]) == ("FAILED", "FailedAndTold"), what
        assert why in run["state"]["message"], what
        (message,) = plant.told(event)
        assert why in message, what
        assert event in plant.page(), what
    hostile = plant.told(events["hostile text"])[0]
    assert "\u202e" not in hostile
    assert "{{ 7 \u2217 7 }}" in hostile  # not 49; the asterisk is one that Slack takes for no mark
    assert not any("<!channel>" in text for text in mrkdwn_of(plant.slack))
    assert "<script>" not in plant.page()


def mrkdwn_of(slack: SlackServer) -> list[str]:
    """All texts of delivered messages in which markup would act."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, dict) and value.get("type") == "mrkdwn":
            found.append(value["text"])
        for item in value.values() if isinstance(value, dict) else ():
            look(item)
        for item in value if isinstance(value, list) else ():
            look(item)

    look([message["blocks"] for message in slack.delivered])
    return found


def test_a_log_that_is_not_there_is_told(plant: Plant) -> None:
    """The payload can be followed, but leads nowhere: inconclusive, and somebody hears of it."""
    nowhere = f"{plant.bucket.uri}/builds/nowhere/"
    payload = {"dataset": "plant", "build": "lost", "serving": "serving", "logs": nowhere}
    assert plant.ended(plant.announce(payload))["state_type"] == "COMPLETED"
    gate = load_gate(plant.store, "lost")
    assert gate is not None
    assert gate.verdict == "inconclusive"
    assert len(plant.told("index build lost cannot be judged")) == 1
    assert len(plant.emitted("rag.index.inconclusive", "lost")) == 1


def test_an_event_publishes_no_file_of_the_worker(plant: Plant) -> None:
    """A log outside the folder of `gate: logs:` is not opened: no verdict, no row of it on the
    dashboard, and a message that says why. In tests/unit/comparison/gate/test_build_logs.py are
    the other ways to write such a place.
    """
    private = plant.folder / "builds/damaged/log.jsonl"
    payload = {"dataset": "plant", "build": "leaked", "serving": "serving", "logs": str(private)}
    event = plant.announce(payload)
    run = plant.ended(event)
    assert (run["state_type"], run["state_name"]) == ("FAILED", "FailedAndTold")
    assert "is not below" in run["state"]["message"]
    (message,) = plant.told(event)
    assert "is not below" in message
    assert load_gate(plant.store, "leaked") is None
    assert not plant.store.find("dashboard/builds/leaked.html")


def test_what_cannot_be_told_fails_the_run_and_keeps_nobody_else_from_being_told(
    plant: Plant,
) -> None:
    """Slack is down: verdict and event are out first, and the run says loudly that nobody was told.
    The repeat tells, also where the dashboard cannot be written by now, and says what is wrong."""
    log = Files(plant.bucket.uri).read("builds/damaged/log.jsonl")
    rows = [json.loads(line) for line in log.splitlines()]
    write_log(plant.bucket, "builds/worse", rows, index_build="worse")
    payload = {"dataset": "plant", "build": "worse", "serving": "serving"}
    store = plant.folder / "store"
    with plant.settings(store=str(store)):
        plant.slack.fail("not_ok")
        try:
            run = plant.ended(plant.announce(payload))
        finally:
            plant.slack.fail(None)
        assert run["state_type"] == "FAILED"
        assert "hold, but not everybody was notified: Slack did not" in run["state"]["message"]
        gate = load_gate(Files(str(store)), "worse")
        assert gate is not None
        assert (gate.verdict, gate.told) == ("hold", False)
        assert len(plant.emitted("rag.index.held", "worse")) == 1
        assert plant.told("index build worse is held") == []
        shutil.rmtree(store / "dashboard")
        (store / "dashboard").write_text("a file where the folder should be")
        run = plant.ended(plant.announce(payload))
    assert run["state_type"] == "FAILED"
    assert "hold, but not everybody was notified: " in run["state"]["message"]
    assert "dashboard" in run["state"]["message"]
    assert len(plant.told("index build worse is held")) == 1
    assert len(plant.emitted("rag.index.held", "worse")) == 1


def test_a_build_without_verdict_that_slack_was_not_told_of_fails_as_any_run(plant: Plant) -> None:
    """So that the automation tells it. The event has no payload at all."""
    plant.slack.fail("not_ok")
    try:
        run = plant.ended(plant.announce())
    finally:
        plant.slack.fail(None)
    assert (run["state_type"], run["state_name"]) == ("FAILED", "Failed")
    assert ("dataset: not there; build: not there; and not everybody was notified: ") in run[
        "state"
    ]["message"]


def test_a_night_is_run_beside_a_gate(plant: Plant, start_judge: Callable[[], JudgeServer]) -> None:
    """One worker runs both at once, and both ask one judge the same: each ends with what it comes
    to alone, every file of the store can be read, and the dashboard shows the night and the build.
    """
    judge, rows = start_judge(), 60
    judge.faults(latency_ms=3_000)
    write_log(plant.bucket, f"logs/dt={NIGHT}", make_rows(rows, good=0.95), index_build="blue")
    write_log(plant.bucket, "builds/blue", make_rows(rows, good=0.95), index_build="blue")
    write_log(plant.bucket, "builds/green", make_rows(rows, good=0.4), index_build="green")
    judged = {
        "metrics": ["context_relevance", "context_recall"],
        "shards": 2,
        "judge": judge_at(judge),
    }
    with plant.settings(**judged):
        deployment = plant.live.get("/deployments/name/nightly/nightly")["id"]
        night = plant.live.post(
            f"/deployments/{deployment}/create_flow_run", {"parameters": {"date": str(NIGHT)}}
        )["id"]
        event = plant.announce({"dataset": "plant", "build": "green", "serving": "blue"})
        gate = plant.run_of(event)["id"]

        def running() -> bool:
            both = (plant.live.get(f"/flow_runs/{run}") for run in (night, gate))
            return all(run["state_type"] == "RUNNING" for run in both)

        plant.live.wait_for(running, every=0.2)
        judge.faults(latency_ms=0)
        states = [plant.over(run)["state_type"] for run in (night, gate)]
    assert states == ["COMPLETED"] * 2, plant.live.logs()
    assert_sound(plant.store)
    (manifest,) = Runs(plant.store).nights()
    recall = manifest.summary("context_recall")
    assert recall is not None
    assert (recall.mean, recall.scored) == (pytest.approx(0.95), rows)
    verdict = load_gate(plant.store, "green")
    assert verdict is not None
    assert (verdict.verdict, verdict.told) == ("hold", True)
    first_page = plant.store.read("dashboard/index.html").decode()
    assert f"{NIGHT}/index.html" in first_page
    assert "builds.html" in first_page
    assert 'id="build-green"' in plant.page()

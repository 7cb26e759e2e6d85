"""A night as Prefect's server sees it: its events, its graph, its tasks' logs and its artifact."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from tests.builders import night_values, save_settings
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("prefect_server")

ROWS = 40
BAD, GOOD_AGAIN = NIGHT + timedelta(days=1), NIGHT + timedelta(days=2)
SECRET = "an order number: 4711"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, prefect_server: None) -> str:
    """Three nights that were run in order, and the first one once more."""
    from flows.nightly import nightly

    folder = tmp_path_factory.mktemp("nights")
    for night, good in ((NIGHT, 1.0), (BAD, 0.3), (GOOD_AGAIN, 1.0)):
        rows = make_rows(ROWS, good=good, night=night)
        rows[0]["user_input"] = SECRET
        write_jsonl(folder / "logs" / f"dt={night}" / "log.jsonl", rows)
    path = save_settings(
        folder,
        night_values(
            folder,
            dataset="event-towers",
            shards=2,
            redact=True,
            rules=[{"metric": "context_recall", "min": 0.7}],
        ),
    )
    for night in (NIGHT, BAD, GOOD_AGAIN, NIGHT, BAD):
        nightly(str(path), night)
    return str(path)


def ask(path: str, body: dict[str, Any]) -> Any:
    """What the server answers to a filter."""
    from prefect import get_client

    with get_client(sync_client=True) as client:
        return client.request("POST", path, json=body).json()


def eventually(what: Callable[[], Any]) -> Any:
    """What is asked for, once it is there: the server writes events, logs and task runs later."""
    end = time.monotonic() + 120
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.5)
    return found


def events(name: str) -> list[dict[str, Any]]:
    """The events of a name about the data set, oldest first."""
    where = {"event": {"name": [name]}, "order": "ASC"}
    found = ask("/events/filter", {"filter": where, "limit": 50})["events"]
    return [one for one in found if one["resource"].get("rag.dataset") == "event-towers"]


def flow_run(night: date) -> dict[str, Any]:
    """The first run of a night."""
    where = {"name": {"any_": [f"nightly {night}"]}}
    found = ask("/flow_runs/filter", {"flow_runs": where, "sort": "START_TIME_ASC"})
    return next(run for run in found if "nights" in run["parameters"]["settings"])


def task_runs(night: date) -> dict[str, dict[str, Any]]:
    """The task runs of a night by name."""
    where = {"flow_runs": {"id": {"any_": [flow_run(night)["id"]]}}}
    return {run["name"]: run for run in ask("/task_runs/filter", where)}


def test_each_night_is_published_once(settings: str) -> None:
    """With its headline and its means, and no text of the log where messages have none."""
    published = eventually(
        lambda: events("rag.night.published")[2:] and events("rag.night.published")
    )
    payloads = [event["payload"] for event in published]
    assert [payload["date"] for payload in payloads] == [str(NIGHT), str(BAD), str(GOOD_AGAIN)]
    assert [payload["state"] for payload in payloads][1:] == ["firing", "ok"]
    bad = payloads[1]
    assert bad["headline"].startswith(f"Night of {BAD}: ")
    [recall] = bad["metrics"]
    assert (recall["metric"], recall["scored"]) == ("context_recall", ROWS)
    assert recall["low"] <= recall["mean"] <= recall["high"]
    assert bad["page"].endswith(f"{BAD}/index.html")
    assert SECRET not in str(published)


def test_a_regression_and_its_end_are_events_of_their_nights(settings: str) -> None:
    """Each once, whatever is run again later, with the alert that changed."""
    [regressed] = eventually(lambda: events("rag.night.regressed"))
    [resolved] = eventually(lambda: events("rag.night.resolved"))
    for event, night, transition in ((regressed, BAD, "fired"), (resolved, GOOD_AGAIN, "resolved")):
        assert event["payload"]["date"] == str(night)
        [alert] = event["payload"]["alerts"]
        assert (alert["metric"], alert["transition"]) == ("context_recall", transition)
        assert event["resource"]["prefect.resource.id"] == f"rag.night.event-towers.{night}"
    flow = [one for one in regressed["related"] if one["prefect.resource.role"] == "flow-run"]
    assert flow


def test_publishing_waits_for_all_parts_in_the_graph(settings: str) -> None:
    """Its task run names those of both shards, and the numbers of the parts are in their logs."""
    parts = [f"context_recall · shard {shard}/2 · {BAD}" for shard in (1, 2)]
    wanted = {*parts, f"publish · {BAD}"}
    runs = eventually(lambda: found if (found := task_runs(BAD)).keys() >= wanted else None)
    awaited = {one["id"] for one in runs[f"publish · {BAD}"]["task_inputs"]["wait_for"]}
    assert awaited == {runs[name]["id"] for name in parts}


def test_the_task_of_a_part_says_what_it_took(settings: str) -> None:
    """Rows, requests, tokens and failures, at the server."""
    name = f"context_recall · shard 1/2 · {BAD}"
    run = eventually(lambda: task_runs(BAD).get(name))

    def logged() -> list[str]:
        where = {"logs": {"task_run_id": {"any_": [run["id"]]}}}
        return [
            entry["message"] for entry in ask("/logs/filter", where) if "rows;" in entry["message"]
        ]

    [line] = eventually(logged)
    assert "requests" in line
    assert "tokens; failed: none" in line


def test_an_older_night_leaves_the_artifact_of_the_data_set_alone(settings: str) -> None:
    """What was run last are older nights; the artifact is still the newest one's, and each older
    night has its own on its page."""
    where = {"artifacts": {"key": {"any_": ["ragmetrics-event-towers"]}}}
    [latest] = ask("/artifacts/latest/filter", where)
    assert str(GOOD_AGAIN) in latest["description"]
    again = {"artifacts": {"type": {"any_": ["markdown"]}}}
    described = [one["description"] for one in ask("/artifacts/filter", again) if not one["key"]]
    assert sum(str(BAD) in text and "event-towers" in text for text in described) == 1

"""Nights that are published out of order: each is notified of once, and the states are the same."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.delivery import delivery, load_alerts
from ragmetrics.delivery.outbox import load_batches
from ragmetrics.errors import StoreError
from ragmetrics.pipeline import CoverageShort, run_backfill, run_night
from ragmetrics.records import AlertState
from ragmetrics.storage import FileInfo, Files, open_store
from tests.builders import night_values
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("without_pages")

FIRST = date(2026, 11, 15)
BAD = date(2026, 11, 17)
DAYS = [FIRST + timedelta(days=number) for number in range(5)]
*_, SIXTEENTH, SEVENTEENTH, EIGHTEENTH, NINETEENTH = DAYS
RULES = [
    {"metric": "context_recall", "min": 0.7},
    {"metric": "context_recall", "max_drop": 0.1, "versus": "trailing:7"},
]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A log a night; that of the 17th is bad."""
    for day in DAYS:
        rows = make_rows(40, good=0.3 if day == BAD else 1.0, night=day)
        write_jsonl(tmp_path / "logs" / f"{day}.jsonl", rows)
    return tmp_path


def dataset(folder: Path, store: str = "store") -> Settings:
    """Settings with a store of their own."""
    values: dict[str, Any] = night_values(
        folder, logs="logs/{date}.jsonl", store=store, rules=RULES
    )
    return make_settings(values)


def run_all(settings: Settings, days: Iterable[date]) -> Settings:
    """Run nights in this order."""
    for day in days:
        run_night(settings, day)
    return settings


def said(slack: SlackServer, day: date) -> list[str]:
    """The messages about a night."""
    return [one["text"] for one in slack.delivered if str(day) in one["text"]]


def states(settings: Settings) -> dict[str, AlertState]:
    """The states of metric alerts, by what they mean for the next night. That a night was missed
    is an alert of its own.
    """
    bare = {"finding": None}
    found = load_alerts(open_store(settings)).states.items()
    metric = {key: one for key, one in found if one.finding and one.finding.kind == "metric"}
    return {key: one.model_copy(update=bare) for key, one in metric.items()}


def without_runs(found: dict[str, AlertState]) -> dict[str, dict[str, Any]]:
    """The same without the names of runs."""
    return {key: one.model_dump(exclude={"notified": {"run"}}) for key, one in found.items()}


def test_a_night_that_was_overtaken_is_told_once(logs: Path, slack_server: SlackServer) -> None:
    """16, 18, 17, 19: one message about the 17th, which says that it is late; then the states are
    those of nights in order.
    """
    ordered = run_all(dataset(logs, "ordered"), DAYS)
    assert len(said(slack_server, BAD)) == 1
    slack_server.delivered.clear()
    mixed = [*DAYS[:2], EIGHTEENTH, SEVENTEENTH, NINETEENTH]
    settings = run_all(dataset(logs), mixed)
    (text,) = said(slack_server, BAD)
    assert text.startswith("Late night of 2026-11-17: 🔴 Critical")
    assert without_runs(states(settings)) == without_runs(states(ordered))


def test_a_late_night_is_not_told_again(logs: Path, slack_server: SlackServer) -> None:
    """Its repetition sends nothing, with the same rows and with another file."""
    settings = run_all(dataset(logs), [SIXTEENTH, EIGHTEENTH, SEVENTEENTH, SEVENTEENTH])
    with (logs / "logs" / f"{BAD}.jsonl").open("a") as file:
        file.write("\n")
    run_night(settings, SEVENTEENTH)
    assert len(said(slack_server, BAD)) == 1


def test_a_backfilled_night_stays_silent(logs: Path, slack_server: SlackServer) -> None:
    """Also where the nightly runs it again later."""
    settings = run_all(dataset(logs), [SIXTEENTH, EIGHTEENTH])
    run_backfill(settings, SEVENTEENTH, SEVENTEENTH)
    run_night(settings, SEVENTEENTH)
    assert said(slack_server, BAD) == []


def test_a_late_night_that_died_before_its_message_is_told_by_its_rerun(
    logs: Path, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest is there, the message is not."""
    settings = run_all(dataset(logs), [SIXTEENTH, EIGHTEENTH])
    with monkeypatch.context() as patch:
        patch.setattr("ragmetrics.pipeline.nightly.notify_channels", _die)
        with pytest.raises(KeyboardInterrupt):
            run_night(settings, SEVENTEENTH)
    assert said(slack_server, BAD) == []
    run_all(settings, [SEVENTEENTH, SEVENTEENTH])
    assert len(said(slack_server, BAD)) == 1


def test_a_night_that_died_and_was_told_by_the_next_is_not_told_by_its_rerun(
    logs: Path, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next night said that it fires since then."""
    write_jsonl(logs / "logs" / f"{EIGHTEENTH}.jsonl", make_rows(40, good=0.3, night=EIGHTEENTH))
    settings = run_all(dataset(logs), [SIXTEENTH])
    with monkeypatch.context() as patch:
        patch.setattr("ragmetrics.pipeline.nightly.notify_channels", _die)
        with pytest.raises(KeyboardInterrupt):
            run_night(settings, SEVENTEENTH)
    run_all(settings, [EIGHTEENTH, SEVENTEENTH])
    assert len(slack_server.delivered) == len(said(slack_server, EIGHTEENTH)) == 1


def test_a_late_night_that_died_after_its_message_was_queued_is_told_once(
    logs: Path, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is in the outbox, no channel has it: the rerun sends it."""
    settings = run_all(dataset(logs), [SIXTEENTH, EIGHTEENTH])
    with monkeypatch.context() as patch:
        patch.setattr("ragmetrics.delivery.delivery._send_all", _die)
        with pytest.raises(KeyboardInterrupt):
            run_night(settings, SEVENTEENTH)
    assert load_batches(open_store(settings)).waiting
    run_night(settings, SEVENTEENTH)
    assert len(said(slack_server, BAD)) == 1
    assert load_batches(open_store(settings)).waiting == {}


def test_the_message_of_a_night_that_is_weeks_late_waits_as_others_do(
    logs: Path, slack_server: SlackServer
) -> None:
    """Its two weeks begin when it is queued: an outage of Slack does not lose it."""
    far = BAD + timedelta(days=20)
    for number in range(2):
        day = far + timedelta(days=number)
        write_jsonl(logs / "logs" / f"{day}.jsonl", make_rows(40, good=1.0, night=day))
    settings = run_all(dataset(logs), [SIXTEENTH, far])
    slack_server.fail("not_ok")
    with pytest.raises(CoverageShort, match="kept for the next run"):
        run_night(settings, SEVENTEENTH)
    slack_server.fail(None)
    run_night(settings, far + timedelta(days=1))
    assert len(said(slack_server, BAD)) == 1
    assert load_batches(open_store(settings)).waiting == {}


def test_a_late_night_that_another_run_overwrites_is_told_once(
    logs: Path, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer night is told between the decision of this one and its message."""
    settings = run_all(dataset(logs), [SIXTEENTH, EIGHTEENTH])
    queue_batch = delivery.queue_batch

    def overtaken(*queued: Any) -> None:
        monkeypatch.setattr(delivery, "queue_batch", queue_batch)
        run_night(settings, NINETEENTH)
        queue_batch(*queued)

    monkeypatch.setattr(delivery, "queue_batch", overtaken)
    run_all(settings, [SEVENTEENTH, SEVENTEENTH])
    assert len(said(slack_server, BAD)) == 1
    assert load_alerts(open_store(settings)).night == NINETEENTH


def _die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_late_night_whose_alert_still_fires_tells_of_both(
    logs: Path, slack_server: SlackServer
) -> None:
    """The newer night fired first; its incident began on the late one."""
    write_jsonl(logs / "logs" / f"{EIGHTEENTH}.jsonl", make_rows(40, good=0.3, night=EIGHTEENTH))
    settings = run_all(dataset(logs), [SIXTEENTH, EIGHTEENTH, SEVENTEENTH])
    assert len(said(slack_server, EIGHTEENTH)) == len(said(slack_server, BAD)) == 1
    firing = [one for one in states(settings).values() if one.state == "firing"]
    assert {one.since for one in firing} == {BAD}
    run_night(settings, NINETEENTH)
    assert "🟢 Resolved" in slack_server.delivered[-1]["text"]


@pytest.mark.pages
def test_a_refused_listing_of_the_alerts_keeps_nobody_from_being_told(
    logs: Path, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a policy of a bucket. What was told is not known, so it is told again; the night has
    its pages and names the folder.
    """
    settings = run_all(dataset(logs), [SIXTEENTH, SEVENTEENTH])
    really = Files.below

    def refused(self: Files, folder: str = "") -> list[FileInfo]:
        if folder.startswith("alerts"):
            raise StoreError(f"listing {folder}: access denied (403)")
        return really(self, folder)

    with monkeypatch.context() as policy:
        policy.setattr(Files, "below", refused)
        run_night(settings, SEVENTEENTH)
    assert len(said(slack_server, BAD)) == 2
    page = open_store(settings).read(f"dashboard/{BAD}/index.html").decode()
    assert "listing alerts/outbox: access denied (403): messages may be sent twice" in page
    assert "no alert counts as silenced" in page
    run_night(settings, EIGHTEENTH)
    assert "🟢 Resolved" in slack_server.delivered[-1]["text"]

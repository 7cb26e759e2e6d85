"""Nights whose alerts nobody noted: the next night tells what people may not have heard."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.delivery import delivery as deliver, load_alerts, notify_channels
from ragmetrics.errors import StoreError
from ragmetrics.records import Manifest
from ragmetrics.storage import Files
from tests.fakes.nights import finding, night
from tests.fakes.published import published
from tests.fakes.slack import SlackServer

SETTINGS = make_settings({"logs": "logs/{date}/"})
RECALL = finding("context_recall").key


def held(number: int, level: str) -> Manifest:
    """A night with what its metric came to."""
    return night(number, findings=[finding("context_recall", level=level)])


def told(files: Files, manifest: Manifest) -> deliver.Delivery:
    """The night, published and told."""
    return notify_channels(SETTINGS, files, published(files, manifest))


def said(slack: SlackServer) -> list[str]:
    """What people heard, each message in its first words."""
    return [message["text"].partition(":")[0] for message in slack.delivered]


@pytest.mark.parametrize("first", [True, False])
def test_a_good_night_tells_of_the_bad_one_before_it(
    files: Files, slack_server: SlackServer, first: bool
) -> None:
    """Also where it is the first night that writes the state of the alerts."""
    if not first:
        told(files, held(0, "ok"))
    published(files, held(1, "breach"))
    told(files, held(2, "ok"))
    assert said(slack_server) == ["🟢 Resolved"]
    assert str(night(1).date) in json.dumps(slack_server.delivered)
    told(files, held(2, "ok"))
    told(files, held(3, "ok"))
    assert len(slack_server.delivered) == 1


def test_a_bad_night_fires_with_the_night_that_it_began(
    files: Files, slack_server: SlackServer
) -> None:
    """It is told as new, since nobody knows whether it was, and it is reminded of from then on."""
    told(files, held(0, "ok"))
    published(files, held(1, "breach"))
    told(files, held(2, "breach"))
    assert said(slack_server) == ["🔴 Critical"]
    state = load_alerts(files).states[RECALL]
    assert (state.since, state.told) == (night(1).date, night(1).date)
    assert state.last_sent == night(2).date
    told(files, held(3, "ok"))
    assert said(slack_server)[1:] == ["🟢 Resolved"]


def test_what_fired_and_resolved_in_between_is_told(
    files: Files, slack_server: SlackServer
) -> None:
    """Both were missed: that it is well again is told once."""
    told(files, held(0, "ok"))
    published(files, held(1, "breach"))
    published(files, held(2, "ok"))
    told(files, held(3, "ok"))
    assert said(slack_server) == ["🟢 Resolved"]


def test_a_resolution_that_was_missed_is_told(files: Files, slack_server: SlackServer) -> None:
    """People knew that it fires."""
    told(files, held(0, "breach"))
    published(files, held(1, "ok"))
    told(files, held(2, "ok"))
    assert said(slack_server) == ["🔴 Critical", "🟢 Resolved"]


def test_a_silent_night_in_between_tells_nothing(files: Files, slack_server: SlackServer) -> None:
    """A backfill tells nobody by request, and records that it was about to tell nothing."""
    told(files, held(0, "ok"))
    published(files, held(1, "breach").model_copy(update={"silent": True}))
    told(files, held(2, "ok"))
    assert said(slack_server) == []


def denied(*folders: str) -> Any:
    """A write that a policy refuses below some folders."""
    really = Files.write

    def write(self: Files, path: str, data: bytes) -> None:
        if path.startswith(folders):
            raise StoreError(f"writing {path}: access denied (AccessDenied)")
        really(self, path, data)

    return write


@pytest.mark.parametrize(
    ("folder", "again"),
    [("alerts/outbox", []), ("alerts/delivered", ["🔴 Critical"]), ("alerts", ["🔴 Critical"])],
)
def test_what_cannot_be_noted_is_sent_all_the_same(
    files: Files,
    slack_server: SlackServer,
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    again: list[str],
) -> None:
    """The run says so. The next night repeats it where the state is not there; no night says less
    than there is."""
    told(files, held(0, "ok"))
    with monkeypatch.context() as policy:
        policy.setattr(Files, "write", denied(folder))
        delivery = told(files, held(1, "breach"))
    assert said(slack_server) == ["🔴 Critical"]
    assert not delivery.sent
    assert "the alerts cannot be stored" in delivery.errors[0]
    assert told(files, held(2, "breach")).errors == ()
    assert said(slack_server)[1:] == again
    told(files, held(3, "ok"))
    assert said(slack_server)[-1] == "🟢 Resolved"


def test_nobody_heard_and_nothing_is_noted(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack is out, and the outbox cannot be written: the state stays behind, so that the next
    night tells."""
    told(files, held(0, "ok"))
    slack_server.fail("500")
    with monkeypatch.context() as policy:
        policy.setattr(Files, "write", denied("alerts/outbox"))
        delivery = told(files, held(1, "breach"))
    assert "left to the next night" in delivery.errors[1]
    slack_server.fail(None)
    told(files, held(2, "ok"))
    assert said(slack_server) == ["🟢 Resolved"]

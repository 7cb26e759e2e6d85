"""Slack by a bot token: what fired stands in the channel, what becomes of it in its thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.delivery import (
    channels,
    delivery as deliver,
    notify_channels,
    notify_failed_gate,
    outbox,
)
from ragmetrics.delivery.channel import MOST_THREADS, THREADS
from ragmetrics.delivery.channel_kinds.slack_bot import API
from ragmetrics.errors import StoreError
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, Runs
from tests.fakes.nights import finding, night
from tests.fakes.slack import TOKEN, SlackServer

SETTINGS = make_settings({"alerts": {"slack_channel": "#retrieval"}})


@pytest.fixture
def slack(slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch) -> SlackServer:
    """Slack with a bot; there is a webhook too, which is not used then."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv(API, slack_server.api)
    return slack_server


def told(files: Files, manifest: Manifest) -> deliver.Delivery:
    """The night, published and told."""
    Runs(files).save(manifest)
    return notify_channels(SETTINGS, files, manifest)


def of(number: int, **levels: str) -> Manifest:
    """A night with findings of some metrics."""
    return night(number, findings=[finding(name, level=level) for name, level in levels.items()])


def told_in(slack: SlackServer) -> list[tuple[str, Any, Any]]:
    """Of each message: its sign, the message whose thread it is in, and if the channel shows it."""
    return [
        (post["text"].split(" ")[0], post.get("thread_ts"), post.get("reply_broadcast"))
        for post in slack.posted
    ]


def test_reminders_and_resolutions_go_into_the_thread(files: Files, slack: SlackServer) -> None:
    """What has resolved is shown in the channel as well."""
    for number in range(8):
        assert told(files, of(number, recall="breach")).errors == ()
    told(files, of(8, recall="ok"))
    first = slack.posted[0]["ts"]
    assert told_in(slack) == [("🔴", None, None), ("🔔", first, False), ("🟢", first, True)]
    assert {one["channel"] for one in slack.posted} == {"#retrieval"}
    assert slack.delivered == []
    assert slack.posted[0]["blocks"][0]["type"] == "header"


def test_a_night_that_fires_one_and_resolves_another_says_so_apart(
    files: Files, slack: SlackServer
) -> None:
    """The new one begins a thread of its own."""
    told(files, of(0, recall="breach", relevance="ok"))
    told(files, of(1, recall="ok", relevance="breach"))
    told(files, of(2, recall="ok", relevance="ok"))
    one, other = slack.posted[0]["ts"], slack.posted[1]["ts"]
    assert told_in(slack) == [
        ("🔴", None, None),
        ("🔴", None, None),
        ("🟢", one, True),
        ("🟢", other, True),
    ] or told_in(slack) == [
        ("🔴", None, None),
        ("🟢", one, True),
        ("🔴", None, None),
        ("🟢", slack.posted[2]["ts"], True),
    ]


def test_an_alert_that_fires_anew_begins_anew(files: Files, slack: SlackServer) -> None:
    """Its old thread is over."""
    for number, level in enumerate(["breach", "ok", "breach", "ok"]):
        told(files, of(number, recall=level))
    threads = [thread for _, thread, _ in told_in(slack)]
    assert threads == [None, slack.posted[0]["ts"], None, slack.posted[2]["ts"]]


def test_alerts_that_fired_together_are_updated_together(files: Files, slack: SlackServer) -> None:
    """One reply a night and thread."""
    told(files, of(0, recall="breach", relevance="breach"))
    told(files, of(1, recall="ok", relevance="ok"))
    assert len(slack.posted) == 2
    assert "Resolved: Recall, Relevance" in slack.posted[1]["text"]


def test_an_update_of_a_message_that_still_waits_finds_its_thread(
    files: Files, slack: SlackServer
) -> None:
    """Slack is down for two nights; the third sends all in order."""
    slack.fail("500")
    told(files, of(0, recall="breach"))
    told(files, of(1, recall="ok"))
    slack.fail(None)
    assert told(files, of(2, recall="ok")).errors == ()
    assert told_in(slack) == [("🔴", None, None), ("🟢", slack.posted[0]["ts"], True)]
    assert files.below(outbox.FOLDER) == []


def test_alerts_of_before_the_bot_are_updated_in_the_channel(
    files: Files, slack: SlackServer
) -> None:
    """Their first message came by the webhook, which has no thread to go to."""
    Runs(files).save(of(0, recall="breach"))
    notify_channels(make_settings({}), files, of(0, recall="breach"))
    assert len(slack.delivered) == 1
    told(files, of(1, recall="ok"))
    assert told_in(slack) == [("🟢", None, None)]


def test_more_threads_than_anybody_reads_are_updated_in_the_channel_at_once(
    files: Files, slack: SlackServer
) -> None:
    """Alerts of many nights that resolve together are one message, as by a webhook."""
    names = [f"metric_{number}" for number in range(MOST_THREADS + 1)]
    for number, _ in enumerate(names):
        told(files, of(number, **dict.fromkeys(names[: number + 1], "breach")))
    told(files, of(len(names), **dict.fromkeys(names, "ok")))
    assert told_in(slack) == [("🔴", None, None)] * len(names) + [("🟢", None, None)]
    assert "and 4 more" in slack.posted[-1]["text"]


def test_alerts_of_another_channel_are_updated_together(files: Files, slack: SlackServer) -> None:
    """The settings name a new one: its people never saw the threads of the old."""
    for number, level in enumerate(["ok", "breach"]):
        told(files, of(number, recall="breach", relevance=level))
    moved = make_settings({"alerts": {"slack_channel": "#elsewhere"}})
    Runs(files).save(of(2, recall="ok", relevance="ok"))
    notify_channels(moved, files, of(2, recall="ok", relevance="ok"))
    assert told_in(slack)[2:] == [("🟢", None, None)]
    assert slack.posted[-1]["channel"] == "#elsewhere"


def test_a_thread_that_cannot_be_noted_costs_no_repeat(
    files: Files, slack: SlackServer, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Slack has the message; what follows stands in the channel."""
    write = Files.write

    def refusing(self: Files, path: str, data: bytes) -> None:
        if path == THREADS:
            raise StoreError("the bucket refuses it")
        write(self, path, data)

    monkeypatch.setattr(Files, "write", refusing)
    assert told(files, of(0, recall="breach")).errors == ()
    assert told(files, of(1, recall="ok")).errors == ()
    assert told_in(slack) == [("🔴", None, None), ("🟢", None, None)]
    assert "the thread is not stored" in caplog.text


@pytest.mark.parametrize("content", [b"{", b'{"by_alert": 3}', None])
def test_a_thread_that_is_gone_costs_no_message(
    files: Files, slack: SlackServer, content: bytes | None
) -> None:
    """The update stands in the channel: where nobody knows the thread, and where Slack does not."""
    told(files, of(0, recall="breach"))
    if content is None:
        slack.posted.clear()
    else:
        files.write(THREADS, content)
    assert told(files, of(1, recall="ok")).errors == ()
    assert told_in(slack)[-1] == ("🟢", None, None)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [("500", "internal_error"), ("not_ok", "channel_not_found"), ("429", "ratelimited")],
)
def test_what_slack_refuses_waits(
    files: Files, slack: SlackServer, failure: Any, reason: str
) -> None:
    """With Slack's reason, and without the token."""
    slack.fail(failure)
    (error,) = told(files, of(0, recall="breach")).errors
    assert reason in error
    assert TOKEN not in error
    slack.fail(None)
    assert told(files, of(1, recall="breach")).errors == ()
    assert len(slack.posted) == 1


def test_a_wrong_token_is_named_by_slack_and_not_by_us(
    files: Files, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """invalid_auth is what people look for."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-another-secret")
    (error,) = told(files, of(0, recall="breach")).errors
    assert "invalid_auth" in error
    assert "another-secret" not in error


def test_slack_that_cannot_be_reached_is_told(
    files: Files, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message waits for the next run."""
    monkeypatch.setenv(API, "http://127.0.0.1:9/api")
    (error,) = told(files, of(0, recall="breach")).errors
    assert "Slack cannot be reached" in error


def test_what_gates_tell_comes_by_the_bot_too(
    files: Files, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be no webhook."""
    monkeypatch.delenv("SLACK_WEBHOOK_URL")
    chosen = SETTINGS.model_copy(update={"store": files.uri()})
    assert notify_failed_gate(chosen, "no log", "build 7").told
    assert "got no verdict" in slack.posted[0]["text"]


def test_without_a_token_the_webhook_is_used(
    files: Files, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A channel alone is no bot."""
    monkeypatch.delenv("SLACK_BOT_TOKEN")
    told(files, of(0, recall="breach"))
    assert len(slack.delivered) == 1


def test_a_store_that_is_down_keeps_no_build_untold(
    tmp_path: Path, slack: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The bot needs no thread for it, and so no store."""
    (tmp_path / "store").write_text("a file, where a folder should be")
    broken = SETTINGS.model_copy(update={"store": str(tmp_path / "store")})
    assert notify_failed_gate(broken, "build: not there", "{}", "e-1").told
    assert "got no verdict" in slack.posted[0]["text"]
    assert "may be sent twice" in caplog.text


def test_threads_that_may_not_be_read_keep_no_update_back(
    files: Files, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket that may not be listed refuses a file that is not there: it goes to the channel."""
    told(files, of(0, recall="breach"))
    really = Files.find

    def refused(self: Files, path: str) -> bytes | None:
        if path == THREADS:
            raise StoreError(f"reading {path}: access denied (403)")
        return really(self, path)

    monkeypatch.setattr(Files, "find", refused)
    assert told(files, of(1, recall="ok")).errors == ()
    assert [thread for _, thread, _ in told_in(slack)] == [None, None]


def test_a_bot_is_a_channel_with_an_address_of_its_own(
    files: Files, slack: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the one of the keys `slack_...`, from its severity on, and with its own threads."""
    monkeypatch.delenv(API)
    monkeypatch.setenv("TEAM_TOKEN", f"{slack.api}#{TOKEN}")
    entry = {"kind": "slack_bot", "url_env": "TEAM_TOKEN", "channel": "#team"}
    chosen = make_settings({"alerts": {"channels": [{**entry, "severity": "critical"}]}})
    for number, level in enumerate(["breach", "ok"]):
        manifest = of(number, recall=level)
        Runs(files).save(manifest)
        assert notify_channels(chosen, files, manifest).errors == ()
    assert told_in(slack) == [("🔴", None, None), ("🟢", slack.posted[0]["ts"], True)]
    assert {one["channel"] for one in slack.posted} == {"#team"}
    assert len(slack.delivered) == 2, "the webhook is told too"
    (_, bot) = channels(chosen.alerts, files)
    assert bot.verify() == "the token is valid for team Towers; the channel #team was not asked"


def test_a_thread_of_an_earlier_key_is_continued(files: Files, slack: SlackServer) -> None:
    """The alert's key has changed since its first message."""
    told(files, night(0, findings=[finding("recall", level="breach", key="old")]))
    renamed = finding("recall", level="ok", key="new", renamed_from="old")
    told(files, night(1, findings=[renamed]))
    assert told_in(slack) == [("🔴", None, None), ("🟢", slack.posted[0]["ts"], True)]

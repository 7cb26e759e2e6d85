"""Delivery at its worst: runs that die and are never repeated, channels that fail one by one, hang,
refuse for ever. Everybody hears a sound story once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from ragmetrics.config import Settings, make_settings
from ragmetrics.delivery import (
    Unconfirmed,
    channels,
    delivery as deliver,
    load_alerts,
    notify_channels,
    outbox,
)
from ragmetrics.delivery.channel import CHANNEL_TIMEOUT, Channel, redact_secrets, with_timeout
from ragmetrics.delivery.channel_kinds import slack_webhook as webhook
from ragmetrics.delivery.channel_kinds.slack_bot import API
from ragmetrics.delivery.outbox import MessageBatch, Waiting, load_batches
from ragmetrics.messages import Message, Note
from ragmetrics.records import Manifest
from ragmetrics.storage import Files
from tests.fakes.hooks import Hook
from tests.fakes.nights import FIRST, finding, night
from tests.fakes.published import published
from tests.fakes.slack import TOKEN, SlackServer

TEAM = make_settings({"alerts": {"channels": [{"url_env": "TEAM_URL"}]}})


class Killed(BaseException):
    """As by `kill -9`."""


@pytest.fixture
def team(slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A channel beside Slack."""
    with Hook().running() as hook:
        monkeypatch.setenv("TEAM_URL", hook.url)
        yield hook


def of(number: int, level: str = "breach") -> Manifest:
    """A night with one finding."""
    return night(number, findings=[finding("context_recall", level=level)])


def told(files: Files, manifest: Manifest, chosen: Settings = TEAM) -> deliver.Delivery:
    """The night, published and told."""
    return notify_channels(chosen, files, published(files, manifest))


def died(
    files: Files, monkeypatch: pytest.MonkeyPatch, manifest: Manifest, chosen: Settings = TEAM
) -> None:
    """The night's run, dead after the outbox and before any channel."""
    with monkeypatch.context() as dying, pytest.raises(Killed):
        dying.setattr(deliver, "_send_all", raising(Killed()))
        told(files, manifest, chosen)


def raising(error: BaseException) -> Callable[..., None]:
    """What raises this, whatever it is given."""

    def act(*_: object, **__: object) -> None:
        raise error

    return act


def heard(slack: SlackServer) -> list[str]:
    """The sign of each message that Slack took."""
    return [one["text"].split(" ")[0] for one in slack.delivered]


# Runs that die and are not repeated


@pytest.mark.parametrize("then", ["breach", "ok"])
def test_the_night_after_a_run_that_died_follows_upon_what_it_told(
    files: Files, team: Hook, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """It died after the outbox and nobody ran it again: its `fired` goes out, and
    the next night neither fires again nor forgets to resolve."""
    died(files, monkeypatch, of(0))
    told(files, of(1, then))
    told(files, of(2, then))
    assert heard(slack_server) == ["🔴", "🟢"][: 1 if then == "breach" else 2]
    assert len(team.received) == len(slack_server.delivered)
    (state,) = load_alerts(files).states.values()
    assert state.since == (FIRST if then == "breach" else None)


def test_a_rerun_that_died_is_followed_upon_too(
    files: Files, team: Hook, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run told `fired`, late rows put it right: `resolved` goes out once."""
    told(files, of(0))
    died(files, monkeypatch, of(0, "ok"))
    told(files, of(1, "ok"))
    assert heard(slack_server) == ["🔴", "🟢"]


@pytest.mark.parametrize("rerun", [False, True])
def test_a_run_that_died_before_its_messages_were_queued_told_nobody(
    files: Files,
    team: Hook,
    slack_server: SlackServer,
    monkeypatch: pytest.MonkeyPatch,
    rerun: bool,
) -> None:
    """The messages of all channels are queued at once: its rerun, or the next night, tells both."""
    with monkeypatch.context() as death, pytest.raises(Killed):
        death.setattr(deliver, "queue_batch", raising(Killed()))
        told(files, of(0))
    assert files.below(outbox.FOLDER) == []
    for number in range(0 if rerun else 1, 3):
        assert told(files, of(number)).errors == ()
    assert heard(slack_server) == ["🔴"]
    assert [one["type"] for one in team.received] == ["failure"]


def test_what_waits_and_is_in_the_state_moves_nothing(
    files: Files, team: Hook, slack_server: SlackServer
) -> None:
    """Slack down, no death: the nights after start from the state alone."""
    slack_server.fail("500")
    for number, level in enumerate(["breach", "ok", "breach", "ok", "ok"]):
        told(files, of(number, level))
    slack_server.fail(None)
    told(files, of(5, "ok"))
    assert heard(slack_server) == ["🔴", "🟢", "🔴", "🟢"]
    assert [one["type"] for one in team.received] == ["failure", "success"] * 2


# Several channels, one of which fails


def test_a_channel_that_missed_the_first_turn_hears_both_in_order(
    files: Files, team: Hook, slack_server: SlackServer
) -> None:
    """Slack heard that it fired, the team did not. Late rows put it right while nobody can be
    reached, twice. Then the team hears that it fired, and both that it is over."""
    team.status = 500
    told(files, of(0))
    slack_server.fail("500")
    for _ in range(2):
        told(files, of(0, "ok"))
    first, second = load_batches(files).waiting.values()
    assert [one.channel for one in first.waiting] == ["TEAM_URL"]
    assert [one.channel for one in second.waiting] == ["slack", "TEAM_URL"]
    team.status = 200
    slack_server.fail(None)
    assert told(files, of(0, "ok")).errors == ()
    assert heard(slack_server) == ["🔴", "🟢"]
    assert [one["type"] for one in team.received] == ["failure", "success"]


@pytest.mark.process
def test_a_night_of_which_no_channel_hears_is_not_told(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pager alone, for what is critical, and a warning: the run has told nobody of it."""
    with Hook().running() as pager:
        monkeypatch.setenv("PAGER_URL", pager.url)
        chosen = make_settings(
            {"alerts": {"channels": [{"url_env": "PAGER_URL", "severity": "critical"}]}}
        )
        warning = finding("context_recall", level="breach", severity="warning")
        delivery = told(files, night(0, findings=[warning]), chosen)
        assert (delivery.sent, delivery.errors, pager.received) == (False, (), [])
        assert told(files, of(1), chosen).sent


def test_what_a_service_refuses_lets_the_next_message_try(
    files: Files, team: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer of 4xx is about the message or the address; of 5xx, the service is out."""
    for status, tries in ((400, 2), (413, 2), (503, 1), (429, 1), (408, 1)):
        waits = [
            Waiting(message=Message(str(number), [Note("low")]), channel="TEAM_URL")
            for number in (status, status + 1_000)
        ]
        outbox.queue_batch(files, MessageBatch(night=FIRST, waiting=waits))
        team.status, sent = status, list[str]()
        send = Channel.send

        def noting(
            to: Channel, message: Message, seconds: float, sent: list[str] = sent, send: Any = send
        ) -> None:
            sent.append(message.text)
            send(to, message, seconds)

        with monkeypatch.context() as noted:
            noted.setattr(Channel, "send", noting)
            assert len(told(files, of(1, "ok")).errors) == 1
        assert len(sent) == tries, status
        outbox.remove_batches(files, [info.path for info in files.below(outbox.FOLDER)])


# What can never be delivered


def test_a_message_that_waited_too_long_is_put_aside_and_named(
    files: Files, team: Hook, slack_server: SlackServer
) -> None:
    """A token that nobody mends: after two weeks the run says where the message can be read, once.
    The alert still fires, and is reminded of when the channel is back."""
    slack_server.fail("not_ok")
    errors = [told(files, of(number)).errors for number in range(16)]
    assert all(len(one) == 1 for one in errors[:14])
    kept, aside = errors[14]
    assert "kept for the next run" in kept
    assert f"Slack message of {FIRST} given up" in aside
    assert f"{outbox.GIVEN_UP}/{FIRST}." in aside
    assert "no_service" in aside
    assert len(errors[15]) == 1
    assert len(files.below(outbox.GIVEN_UP)) == 1
    (info,) = files.below(outbox.GIVEN_UP)
    (kept_message,) = MessageBatch.model_validate_json(files.read(info.path)).waiting
    assert kept_message.message.text.startswith("🔴")
    slack_server.fail(None)
    assert told(files, of(16)).errors == ()
    assert heard(slack_server) == ["🔔", "🔔"]
    assert len(team.received) == 3


@pytest.mark.parametrize("by_bot", [False, True])
def test_a_message_whose_blocks_are_refused_is_sent_as_text(
    files: Files, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch, by_bot: bool
) -> None:
    """Else it would be refused every night. All its words are there, and none of them acts."""
    chosen = make_settings({"alerts": {"slack_channel": "#retrieval"}})
    if by_bot:
        monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
        monkeypatch.setenv(API, slack_server.api)
    slack_server.fail("blocks")
    bad = finding("context_recall", level="breach", message="<!channel> & such")
    assert told(files, night(0, findings=[bad]), chosen).errors == ()
    (posted,) = slack_server.posted if by_bot else slack_server.delivered
    assert "blocks" not in posted
    assert posted["text"].startswith("🔴 Critical: Context recall is low")
    assert "Judge: " in posted["text"]
    assert "<" not in posted["text"]
    assert len(posted["text"]) < 4_000


@pytest.mark.parametrize("wrong", ["no_service", "invalid_token"])
def test_a_wrong_webhook_is_not_tried_in_other_words(
    files: Files, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """What is refused is whoever sends it."""
    tries = list[Message]()

    def refusing(message: Message, _: SecretStr) -> None:
        tries.append(message)
        raise webhook.SlackError(wrong)

    monkeypatch.setenv("SLACK_WEBHOOK_URL", "https://hooks.example/services/T0/B0/secret")
    monkeypatch.setattr(webhook, "send", refusing)
    assert told(files, of(0), make_settings({})).errors
    assert len(tries) == 1


# What hangs, and what gives addresses away


def test_a_channel_that_hangs_is_left_to_itself(
    files: Files, team: Hook, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a way that no timeout of a socket ends: the run goes on to the other channels, and says
    so. The round of one channel has an end, however many messages wait."""
    never, tries = threading.Event(), list[Message]()

    def hanging(message: Message, _: SecretStr) -> None:
        tries.append(message)
        never.wait()

    send = Channel.send

    def hurried(channel: Channel, message: Message, seconds: float) -> None:
        send(channel, message, min(seconds, 0.1) if channel.name == "slack" else seconds)

    monkeypatch.setattr(webhook, "send", hanging)
    monkeypatch.setattr(Channel, "send", hurried)
    for number, level in enumerate(["breach", "ok"]):
        (error,) = told(files, of(number, level)).errors
        assert error.startswith("Slack message kept for the next run: no answer within")
    assert len(tries) == 2
    assert len(team.received) == 2
    waiting = load_batches(files).waiting.values()
    assert [one.channel for batch in waiting for one in batch.waiting] == ["slack", "slack"]
    never.set()


@pytest.mark.parametrize("error", [Unconfirmed("no"), TimeoutError("its own"), Killed()])
def test_what_is_raised_in_time_is_raised(error: BaseException) -> None:
    """A timeout of the sender's own too; and with no time left nothing is begun."""
    with pytest.raises(type(error)) as caught:
        with_timeout(60, raising(error))
    assert caught.value is error
    with pytest.raises(Unconfirmed, match="no answer within") as late:
        with_timeout(0, raising(error))
    assert late.value.transient


@pytest.mark.parametrize(
    ("secret", "said", "shown"),
    [
        (
            "https://hooks.example/services/T0/B0/s3cr3ttoken",
            "POST /services/T0/B0/s3cr3ttoken",
            "POST /***/T0/B0/***",
        ),
        ("https://hooks.example/services/T0/B0/s3cr3ttoken", "no s3cr3ttoken here", "no *** here"),
        ("mailtos://ada:pw1@smtp.example?to=x", "login ada/pw1 failed", "login ***/*** failed"),
        ("mailtos://ada:p%40w@h", "with p@w and adamant", "with *** and adamant"),
        ("xoxb-1-2", "token xoxb-1-2 revoked", "token *** revoked"),
        ("http://[broken", "at http://[broken", "at ***"),
        ("https://slack-gov.com/api#xoxb-1-2", "no token xoxb-1-2 here", "no token *** here"),
    ],
)
def test_no_part_of_an_address_is_shown(secret: str, said: str, shown: str) -> None:
    """Whole or in part, as it stands or decoded; a user and a password however short."""
    assert redact_secrets(said, [secret]) == shown


def test_no_record_or_channel_shows_its_address(
    files: Files, team: Hook, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither printed, nor in the store, whatever became of the messages."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-secret-token")
    chosen = make_settings(
        {"alerts": {"slack_channel": "#x", "channels": [{"url_env": "TEAM_URL"}]}}
    )
    team.status = 500
    slack_server.fail("500")
    told(files, of(0), TEAM)
    every = [*channels(chosen.alerts, files), *channels(TEAM.alerts, files)]
    stored = b"".join(files.read(info.path) for info in files.below()).decode()
    for secret in (slack_server.url, team.url, "xoxb-secret-token", "hook-secret-1234"):
        assert secret not in repr(every) + str(every) + stored
    assert CHANNEL_TIMEOUT > 2 * webhook.LONGEST_WAIT, "time for a rate limit and a repeat"
    assert [one.night for one in load_batches(files).waiting.values()] == [FIRST]

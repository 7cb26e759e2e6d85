"""Channels beside Slack's webhook: what each is told, in which words, and how often."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import ChannelSettings, Settings, make_settings
from ragmetrics.delivery import delivery as deliver, notify_channels, outbox
from ragmetrics.delivery.outbox import load_batches
from ragmetrics.errors import RagmetricsError, SettingsError
from ragmetrics.messages import FORMATS, Header, Message, Note, Section, links
from ragmetrics.messages.blocks import bullets
from ragmetrics.records import Manifest
from ragmetrics.storage import Files
from tests.fakes.hooks import SECRET, Hook
from tests.fakes.nights import HOSTILE, finding, night
from tests.fakes.published import published
from tests.fakes.slack import SlackServer

BOTH = {"channels": [{"url_env": "TEAM_URL"}, {"url_env": "PAGER_URL", "severity": "critical"}]}


class Killed(BaseException):
    """As by `kill -9`."""


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A service that is told everything."""
    with Hook().running() as hook:
        monkeypatch.setenv("TEAM_URL", hook.url)
        yield hook


@pytest.fixture
def pager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    """A service that is told what is critical."""
    with Hook().running() as hook:
        monkeypatch.setenv("PAGER_URL", hook.url)
        yield hook


def settings(**alerts: Any) -> Settings:
    """Settings with two channels beside Slack."""
    return make_settings({"alerts": {**BOTH, **alerts}})


def told(files: Files, manifest: Manifest, chosen: Settings | None = None) -> deliver.Delivery:
    """The night, published and told."""
    return notify_channels(chosen or settings(), files, published(files, manifest))


def bad(number: int = 0, metric: str = "context_recall", **change: Any) -> Manifest:
    """A night on which a metric's alert fires."""
    return night(number, findings=[finding(metric, level="breach", **change)])


def good(number: int, metric: str = "context_recall") -> Manifest:
    """A night on which it is well again."""
    return night(number, findings=[finding(metric, level="ok")])


# What they are told


def test_every_channel_is_told_once(
    files: Files, slack_server: SlackServer, team: Hook, pager: Hook
) -> None:
    """A rerun tells nothing again; what resolves is told too, and marked as good news."""
    assert told(files, bad()).sent
    told(files, bad())
    told(files, good(1))
    assert len(slack_server.delivered) == 2
    for hook in (team, pager):
        assert [one["type"] for one in hook.received] == ["failure", "success"]
        assert hook.received[0]["title"] == "🔴 Critical: Context recall is low"
        assert "Context recall fell from 0.930 to 0.700" in hook.received[0]["message"]
        assert hook.received[1]["title"] == "🟢 Resolved: Context recall"
    assert files.below(outbox.FOLDER) == []


@pytest.mark.process
def test_a_channel_may_be_for_what_is_critical(files: Files, team: Hook, pager: Hook) -> None:
    """Warnings stay away from it, also where a critical alert is told the same night."""
    warning = finding("context_relevance", level="breach", severity="warning")
    told(files, night(0, findings=[warning]))
    assert [one["type"] for one in team.received] == ["warning"]
    assert pager.received == []
    both = [warning, finding("context_recall", level="breach")]
    told(files, night(1, findings=both))
    assert len(pager.received) == 1
    assert "context_relevance" not in pager.received[0]["message"]


@pytest.mark.process
def test_no_markup_of_slack_reaches_them(files: Files, team: Hook) -> None:
    """Text, without bold marks and entities, mentions or what users wrote to look like them."""
    chosen = make_settings({"alerts": {"channels": [{"url_env": "TEAM_URL"}]}})
    told(files, bad(message=f"{HOSTILE} @everyone is low & <b>bold</b>"), chosen)
    (one,) = team.received
    text = one["title"] + one["message"]
    assert "&lt;" not in text
    assert "*" not in text
    assert "@everyone" not in text
    assert "<b>bold</b>" in text.replace("\u2060", ""), "as text, which a service shows as it is"


# At least once, each by itself


def test_a_channel_that_fails_repeats_none_of_the_others(
    files: Files, slack_server: SlackServer, team: Hook, pager: Hook
) -> None:
    """Its message waits, by itself; a rerun and the next night send it alone."""
    team.status = 500
    (error,) = told(files, bad()).errors
    assert error.startswith("message kept for the next run: TEAM_URL did not take the message: ")
    (batch,) = load_batches(files).waiting.values()
    assert [one.channel for one in batch.waiting] == ["TEAM_URL"]
    assert told(files, bad()).errors
    team.status = 200
    assert told(files, bad(1)).errors == ()
    assert [len(one.received) for one in (team, pager)] == [1, 1]
    assert len(slack_server.delivered) == 1
    assert files.below(outbox.FOLDER) == []


def test_slack_down_keeps_no_other_channel_waiting(
    files: Files, slack_server: SlackServer, team: Hook, pager: Hook
) -> None:
    """And what they were told is not told again when a rerun comes to another result: only that."""
    slack_server.fail("500")
    (error,) = told(files, bad()).errors
    assert error.startswith("Slack message kept for the next run: ")
    assert [len(one.received) for one in (team, pager)] == [1, 1]
    slack_server.fail(None)
    told(files, good(0))
    assert [one["type"] for one in team.received] == ["failure", "success"]
    assert [one["text"].split(":")[0] for one in slack_server.delivered] == [
        "🔴 Critical",
        "🟢 Resolved",
    ]


def test_where_nobody_was_told_a_rerun_starts_afresh(
    files: Files, slack_server: SlackServer, team: Hook, pager: Hook
) -> None:
    """All messages of the night wait, so all are taken back: a night that is well is silent."""
    slack_server.fail("500")
    team.status = pager.status = 503
    assert len(told(files, bad()).errors) == 3
    slack_server.fail(None)
    team.status = pager.status = 200
    assert told(files, good(0)).errors == ()
    assert (slack_server.delivered, team.received, pager.received) == ([], [], [])
    assert files.below(outbox.FOLDER) == []


@pytest.mark.parametrize("noted", [0, 1, 2])
def test_a_crash_repeats_at_most_one_message(
    files: Files,
    slack_server: SlackServer,
    team: Hook,
    pager: Hook,
    monkeypatch: pytest.MonkeyPatch,
    noted: int,
) -> None:
    """Of three channels, the one whose message was just taken, and not noted as sent."""
    notes, confirm = iter(range(noted)), outbox.Outbox.confirm

    def confirmed(self: outbox.Outbox, path: str, waiting: outbox.Waiting) -> None:
        if next(notes, None) is None:
            raise Killed
        confirm(self, path, waiting)

    with monkeypatch.context() as dying:
        dying.setattr(outbox.Outbox, "confirm", confirmed)
        with pytest.raises(Killed):
            told(files, bad())
    assert told(files, bad()).errors == ()
    counts = [len(slack_server.delivered), len(team.received), len(pager.received)]
    assert counts == [2 if number == noted else 1 for number in range(3)]
    assert told(files, bad()).message is None


@pytest.mark.process
def test_an_address_that_is_not_set_is_a_mistake_that_loses_nothing(
    files: Files, team: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The channel is in the settings, so the run says so, and the message waits."""
    (error,) = told(files, bad()).errors
    assert error == "message kept for the next run: PAGER_URL is not set"
    assert len(team.received) == 1
    with Hook().running() as late:
        monkeypatch.setenv("PAGER_URL", late.url)
        assert told(files, bad(1)).errors == ()
        assert len(late.received) == 1


@pytest.mark.process
def test_a_channel_that_left_the_settings_leaves_no_message(
    files: Files, team: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named in the log."""
    told(files, bad())
    chosen = make_settings({"alerts": {"channels": [{"url_env": "TEAM_URL"}]}})
    assert told(files, bad(1), chosen).errors == ()
    assert "channel PAGER_URL is removed" in caplog.text
    assert files.below(outbox.FOLDER) == []


# Addresses are secrets


@pytest.mark.process
def test_an_address_is_in_no_error_and_no_log(
    files: Files, team: Hook, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of one that fails, nor of one that is none, nor of one that cannot be reached."""
    chosen = make_settings({"alerts": {"channels": [{"url_env": "TEAM_URL"}]}})
    team.status = 404
    errors = list(told(files, bad(), chosen).errors)
    for address in (f"nosuch://{SECRET}@host", f"json://127.0.0.1:1/{SECRET}", SECRET):
        monkeypatch.setenv("TEAM_URL", address)
        errors += told(files, bad(), chosen).errors
    assert len(errors) == 4
    assert "not an address that Apprise supports" in errors[1]
    assert SECRET not in "".join(errors) + caplog.text


def test_two_channels_of_one_address_are_one_too_many() -> None:
    """And a variable's name is no address."""
    for wrong in ([{"url_env": "A"}, {"url_env": "A"}], [{"url_env": "json://x"}], [{}]):
        with pytest.raises(SettingsError, match="channels"):
            make_settings({"alerts": {"channels": wrong}})


def test_without_apprise_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    import sys

    from pydantic import SecretStr

    from ragmetrics.delivery.channel_kinds import apprise

    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(RagmetricsError, match=r"retrieval-nightly\[channels\]"):
        apprise.send(
            Message("a", []), ChannelSettings(url_env="TEAM_URL"), SecretStr("json://localhost")
        )


# The words


MESSAGE = Message(
    "🔴 Critical: a & b",
    [
        Header("🔴 Critical: a & b"),
        Note("demo, night of 2026-11-19"),
        Section("a", "in b", facts=(("Mean", "0.9 → 0.8"),)),
        *bullets("Worst", ["“how?” (q_1)", "c <d>"]),
        *links([("dashboard", "https://example.org/x"), ("store", "s3://bucket/x")]),
    ],
)


def title(form: str = "text", message: Message = MESSAGE) -> str:
    """The headline in a format."""
    return FORMATS.find(form).escape(message.headline)


def body(form: str = "text", room: int | None = None, message: Message = MESSAGE) -> str:
    """All else in a format."""
    return str(FORMATS.find(form).render(message.body, room))


def test_as_text() -> None:
    """One line each, links written out."""
    assert title() == "🔴 Critical: a & b"
    assert body() == (
        "demo, night of 2026-11-19\n\n"
        "a in b\n• Mean: 0.9 → 0.8\n\n"
        "Worst\n• “how?” (q_1)\n• c <d>\n\n"
        "Open the dashboard: https://example.org/x\nStore: s3://bucket/x"
    )


def test_as_markdown() -> None:
    """Styles as there, with what users wrote escaped."""
    assert body("markdown") == (
        "demo, night of 2026-11-19\n\n"
        "**a** in b  \n- **Mean**: 0.9 → 0.8\n\n"
        "**Worst**  \n- “how?” (q\\_1)  \n- c \\<d\\>\n\n"
        "[Open the dashboard](<https://example.org/x>)  \nStore: s3://bucket/x"
    )


def test_as_html() -> None:
    """Escaped once."""
    assert title("html") == "🔴 Critical: a &amp; b"
    assert "<b>Worst</b><br>\n&bull; “how?” (q_1)<br>\n&bull; c &lt;d&gt;<br>" in body("html")
    assert '<a href="https://example.org/x">Open the dashboard</a>' in body("html")


@given(st.text(max_size=80))
def test_text_of_users_is_text_in_every_form(text: str) -> None:
    """No tag, link or style of theirs is left."""
    message = Message("m", [Section("ours", text)])
    shown = body("html", message=message).removeprefix("<b>ours</b>")
    assert "<" not in shown.replace("<br>\n", "")
    assert html.unescape(shown) == body(message=message).removeprefix("ours")
    marked = body("markdown", message=message).removeprefix("**ours**")
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>#|~]", marked)


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
@given(limit=st.integers(0, 300))
def test_a_cut_body_ends_with_a_line(form: str, limit: int) -> None:
    """What a service does not take is left out by whole lines, so no tag is cut in two."""
    whole = body(form)
    cut = body(form, limit)
    assert len(cut) <= limit or len(whole) <= limit
    assert cut == whole or cut in ("", "…") or whole.startswith(cut.removesuffix("…").rstrip())

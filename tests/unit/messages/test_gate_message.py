"""The Slack messages of the gate: what they say, what they never let through, and how often."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import load_failed_gates, load_gate, save_gate
from ragmetrics.config import Settings, make_settings
from ragmetrics.delivery import Unconfirmed, notify_failed_gate, notify_gate
from ragmetrics.errors import StoreError
from ragmetrics.messages import Message, compose_failed_gate, compose_gate
from ragmetrics.records import Gate
from ragmetrics.storage import Files, open_store
from tests.fakes.formats import slack_json, terminal_text
from tests.fakes.gated import gate, incomparable, metric_verdict, passed, promoted
from tests.fakes.hooks import Hook
from tests.fakes.slack import SlackServer
from tests.unit.messages.test_night_message import HOSTILE, acting, validate


def write(given: Gate, **options: Any) -> Message:
    """The message of a gate, which keeps to Slack's limits."""
    told = {"page": "https://dash.example/builds.html#build-idx-43", "redact": False, **options}
    message = compose_gate(given, **told)
    validate(message)
    return message


def test_a_held_build_is_told_with_its_numbers() -> None:
    """Build against build, each metric that holds it with all it rests on, the worst questions."""
    message = write(gate(), run_url="https://prefect.example/run/1")
    assert terminal_text(message) == EXPECTED
    assert message.text == (
        "🔴 Critical: index build idx-43 is held: Context recall 0.821 → 0.714 over the "
        "same 150 questions (helpdesk against idx-42)"
    )


EXPECTED = """\
🔴 Critical: index build idx-43 is held

helpdesk, build idx-43 against idx-42, 150 rows

Context recall is significantly worse
  Compared: 0.821 → 0.714 over the same 150 questions
  Drop: 0.107 [0.071, 0.143]
  Limit: 0.05

Why
• Context recall fell by 0.107, more than 0.05

Other metrics
• Context relevance (graded): 0.900 → 0.905 over the same 150 questions, drop -0.005
  [-0.020, 0.010], limit 0.05

Questions that got worse
• 1.000 → 0.000 Context recall “How do I get refund 0?” (row-0)
• 1.000 → 0.100 Context recall “How do I get refund 1?” (row-1)
• 1.000 → 0.200 Context recall “How do I get refund 2?” (row-2)

Open the builds https://dash.example/builds.html#build-idx-43
Open the run https://prefect.example/run/1

Judge: lexical (a baseline)"""


def test_only_what_holds_the_build_names_its_questions() -> None:
    """A question that fell in a metric within its limit is not what the build is held for."""
    fallen = [one.model_copy(update={"metric": "context_relevance"}) for one in gate().fallen]
    assert "Questions that got worse" not in terminal_text(write(gate(fallen=fallen)))


def test_a_question_is_shown_once() -> None:
    """One that fell in two metrics takes one of the three places."""
    fallen = gate().fallen
    again = [one.model_copy(update={"metric": "context_relevance"}) for one in fallen]
    held = [metric_verdict(), metric_verdict("context_relevance")]
    text = terminal_text(write(gate(metrics=held, fallen=[*fallen, *again])))
    assert text.count("refund 0?") == 1
    assert "refund 2?" in text


def test_a_redacted_message_has_row_ids_alone() -> None:
    """With `redact` no question is in the message."""
    message = write(gate(), redact=True)
    assert "refund" not in slack_json(message)
    assert "• 1.000 → 0.000 Context recall (row-0)" in terminal_text(message)


def test_a_build_that_cannot_be_compared_is_a_warning() -> None:
    """Nothing dropped, but somebody has to look."""
    message = write(incomparable())
    assert message.text.startswith("🟡 Warning: index build idx-45 cannot be judged (helpdesk")
    assert "• build idx-45: no log at builds/idx-45/" in terminal_text(message)


def test_missing_questions_and_quarantined_rows_are_counted() -> None:
    """A build may be held, or not, for what its log lacks."""
    metrics = [metric_verdict(missing=9, questions=141)]
    text = terminal_text(write(gate(missing=9, quarantined=2, metrics=metrics)))
    assert "150 rows, 2 quarantined, 9 questions missing" in text
    assert "Missing: 9 questions" in text


def test_many_metrics_are_cut() -> None:
    """Whatever the number of metrics and reasons, the message fits."""
    held = [metric_verdict(f"metric_{number}") for number in range(60)]
    others = [passed(f"other_{number}") for number in range(60)]
    reasons = [f"metric_{number} fell " + "by so much " * 40 for number in range(60)]
    text = terminal_text(write(gate(metrics=[*held, *others], reasons=reasons)))
    assert text.count("is significantly worse") == 4
    assert "more" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert(text: str) -> None:
    """Reasons, questions, ids, judges, and what an event carried: all limits hold."""
    told = compose_gate(gate(say=text, build=text, serving=text), page=text, redact=False)
    undecided = compose_failed_gate(text, text, text, text, text)
    for message in (told, undecided):
        validate(message)
        assert acting(message) == []


def test_an_event_without_a_build_is_told_with_what_it_carried() -> None:
    """Whoever sent it finds it by its id."""
    message = compose_failed_gate(
        "helpdesk", "index build: build: not there", '{"dataset": "helpdesk"}', "e-1"
    )
    validate(message)
    text = terminal_text(message)
    assert "Why\nindex build: build: not there" in text
    assert 'Payload of the event: {"dataset": "helpdesk"}' in text
    assert "Event e-1" in text


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Hook, Hook]]:
    """A team's channel, and a pager."""
    with Hook().running() as team, Hook().running() as pager:
        monkeypatch.setenv("TEAM_URL", team.url)
        monkeypatch.setenv("PAGER_URL", pager.url)
        yield team, pager


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Those of an empty store."""
    return make_settings({"dataset": "helpdesk", "store": str(tmp_path / "store")})


def kept(settings: Settings, given: Gate) -> Gate:
    """A gate that is in the store, as it is after it was decided."""
    save_gate(open_store(settings), given)
    return given


def test_a_held_build_is_told_once(settings: Settings, slack_server: SlackServer) -> None:
    """`told` is in the store after Slack confirmed, and the next call sends nothing."""
    told = notify_gate(settings, kept(settings, gate()))
    assert told.told
    assert load_gate(open_store(settings), "idx-43") == told
    assert notify_gate(settings, told) == told
    assert len(slack_server.delivered) == 1


def with_channels(settings: Settings) -> Settings:
    """The same, telling a team too, and a pager what is critical."""
    told = [{"url_env": "TEAM_URL"}, {"url_env": "PAGER_URL", "severity": "critical"}]
    return make_settings({**settings.model_dump(include={"store"}), "alerts": {"channels": told}})


def test_every_channel_hears_of_a_held_build_once(
    settings: Settings, slack_server: SlackServer, hooks: tuple[Hook, Hook]
) -> None:
    """One that fails is told by the repeat, and no other again: also where the repeat is given the
    gate as it was before, as a task that is retried."""
    (team, pager), chosen, held = hooks, with_channels(settings), kept(settings, gate())
    team.status = 500
    for _ in range(2):
        with pytest.raises(Unconfirmed, match="TEAM_URL did not take the message") as caught:
            notify_gate(chosen, held)
    assert caught.value.transient
    stored = load_gate(open_store(settings), "idx-43")
    assert stored is not None
    assert (stored.told, stored.heard) == (False, ["slack", "PAGER_URL"])
    team.status = 200
    for _ in range(2):
        assert notify_gate(chosen, held).told
    assert [one["type"] for one in (*team.received, *pager.received)] == ["failure", "failure"]
    assert "index build idx-43 is held" in team.received[0]["title"]
    assert len(slack_server.delivered) == 1


def test_a_pager_hears_what_is_critical_of_builds(
    settings: Settings, slack_server: SlackServer, hooks: tuple[Hook, Hook]
) -> None:
    """One that cannot be compared is a warning; one without verdict is told to all, once."""
    (team, pager), chosen = hooks, with_channels(settings)
    assert notify_gate(chosen, kept(settings, incomparable())).told
    assert [one["type"] for one in team.received] == ["warning"]
    assert pager.received == []
    pager.status = 500
    with pytest.raises(Unconfirmed, match="PAGER_URL"):
        notify_failed_gate(chosen, "build: not there", "{}", "e-1")
    pager.status = 200
    for _ in range(2):
        assert notify_failed_gate(chosen, "build: not there", "{}", "e-1").told
    assert [len(one.received) for one in (team, pager)] == [2, 1]
    assert len(slack_server.delivered) == 2


def test_a_store_that_takes_no_note_keeps_no_channel_from_being_told(
    settings: Settings,
    slack_server: SlackServer,
    hooks: tuple[Hook, Hook],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where gates/ cannot be written all channels are told, and then the run fails."""
    held = kept(settings, gate())

    def refuse(self: Files, path: str, data: bytes) -> None:
        raise StoreError(f"writing {path}: access denied (AccessDenied)")

    monkeypatch.setattr(Files, "write", refuse)
    with pytest.raises(StoreError, match=r"gates/idx-43.json: access denied"):
        notify_gate(with_channels(settings), held)
    assert [len(hook.received) for hook in hooks] == [1, 1]
    assert len(slack_server.delivered) == 1


@pytest.mark.process
def test_a_channel_without_its_address_is_a_mistake_that_is_said(
    settings: Settings, hooks: tuple[Hook, Hook], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack's is not: nobody asked for it."""
    monkeypatch.delenv("TEAM_URL")
    with pytest.raises(Unconfirmed, match="TEAM_URL is not set"):
        notify_gate(with_channels(settings), kept(settings, gate()))
    assert len(hooks[1].received) == 1


def test_what_passes_is_not_told(settings: Settings, slack_server: SlackServer) -> None:
    """Nor is a build that more questions would decide."""
    few = metric_verdict(verdict="inconclusive", further=80)
    for silent in (promoted(), gate(verdict="inconclusive", further=80, metrics=[few])):
        assert not notify_gate(settings, kept(settings, silent)).told
    assert slack_server.received == []


def test_an_unconfirmed_message_is_sent_by_the_repeat(
    settings: Settings, slack_server: SlackServer
) -> None:
    """Slack down: an error, `told` stays false, and the same gate told again goes out."""
    slack_server.fail("not_ok", times=1)
    held = kept(settings, gate())
    with pytest.raises(Unconfirmed, match="no_service"):
        notify_gate(settings, held)
    assert load_gate(open_store(settings), "idx-43") == held
    assert notify_gate(settings, held).told
    assert len(slack_server.delivered) == 1


def test_a_newer_verdict_is_not_written_over(settings: Settings, slack_server: SlackServer) -> None:
    """Another run has promoted the build meanwhile: that stands."""
    newer = kept(settings, promoted("idx-43"))
    assert notify_gate(settings, gate()).told
    assert load_gate(open_store(settings), "idx-43") == newer


def test_without_a_webhook_nothing_is_noted_as_told(settings: Settings) -> None:
    """Once there is one, a repeat tells of the build that is still held."""
    assert not notify_gate(settings, kept(settings, gate())).told


def test_the_same_event_is_told_once(settings: Settings, slack_server: SlackServer) -> None:
    """A retried run does not repeat itself; the next event that fails alike is told again."""
    for event in ("e-1", "e-1", "e-2"):
        assert notify_failed_gate(settings, "build: not there", "{}", event).told
    assert len(slack_server.delivered) == 2
    notify_failed_gate(settings, "build: should be a valid string", "{}", "e-1")
    assert len(slack_server.delivered) == 3
    assert [one.event_id for one in load_failed_gates(open_store(settings))] == [
        "e-1",
        "e-2",
        "e-1",
    ]


def test_an_unconfirmed_event_is_told_by_the_repeat(
    settings: Settings, slack_server: SlackServer
) -> None:
    """It is in the store all the same, as not told."""
    slack_server.fail("not_ok", times=1)
    with pytest.raises(Unconfirmed):
        notify_failed_gate(settings, "build: not there", "{}", "e-1")
    assert [one.told for one in load_failed_gates(open_store(settings))] == [False]
    notify_failed_gate(settings, "build: not there", "{}", "e-1")
    assert [one.told for one in load_failed_gates(open_store(settings))] == [True]


def test_a_store_that_cannot_be_written_keeps_nobody_from_being_told(
    tmp_path: Path, slack_server: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The message goes out, and the log says that it may do so twice."""
    (tmp_path / "store").write_text("a file, where a folder should be")
    broken = make_settings({"store": str(tmp_path / "store")})
    assert notify_failed_gate(broken, "build: not there", "{}", "e-1").told
    assert len(slack_server.delivered) == 1
    assert "may be sent twice" in caplog.text


def test_redacted_settings_keep_the_payload_out(tmp_path: Path, slack_server: SlackServer) -> None:
    """What an event carried is as private as a question; its id is told."""
    hidden = {"store": str(tmp_path / "store"), "alerts": {"redact": True}}
    notify_failed_gate(make_settings(hidden), "build: not there", '{"x": "secret"}', "e-1")
    assert "secret" not in json.dumps(slack_server.delivered)
    assert "e-1" in json.dumps(slack_server.delivered)

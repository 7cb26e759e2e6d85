"""Fourteen nights on which a firing alert gets worse twice, from logs to Slack's threads."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ragmetrics.cli.app import app
from ragmetrics.delivery.channel_kinds.slack_bot import API
from ragmetrics.pipeline import NightResult, run_night
from ragmetrics.records import Finding
from tests.builders import night_settings
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.slack import TOKEN, SlackServer

FIRST = date(2026, 11, 2)
ROWS = 150
LEVELS = (0.553, 0.553, 0.466, 0.483, 0.475, 0.500, 0.500, 0.258, 0.258, 0.094, *[0.553] * 4)
"""The mean recall of each night; an alert fires on the third and resolves on the eleventh."""
SILENCES = {
    "nobody heard of it": [],
    "acknowledged": ["ack", "--by", "ada"],
    "snoozed": ["snooze", "--days", "60", "--by", "ada"],
}


@pytest.fixture
def slack(slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch) -> SlackServer:
    """Slack with a bot."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setenv(API, slack_server.api)
    return slack_server


def rows_of(level: float, day: date) -> list[dict[str, Any]]:
    """The same questions every night, of which so large a share is answered."""
    good, bad = (make_rows(ROWS, good=share, night=day) for share in (1.0, 0.0))
    answered = [number * 7919 % ROWS < round(level * ROWS) for number in range(ROWS)]
    return [one if known else other for one, other, known in zip(good, bad, answered, strict=True)]


def nights(folder: Path, command: list[str]) -> list[NightResult]:
    """All nights, one after the other; after the third somebody says something of the alert."""
    settings = night_settings(
        folder, logs="logs/{date}.jsonl", dataset="help", alerts={"slack_channel": "#retrieval"}
    )
    results = []
    for number, level in enumerate(LEVELS):
        day = FIRST + timedelta(number)
        write_jsonl(folder / "logs" / f"{day}.jsonl", rows_of(level, day))
        results.append(run_night(settings, day))
        if number == 2 and command:
            found = the_alert(results[-1])
            verb, *more = command
            said = CliRunner().invoke(app, ["alerts", verb, found.key, *more, *store_of(folder)])
            assert said.exit_code == 0, said.output
    return results


def store_of(folder: Path) -> list[str]:
    """The option that names the store."""
    return ["--store", str(folder / "store")]


def the_alert(night: NightResult) -> Finding:
    """What the default rule on recall says."""
    (found,) = [finding for finding in night.manifest.findings if finding.kind == "metric"]
    return found


@pytest.mark.usefixtures("without_pages")
@pytest.mark.pages(FIRST + timedelta(7))
@pytest.mark.parametrize("who", list(SILENCES))
def test_a_collapse_of_a_firing_alert_is_told_at_once(
    tmp_path: Path, slack: SlackServer, who: str
) -> None:
    """Whoever silenced it: on the eighth night and again on the tenth, in the alert's thread and in
    the channel; the night after each nothing, and no silence is left.
    """
    told = nights(tmp_path, SILENCES[who])
    transitions = [the_alert(one).transition for one in told]
    assert transitions == [
        *[None, None, "fired", None, None, None, None],
        *["escalated", None, "escalated", "resolved", None, None, None],
    ]
    thread = slack.posted[0]["ts"]
    assert [(one.get("thread_ts"), one.get("reply_broadcast")) for one in slack.posted] == [
        (None, None),
        (thread, True),
        (thread, True),
        (thread, True),
    ]
    fired, halved, lost, resolved = (one["text"] for one in slack.posted)
    assert "Context recall fell: 0.553 → 0.467 over the same 150 questions" in fired
    assert "🔴 Critical: Context recall fell further: 0.467 → 0.260" in halved
    assert "🔴 Critical: Context recall fell further: 0.260 → 0.093" in lost
    assert "🟢 Resolved" in resolved
    ended = [str(slack.posted[place]["blocks"]).count("No longer ") for place in (1, 2)]
    assert ended == [int(who != "nobody heard of it"), 0]
    assert [bool(the_alert(one).silence) for one in told[3:7]] == [bool(SILENCES[who])] * 4
    assert not any(the_alert(one).silence for one in told[7:])
    page = tmp_path / "store" / "dashboard" / str(FIRST + timedelta(7)) / "index.html"
    text = page.read_text(encoding="utf-8")
    assert "1 alert firing, 1 escalated" in text
    assert "got worse than in the last message (2026-11-04): 0.467 → 0.260" in text
    assert ("no longer" in text) == bool(SILENCES[who])

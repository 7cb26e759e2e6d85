"""`ragmetrics alerts`: what fires, and who keeps it quiet, as people run it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.delivery import delivery as deliver, load_alerts, notify_channels, outbox
from ragmetrics.delivery.outbox import MessageBatch, Outbox, Waiting
from ragmetrics.errors import StoreError
from ragmetrics.messages import Message
from ragmetrics.records import Finding, alert_id
from ragmetrics.rules import silences
from ragmetrics.rules.silence_store import FOLDER
from ragmetrics.storage import Files
from tests.builders import save_settings
from tests.fakes.clients import Bucket
from tests.fakes.command import Ended, Run
from tests.fakes.nights import FIRST, finding, night
from tests.fakes.published import published
from tests.fakes.slack import SlackServer

SETTINGS = make_settings({"alerts": {"remind_days": 2}})
RECALL = "helpdesk/context_recall/all/min 0.8"
BILLING = "helpdesk/context_recall/section=billing/min 0.8"
RELEVANCE = "helpdesk/context_relevance/all/min 0.7"


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is logged in."""
    monkeypatch.setenv("USER", "ada")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A store whose first night was told: recall fires, relevance is pending, billing is ok."""
    files = Files(str(tmp_path / "store"))
    tell(files, 0)
    return files


def found(recall: str = "breach", billing: str = "ok", relevance: str = "suspect") -> list[Finding]:
    """The findings of a night."""
    return [
        finding(level=recall, key=RECALL),
        finding(level=billing, key=BILLING, severity="warning"),
        finding("context_relevance", level=relevance, key=RELEVANCE, for_nights=None),
    ]


def tell(files: Files, number: int, findings: list[Finding] | None = None) -> None:
    """A night, so many days after the first, is published and told."""
    raw = found() if findings is None else findings
    manifest = published(files, night(number, findings=raw), SETTINGS.alerts.remind_days)
    notify_channels(SETTINGS, files, manifest)


def alerts(run: Run, files: Files, *words: object) -> Ended:
    """`ragmetrics alerts ... --store ...`."""
    return run("alerts", *words, "--store", files.uri())


def listed(run: Run, files: Files, *words: str) -> dict[str, Any]:
    """The alerts of `alerts list --json`, by key."""
    ended = alerts(run, files, "list", "--json", *words)
    assert ended.code == 0, ended.err
    return {one["key"]: one for one in json.loads(ended.out)["alerts"]}


def test_it_has_help(run: Run) -> None:
    """The commands say what they are for."""
    ended = run("alerts", "--help")
    assert ended.code == 0
    for name in ("list", "ack", "snooze", "unsilence", "preview"):
        assert name in ended.out


def test_alerts_that_are_not_ok_are_listed_worst_first(run: Run, files: Files) -> None:
    """With the id that the other commands take, since when, last message, and what was found."""
    ended = alerts(run, files, "list")
    assert (ended.code, ended.err) == (0, "")
    text = " ".join(ended.out.split())
    assert f"{alert_id(RECALL)} firing {FIRST} {FIRST} Context recall fell" in text
    assert f"{alert_id(RELEVANCE)} pending {FIRST} – Context relevance (graded)" in text
    assert "Context recall fell from 0.930 to 0.700" in text
    assert text.index("firing") < text.index("pending")
    assert alert_id(BILLING) not in text
    assert f"After the night of {FIRST}: 2 of 3 alerts shown." in text
    assert f"{alert_id(BILLING)} ok " in " ".join(alerts(run, files, "list", "--all").out.split())


def test_alerts_are_listed_as_json(run: Run, files: Files) -> None:
    """One object, and nothing else."""
    assert listed(run, files)[RECALL] == {
        "id": alert_id(RECALL),
        "key": RECALL,
        "state": "firing",
        "since": str(FIRST),
        "nights": 1,
        "level": "breach",
        "severity": "critical",
        "last_night": str(FIRST),
        "last_told": str(FIRST),
        "last_told_mean": None,
        "message": "context_recall fell from 0.930 to 0.700, limit 0.8",
        "silence": None,
    }
    assert listed(run, files, "--all").keys() == {RECALL, BILLING, RELEVANCE}


def test_where_all_is_well_nothing_is_listed(run: Run, files: Files) -> None:
    """But how many alerts there are."""
    tell(files, 1, found("ok", "ok", "ok"))
    assert "the night of 2026-11-11: 3 alerts are ok" in alerts(run, files, "list").out


def test_an_acknowledged_alert_is_not_reminded_of(
    run: Run, files: Files, slack_server: SlackServer
) -> None:
    """Until it resolves, which is told; others are, and say that it is acknowledged."""
    ended = alerts(run, files, "ack", RECALL, "--note", "index is being rebuilt")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("acknowledged by ada: index is being rebuilt: context_recall fell")
    silence = listed(run, files)[RECALL]["silence"]
    assert (silence["by"], silence["note"]) == ("ada", "index is being rebuilt")
    for number in range(1, 5):
        tell(files, number)
    assert slack_server.delivered == []
    tell(files, 5, found(billing="breach"))
    assert "acknowledged by ada" in json.dumps(slack_server.delivered)
    tell(files, 6, found("ok", "breach"))
    assert "Resolved" in slack_server.delivered[-1]["text"]


@pytest.mark.parametrize("given", [True, False])
def test_an_alert_that_nothing_checks_is_listed_as_long_as_the_settings_say(
    run: Run, files: Files, tmp_path: Path, given: bool
) -> None:
    """By the settings; without a file of them, by those of the newest night: not by the default."""
    tell(files, 1)
    alerts(run, files, "ack", RECALL)
    for number in range(2, 12):
        others = found()[1:]
        chosen = {} if given else {"alerts": {"remind_days": 30}}
        manifest = published(files, night(number, findings=others, settings=chosen), 30)
        assert RECALL in {one.key for one in manifest.findings}
    path = save_settings(tmp_path, name="other.yaml", alerts={"remind_days": 30})
    words = ["--settings", str(path)] if given else []
    assert listed(run, files, *words)[RECALL]["state"] == "firing"
    assert alerts(run, files, "snooze", BILLING, "--days", "1", *words).code == 0
    assert silences(files).keys() == {RECALL, BILLING}
    assert alerts(run, files, "ack", RECALL, *words).code == 0


def test_the_dashboard_says_who_acknowledged(run: Run, files: Files) -> None:
    """At once, on the newest night's page and on the overview; nothing of it acts as markup."""
    alerts(run, files, "ack", RECALL, "--by", "<b>Bob", "--note", "<script>x</script> \x1b[31m")
    for page in ("dashboard/index.html", f"dashboard/{FIRST}/index.html"):
        text = files.read(page).decode()
        assert "acknowledged by &lt;b&gt;Bob: &lt;script&gt;x" in text
        assert "\x1b" not in text
    assert "\x1b" not in alerts(run, files, "list").out


def test_a_snoozed_alert_is_told_of_again_afterwards(
    run: Run, files: Files, slack_server: SlackServer
) -> None:
    """`--days 2`: the next two nights are silent, the third tells that it still fires."""
    ended = alerts(run, files, "snooze", alert_id(RECALL), "--until", "2026-11-13")
    assert ended.code == 0, ended.err
    assert "snoozed until 2026-11-13 by ada" in ended.out
    for number in (1, 2):
        tell(files, number, found("ok" if number == 1 else "breach"))
    assert slack_server.delivered == []
    tell(files, 3)
    assert "Reminder" in slack_server.delivered[0]["text"]


def test_days_are_counted_from_the_next_night_on(
    run: Run, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nights that should have been run by now are past, though the newest is older."""
    for days, today, until in ((2, FIRST, "2026-11-13"), (2, date(2026, 11, 20), "2026-11-22")):
        at_noon(monkeypatch, today)
        ended = alerts(run, files, "snooze", RECALL, "--days", days)
        assert f"snoozed until {until}" in ended.out


def at_noon(monkeypatch: pytest.MonkeyPatch, today: date) -> None:
    """What day it is for the command."""
    from ragmetrics.cli import alerts as cli_alerts

    class Clock(cli_alerts.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            """Noon of that day."""
            return cls(today.year, today.month, today.day, 12, tzinfo=tz)

    monkeypatch.setattr(cli_alerts, "datetime", Clock)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ack", "nothing"], "no alert 'nothing'"),
        (["ack", "helpdesk/context_recall"], "matches 2 alerts"),
        (["ack", BILLING], "is ok: only a firing alert can be acknowledged"),
        (["ack", RELEVANCE], "is pending: only a firing alert can be acknowledged"),
        (["snooze", RECALL], "set either --days N or --until DATE"),
        (
            ["snooze", RECALL, "--days", "2", "--until", "2026-12-01"],
            "set either --days N or --until DATE",
        ),
        (["snooze", RECALL, "--until", "2026-11-10"], "the night of 2026-11-10 is past"),
        (["snooze", RECALL, "--until", "2126-11-10"], "more than a year away"),
        (["snooze", RECALL, "--until", "tomorrow"], "'tomorrow': should be a date like 2026-11-19"),
        (["snooze", RECALL, "--days", "0"], "'--days'"),
        (["unsilence", RECALL], "neither acknowledged nor snoozed"),
        (["ack", ""], "no alert ''"),
    ],
)
def test_a_slip_is_one_clear_sentence(run: Run, files: Files, words: list[str], said: str) -> None:
    """Exit code 2, and nothing is silenced."""
    ended = alerts(run, files, *words)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
    assert silences(files) == {}


def test_the_beginning_of_a_key_or_id_is_enough(run: Run, files: Files) -> None:
    """Where no other begins so."""
    assert alerts(run, files, "ack", "helpdesk/context_recall/a").code == 0
    assert alerts(run, files, "unsilence", alert_id(RECALL)[:5]).code == 0
    assert alerts(run, files, "unsilence", alert_id(RECALL)[:5]).code == 2


def test_what_is_taken_back_is_told_of_again(
    run: Run, files: Files, slack_server: SlackServer
) -> None:
    """The reminder that was due comes with the next night."""
    alerts(run, files, "ack", RECALL)
    tell(files, 3)
    assert slack_server.delivered == []
    ended = alerts(run, files, "unsilence", RECALL)
    assert ended.out.startswith("notifications again: Context recall fell")
    tell(files, 4)
    assert "Reminder" in slack_server.delivered[0]["text"]


def test_the_later_silence_takes_the_place_of_the_earlier(run: Run, files: Files) -> None:
    """An alert has one at a time; what is over is removed with the next."""
    alerts(run, files, "ack", RECALL)
    alerts(run, files, "snooze", RECALL, "--until", "2026-11-12")
    assert listed(run, files)[RECALL]["silence"]["until"] == "2026-11-12"
    tell(files, 4)
    assert listed(run, files)[RECALL]["silence"] is None
    alerts(run, files, "snooze", RELEVANCE, "--days", "3")
    assert silences(files).keys() == {RELEVANCE}
    assert len(files.below(FOLDER)) == 1


def test_a_silenced_alert_that_is_ok_is_listed(run: Run, files: Files) -> None:
    """Or nobody would find it again."""
    alerts(run, files, "snooze", BILLING, "--days", "3", "--by", "")
    text = " ".join(alerts(run, files, "list").out.split())
    assert f"{alert_id(BILLING)} ok – – " in text
    assert "snoozed until" in text


def test_a_night_that_ends_meanwhile_and_a_silence_keep_each_other(
    run: Run, files: Files, monkeypatch: pytest.MonkeyPatch, slack_server: SlackServer
) -> None:
    """Commands write no state and nights no silences, so neither is lost."""
    compose: Callable[..., Any] = deliver.compose

    def composed(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(deliver, "compose", compose)
        assert alerts(run, files, "ack", RECALL).code == 0
        return compose(*given, **more)

    monkeypatch.setattr(deliver, "compose", composed)
    tell(files, 1)
    assert load_alerts(files).night == FIRST + timedelta(1)
    tell(files, 3)
    assert slack_server.delivered == []
    assert listed(run, files)[RECALL]["silence"]["by"] == "ada"


def test_silences_live_in_a_bucket_too(run: Run, s3: Bucket, slack_server: SlackServer) -> None:
    """As everything of the store."""
    files = Files(f"{s3.uri}/store")
    tell(files, 0)
    assert alerts(run, files, "ack", RECALL).code == 0
    tell(files, 3)
    assert len(slack_server.delivered) == 1
    assert listed(run, files)[RECALL]["silence"]["by"] == "ada"
    assert alerts(run, files, "unsilence", RECALL).code == 0
    assert silences(files) == {}


def test_the_settings_name_the_store(run: Run, files: Files, tmp_path: Path) -> None:
    """As for every other command."""
    path = save_settings(tmp_path, store="store")
    assert alert_id(RECALL) in run("alerts", "list", "--settings", path).out


def test_no_store_is_no_list_without_alerts(run: Run, tmp_path: Path) -> None:
    """Nor is one in which no night was told of a store where all is well."""
    ended = run("alerts", "list", "--store", tmp_path / "nowhere")
    assert ended.code == 2
    assert "there is no such store" in ended.err
    (tmp_path / "empty").mkdir()
    assert (
        "No night has been published with alerts yet."
        in run("alerts", "list", "--store", tmp_path / "empty").out
    )


def test_what_is_not_delivered_yet_is_said(
    run: Run, files: Files, slack_server: SlackServer
) -> None:
    """Below the alerts."""
    slack_server.fail("500")
    tell(files, 2)
    assert "Not delivered yet: the messages of 2026-11-12" in alerts(run, files, "list").out


def test_a_file_that_is_no_silence_is_left_aside(
    run: Run, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """And named; the others count."""
    alerts(run, files, "ack", RECALL)
    naive = {"key": BILLING, "at": "2026-11-20T00:00:00", "until": "2026-12-01"}
    files.write(f"{FOLDER}/broken.json", b"{")
    files.write(f"{FOLDER}/naive.json", json.dumps(naive).encode())
    assert silences(files).keys() == {RECALL}
    assert "broken.json is not a silence" in caplog.text
    assert "naive.json is not a silence and is ignored: at:" in caplog.text


def test_a_dashboard_that_cannot_be_written_undoes_no_silence(
    run: Run, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told, and the alert is quiet all the same."""

    def full(_: Files) -> None:
        raise StoreError("writing dashboard/index.html: no space left")

    monkeypatch.setattr("ragmetrics.dashboard.refresh_dashboard", full)
    ended = alerts(run, files, "ack", RECALL)
    assert ended.code == 0
    assert "the dashboard is not up to date: writing dashboard/index.html" in ended.err
    assert silences(files).keys() == {RECALL}


def test_messages_that_were_given_up_are_counted(run: Run, files: Files) -> None:
    """With the place where they can be read."""
    assert json.loads(alerts(run, files, "list", "--json").out)["given_up"] == 0
    assert "Given up" not in alerts(run, files, "list").out
    waiting = Waiting(message=Message("hello", []))
    old = MessageBatch(night=FIRST, waiting=[waiting])
    where = Outbox(files, {old.name: old}).give_up(old.name, waiting)
    assert json.loads(alerts(run, files, "list", "--json").out)["given_up"] == 1
    shown = alerts(run, files, "list").out
    assert f"Given up after 14 nights: 1 undelivered, in {files.uri(outbox.GIVEN_UP)}." in shown
    assert where.startswith(files.uri(outbox.GIVEN_UP))

"""Slack is down for a whole night: the run ends, the alert is kept, the next run tells it once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.delivery import delivery as deliver, load_alerts, outbox
from ragmetrics.delivery.channel_kinds import slack_webhook as webhook
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.storage import Files
from tests.builders import night_values
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.slack import Failure, SlackServer

pytestmark = pytest.mark.usefixtures("without_pages")

NIGHT = date(2026, 11, 19)
NEXT = NIGHT + timedelta(days=1)


class Killed(BaseException):
    """As by `kill -9`."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A rule that a poor night breaches, over two nights of poor rows."""
    for night in (NIGHT, NEXT):
        rows = make_rows(30, good=0.5, night=night)
        write_jsonl(tmp_path / f"logs/dt={night}/a.jsonl", rows)
    values = night_values(
        tmp_path, dataset="docs", rules=[{"metric": "context_recall", "min": 0.9}]
    )
    return make_settings(values)


@pytest.mark.parametrize(
    ("how", "retry_after"), [("500", "0"), ("hang", "0"), ("429", "0"), ("429", "3600")]
)
def test_slack_down_for_a_night_keeps_the_alert_for_the_next_run(
    settings: Settings,
    slack_server: SlackServer,
    monkeypatch: pytest.MonkeyPatch,
    how: Failure,
    retry_after: str,
) -> None:
    """The run ends soon and says so; the next night tells what is kept, and nothing twice."""
    monkeypatch.setitem(webhook.send.__kwdefaults__, "timeout", 1)
    slack_server.retry_after = retry_after
    slack_server.fail(how)
    with pytest.raises(CoverageShort, match="kept for the next run"):
        run_night(settings, NIGHT)
    files = Files(settings.store)
    assert len(files.below(outbox.FOLDER)) == 1
    assert [state.state for state in load_alerts(files).states.values()].count("firing") == 1

    slack_server.fail(None)
    for _ in range(2):
        run_night(settings, NEXT)
    (told,) = slack_server.delivered
    assert f"night of {NIGHT}" in told["text"]
    assert files.below(outbox.FOLDER) == []


@pytest.mark.parametrize("then", [NIGHT, NEXT])
@pytest.mark.parametrize("taken", [False, True])
def test_a_run_killed_while_it_tells_is_followed_by_one_that_tells_it(
    settings: Settings,
    slack_server: SlackServer,
    monkeypatch: pytest.MonkeyPatch,
    taken: bool,
    then: date,
) -> None:
    """By its rerun or by the next night: once, or once more where Slack had it already."""
    send = webhook.send

    def dying(*given: object) -> None:
        if taken:
            send(*given)  # type: ignore[arg-type]
        raise Killed

    with monkeypatch.context() as death:
        death.setattr(webhook, "send", dying)
        with pytest.raises(Killed):
            run_night(settings, NIGHT)
    for _ in range(2):
        run_night(settings, then)
    texts = [message["text"] for message in slack_server.delivered]
    assert len(texts) == 1 + taken
    assert len(set(texts)) == 1


@contextmanager
def dying_after_the_outbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What runs in here dies when its messages are in the outbox."""

    def dying(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as death, pytest.raises(Killed):
        death.setattr(deliver, "_send_all", dying)
        yield


def test_what_nobody_heard_of_is_not_resolved_aloud_after_a_run_that_died(
    settings: Settings, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Slack refused the night's alert, late rows put it right, and that rerun died in between."""
    slack_server.fail("500")
    with pytest.raises(CoverageShort):
        run_night(settings, NIGHT)
    write_jsonl(tmp_path / f"logs/dt={NIGHT}/a.jsonl", make_rows(30, night=NIGHT))
    slack_server.fail(None)
    with dying_after_the_outbox(monkeypatch):
        run_night(settings, NIGHT)
    run_night(settings, NIGHT)
    assert slack_server.delivered == []
    assert Files(settings.store).below(outbox.FOLDER) == []


def test_a_run_killed_before_it_sent_anything_is_told_by_its_rerun(
    settings: Settings, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message is in the outbox by then; the rerun takes it back and tells it anew, once."""
    with dying_after_the_outbox(monkeypatch):
        run_night(settings, NIGHT)
    assert len(Files(settings.store).below(outbox.FOLDER)) == 1
    for night in (NIGHT, NIGHT, NEXT):
        run_night(settings, night)
    assert len(slack_server.delivered) == 1

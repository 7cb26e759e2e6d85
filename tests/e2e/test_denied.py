"""A bucket policy denies one folder of the store: whoever has to hear of a drop hears of it, the
run fails and says why, and the next night mends what is missing. The real flow runs the denied
night where it has a way of its own: publishing, pages, scoring and staging."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.config import load_settings
from ragmetrics.delivery import load_alerts
from ragmetrics.delivery.outbox import load_batches
from ragmetrics.pipeline import NightResult, run_night
from ragmetrics.storage import Files, Runs
from tests.builders import judge_at, night_values, save_settings
from tests.fakes import s3 as fake_s3
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("prefect_server", "without_pages")

ROWS = 20
BAD, NEXT = NIGHT + timedelta(days=1), NIGHT + timedelta(days=2)
WELL = ("rows", "scores", "runs", "history", "dashboard")
"""What every night leaves in the store."""
_first_night: dict[str, bytes] = {}
"""The store after a good night, made once."""


@pytest.fixture
def settings(
    tmp_path: Path, s3_strict: Bucket, judge_server: JudgeServer, slack_server: SlackServer
) -> str:
    """A settings file, three nights of logs in the bucket of which the second is bad, and a store
    after the first."""
    judge = judge_at(judge_server)
    path = save_settings(
        tmp_path,
        night_values(
            s3_strict.uri,
            dataset="towers",
            shards=1,
            judge=judge,
            alerts={
                "rules": [{"metric": "context_recall", "min": 0.9}],
                "max_quarantined": 0.9,
            },
        ),
    )
    for night, good in ((NIGHT, 1.0), (BAD, 0.3), (NEXT, 1.0)):
        lines = [json.dumps(row) for row in make_rows(ROWS, good=good, night=night)]
        put(s3_strict, f"logs/dt={night}/log.jsonl", "\n".join([*lines, "no row"]).encode())
    for key, data in _first_night.items():
        put(s3_strict, key, data)
    if not _first_night:
        run_plainly(str(path), NIGHT)
        for key in s3_strict.keys("store/"):
            found = s3_strict.client.get_object(Bucket=s3_strict.name, Key=key)
            _first_night[key] = found["Body"].read()
    assert slack_server.received == []
    return str(path)


def put(bucket: Bucket, key: str, data: bytes) -> None:
    """Put an object."""
    bucket.client.put_object(Bucket=bucket.name, Key=key, Body=data)


def run(settings: str, night: date) -> Any:
    """Run the flow in this process."""
    from flows.nightly import nightly

    return nightly(settings, night)


def run_plainly(settings: str, night: date) -> NightResult:
    """Run a night without the flow: half the time, the same store."""
    return run_night(load_settings(settings), night)


def told(slack: SlackServer) -> list[str]:
    """The first line of what people were told."""
    return [message["text"] for message in slack.delivered]


def store(bucket: Bucket) -> Files:
    """The store."""
    return Files(f"{bucket.uri}/store")


def is_whole(bucket: Bucket, night: date) -> bool:
    """Whether the store has all that belongs to a night."""
    keys = bucket.keys("store/")
    pages = {f"store/dashboard/{night}/{name}.html" for name in ("index", "summary", "rows")}
    kept = all(any(f"{kind}/dt={night}/" in key for key in keys) for kind in WELL[:3])
    page = bucket.client.get_object(Bucket=bucket.name, Key="store/dashboard/index.html")
    in_list = str(night) in page["Body"].read().decode()
    return kept and in_list and pages <= set(keys)


@pytest.mark.pages
@pytest.mark.parametrize(
    ("folder", "start"),
    [
        ("runs", run),
        ("dashboard", run),
        ("history", run_plainly),
        ("alerts", run_plainly),
        ("quarantine", run_plainly),
    ],
)
def test_a_folder_that_cannot_be_written_loses_no_alert(
    s3_strict: Bucket,
    slack_server: SlackServer,
    settings: str,
    folder: str,
    start: Callable[[str, date], Any],
) -> None:
    """The drop is told, the run fails with the server's reason; the next night says that all is
    well again, and what was missing is there."""
    fake_s3.deny(s3_strict, "PutObject", f"store/{folder}")
    with pytest.raises(Exception, match=rf"store/{folder}.*access denied \(AccessDenied"):
        start(settings, BAD)
    assert "Context recall" in told(slack_server)[0]
    behind = folder.startswith(("runs", "history", "dashboard"))
    assert [text for text in told(slack_server)[1:] if "could not be written" in text] == (
        told(slack_server)[1:]
    )
    assert len(told(slack_server)) == 1 + behind
    slack_server.delivered.clear()

    fake_s3.deny_nothing(s3_strict)
    result = run_plainly(settings, NEXT)
    (said,) = told(slack_server)
    assert "Resolved" in said
    assert result.delivery.errors == ()
    states = load_alerts(store(s3_strict)).states
    assert {one.state for one in states.values()} == {"ok"}
    if folder == "runs":  # without its manifest a night does not exist, until it is run again
        run_plainly(settings, BAD)
    if folder == "quarantine":
        run_plainly(settings, BAD)
        assert f"store/quarantine/dt={BAD}" in "".join(s3_strict.keys("store/quarantine/"))
    assert is_whole(s3_strict, BAD)
    assert is_whole(s3_strict, NEXT)
    assert [one.date for one in Runs(store(s3_strict)).nights()] == [NIGHT, BAD, NEXT]
    assert len(told(slack_server)) == 1


@pytest.mark.parametrize(("folder", "start"), [("scores", run), ("judgements", run_plainly)])
def test_a_night_that_cannot_be_scored_says_so(
    s3_strict: Bucket,
    slack_server: SlackServer,
    settings: str,
    folder: str,
    start: Callable[[str, date], Any],
) -> None:
    """No part can be kept, so no row counts as scored: people are told, with the server's reason,
    and a rerun after the mend tells of the drop."""
    fake_s3.deny(s3_strict, "PutObject", f"store/{folder}")
    with pytest.raises(Exception, match="access denied"):
        start(settings, BAD)
    assert "AccessDenied" in json.dumps(slack_server.delivered)
    slack_server.delivered.clear()
    fake_s3.deny_nothing(s3_strict)
    assert run_plainly(settings, BAD).manifest.problems == []
    assert "Context recall" in json.dumps(slack_server.delivered)


def test_rows_that_cannot_be_staged_fail_the_run(
    s3_strict: Bucket, slack_server: SlackServer, settings: str
) -> None:
    """There is nothing to tell of a night that was not read: the run fails, with the reason, for
    the automation to tell; the next night goes on as ever."""
    fake_s3.deny(s3_strict, "PutObject", "store/rows")
    with pytest.raises(Exception, match=r"store/rows/.*access denied \(AccessDenied"):
        run(settings, BAD)
    assert told(slack_server) == []
    fake_s3.deny_nothing(s3_strict)
    run_plainly(settings, BAD)
    assert "Context recall" in told(slack_server)[0]


def test_a_set_for_drift_that_cannot_be_kept_costs_no_night(
    s3_strict: Bucket, slack_server: SlackServer, settings: str, tmp_path: Path
) -> None:
    """Where calibrations/ is denied the night is scored and told, and says what is missing."""
    labelled = tmp_path / "towers.jsonl"
    labelled.write_text("".join(json.dumps(row) + "\n" for row in make_labelled(10)))
    values = yaml.safe_load(Path(settings).read_text())
    values["alerts"]["drift_set"] = str(labelled)
    Path(settings).write_text(yaml.safe_dump(values))
    fake_s3.deny(s3_strict, "PutObject", "store/calibrations")
    manifest = run_plainly(settings, BAD).manifest
    assert "access denied" in manifest.problems[0]
    assert "Context recall" in told(slack_server)[0]


@pytest.mark.pages
def test_nothing_needs_to_be_removed(
    s3_strict: Bucket, judge_server: JudgeServer, slack_server: SlackServer, settings: str
) -> None:
    """Where deleting is denied, in all folders, nights go on: each message is sent once, and no
    page, score or reply is missing."""
    fake_s3.deny(s3_strict, "DeleteObject", "store/")
    run(settings, BAD)
    run_plainly(settings, NEXT)
    fired, resolved = told(slack_server)
    assert "Context recall" in fired
    assert "Resolved" in resolved
    assert is_whole(s3_strict, BAD)
    assert is_whole(s3_strict, NEXT)
    assert load_batches(store(s3_strict)).waiting == {}
    judge_server.reset()
    assert run_plainly(settings, NEXT).manifest.problems == []
    assert judge_server.stats()["requests"] == 0
    assert len(slack_server.delivered) == 2


def test_a_slack_that_is_out_and_alerts_that_cannot_be_kept_are_told_by_the_next_night(
    s3_strict: Bucket, slack_server: SlackServer, settings: str
) -> None:
    """Nobody heard of the drop, and nothing of it is noted but the manifest: the next night, which
    is good, tells of it."""
    fake_s3.deny(s3_strict, "PutObject", "store/alerts")
    slack_server.fail("500")
    with pytest.raises(Exception, match="left to the next night"):
        run_plainly(settings, BAD)
    assert slack_server.delivered == []
    slack_server.fail(None)
    fake_s3.deny_nothing(s3_strict)
    run_plainly(settings, NEXT)
    (said,) = slack_server.delivered
    assert "Context recall" in json.dumps(said)
    assert str(BAD) in json.dumps(said)
    run_plainly(settings, NEXT)
    assert len(slack_server.delivered) == 1

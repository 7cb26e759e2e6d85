"""The nightly flow through Prefect, on a real S3 server, a real HTTP judge and a Slack webhook."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragmetrics.pipeline import CoverageShort
from tests.builders import judge_at, night_values, save_settings
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("prefect_server")

ROWS = 30
METRICS = ["context_relevance", "context_precision", "context_recall", "response_relevancy"]


@pytest.fixture
def settings(tmp_path: Path, s3: Bucket, judge_server: JudgeServer) -> Callable[..., str]:
    """Writes a settings file that points at the bucket and the judge."""

    def write(**changes: Any) -> str:
        return str(
            save_settings(
                tmp_path,
                night_values(
                    s3.uri,
                    dataset="towers",
                    metrics=METRICS,
                    shards=2,
                    judge=judge_at(judge_server, model="fake", retries=2),
                    rules=[{"metric": "context_recall", "max_drop": 0.05}],
                )
                | changes,
            )
        )

    return write


def put_log(s3: Bucket, night: date, rows: list[dict[str, Any]], name: str = "log.jsonl") -> None:
    """Put one night's log into the bucket."""
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    s3.client.put_object(Bucket=s3.name, Key=f"logs/dt={night}/{name}", Body=body)


def run(settings: str, night: date = NIGHT) -> Any:
    """Run the flow in this process."""
    from flows.nightly import nightly

    return nightly(settings, night)


def stored_scores(s3: Bucket, metric: str) -> pd.DataFrame:
    """All scores of one metric in the bucket, as any reader of Parquet finds them."""
    keys = [key for key in s3.keys("store/scores/") if f"/metric={metric}/" in key]
    bodies = [s3.client.get_object(Bucket=s3.name, Key=key)["Body"].read() for key in keys]
    return pd.concat([pd.read_parquet(io.BytesIO(body)) for body in bodies])


def test_a_night_goes_from_bucket_to_scores_and_dashboard(
    s3: Bucket, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """Logs in a bucket become scores, a manifest and a dashboard there, judged over HTTP."""
    put_log(s3, NIGHT, make_rows(ROWS, good=0.8))
    manifest = run(settings()).manifest
    recall = manifest.summary("context_recall")
    assert recall is not None
    assert recall.mean == pytest.approx(0.8)
    assert recall.scored == manifest.source.rows == ROWS
    assert manifest.judge.name == "openai:fake"
    unread = manifest.usage.requests - judge_server.stats()["requests"]
    # On a busy machine a request may be given up before the judge has read it.
    assert 0 <= unread <= manifest.usage.failures.get("timeout", 0)
    assert len(stored_scores(s3, "context_recall")) == ROWS
    page = s3.client.head_object(Bucket=s3.name, Key="store/dashboard/index.html")
    assert page["ContentType"].startswith("text/html")


def test_a_night_keeps_its_settings_and_where_prefect_shows_it(
    s3: Bucket, settings: Callable[..., str]
) -> None:
    """Both stand in the manifest and on the night's page; the judge's key stands nowhere."""
    put_log(s3, NIGHT, make_rows(ROWS))
    manifest = run(settings()).manifest
    assert manifest.settings["judge"]["model"] == "fake"
    assert "/flow-run/" in manifest.flow_run
    found = s3.client.get_object(Bucket=s3.name, Key=f"store/dashboard/{NIGHT}/index.html")
    page = found["Body"].read().decode()
    assert f'href="{manifest.flow_run}"' in page
    assert f"{s3.uri}/store/scores/dt={NIGHT}" in page


def test_repeating_a_night_asks_nothing_and_changes_no_number(
    s3: Bucket, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """A rerun finds every part: no request, the same scores, nothing told again."""
    put_log(s3, NIGHT, make_rows(ROWS))
    path = settings()
    first = run(path).manifest
    scores = stored_scores(s3, "context_relevance")
    judge_server.reset()
    again = run(path).manifest
    assert judge_server.stats()["requests"] == 0
    assert again.metrics == first.metrics
    assert again.run == first.run
    pd.testing.assert_frame_equal(stored_scores(s3, "context_relevance"), scores)


def test_known_questions_cost_nothing_the_next_night(
    s3: Bucket, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """Judgements are kept: a second night with the same retrieval asks the judge nothing."""
    path = settings()
    before = NIGHT - timedelta(days=1)
    put_log(s3, before, make_rows(ROWS, night=before))
    run(path, before)
    judge_server.reset()
    put_log(s3, NIGHT, make_rows(ROWS))
    usage = run(path).manifest.usage
    assert judge_server.stats()["requests"] == usage.requests == 0
    assert usage.answered_from_store > 0
    assert not [key for key in s3.keys("store/judgements/") if key.endswith(".jsonl")]


def test_a_regression_is_told_once_and_resolved_once(
    s3: Bucket, slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """The bad night sends one message, its rerun and the next bad night none, the good one one."""
    path = settings()
    nights = [NIGHT + timedelta(days=day) for day in range(4)]
    for night, good in zip(nights, [1.0, 0.6, 0.6, 1.0], strict=True):
        put_log(s3, night, make_rows(ROWS, good=good, night=night))
    sent = []
    for night in [nights[0], nights[1], nights[1], nights[2], nights[3]]:
        run(path, night)
        sent.append(len(slack_server.delivered))
    assert sent == [0, 1, 1, 1, 2]
    fired, resolved = (json.dumps(message) for message in slack_server.delivered)
    assert "Context recall" in fired
    assert "0.600" in fired
    assert "esolved" in resolved or "normal" in resolved


def test_slack_down_fails_the_run_and_the_next_run_delivers(
    s3: Bucket, slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """An undelivered message is kept, said loudly, and sent once by the next run."""
    path = settings(alerts={"rules": [{"metric": "context_recall", "min": 0.9}]})
    put_log(s3, NIGHT, make_rows(ROWS, good=0.5))
    slack_server.fail("500")
    with pytest.raises(Exception, match="Slack message kept for the next run"):
        run(path)
    slack_server.fail(None)
    following = NIGHT + timedelta(days=1)
    put_log(s3, following, make_rows(ROWS, good=0.5, night=following))
    run(path, following)
    assert len(slack_server.delivered) == 1


def test_an_empty_night_alerts_and_fails(
    s3: Bucket, slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """No log is no green night: it is published as no data, told in Slack, and fails the run."""
    with pytest.raises(CoverageShort, match="nothing to score: no log file"):
        run(settings())
    assert "nothing to score" in json.dumps(slack_server.delivered)
    page = s3.client.get_object(Bucket=s3.name, Key="store/dashboard/index.html")["Body"].read()
    assert b"o data" in page


def test_the_log_of_the_night_before_is_no_green_night(
    s3: Bucket, slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """Copied byte for byte to the next night's folder, with the same scores: Slack is told, and
    the page of the night begins with it."""
    path, following = settings(), NIGHT + timedelta(days=1)
    for night in (NIGHT, following):
        put_log(s3, night, make_rows(ROWS))
        manifest = run(path, night).manifest
    assert [one.kind for one in manifest.findings if one.state == "firing"] == ["stale_log"]
    (message,) = slack_server.delivered
    assert f"all {ROWS} rows are those of {NIGHT}" in json.dumps(message)
    key = f"store/dashboard/{following}/index.html"
    page = s3.client.get_object(Bucket=s3.name, Key=key)["Body"].read().decode()
    assert f"all {ROWS} rows are those of {NIGHT}: the log was not updated" in page
    assert f"Night of {following}: fine" not in page


def test_a_failure_that_slack_has_is_left_alone_by_the_automations(
    slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """A run that told ends in a state of its own. Its repeat has nothing to send, and ends as any
    run that fails: that it did so again is told by the automation."""
    from flows.nightly import nightly
    from flows.run_state import TOLD

    path = settings()
    told = nightly(path, NIGHT, return_state=True)
    assert (told.type.value, told.name, len(slack_server.delivered)) == ("FAILED", TOLD, 1)
    assert "CoverageShort: night" in told.message
    untold = nightly(path, NIGHT, return_state=True)
    assert (untold.name, len(slack_server.delivered)) == ("Failed", 1)


def test_a_failure_that_slack_does_not_take_is_left_to_the_automations(
    slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """Else nobody would hear of it."""
    from flows.nightly import nightly

    slack_server.fail("500")
    assert nightly(settings(), NIGHT, return_state=True).name == "Failed"


def test_the_log_of_a_night_ends_with_what_came_of_it(
    s3: Bucket, settings: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    """One line: rows, means, the states of the rules, and where the dashboard is."""
    put_log(s3, NIGHT, make_rows(ROWS, good=0.8))
    caplog.set_level("INFO", "prefect.flow_runs")
    run(settings())
    (line,) = [message for message in caplog.messages if "rows scored" in message]
    assert line.startswith(f"night {NIGHT}: {ROWS} of {ROWS} rows scored, context_relevance ")
    assert "context_recall 0.800" in line
    assert "; rules: " in line and " ok" in line
    assert line.endswith(f"dashboard: {s3.uri}/store/dashboard/{NIGHT}/index.html")


def test_a_wrong_key_fails_the_run_with_its_reason(
    s3: Bucket, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """The run ends loudly; nothing counts as scored, and the reason is the judge's own."""
    judge_server.faults(api_key="another")
    put_log(s3, NIGHT, make_rows(5))
    with pytest.raises(Exception, match="refused the key"):
        run(settings(metrics=["context_recall"]))


def test_a_flaky_judge_loses_no_row(
    s3: Bucket, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """Rate limits, server errors and unreadable replies are asked again until answered."""
    judge_server.faults(
        fail={"429": 0.1, "500": 0.1, "malformed": 0.1, "prose": 0.2}, fail_attempts=2
    )
    put_log(s3, NIGHT, make_rows(ROWS, good=0.8))
    manifest = run(settings()).manifest
    for summary in manifest.metrics:
        assert summary.status == {"scored": ROWS}
    assert manifest.usage.failures["unreadable"] > 0


def test_nonsense_is_counted_and_never_scored(
    s3: Bucket, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """A judge that never gives a verdict leaves rows unreadable, and the run says so."""
    judge_server.faults(nonsense=True)
    put_log(s3, NIGHT, make_rows(5))
    with pytest.raises(Exception, match="5 of 5 rows got no usable verdict"):
        run(settings(metrics=["context_recall"]))


def test_a_server_without_json_schema_is_used_all_the_same(
    s3: Bucket, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """The judge falls back to json_object, then to plain text, and scores every row."""
    judge_server.faults(json_schema=False, json_object=False)
    put_log(s3, NIGHT, make_rows(5))
    manifest = run(settings(metrics=["context_recall"])).manifest
    assert manifest.metrics[0].status == {"scored": 5}


def test_the_night_is_summarised_in_a_prefect_artifact(
    s3: Bucket, settings: Callable[..., str]
) -> None:
    """The headline table stands in Prefect too, with a link to the dashboard."""
    from prefect.artifacts import Artifact

    put_log(s3, NIGHT, make_rows(5))
    run(settings(dataset="Towers_2", dashboard_url="https://dash.example/towers"))
    # `get` leaves its client open.
    artifact = asyncio.run(Artifact.aget(key="ragmetrics-towers-2"))
    assert artifact is not None
    assert "Context recall" in str(artifact.data)
    assert f"https://dash.example/towers/{NIGHT}/index.html" in str(artifact.data)

"""The nightly flow through Prefect, with a real HTTP judge and a Slack webhook.

Three runs are on a real S3 server; what is claimed of messages and of the judge does not depend on
where the store is, and is tried in a folder.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ragmetrics.pipeline import CoverageShort
from ragmetrics.records import Manifest
from tests.builders import judge_at, night_values, save_settings
from tests.fakes import s3 as fake_s3
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("prefect_server", "without_pages")

ROWS = 30
METRICS = ["context_relevance", "context_precision", "context_recall", "response_relevancy"]
RECALL = "context_recall"
DASHBOARD = "https://dash.example/towers"
"""Where the third run in the bucket says that people read."""


def save(folder: Path, root: Path | str, judge: JudgeServer, **changes: Any) -> str:
    """Write a settings file for logs and a store below a root; return its path."""
    values = night_values(
        root,
        dataset="Towers_2",
        metrics=METRICS,
        shards=2,
        judge=judge_at(judge, model="fake", retries=2),
        rules=[{"metric": RECALL, "max_drop": 0.05}],
    )
    return str(save_settings(folder, values | changes))


@pytest.fixture
def settings(tmp_path: Path, judge_server: JudgeServer) -> Callable[..., str]:
    """Writes a settings file of nights in a folder, with one metric in one shard."""

    def write(**changes: Any) -> str:
        small = {"metrics": [RECALL], "shards": 1}
        return save(tmp_path, tmp_path, judge_server, **small | changes)

    return write


def put_log(folder: Path, night: date, rows: list[dict[str, Any]]) -> None:
    """Write one night's log."""
    write_jsonl(folder / "logs" / f"dt={night}" / "log.jsonl", rows)


def run(settings: str, night: date = NIGHT) -> Any:
    """Run the flow in this process."""
    from flows.nightly import nightly

    return nightly(settings, night)


@dataclass(frozen=True)
class BucketRun:
    """What a run left, and what it asked."""

    manifest: Manifest
    requests: int
    """That the judge was sent."""
    scores: dict[str, pd.DataFrame]
    """All that were in the bucket then, by metric."""
    log: list[str]
    """The messages of the flow run."""


@dataclass(frozen=True)
class InBucket:
    """Three runs with their store in one bucket."""

    bucket: Bucket
    first: BucketRun
    """Of the night, with its pages;"""
    again: BucketRun
    """the same once more;"""
    following: BucketRun
    """the next night, with the same retrieval."""

    def page(self, name: str) -> str:
        """A page of the dashboard."""
        key = f"store/dashboard/{name}"
        body: bytes = self.bucket.client.get_object(Bucket=self.bucket.name, Key=key)["Body"].read()
        return body.decode()


class Kept(logging.Handler):
    """Keeps messages. `caplog` is of one test alone."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.messages.append(record.getMessage())


@pytest.fixture(scope="module")
def in_bucket(
    tmp_path_factory: pytest.TempPathFactory,
    s3_endpoint: str,
    judge_process: JudgeServer,
    prefect_server: None,
) -> Iterator[InBucket]:
    """The three runs; the first is the only one whose pages are read."""
    from ragmetrics.pipeline import nightly

    folder, following = tmp_path_factory.mktemp("in-bucket"), NIGHT + timedelta(days=1)
    fake_s3.empty(s3_endpoint)
    judge_process.reset()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in fake_s3.environment(s3_endpoint).items():
            patch.setenv(name, value)
        patch.setenv("OPENAI_API_KEY", "testing")
        bucket = fake_s3.make_bucket(s3_endpoint)
        for night in (NIGHT, following):
            rows = make_rows(ROWS, good=0.8, night=night)
            body = "".join(json.dumps(row) + "\n" for row in rows).encode()
            key = f"logs/dt={night}/log.jsonl"
            bucket.client.put_object(Bucket=bucket.name, Key=key, Body=body)
        path = save(folder, bucket.uri, judge_process)
        first = bucket_run(path, NIGHT, bucket, judge_process)
        with pytest.MonkeyPatch.context() as no_pages:
            no_pages.setattr(nightly, "show_run", lambda *_, **__: None)
            again = bucket_run(path, NIGHT, bucket, judge_process)
            path = save(folder, bucket.uri, judge_process, dashboard_url=DASHBOARD)
            after = bucket_run(path, following, bucket, judge_process)
        yield InBucket(bucket, first, again, after)
    fake_s3.empty(s3_endpoint)


def bucket_run(path: str, night: date, bucket: Bucket, judge: JudgeServer) -> BucketRun:
    """Run a night, and take down what came of it."""
    judge.reset()
    kept, logger = Kept(), logging.getLogger("prefect.flow_runs")
    logger.addHandler(kept)
    try:
        manifest = run(path, night).manifest
    finally:
        logger.removeHandler(kept)
    scores = {metric: stored_scores(bucket, metric) for metric in METRICS}
    return BucketRun(manifest, judge.stats()["requests"], scores, kept.messages)


def stored_scores(bucket: Bucket, metric: str) -> pd.DataFrame:
    """All scores of one metric in the bucket, as any reader of Parquet finds them."""
    keys = [key for key in bucket.keys("store/scores/") if f"/metric={metric}/" in key]
    bodies = [bucket.client.get_object(Bucket=bucket.name, Key=key)["Body"].read() for key in keys]
    return pd.concat([pd.read_parquet(io.BytesIO(body)) for body in bodies])


def test_a_night_goes_from_bucket_to_scores_and_dashboard(in_bucket: InBucket) -> None:
    """Logs in a bucket become scores, a manifest and a dashboard there, judged over HTTP."""
    night, bucket = in_bucket.first, in_bucket.bucket
    manifest = night.manifest
    recall = manifest.summary(RECALL)
    assert recall is not None
    assert recall.mean == pytest.approx(0.8)
    assert recall.scored == manifest.source.rows == ROWS
    assert manifest.judge.name == "openai:fake"
    unread = manifest.usage.requests - night.requests
    # On a busy machine a request may be given up before the judge has read it.
    assert 0 <= unread <= manifest.usage.failures.get("timeout", 0)
    assert len(night.scores[RECALL]) == ROWS
    page = bucket.client.head_object(Bucket=bucket.name, Key="store/dashboard/index.html")
    assert page["ContentType"].startswith("text/html")


def test_a_night_keeps_its_settings_and_where_prefect_shows_it(in_bucket: InBucket) -> None:
    """Both stand in the manifest and on the night's page; the judge's key stands nowhere."""
    manifest = in_bucket.first.manifest
    assert manifest.settings["judge"]["model"] == "fake"
    assert "/flow-run/" in manifest.flow_run
    page = in_bucket.page(f"{NIGHT}/index.html")
    assert f'href="{manifest.flow_run}"' in page
    assert f"{in_bucket.bucket.uri}/store/scores/dt={NIGHT}" in page


def test_repeating_a_night_asks_nothing_and_changes_no_number(in_bucket: InBucket) -> None:
    """A rerun finds every part: no request, the same scores, nothing told again."""
    first, again = in_bucket.first, in_bucket.again
    assert again.requests == 0
    assert again.manifest.metrics == first.manifest.metrics
    assert again.manifest.run == first.manifest.run
    for metric in METRICS:
        pd.testing.assert_frame_equal(again.scores[metric], first.scores[metric])


def test_known_questions_cost_nothing_the_next_night(in_bucket: InBucket) -> None:
    """Judgements are kept: a second night with the same retrieval asks the judge nothing."""
    usage = in_bucket.following.manifest.usage
    assert in_bucket.following.requests == usage.requests == 0
    assert usage.answered_from_store > 0
    keys = in_bucket.bucket.keys("store/judgements/")
    assert not [key for key in keys if key.endswith(".jsonl")]


def test_the_log_of_a_night_ends_with_what_came_of_it(in_bucket: InBucket) -> None:
    """One line: rows, means, the states of the rules, and where the dashboard is."""
    (line,) = [message for message in in_bucket.again.log if "rows scored" in message]
    assert line.startswith(f"night {NIGHT}: {ROWS} of {ROWS} rows scored, context_relevance ")
    assert "context_recall 0.800" in line
    assert "; rules: " in line and " ok" in line
    assert line.endswith(f"dashboard: {in_bucket.bucket.uri}/store/dashboard/{NIGHT}/index.html")


def test_the_night_is_summarised_in_a_prefect_artifact(in_bucket: InBucket) -> None:
    """The headline table stands in Prefect too, with a link to the dashboard."""
    from prefect.artifacts import Artifact

    # `get` leaves its client open.
    artifact = asyncio.run(Artifact.aget(key="ragmetrics-towers-2"))
    assert artifact is not None
    assert "Context recall" in str(artifact.data)
    night = in_bucket.following.manifest.date
    assert f"{DASHBOARD}/{night}/index.html" in str(artifact.data)


def test_a_regression_is_told_once_and_resolved_once(
    tmp_path: Path, slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """The bad night sends one message, its rerun and the next bad night none, the good one one."""
    path = settings()
    nights = [NIGHT + timedelta(days=day) for day in range(4)]
    for night, good in zip(nights, [1.0, 0.6, 0.6, 1.0], strict=True):
        put_log(tmp_path, night, make_rows(ROWS, good=good, night=night))
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
    tmp_path: Path, slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """An undelivered message is kept, said loudly, and sent once by the next run."""
    path = settings(alerts={"rules": [{"metric": "context_recall", "min": 0.9}]})
    put_log(tmp_path, NIGHT, make_rows(ROWS, good=0.5))
    slack_server.fail("500")
    with pytest.raises(Exception, match="Slack message kept for the next run"):
        run(path)
    slack_server.fail(None)
    following = NIGHT + timedelta(days=1)
    put_log(tmp_path, following, make_rows(ROWS, good=0.5, night=following))
    run(path, following)
    assert len(slack_server.delivered) == 1


@pytest.mark.pages
def test_an_empty_night_alerts_and_fails(
    tmp_path: Path, slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """No log is no green night: it is published as no data, told in Slack, and fails the run."""
    with pytest.raises(CoverageShort, match="nothing to score: no log file"):
        run(settings())
    assert "nothing to score" in json.dumps(slack_server.delivered)
    assert "o data" in (tmp_path / "store/dashboard/index.html").read_text("utf-8")


@pytest.mark.pages(NIGHT + timedelta(days=1))
def test_the_log_of_the_night_before_is_no_green_night(
    tmp_path: Path, slack_server: SlackServer, settings: Callable[..., str]
) -> None:
    """Copied byte for byte to the next night's folder, with the same scores: Slack is told, and
    the page of the night begins with it."""
    path, following = settings(), NIGHT + timedelta(days=1)
    for night in (NIGHT, following):
        put_log(tmp_path, night, make_rows(ROWS))
        manifest = run(path, night).manifest
    assert [one.kind for one in manifest.findings if one.state == "firing"] == ["stale_log"]
    (message,) = slack_server.delivered
    assert f"all {ROWS} rows are those of {NIGHT}" in json.dumps(message)
    page = (tmp_path / f"store/dashboard/{following}/index.html").read_text("utf-8")
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


def test_a_wrong_key_fails_the_run_with_its_reason(
    tmp_path: Path, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """The run ends loudly; nothing counts as scored, and the reason is the judge's own."""
    judge_server.faults(api_key="another")
    put_log(tmp_path, NIGHT, make_rows(5))
    with pytest.raises(Exception, match="refused the key"):
        run(settings())


def test_a_flaky_judge_loses_no_row(
    tmp_path: Path, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """Rate limits, server errors and unreadable replies are asked again until answered."""
    judge_server.faults(
        fail={"429": 0.1, "500": 0.1, "malformed": 0.1, "prose": 0.2}, fail_attempts=2
    )
    put_log(tmp_path, NIGHT, make_rows(ROWS, good=0.8))
    manifest = run(settings(metrics=METRICS, shards=2)).manifest
    for summary in manifest.metrics:
        assert summary.status == {"scored": ROWS}
    assert manifest.usage.failures["unreadable"] > 0


def test_nonsense_is_counted_and_never_scored(
    tmp_path: Path, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """A judge that never gives a verdict leaves rows unreadable, and the run says so."""
    judge_server.faults(nonsense=True)
    put_log(tmp_path, NIGHT, make_rows(5))
    with pytest.raises(Exception, match="5 of 5 rows got no usable verdict"):
        run(settings())


def test_a_server_without_json_schema_is_used_all_the_same(
    tmp_path: Path, judge_server: JudgeServer, settings: Callable[..., str]
) -> None:
    """The judge falls back to json_object, then to plain text, and scores every row."""
    judge_server.faults(json_schema=False, json_object=False)
    put_log(tmp_path, NIGHT, make_rows(5))
    manifest = run(settings()).manifest
    assert manifest.metrics[0].status == {"scored": 5}

"""Late data: a rerun of a night reads what came, scores only that, and tells only what differs.
With nothing new, it asks again for the verdicts that are missing.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from ragmetrics.config import Settings, make_settings
from ragmetrics.delivery import load_alerts
from ragmetrics.pipeline import CoverageShort, Night, run_backfill, run_night
from ragmetrics.records import Finding, Manifest
from ragmetrics.scoring import list_parts, score_parts
from ragmetrics.storage import Runs, StoredPart, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("without_pages")

METRICS = ["context_relevance", "context_recall", "hit_rate"]
SHARDS = 4
RECALL = "context_recall"
SILENT = {"rules": [], "max_judge_failures": 1.0, "checks": {"canaries": 0}}
"""Alerts that say nothing, however many verdicts are missing."""


def dataset(folder: Path, **more: Any) -> Settings:
    """A dataset of four shards in a folder."""
    return make_settings(night_values(folder, metrics=METRICS, shards=SHARDS) | more)


@pytest.fixture
def live(tmp_path: Path, judge_server: JudgeServer) -> Callable[..., Settings]:
    """Settings with the judge at an endpoint, which `asked` says more of."""

    def settings(asked: dict[str, Any] | None = None, **more: Any) -> Settings:
        judge = judge_at(judge_server, hedge=False)  # requests are counted, on a busy machine too
        return dataset(tmp_path, **{"judge": judge | (asked or {}), **more})

    return settings


def log(folder: Path, name: str, rows: list[dict[str, Any]], night: date = NIGHT) -> Path:
    """Write one of a night's files."""
    return write_jsonl(folder / "logs" / f"dt={night}" / name, rows)


def late(count: int, good: float = 1.0) -> list[dict[str, Any]]:
    """Rows that come late: other questions than those of `make_rows`."""
    return [
        {**row, "id": f"late-{row['id']}", "user_input": f"late: {row['user_input']}"}
        for row in make_rows(count, good=good)
    ]


def scores(settings: Settings, run: str) -> pd.DataFrame:
    """All scores of a run, by metric and shard, in the order of the rows."""
    files = sorted((Path(settings.store) / "scores" / f"dt={NIGHT}" / f"run={run}").rglob("*.p*"))
    tables = [
        pd.read_parquet(path).assign(metric=path.parent.name, shard=path.stem) for path in files
    ]
    return pd.concat(tables, ignore_index=True)


def taken(settings: Settings, manifest: Manifest, metric: str) -> list[bool]:
    """Which shards of a metric were taken over."""
    files, folder = open_store(settings), f"scores/dt={NIGHT}/run={manifest.run}/metric={metric}"
    paths = [info.path for info in files.below(folder)]
    return ["taken_over" in StoredPart(files, path).notes() for path in paths]


def test_a_late_file_costs_the_shard_of_its_row(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """A late row changes one shard of four: all others are taken over, and the judge is asked about
    no row of them, though its judgements are gone."""
    settings = live()
    log(tmp_path, "a.jsonl", make_rows(40, good=0.7))
    first = run_night(settings, NIGHT).manifest
    asked = judge_server.stats()["requests"]
    shutil.rmtree(tmp_path / "store" / "judgements")
    judge_server.reset()
    log(tmp_path, "b.jsonl", late(1))
    second = run_night(settings, NIGHT).manifest
    assert taken(settings, second, RECALL).count(False) == 1
    assert second.taken_over == len(METRICS) * (SHARDS - 1)
    assert 0 < judge_server.stats()["requests"] == second.usage.requests < asked / 2
    assert (first.source.rows, second.source.rows) == (40, 41)


@pytest.mark.parametrize("judge", ["endpoint", "lexical"])
def test_a_rerun_gives_the_scores_of_a_night_that_had_all_rows_at_once(
    live: Callable[..., Settings], tmp_path: Path, judge: str
) -> None:
    """Whatever was taken over: a store that saw all files at once says the same, to the digit."""
    settings = live() if judge == "endpoint" else dataset(tmp_path)
    log(tmp_path, "b.jsonl", make_rows(30, good=0.7))
    run_night(settings, NIGHT)
    log(tmp_path, "a.jsonl", late(3, good=0.4))  # read before what was there
    log(tmp_path, "c.jsonl", make_rows(31)[30:])
    again = run_night(settings, NIGHT).manifest
    other = settings.model_copy(update={"store": str(tmp_path / "other")})
    at_once = run_night(other, NIGHT).manifest
    assert again.run == at_once.run
    assert again.metrics == at_once.metrics
    pd.testing.assert_frame_equal(scores(settings, again.run), scores(other, at_once.run))


def test_a_judge_that_weighs_the_nights_words_judges_all_rows_anew(tmp_path: Path) -> None:
    """With the lexical judge one more row changes every weight: nothing judged is taken over, but
    metrics that ask nobody are."""
    settings = dataset(tmp_path)
    log(tmp_path, "a.jsonl", make_rows(40))
    run_night(settings, NIGHT)
    log(tmp_path, "b.jsonl", late(1))
    manifest = run_night(settings, NIGHT).manifest
    assert not any(taken(settings, manifest, RECALL))
    assert taken(settings, manifest, "hit_rate").count(True) == SHARDS - 1


def test_another_metric_leaves_the_others_as_they_are(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """A change of the settings is a new run too: what it does not touch is taken over."""
    log(tmp_path, "a.jsonl", make_rows(30))
    run_night(live(metrics=[RECALL]), NIGHT)
    judge_server.reset()
    both = live(metrics=[RECALL, "context_relevance"])
    manifest = run_night(both, NIGHT).manifest
    assert all(taken(both, manifest, RECALL))
    assert not any(taken(both, manifest, "context_relevance"))
    assert manifest.difference == "as many files and rows"


def test_a_row_without_a_verdict_has_another_chance(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Parts with rows that the judge failed on are scored anew, not taken over."""
    settings = live(metrics=[RECALL], shards=1, alerts=SILENT)
    log(tmp_path, "a.jsonl", make_rows(10))
    judge_server.faults(nonsense=True)
    failed = run_night(settings, NIGHT).manifest.metrics[0]
    assert failed.status == {"unreadable": 10}
    judge_server.reset()
    more = settings.model_copy(update={"metrics": (RECALL, "hit_rate")})
    assert run_night(more, NIGHT).manifest.metrics[0].status == {"scored": 10}


@pytest.mark.pages
def test_the_night_says_what_it_supersedes(
    live: Callable[..., Settings], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the manifest, in the log and on the night's page; the older run stays in the store."""
    caplog.set_level(logging.INFO, "ragmetrics")
    settings = live()
    log(tmp_path, "a.jsonl", make_rows(40))
    first = run_night(settings, NIGHT).manifest
    log(tmp_path, "b.jsonl", late(3))
    second = run_night(settings, NIGHT).manifest
    assert (first.supersedes, second.supersedes) == (None, first.run)
    assert second.difference == "1 more file, 3 more rows"
    said = f"run {second.run} supersedes run {first.run}: 1 more file, 3 more rows"
    assert said in caplog.text
    page = (tmp_path / "store" / "dashboard" / str(NIGHT) / "index.html").read_text()
    assert f"run {first.run}: 1 more file, 3 more rows" in page
    (speaking,) = Runs(open_store(settings)).nights()
    assert speaking.run == second.run
    assert len(open_store(settings).below("runs")) == 2


@pytest.mark.pages
def test_a_run_that_was_overtaken_says_nothing(
    live: Callable[..., Settings],
    tmp_path: Path,
    slack_server: SlackServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A run that looked for files before the late one came, and ends after the run that read it:
    neither the page nor the alerts are its own."""
    alerts = {"rules": [{"metric": RECALL, "min": 0.9, "min_rows": 10}]}
    settings = live(metrics=[RECALL], shards=1, alerts=alerts)
    log(tmp_path, "a.jsonl", make_rows(10, good=0.2))
    slow = Night(settings).stage(NIGHT)
    log(tmp_path, "b.jsonl", late(100))
    quick = run_night(settings, NIGHT).manifest
    assert slack_server.delivered == []
    score_parts(settings, slow, list_parts(settings, slow))
    manifest = Night(settings).publish(slow)
    Night(settings).show(manifest)
    assert finding_of(manifest).level == "breach"
    delivery = Night(settings).alert(manifest)
    assert (delivery.message, slack_server.received) == (None, [])
    assert manifest.supersedes is None
    assert f"run {manifest.run} is not the current run of the night of {NIGHT}" in caplog.text
    assert [night.run for night in Runs(open_store(settings)).nights()] == [quick.run]
    page = (tmp_path / "store" / "dashboard" / str(NIGHT) / "index.html").read_text()
    assert "<b>110</b>" in page
    book = load_alerts(open_store(settings))
    assert {state.state for state in book.states.values()} == {"ok"}


def test_late_data_advances_no_counter(
    live: Callable[..., Settings], tmp_path: Path, slack_server: SlackServer
) -> None:
    """A suspect fires on its second night, not on the first one run three times over."""
    alerts = {"rules": [{"metric": RECALL, "min": 0.7, "for": 2}]}
    settings = live(metrics=[RECALL], shards=1, alerts=alerts)
    log(tmp_path, "a.jsonl", make_rows(40, good=0.65))
    assert states(run_night(settings, NIGHT).manifest) == ["pending"]
    for number in range(2):
        log(tmp_path, f"late-{number}.jsonl", late(20 * (number + 1), good=0.65))
        again = run_night(settings, NIGHT).manifest
        assert (finding_of(again).level, states(again)) == ("suspect", ["pending"])
        assert finding_of(again).since == NIGHT
    assert slack_server.received == []
    tomorrow = NIGHT + timedelta(days=1)
    log(tmp_path, "a.jsonl", make_rows(40, good=0.65, night=tomorrow), tomorrow)
    fired = finding_of(run_night(settings, tomorrow).manifest)
    assert (fired.state, fired.transition, fired.since) == ("firing", "fired", NIGHT)
    assert len(slack_server.delivered) == 1


def test_what_was_told_is_not_told_again(
    live: Callable[..., Settings], tmp_path: Path, slack_server: SlackServer
) -> None:
    """Late data that changes nothing about a firing alert: no message, the same `since`, and the
    night's record still says that it fired."""
    alerts = {"rules": [{"metric": RECALL, "min": 0.9}]}
    settings = live(metrics=[RECALL], shards=1, alerts=alerts)
    log(tmp_path, "a.jsonl", make_rows(40, good=0.5))
    run_night(settings, NIGHT)
    log(tmp_path, "b.jsonl", late(40, good=0.5))
    again = run_night(settings, NIGHT).manifest
    assert len(slack_server.received) == 1
    finding = finding_of(again)
    assert (finding.state, finding.transition, finding.since) == ("firing", "fired", NIGHT)


def test_a_result_that_changes_is_told_as_a_difference(
    live: Callable[..., Settings], tmp_path: Path, slack_server: SlackServer
) -> None:
    """The late rows bring the mean back: what fired is resolved, once, by the rerun."""
    alerts = {"rules": [{"metric": RECALL, "min": 0.7}]}
    settings = live(metrics=[RECALL], shards=1, alerts=alerts)
    log(tmp_path, "a.jsonl", make_rows(40, good=0.3))
    assert states(run_night(settings, NIGHT).manifest) == ["firing"]
    log(tmp_path, "b.jsonl", late(120))
    for _ in range(2):
        assert states(run_night(settings, NIGHT).manifest) == ["ok"]
    fired, resolved = (json.dumps(message) for message in slack_server.delivered)
    assert "Critical" in fired
    assert "Resolved" in resolved


def test_late_data_of_a_past_night_moves_no_alert(
    live: Callable[..., Settings], tmp_path: Path, slack_server: SlackServer
) -> None:
    """A late run of an older night rewrites its page and its numbers; the alerts are today's.

    Its record still says what its alert was: a night of a firing alert is no baseline.
    """
    alerts = {"rules": [{"metric": RECALL, "min": 0.9}]}
    settings = live(metrics=[RECALL], shards=1, alerts=alerts)
    tomorrow = NIGHT + timedelta(days=1)
    for night in (NIGHT, tomorrow):
        log(tmp_path, "a.jsonl", make_rows(40, night=night), night)
        run_night(settings, night)
    before = load_alerts(open_store(settings))
    log(tmp_path, "b.jsonl", late(60, good=0.0))
    past = run_night(settings, NIGHT).manifest
    fell = finding_of(past)
    assert (fell.level, fell.state, fell.since, fell.transition) == (
        "breach",
        "firing",
        NIGHT,
        None,
    )
    assert slack_server.received == []
    assert load_alerts(open_store(settings)) == before
    assert [night.source.rows for night in Runs(open_store(settings)).nights()] == [100, 40]


def finding_of(manifest: Manifest) -> Finding:
    """What the one rule says."""
    (found,) = (finding for finding in manifest.findings if finding.kind == "metric")
    return found


def states(manifest: Manifest) -> list[str]:
    """Of the metric's findings."""
    return [finding.state for finding in manifest.findings if finding.kind == "metric"]


def test_the_moment_of_looking_is_that_of_the_last_repetition(
    live: Callable[..., Settings], tmp_path: Path
) -> None:
    """A file that is taken away again: the first run is repeated, and speaks again."""
    settings = live(metrics=[RECALL])
    log(tmp_path, "a.jsonl", make_rows(10))
    first = run_night(settings, NIGHT).manifest
    extra = log(tmp_path, "b.jsonl", late(5))
    second = run_night(settings, NIGHT).manifest
    extra.unlink()
    third = run_night(settings, NIGHT).manifest
    assert (third.run, third.supersedes) == (first.run, second.run)
    assert third.difference == "1 fewer file, 5 fewer rows"
    assert third.started_at == first.started_at < second.started_at
    assert third.seen_at is not None
    assert second.finished_at < third.seen_at < datetime.now(UTC)


# Nothing new, but verdicts that are missing


def run_short(settings: Settings, judge: JudgeServer) -> Manifest:
    """A night in which the judge failed on about a tenth of what it was asked."""
    judge.faults(fail={"500": 0.1})
    manifest = run_night(settings, NIGHT).manifest
    judge.reset()
    return manifest


def missing(manifest: Manifest) -> int:
    """Rows without a verdict, of all metrics."""
    statuses = ("judge_failed", "unreadable")
    return sum(metric.status.get(status, 0) for metric in manifest.metrics for status in statuses)


def test_another_attempt_asks_for_what_is_missing_and_for_nothing_else(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """The same files again are a run of its own, which takes over all parts that have nothing
    missing, and comes to the numbers of a night in which nothing failed."""
    settings = live({"retries": 0}, metrics=[RECALL, "hit_rate"], alerts=SILENT)
    log(tmp_path, "a.jsonl", make_rows(80, good=0.7))
    first = run_short(settings, judge_server)
    assert 0 < missing(first) < 40
    second = run_night(settings, NIGHT).manifest
    assert (second.run, second.supersedes) == (f"{first.run}-2", first.run)
    assert second.difference == f"{missing(first)} fewer missing verdicts"
    assert judge_server.stats()["requests"] == second.usage.requests == missing(first)
    assert SHARDS <= second.taken_over < 2 * SHARDS
    at_once = run_night(settings.model_copy(update={"store": str(tmp_path / "other")}), NIGHT)
    assert second.metrics == at_once.manifest.metrics


def test_nothing_missing_is_the_same_run_again(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """However often: also where an attempt came before it."""
    settings = live({"retries": 0}, metrics=[RECALL], alerts=SILENT)
    log(tmp_path, "a.jsonl", make_rows(80))
    first = run_short(settings, judge_server)
    runs = [run_night(settings, NIGHT).manifest.run for _ in range(3)]
    assert runs == [f"{first.run}-2"] * 3
    assert judge_server.stats()["requests"] == missing(first)


def test_a_row_that_fails_for_good_costs_its_own_request_each_time(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """One is too long for the model: whoever runs the night again asks for that row alone."""
    settings = live(metrics=[RECALL], alerts=SILENT)
    judge_server.faults(max_prompt_chars=8_000)
    long = {**make_rows(1)[0], "id": "long", "retrieved_contexts": ["So it is. " * 1_000]}
    log(tmp_path, "a.jsonl", [*make_rows(40)[1:], long])
    runs, asked = [], []
    for _ in range(3):
        before = judge_server.stats()["requests"]
        runs.append(run_night(settings, NIGHT).manifest)
        asked.append(judge_server.stats()["requests"] - before)
    assert [missing(run) for run in runs] == [1, 1, 1]
    assert [run.run.partition("-")[2] for run in runs] == ["", "2", "3"]
    assert asked == [40, 1, 1]
    assert runs[-1].taken_over == SHARDS - 1


def test_what_nobody_was_asked_for_is_not_tried_again(tmp_path: Path) -> None:
    """Who plays a recording gives the same replies each time, and none to the same rows."""
    replies = tmp_path / "replies.jsonl"
    replies.write_text("")
    settings = dataset(tmp_path, judge=f"recorded:{replies}", metrics=[RECALL], alerts=SILENT)
    log(tmp_path, "a.jsonl", make_rows(10))
    first, second = (run_night(settings, NIGHT).manifest for _ in range(2))
    assert missing(first) == missing(second) == 10
    assert first.run == second.run


def test_parts_that_are_missing_are_scored_by_the_same_run(
    live: Callable[..., Settings], tmp_path: Path
) -> None:
    """A run that was published before all its parts were there goes on with them."""
    settings = live(alerts=SILENT)
    log(tmp_path, "a.jsonl", make_rows(40))
    staged = Night(settings).stage(NIGHT)
    assert missing(Night(settings).publish(staged, ["a worker died"])) == len(METRICS) * 40
    again = run_night(settings, NIGHT).manifest
    assert (again.run, missing(again)) == (staged.ref.run, 0)


def test_a_judge_of_a_panel_that_failed_has_another_chance(
    tmp_path: Path, judge_server: JudgeServer, start_judge: Callable[[], JudgeServer]
) -> None:
    """All rows have the other's verdict; once the key is right, they have its own too."""
    locked = start_judge()
    locked.faults(api_key="right")
    judges = [
        judge_at(server, model=f"m-{number}")
        for number, server in enumerate([judge_server, locked])
    ]
    settings = dataset(tmp_path, judges=judges, metrics=[RECALL], alerts=SILENT)
    log(tmp_path, "a.jsonl", make_rows(20))
    first = run_night(settings, NIGHT).manifest
    assert [judge.scored for judge in first.metrics[0].judges] == [20, 0]
    locked.reset()
    second = run_night(settings, NIGHT).manifest
    assert (second.run, second.problems) == (f"{first.run}-2", [])
    assert [judge.scored for judge in second.metrics[0].judges] == [20, 20]


def test_an_attempt_tells_nothing_again(
    live: Callable[..., Settings],
    tmp_path: Path,
    judge_server: JudgeServer,
    slack_server: SlackServer,
) -> None:
    """What fires goes on firing since the same night, and people know it already."""
    alerts = {**SILENT, "rules": [{"metric": RECALL, "min": 0.9}]}
    settings = live({"retries": 0}, metrics=[RECALL], shards=1, alerts=alerts)
    log(tmp_path, "a.jsonl", make_rows(80, good=0.5))
    first = run_short(settings, judge_server)
    again = run_night(settings, NIGHT).manifest
    assert again.run != first.run
    assert len(slack_server.received) == 1
    finding = finding_of(again)
    assert (finding.state, finding.transition, finding.since) == ("firing", "fired", NIGHT)


def test_an_attempt_that_succeeds_resolves_the_alert_of_the_first(
    live: Callable[..., Settings],
    tmp_path: Path,
    judge_server: JudgeServer,
    slack_server: SlackServer,
) -> None:
    """That too many verdicts were missing was told; now it is told that they are there, once."""
    settings = live({"retries": 0}, metrics=[RECALL], shards=1, alerts={"max_judge_failures": 0.01})
    log(tmp_path, "a.jsonl", make_rows(80))
    with pytest.raises(CoverageShort, match="got no usable verdict"):
        run_short(settings, judge_server)
    judge_server.reset()
    for _ in range(2):
        assert missing(run_night(settings, NIGHT).manifest) == 0
    fired, resolved = (json.dumps(message) for message in slack_server.delivered)
    assert "no usable verdict" in fired
    assert "Resolved" in resolved


def test_a_run_that_is_started_again_goes_on_with_what_it_began(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """What was published after it was first started is its own: it is no reason for another
    attempt. An attempt that was begun and killed is gone on with, whoever comes."""
    settings = live({"retries": 0}, alerts=SILENT)
    log(tmp_path, "a.jsonl", make_rows(80))
    begun = datetime.now(UTC)
    first = run_short(settings, judge_server).run
    assert Night(settings).stage(NIGHT, begun).ref.run == first
    assert Night(settings).stage(NIGHT).ref.run == f"{first}-2"
    for earliest in (begun, None):
        assert Night(settings).stage(NIGHT, earliest).ref.run == f"{first}-2"
    assert run_night(settings, NIGHT).manifest.run == f"{first}-2"


@pytest.mark.pages
def test_a_backfill_keeps_a_night_that_has_enough_and_mends_one_that_has_not(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Too few verdicts are too few until the judge gives them; a few that are missing stay so."""
    log(tmp_path, "a.jsonl", make_rows(80))
    small: dict[str, Any] = {"metrics": [RECALL], "shards": 1}
    enough, short = live({"retries": 0}, alerts=SILENT, **small), live({"retries": 0}, **small)
    run_short(enough, judge_server)
    assert run_backfill(enough, NIGHT, NIGHT).dates("kept") == [NIGHT]
    assert judge_server.stats()["requests"] == 0
    judge_server.faults(nonsense=True)
    other = short.model_copy(update={"store": str(tmp_path / "other")})
    for _ in range(2):
        assert run_backfill(other, NIGHT, NIGHT).dates("failed") == [NIGHT]
    judge_server.reset()
    assert run_backfill(other, NIGHT, NIGHT).dates("published") == [NIGHT]
    (night,) = Runs(open_store(other)).nights()
    assert missing(night) == 0


@pytest.mark.usefixtures("prefect_server")
def test_only_a_new_flow_run_is_another_attempt(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """A flow run that Prefect starts again, after its night was published, publishes the same run;
    the next flow run of the night asks for what is missing."""
    from prefect.client.orchestration import get_client
    from prefect.flow_engine import run_flow
    from prefect.states import AwaitingRetry

    from flows.nightly import nightly

    log(tmp_path, "a.jsonl", make_rows(80))
    path = tmp_path / "ragmetrics.yaml"
    settings = live({"retries": 0}, metrics=[RECALL], shards=2, alerts=SILENT)
    path.write_text(yaml.safe_dump(settings.model_dump(mode="json", exclude_unset=True)))
    judge_server.faults(fail={"500": 0.1})
    state: Any = nightly(str(path), NIGHT, return_state=True)
    judge_server.reset()
    manifest = state.result().manifest
    assert missing(manifest) > 0
    with get_client(sync_client=True) as client:
        again = state.state_details.flow_run_id
        client.set_flow_run_state(again, AwaitingRetry(), force=True)
        flow_run = client.read_flow_run(again)
    given: dict[str, Any] = {"settings": str(path), "date": NIGHT}
    repeated: Any = run_flow(nightly, flow_run=flow_run, parameters=given)
    assert repeated.manifest.run == manifest.run
    assert judge_server.stats()["requests"] == 0
    assert nightly(**given).manifest.run == f"{manifest.run}-2"
    assert judge_server.stats()["requests"] == missing(manifest)

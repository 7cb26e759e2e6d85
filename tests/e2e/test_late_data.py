"""Late data: a rerun of a night reads what came, scores only that, and tells only what differs."""

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

from ragmetrics.alerts.deliver import load_book
from ragmetrics.night import alert_night, parts, publish_night, run_night, stage_night
from ragmetrics.records import Finding, Manifest
from ragmetrics.settings import Settings, make_settings
from ragmetrics.stage import open_store
from ragmetrics.store.history import nights
from ragmetrics.store.parts import read_notes
from ragmetrics.workers import score_parts
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.e2e

METRICS = ["context_relevance", "context_recall", "hit_rate"]
SHARDS = 8
RECALL = "context_recall"


def dataset(folder: Path, **more: Any) -> Settings:
    """A dataset of eight shards in a folder."""
    base = {"logs": f"{folder}/logs/dt={{date}}/", "store": str(folder / "store")}
    return make_settings({**base, "metrics": METRICS, "shards": SHARDS, **more})


@pytest.fixture
def live(tmp_path: Path, judge_server: JudgeServer) -> Callable[..., Settings]:
    """Settings with the judge at an endpoint."""
    judge = {"name": "openai", "model": "fake", "base_url": judge_server.base_url}
    return lambda **more: dataset(tmp_path, **{"judge": judge, **more})


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
    return ["taken_over" in read_notes(files, path) for path in paths]


def test_a_late_file_costs_the_shards_of_its_rows(
    live: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Two late rows change at most two shards of eight: all others are taken over, and the judge
    is asked about no row of them, though its judgements are gone."""
    settings = live()
    log(tmp_path, "a.jsonl", make_rows(80, good=0.7))
    first = run_night(settings, NIGHT).manifest
    asked = judge_server.stats()["requests"]
    shutil.rmtree(tmp_path / "store" / "judgements")
    judge_server.reset()
    log(tmp_path, "b.jsonl", late(2))
    second = run_night(settings, NIGHT).manifest
    changed = taken(settings, second, RECALL).count(False)
    assert 1 <= changed <= 2
    assert second.taken_over == len(METRICS) * (SHARDS - changed)
    assert 0 < judge_server.stats()["requests"] == second.usage.requests < asked / 2
    assert (first.source.rows, second.source.rows) == (80, 82)


@pytest.mark.parametrize("judge", ["endpoint", "embedded"])
def test_a_rerun_gives_the_scores_of_a_night_that_had_all_rows_at_once(
    live: Callable[..., Settings], tmp_path: Path, judge: str
) -> None:
    """Whatever was taken over: a store that saw all files at once says the same, to the digit."""
    settings = live() if judge == "endpoint" else dataset(tmp_path)
    log(tmp_path, "b.jsonl", make_rows(60, good=0.7))
    run_night(settings, NIGHT)
    log(tmp_path, "a.jsonl", late(3, good=0.4))  # read before what was there
    log(tmp_path, "c.jsonl", make_rows(61)[60:])
    again = run_night(settings, NIGHT).manifest
    other = settings.model_copy(update={"store": str(tmp_path / "other")})
    at_once = run_night(other, NIGHT).manifest
    assert again.run == at_once.run
    assert again.metrics == at_once.metrics
    pd.testing.assert_frame_equal(scores(settings, again.run), scores(other, at_once.run))


def test_a_judge_that_weighs_the_nights_words_judges_all_rows_anew(tmp_path: Path) -> None:
    """With the embedded judge one more row changes every weight: nothing judged is taken over, but
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
    settings = live(metrics=[RECALL], shards=1, alerts={"rules": [], "max_judge_failures": 1.0})
    log(tmp_path, "a.jsonl", make_rows(10))
    judge_server.faults(nonsense=True)
    failed = run_night(settings, NIGHT).manifest.metrics[0]
    assert failed.status == {"unreadable": 10}
    judge_server.reset()
    more = settings.model_copy(update={"metrics": (RECALL, "hit_rate")})
    assert run_night(more, NIGHT).manifest.metrics[0].status == {"scored": 10}


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
    (speaking,) = nights(open_store(settings))
    assert speaking.run == second.run
    assert len(open_store(settings).below("runs")) == 2


def test_a_run_that_was_overtaken_says_nothing(
    live: Callable[..., Settings],
    tmp_path: Path,
    slack_server: SlackServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A run that looked for files before the late one came, and ends after the run that read it:
    neither the page nor the alerts are its own."""
    settings = live(alerts={"rules": [{"metric": RECALL, "min": 0.9}]})
    log(tmp_path, "a.jsonl", make_rows(40, good=0.2))
    slow = stage_night(settings, NIGHT)
    log(tmp_path, "b.jsonl", late(400))
    quick = run_night(settings, NIGHT).manifest
    assert slack_server.delivered == []
    score_parts(settings, slow, parts(settings, slow))
    manifest = publish_night(settings, slow)
    assert finding_of(manifest).level == "breach"
    delivery = alert_night(settings, manifest)
    assert (delivery.message, slack_server.received) == (None, [])
    assert manifest.supersedes is None
    assert f"run {manifest.run} does not speak for the night of {NIGHT}" in caplog.text
    assert [night.run for night in nights(open_store(settings))] == [quick.run]
    page = (tmp_path / "store" / "dashboard" / str(NIGHT) / "index.html").read_text()
    assert "<b>440</b> rows" in page
    book = load_book(open_store(settings))
    assert {state.state for state in book.states.values()} == {"ok"}


def test_late_data_advances_no_counter(
    live: Callable[..., Settings], tmp_path: Path, slack_server: SlackServer
) -> None:
    """A suspect fires on its second night, not on the first one run three times over."""
    settings = live(metrics=[RECALL], alerts={"rules": [{"metric": RECALL, "min": 0.7, "for": 2}]})
    log(tmp_path, "a.jsonl", make_rows(40, good=0.65))
    assert states(run_night(settings, NIGHT).manifest) == ["pending"]
    for number in range(2):
        log(tmp_path, f"late-{number}.jsonl", late(20 * (number + 1), good=0.65))
        again = run_night(settings, NIGHT).manifest
        assert (finding_of(again).level, states(again)) == ("suspect", ["pending"])
        assert finding_of(again).since == NIGHT
    assert slack_server.received == []
    tomorrow = NIGHT + timedelta(days=1)
    log(tmp_path, "a.jsonl", make_rows(40, good=0.65), tomorrow)
    fired = finding_of(run_night(settings, tomorrow).manifest)
    assert (fired.state, fired.transition, fired.since) == ("firing", "fired", NIGHT)
    assert len(slack_server.delivered) == 1


def test_what_was_told_is_not_told_again(
    live: Callable[..., Settings], tmp_path: Path, slack_server: SlackServer
) -> None:
    """Late data that changes nothing about a firing alert: no message, the same `since`, and the
    night's record still says that it fired."""
    settings = live(metrics=[RECALL], alerts={"rules": [{"metric": RECALL, "min": 0.9}]})
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
    settings = live(metrics=[RECALL], alerts={"rules": [{"metric": RECALL, "min": 0.7}]})
    log(tmp_path, "a.jsonl", make_rows(40, good=0.3))
    assert states(run_night(settings, NIGHT).manifest) == ["firing"]
    log(tmp_path, "b.jsonl", late(400))
    for _ in range(2):
        assert states(run_night(settings, NIGHT).manifest) == ["ok"]
    fired, resolved = (json.dumps(message) for message in slack_server.delivered)
    assert "Critical" in fired
    assert "Resolved" in resolved


def test_late_data_of_a_past_night_moves_no_alert(
    live: Callable[..., Settings], tmp_path: Path, slack_server: SlackServer
) -> None:
    """A backfill of an older night rewrites its page and its numbers; the alerts are today's."""
    settings = live(metrics=[RECALL], alerts={"rules": [{"metric": RECALL, "min": 0.9}]})
    tomorrow = NIGHT + timedelta(days=1)
    for night in (NIGHT, tomorrow):
        log(tmp_path, "a.jsonl", make_rows(40), night)
        run_night(settings, night)
    before = load_book(open_store(settings))
    log(tmp_path, "b.jsonl", late(200, good=0.0))
    past = run_night(settings, NIGHT).manifest
    assert finding_of(past).level == "breach"
    assert slack_server.received == []
    assert load_book(open_store(settings)) == before
    assert [night.source.rows for night in nights(open_store(settings))] == [240, 40]


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

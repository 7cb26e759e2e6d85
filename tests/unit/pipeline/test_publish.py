"""Publishing: a rerun changes no number, and what is missing is counted and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.pipeline import Night, run_night
from ragmetrics.records import Manifest
from ragmetrics.scoring import list_parts, score_part
from ragmetrics.storage import Runs, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

METRICS = ["context_relevance", "context_precision", "context_recall"]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A dataset of forty rows in two shards."""
    return dataset(tmp_path)


def dataset(tmp_path: Path, **more: Any) -> Settings:
    """A dataset of forty rows in two shards, with something else in its settings."""
    write_jsonl(tmp_path / "logs" / f"{NIGHT}.jsonl", make_rows(40, good=0.7))
    return make_settings(
        night_values(tmp_path, logs="logs/{date}.jsonl", metrics=METRICS, shards=2) | more
    )


def numbers(manifest: Manifest) -> dict[str, Any]:
    """A manifest without the times of the run, and without where its store is."""
    kept = manifest.model_dump(exclude={"started_at", "finished_at", "seen_at"})
    return kept | {"settings": kept["settings"] | {"store": ""}}


def test_a_rerun_changes_no_number(settings: Settings) -> None:
    """The same night again: the same run, the same manifest, nothing scored twice."""
    first = run_night(settings, NIGHT)
    again = run_night(settings, NIGHT)
    assert numbers(again.manifest) == numbers(first.manifest)
    assert len(Runs(open_store(settings)).nights()) == 1


def test_an_independent_run_gives_the_same_numbers(tmp_path: Path, settings: Settings) -> None:
    """From an empty store, on the same logs: every number is the same."""
    first = run_night(settings, NIGHT).manifest
    other = settings.model_copy(update={"store": str(tmp_path / "other")})
    assert numbers(run_night(other, NIGHT).manifest) == numbers(first)


@pytest.mark.parametrize("shards", [1, 5])
def test_shards_change_no_mean(tmp_path: Path, settings: Settings, shards: int) -> None:
    """How a night is cut is nobody's business."""
    first = run_night(settings, NIGHT).manifest
    other = dataset(tmp_path, shards=shards, store=str(tmp_path / "other"))
    second = run_night(other, NIGHT).manifest
    for of_first, of_second in zip(first.metrics, second.metrics, strict=True):
        bounds = (of_first.mean, of_first.low, of_first.high)
        assert (of_second.mean, of_second.low, of_second.high) == pytest.approx(bounds, rel=1e-12)
        assert (of_second.status, of_second.histogram) == (of_first.status, of_first.histogram)


def test_a_rerun_asks_the_judge_nothing(tmp_path: Path, judge_server: JudgeServer) -> None:
    """Not after a finished night, and not where the parts are gone but the judgements are kept."""
    settings = dataset(tmp_path, judge=judge_at(judge_server))
    first = run_night(settings, NIGHT).manifest
    asked = judge_server.stats()["requests"]
    assert asked == first.usage.requests > 0
    run_night(settings, NIGHT)
    files = open_store(settings)
    for info in files.below("scores"):
        files.remove(info.path)
    again = run_night(settings, NIGHT).manifest
    assert judge_server.stats()["requests"] == asked
    assert (again.usage.requests, again.usage.answered_from_store) == (0, asked)
    assert again.metrics == first.metrics


def test_a_part_that_is_missing_counts_as_failed(settings: Settings) -> None:
    """Its rows are judge_failed with the reason in the manifest; the other shard is scored."""
    staged = Night(settings).stage(NIGHT)
    todo = list_parts(settings, staged)
    for family, shard in todo:
        if shard == 0:
            score_part(settings, staged.ref, family, shard)
    manifest = Night(settings).publish(staged, ["the judge answered 500", "the judge answered 500"])
    assert manifest.problems == ["the judge answered 500"]
    for summary in manifest.metrics:
        assert summary.scored + summary.status["judge_failed"] == 40
        assert 0 < summary.scored < 40
    failures = [finding for finding in manifest.findings if finding.kind == "judge_failures"]
    assert {failure.level for failure in failures} == {"breach"}
    assert "the judge answered 500" in failures[0].message


def test_late_parts_are_published_by_a_rerun(settings: Settings) -> None:
    """Once the judge is back, the same run is whole, and nothing is left of the failure."""
    staged = Night(settings).stage(NIGHT)
    Night(settings).publish(staged, ["down"])
    manifest = run_night(settings, NIGHT).manifest
    assert manifest.run == staged.ref.run
    assert [metric.status for metric in manifest.metrics] == [{"scored": 40}] * 3
    assert manifest.problems == []


def test_segments_and_worst_rows(settings: Settings) -> None:
    """Both values of the tag, and the ten lowest rows of each metric, lowest first."""
    manifest = run_night(settings, NIGHT).manifest
    found = {str(segment.segment): segment.scored for segment in manifest.segments}
    assert found == {"channel=app": 20, "channel=web": 20}
    worst = [row.value for row in manifest.worst if row.metric == "context_relevance"]
    assert len(worst) == 10
    assert worst == sorted(worst)


def test_a_night_has_its_pages(settings: Settings) -> None:
    """The overview and the night's own page."""
    run_night(settings, NIGHT)
    files = open_store(settings)
    for page in ("dashboard/index.html", f"dashboard/{NIGHT}/index.html"):
        assert files.read(page).lstrip().lower().startswith(b"<!doctype html>"), page


def test_a_night_in_a_bucket(s3: Bucket, tmp_path: Path) -> None:
    """Logs, store and dashboard in S3: the same numbers as in a folder."""
    local = run_night(dataset(tmp_path), NIGHT).manifest
    body = (tmp_path / "logs" / f"{NIGHT}.jsonl").read_bytes()
    s3.client.put_object(Bucket=s3.name, Key=f"logs/{NIGHT}.jsonl", Body=body)
    places = {"logs": f"{s3.uri}/logs/{{date}}.jsonl", "store": f"{s3.uri}/store"}
    manifest = run_night(dataset(tmp_path, **places), NIGHT).manifest
    assert manifest.metrics == local.metrics
    stored = s3.client.get_object(Bucket=s3.name, Key=s3.keys("store/runs/")[0])["Body"].read()
    assert json.loads(stored)["run"] == manifest.run
    assert s3.keys("store/dashboard/index.html")

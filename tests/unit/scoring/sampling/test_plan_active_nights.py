"""Nights with active sampling: the first is drawn uniformly, later ones by what it showed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.dashboard.costs import active_text
from ragmetrics.people.labels.label_file import RowLabel
from ragmetrics.people.labels.labelled_scores import join_scores
from ragmetrics.pipeline import Night, run_night
from ragmetrics.records import Manifest, Summary
from ragmetrics.scoring import list_parts, score_parts
from ragmetrics.scoring.sampling.cheap_scores import CheapJudges
from ragmetrics.scoring.sampling.plan import SamplePlan, load_sample
from ragmetrics.storage import RunRef, StoredPart, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

RELEVANCE = "context_relevance"
ROWS, JUDGED = 600, 240


@pytest.fixture
def active(tmp_path: Path, judge_server: JudgeServer) -> Callable[..., Settings]:
    """Settings of nights whose judge grades half of the good contexts lower than the free one."""
    judge_server.faults(strict=0.5)
    for day in range(2):
        rows = [row | {"id": f"{day}-{row['id']}"} for row in make_rows(ROWS, good=0.5)]
        write_jsonl(tmp_path / "logs" / f"dt={NIGHT + timedelta(day)}" / "a.jsonl", rows)

    def settings(store: str = "store", **more: Any) -> Settings:
        return make_settings(
            night_values(
                tmp_path,
                store=store,
                metrics=[RELEVANCE],
                judge=judge_at(judge_server),
                shards=2,
                rules=[{"metric": RELEVANCE, "max_drop": 0.1, "versus": "previous"}],
                sample={"rows": JUDGED, "draw": "active"},
            )
            | more
        )

    return settings


def nights(settings: Settings) -> tuple[Manifest, Manifest]:
    """Two nights."""
    first, second = (run_night(settings, NIGHT + timedelta(day)).manifest for day in range(2))
    return first, second


def relevance(manifest: Manifest) -> Summary:
    """The metric that is sampled."""
    found = manifest.summary(RELEVANCE)
    assert found is not None
    return found


def plan_of(settings: Settings, manifest: Manifest) -> SamplePlan:
    """The plan of a night."""
    found = load_sample(open_store(settings), RunRef.of(manifest))
    assert found is not None
    return found


@pytest.mark.pages
def test_the_second_night_is_drawn_by_the_first(
    active: Callable[..., Settings], tmp_path: Path
) -> None:
    """Rows on which the two judges agree are drawn less often, and both nights say what was done.

    All numbers of the second are weighted, and the rule compares its uniform part.
    """
    settings = active()
    first, second = nights(settings)
    reports = [one.sample for one in (first, second)]
    assert all(report is not None and report.draw == "active" for report in reports)
    assert reports[0] is not None
    assert "too few rows" in reports[0].uniform[RELEVANCE]
    assert "with equal chances" in active_text(reports[0], first.metrics)
    assert reports[1] is not None
    assert not reports[1].uniform
    sampled = relevance(second).sample
    assert sampled is not None
    assert sampled.effective is not None
    assert f"{JUDGED} judged rows count as {round(sampled.effective)} of a plain sample" in (
        active_text(reports[1], second.metrics)
    )
    (group,) = plan_of(settings, second).groups
    assert group.judged == relevance(second).scored == JUDGED
    assert min(group.probabilities) < 0.95 * JUDGED / ROWS < max(group.probabilities)
    assert relevance(second).mean == pytest.approx(relevance(first).mean, abs=0.02)
    shared = sum(group.compared)
    assert 0.7 * JUDGED < shared < JUDGED
    (finding,) = [finding for finding in second.findings if finding.kind == "metric"]
    assert f"{shared} questions asked on both" in finding.message
    assert finding.state == "ok"
    page = (tmp_path / f"store/dashboard/{second.date}/index.html").read_text()
    assert "judged rows count as" in page


def test_scores_have_their_inclusion_probabilities(
    active: Callable[..., Settings], tmp_path: Path
) -> None:
    """Each judged row has one, and no other row; their inverses add up to about all rows."""
    settings = active()
    _, second = nights(settings)
    folder = tmp_path / "store" / RunRef.of(second).folder("scores")
    scores = [
        score
        for path in sorted(folder.rglob("*.parquet"))
        for score in pq.read_table(path).to_pylist()
    ]
    judged = [score for score in scores if score["status"] == "scored"]
    assert len(judged) == JUDGED
    assert sum(1 / one["probability"] for one in judged) == pytest.approx(ROWS, rel=0.05)
    others = [score for score in scores if score["status"] == "not_sampled"]
    assert {(other["probability"], other["compared"]) for other in others} == {(None, None)}


def test_cheap_scores_are_computed_once(
    active: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a second staging nor the scoring computes a score that is stored beside the rows."""
    settings = active()
    run_night(settings, NIGHT)
    staged = Night(settings).stage(NIGHT + timedelta(1))

    async def refuse(*_: object) -> None:
        raise AssertionError("a cheap score is computed again")

    monkeypatch.setattr(CheapJudges, "guesses", refuse)
    assert Night(settings).stage(NIGHT + timedelta(1)).ref == staged.ref
    open_store(settings).remove(f"{staged.ref.folder('rows')}/sample.json")
    Night(settings).stage(NIGHT + timedelta(1))
    assert not score_parts(settings, staged, list_parts(settings, staged))


def test_another_number_of_shards_draws_the_same_rows(active: Callable[..., Settings]) -> None:
    """Questions, keys and cheap scores do not depend on the shards."""
    marks = []
    for shards in (1, 3):
        settings = active(f"store-{shards}", shards=shards)
        _, second = nights(settings)
        (group,) = plan_of(settings, second).groups
        marks.append((group.marks, group.probabilities, group.compared))
    assert marks[0] == marks[1]


def test_a_uniform_draw_stores_no_probability(active: Callable[..., Settings]) -> None:
    """Its plan, its run and its numbers are what they were before there was another draw."""
    settings = active(sample={"rows": JUDGED})
    manifest = run_night(settings, NIGHT).manifest
    (group,) = plan_of(settings, manifest).groups
    assert (group.weighted, group.probabilities, group.uniform) == (False, (), "")
    sampled = relevance(manifest).sample
    assert sampled is not None
    assert (sampled.effective, sampled.bins) == (None, [])
    assert manifest.sample is not None
    assert active_text(manifest.sample, manifest.metrics) == ""


def test_labels_are_weighted_by_the_chance_of_their_score(active: Callable[..., Settings]) -> None:
    """Judged rows are those on which the judges differ; labels of them stand for all rows."""
    settings = active()
    _, second = nights(settings)
    files, ref = open_store(settings), RunRef.of(second)
    columns = ["id", "question", "status", "probability"]
    judged = {
        score["id"]: score
        for shard in range(ref.shards)
        for score in StoredPart(files, ref.scores(RELEVANCE, shard)).columns(columns).to_pylist()
        if score["status"] == "scored"
    }
    labels = [
        RowLabel(score["question"], name, second.date, RELEVANCE, 0.5, "Ada", 2.0)
        for name, score in judged.items()
    ]
    found = join_scores(files, RELEVANCE, labels, second, []).rows
    assert len(found) == JUDGED
    assert len({one.weight for one in found}) > 1
    assert all(one.weight == 2.0 / judged[one.id]["probability"] for one in found)

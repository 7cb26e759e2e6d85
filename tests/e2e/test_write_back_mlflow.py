"""From the traces of a real MLflow server, as its client exports them, to feedback on them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragmetrics.pipeline import Night, run_night
from tests.builders import night_settings
from tests.fakes.logs import NIGHT
from tests.fakes.mlflow import mlflow_server

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("without_pages")]

BEGUN = int(datetime(NIGHT.year, NIGHT.month, NIGHT.day, 8, tzinfo=UTC).timestamp())
GOOD = ("How tall is the tower?", ["The tower is 300 metres tall.", "Museums close on Mondays."])
EMPTY = ("When does the ferry leave?", [])


def test_the_scores_of_a_night_are_seen_on_their_spans(tmp_path: Path) -> None:
    """Value, reason and source; a repetition replaces them; a trace that is gone is waited for."""
    with mlflow_server(tmp_path) as server:
        exported = server.export([GOOD, EMPTY], BEGUN)
        gone = exported.splitlines()[0].replace("tr-", "tr-f")
        log = tmp_path / "logs" / f"dt={NIGHT}" / "traces.jsonl"
        log.parent.mkdir(parents=True)
        log.write_text(f"{exported}{gone}\n", "utf-8")
        metrics = ["context_relevance", "context_recall"]
        settings = night_settings(
            tmp_path,
            dataset="towers",
            preset="mlflow",
            metrics=metrics,
            write_back={"mlflow": {"base_url": server.url}},
        )
        result = run_night(settings, NIGHT)
        [report] = result.write_back
        assert (report.sent, report.early, report.refused, report.problem) == (4, 2, 0, "")
        ids = {
            json.loads(line)["request"]["question"]: json.loads(line)["trace_id"]
            for line in exported.splitlines()
        }
        found = server.assessments(ids[GOOD[0]])
        by_name = {one["assessment_name"]: one for one in found}
        assert sorted(by_name) == sorted(metrics)
        score = by_name["context_relevance"]
        assert score["feedback"]["value"] == 0.5
        assert score["source"] == {"source_type": "CODE", "source_id": "ragmetrics:towers"}
        assert score["metadata"]["run"] == result.manifest.run
        assert len(score["span_id"]) == 16
        skipped = by_name["context_recall"]
        assert skipped["feedback"]["value"] == "skipped"
        assert "reference" in skipped["rationale"]
        [nothing] = (
            one
            for one in server.assessments(ids[EMPTY[0]])
            if one["assessment_name"] == "context_relevance"
        )
        assert nothing["feedback"]["value"] == 0.0
        for info in (tmp_path / "store/write-back/sent").rglob("*.json"):
            info.unlink()  # as if the run had died after the server stored everything
        [again] = Night(settings).write_back(result.manifest)
        assert again.sent == 4
        twice = server.assessments(ids[GOOD[0]])
        assert {one["assessment_id"] for one in twice} == {one["assessment_id"] for one in found}

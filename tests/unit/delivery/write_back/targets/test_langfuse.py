"""What Langfuse gets of a night, and what its answers count for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragmetrics.pipeline import send_scores
from ragmetrics.records import Score, Status
from tests.fakes.tracing import (
    LangfuseServer,
)
from tests.fakes.written_back import (
    METRIC,
    a_night,
    publish,
    send,
    to_langfuse,
    traced_row,
)

pytestmark = pytest.mark.process


@pytest.mark.parametrize("api", ["scores", "ingestion"])
def test_langfuse_gets_each_score_with_where_it_comes_from(
    tmp_path: Path, langfuse: LangfuseServer, api: str
) -> None:
    """Value, trace, observation, and as metadata interval, status, judge, fingerprint and run."""
    settings = to_langfuse(tmp_path, langfuse, langfuse={"api": api}, batch_size=4)
    panel = Score(0.25, votes=(0.0, 0.5), reason="two of eight")
    publish_one = {METRIC: lambda number: panel}
    manifest = publish(settings, publish_one, [traced_row(number) for number in range(10)])
    report = send(settings, manifest)
    assert (report.sent, report.problem, langfuse.requests) == (10, "", 3)
    assert set(langfuse.paths) == {f"/api/public/{api}"}
    stored = {score["observationId"]: score for score in langfuse.scores.values()}
    assert len(stored) == 10
    one = stored[f"{3:016x}"]
    assert (one["traceId"], one["name"], one["value"]) == (f"{3:032x}", METRIC, 0.25)
    assert (one["dataType"], one["comment"]) == ("NUMERIC", "two of eight")
    assert one["metadata"] == {
        "status": "scored",
        "metric": METRIC,
        "judge": "lexical",
        "fingerprint": f"{METRIC}-lexical",
        "dataset": "helpdesk",
        "night": "2026-11-10",
        "run": "run-0",
        "row": "row-2",
        "ragmetrics": "0.1.0",
        "night_mean": 0.5,
        "night_mean_low": pytest.approx(0.47),
        "night_mean_high": pytest.approx(0.53),
        "votes": [0.0, 0.5],
        "votes_low": 0.0,
        "votes_high": 0.5,
    }


def test_a_missing_value_is_a_category_with_its_reason(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """Skipped or failed, never 0; a row of a part that was never written failed too."""
    kinds = [
        Score(0.0),
        Score.not_applicable("no reference answer"),
        Score(None, "timed out", status=Status.JUDGE_FAILED),
        Score(None, status=Status.NOT_SAMPLED),
    ]
    scores = {METRIC: lambda number: kinds[number], "context_relevance": lambda number: None}
    settings = to_langfuse(tmp_path, langfuse)
    manifest = publish(settings, scores, [traced_row(number) for number in range(4)])
    assert send(settings, manifest).sent == 8
    found = {(one["name"], one["observationId"][-1]): one for one in langfuse.scores.values()}
    told = [found[METRIC, str(number)] for number in range(1, 5)]
    assert [one["value"] for one in told] == [0.0, "skipped", "failed", "skipped"]
    assert [one.get("comment") for one in told[1:3]] == ["no reference answer", "timed out"]
    assert told[2]["metadata"]["status"] == "judge_failed"
    assert found["context_relevance", "1"]["value"] == "failed"


@pytest.mark.parametrize("api", ["scores", "ingestion"])
def test_a_refused_score_costs_no_other(tmp_path: Path, langfuse: LangfuseServer, api: str) -> None:
    """Also where the server does not say which one; nights do not repeat it, the command does."""
    settings = to_langfuse(tmp_path, langfuse, langfuse={"api": api})
    rows = [traced_row(number) for number in range(8)]
    scores = {METRIC: lambda number: Score(0.5), "mrr": lambda number: Score(0.1)}
    manifest = publish(settings, scores, rows)
    langfuse.refused = {"mrr"}
    report = send(settings, manifest)
    assert (report.sent, report.refused, report.problem) == (8, 8, "")
    assert "out of range" in report.refusal
    assert send(settings, manifest).before == 16
    langfuse.refused = set()
    [again] = send_scores(settings, manifest.date)
    assert (again.sent, again.before, len(langfuse.scores)) == (8, 8, 16)


def test_langfuse_may_fail_an_event_among_its_successes(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """The status counts, and not the list; ids that were not sent count nowhere."""
    settings = to_langfuse(tmp_path, langfuse, langfuse={"api": "ingestion"}, retry_seconds=0)
    said = {"successes": [{"id": "other", "status": 201}], "errors": [{"id": "x", "status": 400}]}
    langfuse.instead = (207, "application/json", json.dumps(said).encode())
    report = send(settings, a_night(settings))
    assert (report.sent, report.refused, report.waiting) == (0, 0, 10)
    assert "does not name the score" in report.problem

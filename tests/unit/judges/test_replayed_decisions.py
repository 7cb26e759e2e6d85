"""A recording of a decision model: its probabilities are played back as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline import Result
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import make_rows

ROWS = make_rows(8, good=0.7)
METRICS = ["context_relevance", "context_precision", "context_recall", "response_relevancy"]


def scored(judge: Any, metrics: list[str] = METRICS, record: Path | None = None) -> Result:
    """The rows, by a judge."""
    settings = make_settings({"judge": judge})
    return ragmetrics.evaluate(ROWS, metrics, settings=settings, record=record)


def values(result: Result) -> list[tuple[Any, ...]]:
    """All values, with the probabilities that their details keep."""
    scores = result.scores()
    return [*zip(scores["id"], scores["metric"], scores["value"], scores["details"], strict=True)]


@pytest.mark.parametrize("rounds", [False, True])
def test_a_recorded_run_of_a_decision_model_gives_the_same_scores(
    judge_server: JudgeServer, tmp_path: Path, rounds: bool
) -> None:
    """Values and probabilities, in the metrics' form for decisions, with nothing sent."""
    file = tmp_path / "replies.jsonl"
    live = scored(judge_at(judge_server, "decision", round=rounds), record=file)
    judge_server.reset()
    assert values(scored(f"recorded:{file}")) == values(live)
    assert judge_server.stats()["requests"] == 0
    line = json.loads(file.read_text().splitlines()[0])
    assert line["decides"] is True and line.get("rounds", False) is rounds
    assert line["reply"].startswith('{"answers":')


def test_rounded_answers_are_another_judge(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Equal replies, but other verdicts."""
    plain, rounded = tmp_path / "plain.jsonl", tmp_path / "rounded.jsonl"
    scored(judge_at(judge_server, "decision"), record=plain)
    rounded.write_text(plain.read_text().replace('"decides":true', '"decides":true,"rounds":true'))
    prints = {scored(f"recorded:{one}").manifest.judge.fingerprint for one in (plain, rounded)}
    assert len(prints) == 2


def test_a_question_that_is_not_recorded_fails_its_rows(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """As a request to a language model does."""
    file = tmp_path / "replies.jsonl"
    scored(judge_at(judge_server, "decision"), ["context_relevance"], record=file)
    (summary,) = scored(f"recorded:{file}", ["context_recall"]).manifest.metrics
    assert summary.status == {"judge_failed": 8}
    assert "the recording has no reply" in summary.why_unanswered


def test_a_metric_without_a_decision_form_is_refused_or_played_by_the_other_recording(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """One file has both judges; each plays its metrics."""
    file, both = tmp_path / "replies.jsonl", [*METRICS, "context_entity_recall"]
    also = judge_at(judge_server, model="chat")
    live = scored(judge_at(judge_server, "decision", model="luna", also=also), both, file)
    first = f"recorded:{file}#decision:luna"
    with pytest.raises(InputError, match="cannot score context_entity_recall"):
        scored(first, both)
    replayed = scored({"name": first, "also": f"recorded:{file}#openai:chat"}, both)
    assert values(replayed) == values(live)

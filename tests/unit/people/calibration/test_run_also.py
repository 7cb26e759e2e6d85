"""Calibration under `also`: each judge is asked about its metrics alone, or not at all."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.people import calibrate, judge_drift_set, load_calibrations
from ragmetrics.records import Calibration
from ragmetrics.storage import open_store
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.labelled import make_labelled, relabelled
from tests.fakes.logs import write_jsonl

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
ENTITIES = "context_entity_recall"


def both(server: JudgeServer, name: str = "decision", **more: Any) -> dict[str, Any]:
    """A judge that cannot write, and a chat model."""
    return judge_at(server, name, model="luna", also=judge_at(server, model="chat"), **more)


def place_of(folder: Path, gold: bool = False, **labels: Any) -> str:
    """A set of ten rows, with gold figures of a metric of either judge."""
    figures = {ENTITIES: 0.5, "context_recall": 1.0} if gold else {}
    rows = [relabelled(row, gold=figures, **labels) for row in make_labelled(10)]
    return str(write_jsonl(folder / "set.jsonl", rows))


def asked_models(server: JudgeServer) -> set[str]:
    """The models that got requests."""
    return {*server.stats()["by_model"]}


def calibrated(server: JudgeServer, place: str, judge: str = "decision") -> list[Calibration]:
    """The records of a set, with attacks."""
    settings = make_settings({"judge": both(server, judge)})
    return calibrate(settings, [place], now=NOW, attacks=20)


def test_a_second_judge_without_labels_is_not_asked(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """It has no record, nor is it attacked."""
    (found,) = calibrated(judge_server, place_of(tmp_path))
    assert (found.judge.name, found.incomplete, len(found.attacks)) == ("decision:luna", False, 4)
    assert asked_models(judge_server) == {"luna"}


def test_gold_figures_are_of_the_judge_that_scores_the_metric(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """As in a night; the other judge's record has none of them."""
    first, second = calibrated(judge_server, place_of(tmp_path, gold=True))
    assert {one.metric: one.status for one in first.gold} == {"context_recall": {"scored": 10}}
    assert {one.metric: one.status for one in second.gold} == {ENTITIES: {"scored": 10}}
    assert (second.metrics, second.attacks, second.incomplete) == ([], [], False)
    assert {*second.skipped.values()} == {"this judge does not score it"}


def test_a_judge_alone_has_no_gold_figure_of_what_it_cannot_score(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """And is not asked for it."""
    settings = make_settings({"judge": judge_at(judge_server, "decision")})
    wanted = ["context_recall", ENTITIES]
    (found,) = calibrate(settings, [place_of(tmp_path, gold=True)], wanted, now=NOW)
    assert [one.metric for one in found.gold] == ["context_recall"]
    assert found.skipped == {ENTITIES: "this judge does not score it"}


def test_targets_are_divided_between_both(judge_server: JudgeServer, tmp_path: Path) -> None:
    """A reranker grades contexts, and a chat model says which statements have support."""
    first, second = calibrated(judge_server, place_of(tmp_path), "rerank")
    assert [one.metric for one in first.metrics] == ["context_relevance"]
    assert [one.metric for one in second.metrics] == ["context_relevancy", "context_recall"]
    assert (len(first.attacks), second.attacks) == (4, [])
    grades = place_of(tmp_path, statement_support=None, relevant_sentences=None)
    assert [one.judge.name for one in calibrated(judge_server, grades, "rerank")] == ["rerank:luna"]


def test_a_set_without_any_labels_is_the_first_judges(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Whose record says what is missing."""
    place = str(write_jsonl(tmp_path / "set.jsonl", make_labelled(3, labels={"gold": {}})))
    (found,) = calibrated(judge_server, place)
    assert (found.judge.name, found.incomplete) == ("decision:luna", True)


def test_the_command_ends_well(run: Run, judge_server: JudgeServer, tmp_path: Path) -> None:
    """Where all that can be judged was."""
    settings = tmp_path / "ragmetrics.yaml"
    settings.write_text(json.dumps({"judge": both(judge_server)}))
    ended = run("calibrate", place_of(tmp_path), "--settings", settings)
    assert (ended.code, "judge openai:chat" in ended.out) == (0, False)


# The nightly's set


def nightly(folder: Path, server: JudgeServer, judge: str, place: str) -> Settings:
    """A night whose metrics both judges score."""
    fitted = {"thresholds": [0.3, 0.6]} if judge == "rerank" else {}
    return make_settings(
        {
            "store": str(folder / "store"),
            "metrics": ["context_relevance", "context_recall", "faithfulness", ENTITIES],
            "judge": both(server, judge, **fitted),
            "alerts": {"drift_set": place},
        }
    )


@pytest.mark.parametrize("first", ["decision", "rerank"])
def test_the_nightlys_set_is_judged_once_a_day(
    judge_server: JudgeServer, tmp_path: Path, first: str
) -> None:
    """By the judge that scores each metric; a judge without targets is not missed."""
    settings = nightly(tmp_path, judge_server, first, place_of(tmp_path))
    files = open_store(settings)
    assert judge_drift_set(settings, files, NOW) is None
    names = {one.judge.name for one in load_calibrations(files)}
    assert names == {f"{first}:luna"} | ({"openai:chat"} if first == "rerank" else set())
    asked = judge_server.stats()["requests"]
    assert judge_drift_set(settings, files, NOW + timedelta(hours=1)) is None
    assert judge_server.stats()["requests"] == asked
    assert len(load_calibrations(files)) == len(names)


def test_a_set_with_labels_for_the_first_judge_alone_is_judged_once(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """The second one could score other labels."""
    grades = place_of(tmp_path, statement_support=None, relevant_sentences=None)
    settings = nightly(tmp_path, judge_server, "rerank", grades)
    files = open_store(settings)
    for hour in range(2):
        assert judge_drift_set(settings, files, NOW + timedelta(hours=hour)) is None
    assert [one.judge.name for one in load_calibrations(files)] == ["rerank:luna"]


def test_a_second_judge_that_gave_no_verdict_is_asked_again(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """And named until it does."""
    settings = nightly(tmp_path, judge_server, "rerank", place_of(tmp_path))
    down = settings.judge.also
    assert down
    refuses = down.model_copy(update={"base_url": "http://127.0.0.1:9/v1", "retries": 0})
    broken = settings.with_panel([settings.panel[0], refuses])
    problem = judge_drift_set(broken, open_store(settings), NOW)
    assert problem is not None and "openai:chat" in problem
    assert judge_drift_set(settings, open_store(settings), NOW + timedelta(hours=1)) is None
    assert "chat" in asked_models(judge_server)

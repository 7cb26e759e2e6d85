"""What users said as labels: for what people would say, and for calibration."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ragmetrics import Manifest, calibrate, evaluate, load_settings, make_settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import FEWEST_LABELS
from ragmetrics.storage import Runs, open_store
from tests.builders import save_settings
from tests.fakes.logs import write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")
BY_USERS = {"context_relevance": "user_feedback"}
METRICS = ["context_relevance", "user_feedback"]


def rows(answer: float, count: int = 400, seed: int = 4) -> list[dict[str, Any]]:
    """A log in which a share of users answer: a thumb up where the context is right."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        right = chance.random() < 0.7
        text = f"Museum {number} opens at 9." if right else "Bread needs flour and salt."
        said = ("up" if right else "down") if chance.random() < answer else None
        row = {"id": f"r{number}", "user_input": f"When does museum {number} open?"}
        found.append(row | {"retrieved_contexts": [text], "feedback": said})
    return found


def of_users(answer: float) -> Manifest:
    """The night of such a log, whose feedback labels a metric."""
    logs = rows(answer)
    settings = make_settings({"feedback_labels": BY_USERS})
    return evaluate(logs, metrics=METRICS, settings=settings).manifest


def test_people_s_mean_tells_who_answered() -> None:
    """The share of rows with feedback, and what it is not."""
    found = of_users(0.25)
    summary = found.summary("context_relevance")
    assert summary and summary.people and summary.mean is not None
    said = found.summary("user_feedback")
    assert said and summary.people.labels == said.scored > FEWEST_LABELS
    assert summary.people.answered == said.scored / 400
    assert summary.people.text(summary.mean).endswith(
        f"; labels are feedback, given on {said.scored / 400:.1%} of rows: if content users answer "
        "more or less often than others, it is not the mean of all users"
    )
    assert found.labels and found.labels.place == "feedback of users"


def test_too_few_answers_are_no_mean() -> None:
    """As with other labels."""
    found = of_users(0.02)
    summary = found.summary("context_relevance")
    assert summary and summary.people is None
    assert found.labels and "context_relevance" in found.labels.lacking


def test_users_who_chose_to_answer_do_not_accuse_the_judge(tmp_path: Path) -> None:
    """A night with their labels has no judge bias; its rows are a set for calibration, in which
    what users said is a gold figure of the metric that they label.
    """
    day = date(2026, 11, 19)
    write_jsonl(tmp_path / "logs" / f"dt={day}" / "rows.jsonl", rows(0.3))
    path = save_settings(tmp_path, metrics=METRICS, feedback_labels=BY_USERS)
    settings = load_settings(path)
    run_night(settings, day)
    (night,) = Runs(open_store(settings)).nights()
    summary = night.summary("context_relevance")
    assert summary and summary.people and summary.people.answered
    assert not [one for one in night.findings if one.kind == "judge_bias"]
    (found,) = calibrate(settings, [f"night:{day}"], files=open_store(settings))
    (rank,) = found.gold
    said = night.summary("user_feedback")
    assert (rank.metric, rank.gold) == ("context_relevance", "context_relevance")
    assert said and rank.rows == said.scored
    assert rank.spearman.value is not None and rank.spearman.value > 0.5

"""How a question stands by a metric, and which questions are shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from ragmetrics.dashboard.question_history import Asking, Question
from ragmetrics.dashboard.question_standing import Standing, Standings
from ragmetrics.records import Manifest, Segment
from tests.fakes.nights import FIRST, finding, night, summary

RECALL = "context_recall"
NEWEST = 9


def asked(values: Sequence[float], metric: str = RECALL, **change: Any) -> Question:
    """A question with scores on so many newest nights."""
    first = FIRST + timedelta(days=NEWEST + 1 - len(values))
    askings = {
        first + timedelta(days=place): Asking("q-1", "", {metric: value})
        for place, value in enumerate(values)
    }
    return Question(**{"text": "How?", "tags": (), "askings": askings, **change})


def standings(manifest: Manifest | None = None, **questions: Question) -> Standings:
    """How these questions stand on the newest night."""
    newest = manifest or night(NEWEST)
    return Standings(questions, newest, {one.metric: one for one in newest.metrics})


def standing(question: Question, manifest: Manifest | None = None) -> Standing:
    """How one question stands by its first metric."""
    found = standings(manifest, one=question).lead("one")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([1.0, 1.0, 0.5], "fell"),
        ([1.0, 1.0, 0.95], ""),
        ([1.0, 0.2, 1.0, 1.0], "back"),
        ([0.2, 1.0], ""),
        ([0.2], ""),
        ([0.0, 1.0, 1.0, 0.0], "fell"),
    ],
)
def test_a_question_fell_or_is_back_by_its_usual_score(values: list[float], state: str) -> None:
    """The median of the nights before; a tenth of the range is a fall."""
    assert standing(asked(values)).state == state


def test_where_lower_is_better_a_rise_is_a_fall() -> None:
    """What got worse counts, whichever way the metric goes."""
    lower = night(NEWEST, metrics=[summary(RECALL, 0.2, higher_is_better=False)])
    assert standing(asked([0.1, 0.1, 0.9]), lower).fell
    assert not standing(asked([0.9, 0.9, 0.1]), lower).fell


def test_a_wide_metric_has_a_wide_tenth() -> None:
    """Of 100 milliseconds, five are no fall."""
    questions = {"a": asked([100.0, 95.0]), "b": asked([100.0, 0.0])}
    by_question = standings(**questions).by_question
    assert [by_question[name][RECALL].state for name in "ab"] == ["", "fell"]


@pytest.mark.parametrize(
    ("segment", "state"),
    [
        (None, "firing"),
        (Segment(tag="section", value="billing"), "firing"),
        (Segment(tag="section", value="api"), "fell"),
    ],
)
def test_an_alert_fires_for_the_questions_that_it_concerns(
    segment: Segment | None, state: str
) -> None:
    """Those of its segment, if it has one."""
    alarm = night(NEWEST, findings=[finding(level="breach", segment=segment)])
    question = asked([1.0, 0.0], tags=(("section", "billing"),))
    assert standing(question, alarm).state == state


def test_an_alert_does_not_concern_a_question_that_was_not_asked() -> None:
    """Its fall is of an earlier night."""
    alarm = night(NEWEST + 1, findings=[finding(level="breach")])
    assert standing(asked([1.0, 0.0]), alarm).state == "fell"


def test_the_metric_that_fell_furthest_leads() -> None:
    """Else the first of the page."""
    question = asked([1.0, 0.8])
    for asking in question.askings.values():
        asking.values["context_relevance"] = 1.0 if asking.values[RECALL] == 1.0 else 0.0  # type: ignore[index]
    assert standing(question).metric == "context_relevance"
    assert standing(asked([0.8])).metric == RECALL


def test_those_that_fell_come_first_then_those_that_are_back_then_the_worst() -> None:
    """The order in which they are shown."""
    questions = {
        "fine": asked([1.0, 1.0]),
        "back": asked([1.0, 0.0, 1.0, 1.0]),
        "low": asked([0.1, 0.1]),
        "fell": asked([1.0, 0.5]),
        "deep": asked([1.0, 0.0]),
        "unscored": asked([], askings={FIRST: Asking("", "", {})}),
    }
    order = ["deep", "fell", "back", "low", "fine", "unscored"]
    assert standings(**questions).chosen(questions, 10) == order


def test_there_is_room_for_the_fallen_the_worst_and_a_sample() -> None:
    """Half of it is for those that fell."""
    fell = {f"fell-{i}": asked([1.0, 0.5]) for i in range(50)}
    fine = {f"fine-{i}": asked([0.9, 0.9]) for i in range(50)}
    questions = {**fell, **fine, "low": asked([0.0, 0.0])}
    chosen = standings(**questions).chosen(questions, 40)
    assert len(chosen) == 40
    assert "low" in chosen
    assert sum(key in fell for key in chosen) >= 20
    assert any(key in fine for key in chosen)
    assert chosen == standings(**questions).chosen(questions, 40)

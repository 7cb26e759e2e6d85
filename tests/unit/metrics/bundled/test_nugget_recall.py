"""nugget_recall: nuggets of the reference that the contexts support; replies played by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.errors import UnreadableReply
from ragmetrics.metrics.bundled.nugget_recall import (
    NUGGETS,
    ExpectedSupport,
    NuggetSupport,
    nugget_recall,
)
from ragmetrics.records import Ask, LogRow, Score, Status
from tests import builders
from tests.builders import end, judge_at
from tests.fakes.clients import JudgeServer

MEASURES = ("vital", "vital_strict", "all", "all_strict")
LEVELS = {"not_support": 0, "partial_support": 1, "support": 2}
Recorded = tuple[list[tuple[str, str]], dict[str, float]]

# Assessments as castorini/nuggetizer records them: importance, assignment. The first is that of its
# tests/test_scripts.py, with its V and A; the second is the example of `assign` in its quickstart.
# Other V and A are by its `calculate_nugget_scores`.
RECORDED: list[Recorded] = [
    (
        [("vital", "support"), ("okay", "partial_support")],
        {
            "vital_strict": 1.0,
            "vital": 1.0,
            "all_strict": 0.5,
            "all": 0.75,
        },
    ),
    (
        [
            ("vital", "support"),
            ("vital", "support"),
            ("okay", "partial_support"),
            ("okay", "not_support"),
        ],
        {
            "vital_strict": 1.0,
            "vital": 1.0,
            "all_strict": 0.5,
            "all": 0.625,
        },
    ),
    (
        [("vital", "support"), ("vital", "partial_support"), ("okay", "not_support")],
        {
            "vital_strict": 0.5,
            "vital": 0.75,
            "all_strict": 1 / 3,
            "all": 0.5,
        },
    ),
]


def nuggets(*importance: str) -> tuple[dict[str, str], ...]:
    """Nuggets of these importances."""
    return tuple({"text": f"Fact {n}.", "importance": one} for n, one in enumerate(importance))


a_row = partial(builders.a_row, reference="Fact 0. Fact 1.", nuggets=nuggets("vital", "okay"))


def played(row: LogRow, verdict: NuggetSupport, **parameters: Any) -> Score:
    """The score by a verdict."""
    steps = nugget_recall.with_parameters(parameters).play(row)
    next(steps)
    return end(steps, verdict)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("assessed", "figures"), RECORDED)
def test_recorded_assessments_have_the_published_numbers(
    assessed: list[tuple[str, str]], figures: dict[str, float], measure: str
) -> None:
    """Each measure is exactly that of the published arithmetic; details have all of them."""
    row = a_row("context", nuggets=nuggets(*(importance for importance, _ in assessed)))
    verdict = NuggetSupport.model_validate({"support": [LEVELS[one] for _, one in assessed]})
    score = played(row, verdict, measure=measure)
    assert score.value == figures[measure]
    assert score.details == {"support": verdict.support, "measures": figures}


def test_the_vital_nuggets_that_are_fully_supported_count_by_default() -> None:
    """V_strict is the main measure of TREC's track."""
    row = a_row("context", nuggets=nuggets("vital", "vital", "okay"))
    verdict = NuggetSupport(support=[2, 1, 0])
    assert played(row, verdict).value == played(row, verdict, measure="vital_strict").value == 0.5


def test_asks_once_about_all_nuggets() -> None:
    """The judge sees question, contexts and the nuggets' texts, not which of them are vital."""
    requests = next(nugget_recall.play(a_row("one", " ", "two")))
    data = {
        "question": "When was the tower opened?",
        "contexts": ["one", "two"],
        "nuggets": ["Fact 0.", "Fact 1."],
    }
    assert requests == [Ask(NUGGETS, data)]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"nuggets": None}, "no nuggets yet: make them by `ragmetrics golden nuggets`"),
        ({"nuggets": ()}, "the reference states no fact: it has no nuggets"),
        ({"nuggets": None, "reference": None}, "no reference answer"),
        ({"nuggets": nuggets("okay")}, "no vital nugget: `measure: all` counts the others"),
    ],
)
def test_a_row_without_nuggets_says_how_it_gets_them(fields: dict[str, Any], reason: str) -> None:
    """It has no value, which is no bad value; also where nothing was retrieved."""
    score = end(nugget_recall.play(a_row(**fields)))
    assert score == Score(None, reason, status=Status.NOT_APPLICABLE)


def test_nothing_retrieved_is_zero() -> None:
    """It costs nothing."""
    assert end(nugget_recall.play(a_row("", " "))) == Score(0.0, "nothing retrieved")


def test_one_verdict_per_nugget() -> None:
    """Any other number is unreadable: it does not say which nugget it leaves out."""
    with pytest.raises(UnreadableReply, match="1 verdicts for 2 nuggets"):
        NUGGETS.parse('{"support": [2]}', {"nuggets": ["a", "b"]})


CHANCES = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(any)


@given(st.lists(CHANCES, min_size=1, max_size=6), st.sampled_from(MEASURES))
def test_a_decision_models_value_is_the_expectation(chances: list[list[int]], measure: str) -> None:
    """Each nugget counts by the probabilities of its levels; the details keep them."""
    shares = tuple(tuple(one / sum(each) for one in each) for each in chances)
    likeliest = [each.index(max(each)) for each in shares]
    row = a_row("context", nuggets=nuggets(*["vital"] * len(shares)))
    verdict = ExpectedSupport.model_validate({"support": likeliest, "probabilities": shares})
    score = played(row, verdict, measure=measure)
    strict = sum(each[2] for each in shares)
    half = 0 if measure.endswith("strict") else sum(each[1] for each in shares) / 2
    assert score.value == pytest.approx((strict + half) / len(shares))
    assert len(score.details["probabilities"]) == len(shares)


@pytest.mark.parametrize("form", ["decisions", "systemone"])
def test_a_decision_judge_sends_no_further_request(judge_server: JudgeServer, form: str) -> None:
    """Nuggets are scores of three levels in the row's one request."""
    judge_server.faults(decides=form)
    row = {
        "user_input": "How high is the tower?",
        "retrieved_contexts": ["The tower is 330 metres high."],
        "reference": "It is 330 metres high.",
        "nuggets": [{"text": "The tower is 330 metres high.", "importance": "vital"}],
    }
    settings = make_settings({"judge": judge_at(judge_server, "decision", api=form)})
    result = ragmetrics.evaluate([row], ["context_recall", "nugget_recall"], settings=settings)
    assert result.manifest.usage.requests == judge_server.stats()["requests"] == 1
    scores = result.scores().set_index("metric")
    assert scores["value"]["nugget_recall"] == pytest.approx(1.0)
    assert scores["details"]["nugget_recall"]["support"] == [2]


def test_a_chat_judge_gives_one_list(judge_server: JudgeServer) -> None:
    """One request a row; a nugget of which a part is said counts half in `all`."""
    row = {
        "user_input": "How high is the tower?",
        "retrieved_contexts": ["The tower is 330 metres high."],
        "nuggets": [
            {"text": "The tower is 330 metres high.", "importance": "vital"},
            {"text": "The tower opened metres away.", "importance": "okay"},
        ],
    }
    settings = make_settings({"judge": judge_at(judge_server)})
    result = ragmetrics.evaluate([row], [{"nugget_recall": {"measure": "all"}}], settings=settings)
    assert result.scores()["value"].tolist() == [0.75]
    assert judge_server.stats()["by_path"] == {"/v1/chat/completions": 1}

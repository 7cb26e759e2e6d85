"""The panel: several judges, several times each, and one score made of it all."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import Aggregate
from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges import EmbeddingClient, JudgeClient
from ragmetrics.metrics import metric as declare, select
from ragmetrics.records import Ask, LogRow, Score, Status, Steps
from ragmetrics.scoring import majority
from ragmetrics.scoring.combination import averaged, combine
from ragmetrics.scoring.metric_choice import panel_fingerprint
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.panel import Panel
from ragmetrics.scoring.part import drive
from tests.fakes.scripted import CountingEmbedder, ScriptedJudge, a_broker

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=7)
AGGREGATES: list[Aggregate] = ["mean", "median", "min", "max", "majority"]
ROW = LogRow("r-1", "When does it open?", ("At nine.", "It is closed on Mondays."), language="en")


def grader(name: str, *grades: int) -> ScriptedJudge:
    """A judge that gives these grades, one after the other, over and over."""
    given = iter(grades * 100)
    return ScriptedJudge(
        lambda request, attempt: json.dumps({"grade": next(given)}),
        concurrency=1,
        name=name,
        fingerprint=f"print-{name}",
    )


def failing(name: str, error: Exception) -> ScriptedJudge:
    """A judge that cannot be asked."""

    def answer(request: Ask, attempt: int) -> str:
        raise error

    return ScriptedJudge(answer, name=name)


def score(*judges: ScriptedJudge, repeats: int = 1, **more: Any) -> Score:
    """The context_relevance of one row by a panel."""
    return scores(*judges, repeats=repeats, **more)[0]


def scores(
    *judges: ScriptedJudge, repeats: int = 1, rows: int = 1, aggregate: Aggregate = "mean"
) -> list[Score]:
    """The context_relevance of rows with different questions by a panel."""
    panel = Panel([Member(a_broker(judge), repeats) for judge in judges], aggregate)
    asked = [LogRow(f"r-{n}", f"Question {n}?", ROW.retrieved_contexts) for n in range(rows)]

    async def main() -> list[Score]:
        scored = drive(asked, select(["context_relevance"]), panel)
        return [row.scores["context_relevance"] async for row in scored]

    return asyncio.run(main())


def test_each_judge_judges_every_row_and_the_value_is_their_mean() -> None:
    """Two contexts graded (2, 2) by one judge and (1, 0) by the other: (1.0 + 0.25) / 2."""
    found = score(grader("a", 2, 2), grader("b", 1, 0))
    assert found.value == pytest.approx(0.625)
    assert found.votes == (1.0, 0.25)


def test_details_keep_each_judges_value() -> None:
    """What each judge said stands under its name, beside the details of the nearest one."""
    found = score(grader("a", 2, 2), grader("b", 1, 0), grader("c", 2, 1))
    assert found.details["judges"] == {
        "a": {"value": 1.0, "status": "scored"},
        "b": {"value": 0.25, "status": "scored"},
        "c": {"value": 0.75, "status": "scored"},
    }
    assert found.details["grades"] == [2, 1]


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [("mean", 0.5), ("median", 0.25), ("min", 0.25), ("max", 1.0), ("majority", 0.25)],
)
def test_aggregates(aggregate: Aggregate, value: float) -> None:
    """Of the votes 0.25, 0.25 and 1.0."""
    judges = (grader("a", 1, 0), grader("b", 0, 1), grader("c", 2, 2))
    assert score(*judges, aggregate=aggregate).value == pytest.approx(value)


def test_majority_without_one_is_the_median() -> None:
    """Three judges with three opinions have no majority; nor have two against two."""
    assert majority([0.0, 0.4, 1.0]) == 0.4
    assert majority([0.0, 0.0, 1.0, 1.0]) == 0.5


def test_a_failing_judge_does_not_lose_the_row_and_is_counted() -> None:
    """The others' values stand; the failed judge has no vote and says why."""
    found = score(grader("a", 2, 2), failing("b", JudgeError("b is down", transient=True)))
    assert (found.value, found.status) == (1.0, Status.SCORED)
    assert (found.votes, found.failed) == ((1.0, None), ("b",))
    assert found.details["judges"]["b"] == {
        "value": None,
        "status": "judge_failed",
        "reason": "b is down",
    }


def test_a_judge_that_refuses_is_asked_no_more_and_the_others_go_on() -> None:
    """A wrong key of one judge costs one refusal, not the night."""
    refusing = failing("b", JudgeRefused("wrong key"))
    refusing.concurrency = 1
    found = scores(grader("a", 2, 2), refusing, rows=40)
    assert [one.value for one in found] == [1.0] * 40
    assert sum(refusing.asked.values()) <= 2


def test_where_all_refuse_the_run_ends() -> None:
    """Nobody is left to judge."""
    with pytest.raises(JudgeRefused, match="wrong"):
        score(failing("a", JudgeRefused("wrong key")), failing("b", JudgeRefused("wrong model")))


def test_an_embedder_that_refuses_ends_the_run_of_one_judge() -> None:
    """Of a panel it costs the metrics that embed, with the reason, and no other."""
    reply = json.dumps({"questions": ["One?", "Two?", "Three?"], "noncommittal": False})
    embedder = CountingEmbedder(refusal=JudgeRefused("wrong key"))
    row = LogRow("r", "When?", (), response="At nine.")
    (metric,) = select(["response_relevancy"])
    judges = [ScriptedJudge(lambda request, attempt: reply, name=name) for name in "ab"]
    alone, *_ = members = [Member(a_broker(judge, embedder)) for judge in judges]
    with pytest.raises(JudgeRefused, match="embeddings: wrong key"):
        asyncio.run(Panel([alone]).score([metric], row))
    found = asyncio.run(Panel(members).score([metric], row))[metric.name]
    assert (found.status, found.reason) == (Status.JUDGE_FAILED, "embeddings: wrong key")


def test_where_all_fail_the_row_has_no_value() -> None:
    """The first judge's reason is the row's; every vote is missing."""
    found = score(failing("a", JudgeError("a is down")), failing("b", JudgeError("b is down")))
    assert (found.value, found.status, found.reason) == (None, Status.JUDGE_FAILED, "a is down")
    assert found.votes == (None, None)


def test_not_applicable_is_no_vote() -> None:
    """A row that no judge was asked about counts against none of them."""
    nothing = {name: Score.not_applicable("no reference answer") for name in "ab"}
    found = combine(nothing, "mean")
    assert (found.votes, found.failed) == ((None, None), ())


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_failure_beside_not_applicable_is_a_failure(names: str) -> None:
    """Whatever the order of the judges: nobody knows what the failed one would have said."""
    said = {
        "a": Score.not_applicable("no statement in the response"),
        "b": Score(None, "timed out", status=Status.JUDGE_FAILED),
    }
    found = combine({name: said[name] for name in names}, "mean")
    assert (found.status, found.failed) == (Status.JUDGE_FAILED, ("b",))
    assert averaged(list(said.values())).status == Status.JUDGE_FAILED


def test_a_judge_to_whom_nothing_applies_did_not_fail() -> None:
    """It found no statement where the other found one."""
    said = {"a": Score(0.5), "b": Score.not_applicable("no statement in the response")}
    found = combine(said, "mean")
    assert (found.value, found.votes, found.failed) == (0.5, (0.5, None), ())


def test_repeats_are_requests_of_their_own() -> None:
    """Three repeats over two contexts are six requests; the value is the mean, with its spread."""
    judge = grader("a", 2, 2, 1, 1, 0, 0)
    found = score(judge, repeats=3)
    assert sum(judge.asked.values()) == len(judge.asked) == 6
    assert found.value == pytest.approx(sum(found.details["repeats"]) / 3)
    assert found.spread is not None and found.spread > 0


def test_the_first_repeat_is_the_request_that_was_always_made() -> None:
    """Raising `repeats` asks only for what is missing: earlier replies are found again."""
    once, thrice = grader("a", 1), grader("a", 1)
    score(once)
    score(thrice, repeats=3)
    assert set(once.asked) < set(thrice.asked)


def test_spread_is_the_standard_deviation_over_the_repeats() -> None:
    """Of 0.0, 0.5 and 1.0: mean 0.5, spread 0.5; of one value there is none."""
    found = averaged([Score(0.0), Score(0.5), Score(1.0)])
    assert (found.value, found.spread) == (0.5, 0.5)
    assert averaged([Score(0.5), Score(None, status=Status.UNREADABLE)]).spread is None


def test_repeats_without_a_value_are_left_out() -> None:
    """The mean is over the repeats that have one; all are listed."""
    found = averaged([Score(None, "prose", status=Status.UNREADABLE), Score(1.0), Score(0.0)])
    assert found.value == 0.5
    assert found.details["repeats"] == [None, 1.0, 0.0]


def test_a_metric_that_asks_nothing_is_played_once() -> None:
    """Judges cannot differ on ids: no votes, no repeats."""
    row = LogRow("r", "?", ("a",), retrieved_context_ids=("1",), reference_context_ids=("1",))
    panel = Panel([Member(a_broker(grader("a", 1)), 3), Member(a_broker(grader("b", 1)))])
    found = asyncio.run(panel.score(select(["id_recall"]), row))["id_recall"]
    assert (found.value, found.votes, found.spread) == (1.0, None, None)


def test_judges_share_the_embedder() -> None:
    """A text that two judges' questions need is embedded once."""
    reply = json.dumps({"questions": ["One?", "Two?", "Three?"], "noncommittal": False})
    embedder = CountingEmbedder()
    shared = EmbeddingClient(embedder)
    judges = [ScriptedJudge(lambda request, attempt: reply, name=name) for name in "ab"]
    members = [Member(JudgeClient(judge, shared)) for judge in judges]
    row = LogRow("r", "When?", (), response="At nine.")
    asyncio.run(Panel(members).score(select(["response_relevancy"]), row))
    assert embedder.asked == {"When?": 1, "One?": 1, "Two?": 1, "Three?": 1}


def test_one_judge_asked_once_is_no_panel() -> None:
    """Its scores compare with those of nights before there were panels."""
    judge = grader("a", 1)
    assert panel_fingerprint([judge.fingerprint], [1], "mean") == judge.fingerprint


def test_fingerprint_covers_judges_repeats_and_aggregate() -> None:
    """Whatever changes the value changes the fingerprint."""
    a, b = grader("a", 1).fingerprint, grader("b", 1).fingerprint
    prints = {
        panel_fingerprint([a], [2], "mean"),
        panel_fingerprint([a, b], [1, 1], "mean"),
        panel_fingerprint([a, b], [1, 1], "median"),
        panel_fingerprint([a, b], [1, 2], "mean"),
    }
    assert len(prints) == 4


@given(VALUES, st.sampled_from(AGGREGATES))
def test_the_value_lies_between_the_votes(values: list[float], aggregate: Aggregate) -> None:
    """No aggregate leaves the range of the votes, or depends on their order."""
    said = {str(n): Score(value) for n, value in enumerate(values)}
    found = combine(said, aggregate).value
    assert found is not None
    assert min(values) - 1e-9 <= found <= max(values) + 1e-9
    backwards = dict(reversed(said.items()))
    assert combine(backwards, aggregate).value == pytest.approx(found)


@pytest.mark.parametrize("fault", [ValueError("oops"), "no score", float("nan"), MemoryError()])
def test_a_metric_that_fails_costs_its_row(fault: object) -> None:
    """A bug of one metric, often of another package: a status that says what and where."""

    def faulty(row: LogRow) -> Steps[Score]:
        yield from ()
        if isinstance(fault, Exception):
            raise fault
        return Score(fault) if isinstance(fault, float) else fault  # type: ignore[return-value]

    broken = declare(version=1, calls="0")(faulty)
    found = asyncio.run(Panel([Member(a_broker(grader("a", 1)))]).score([broken], ROW))["faulty"]
    assert (found.value, found.status) == (None, Status.METRIC_FAILED)
    told = {"no score": "a metric returns a Score, not 'no score'"}
    place = r"in (test_panel|score)\.py, line \d+"
    assert re.search(told.get(str(fault), place), found.reason)

"""Sampled runs: the judge is asked about the sample, the lexical judge scores every row."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from rich.console import Console

from ragmetrics import Result, evaluate
from ragmetrics.cli import print_summary
from ragmetrics.cli.output.costs import print_estimate
from ragmetrics.cli.table import make_console
from ragmetrics.comparison import gate_run_settings
from ragmetrics.config import Settings, make_settings
from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.judges import Corpus
from ragmetrics.judges.base import Reply
from ragmetrics.metrics import metric
from ragmetrics.pipeline import CoverageShort, Night, estimate, run_night
from ragmetrics.records import Ask, Lexicon, LogRow, Prompt, Score, Status, Steps, ask
from ragmetrics.scoring import list_parts, score_parts
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.sampling.cheap_scores import SampledPanel, make_cheap_judges
from ragmetrics.scoring.sampling.plan import Group, SamplePlan, mark_of
from ragmetrics.storage import Files
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.scripted import ScriptedJudge, a_broker

pytestmark = pytest.mark.usefixtures("without_pages")

METRICS = ["context_relevance", "context_recall"]
PRICES = {"usd_per_million_prompt_tokens": 0.4, "usd_per_million_completion_tokens": 1.6}


def sampling(server: JudgeServer, sample: dict[str, Any] | None, **more: Any) -> Settings:
    """Settings of a paid judge that is asked about a sample."""
    paid = judge_at(server) | PRICES
    return make_settings({"judge": paid, "sample": sample, **more})


def by_status(result: Result, metric: str, status: Status) -> set[str]:
    """The rows with a status."""
    return {
        record["id"]
        for record in result.records()
        if (record["metric"], record["status"]) == (metric, status.value)
    }


def test_the_judge_is_asked_about_the_sample_alone(judge_server: JudgeServer) -> None:
    """Twenty of 60 rows: two contexts and a reference each; the others are told as not sampled."""
    rows = make_rows(60, good=0.75)
    result = evaluate(rows, METRICS, settings=sampling(judge_server, {"rows": 20}))
    assert judge_server.stats()["by_path"]["/v1/chat/completions"] <= 20 * 3
    for summary in result.manifest.metrics:
        assert summary.status == {"scored": 20, "not_sampled": 40}
        assert (summary.scored, summary.questions) == (20, 20)
        assert summary.sample is not None
        assert summary.sample.rows == 60
    assert by_status(result, METRICS[0], Status.SCORED) == by_status(
        result, METRICS[1], Status.SCORED
    )
    assert result.manifest.problems == result.unscored() == []


def test_judged_rows_have_the_scores_that_a_full_run_gives(judge_server: JudgeServer) -> None:
    """The same judge by the same prompts, so they compare."""
    rows = make_rows(40, good=0.75)
    whole = evaluate(rows, METRICS, settings=sampling(judge_server, None))
    part = evaluate(rows, METRICS, settings=sampling(judge_server, {"rows": 15}))
    values = {(record["id"], record["metric"]): record["value"] for record in whole.records()}
    judged = [record for record in part.records() if record["status"] == "scored"]
    assert len(judged) == 30
    assert all(one["value"] == values[one["id"], one["metric"]] for one in judged)
    assert {one.fingerprint for one in whole.manifest.metrics} == {
        summary.fingerprint for summary in part.manifest.metrics
    }


@pytest.mark.parametrize("shards", [1, 5])
def test_the_sample_does_not_hang_on_the_shards(judge_server: JudgeServer, shards: int) -> None:
    """Nor does the mean."""
    rows = make_rows(40, good=0.75)
    once = evaluate(rows, METRICS, settings=sampling(judge_server, {"rows": 15}, shards=2))
    again = evaluate(
        rows[::-1], METRICS, settings=sampling(judge_server, {"rows": 15}, shards=shards)
    )
    for name in METRICS:
        there, here = (by_status(one, name, Status.SCORED) for one in (once, again))
        assert there == here
    means = [[one.mean for one in run.manifest.metrics] for run in (once, again)]
    assert means[0] == pytest.approx(means[1])


def test_rows_of_one_id_are_judged_one_by_one(judge_server: JudgeServer) -> None:
    """A log whose ids are those of questions costs no more than another: of 40 rows of eight
    questions ten are judged, as the estimate says, and not all that share an id with one of them.
    """
    rows = [
        row | {"id": f"question-{number % 8}", "user_input": f"What is the height of {number % 8}?"}
        for number, row in enumerate(make_rows(40, good=0.75))
    ]
    settings = sampling(judge_server, {"rows": 10}, shards=3)
    expected = estimate(rows, ["context_recall"], settings=settings)
    (one,) = evaluate(rows, ["context_recall"], settings=settings).manifest.metrics
    assert one.status == {"scored": 10, "not_sampled": 30}
    assert judge_server.stats()["requests"] == expected.total.requests == 10


def test_the_mean_is_moved_by_what_the_embedded_judge_makes_of_all_rows(
    judge_server: JudgeServer,
) -> None:
    """It sees as the judge does which towers are in the context: nearer to the mean of all rows,
    and surer of it.
    """
    rows = make_rows(300, good=0.6)
    result = evaluate(
        rows, ["context_recall"], settings=sampling(judge_server, {"rows": 50}), judge=None
    )
    (one,) = result.manifest.metrics
    assert one.sample is not None
    assert one.mean == pytest.approx(0.6, abs=0.01)
    assert None not in (one.low, one.high, one.sample.low, one.sample.high)
    assert one.sample.correlation == pytest.approx(1)
    assert (one.high or 0) - (one.low or 0) < 0.5 * ((one.sample.high or 0) - (one.sample.low or 0))
    assert result.as_json()["metrics"]["context_recall"]["sample"]["rows"] == 300


def test_segments_are_sampled_means_too(judge_server: JudgeServer) -> None:
    """Of all their rows, judged or not; strata hold the tags."""
    rows = make_rows(120, good=0.75)
    sample = {"rows": 40, "strata": ["channel"]}
    result = evaluate(rows, ["context_recall"], settings=sampling(judge_server, sample))
    found = {str(segment.segment): segment for segment in result.manifest.segments}
    assert {name: one.scored for name, one in found.items() if "channel" in name} == {
        "channel=app": 20,
        "channel=web": 20,
    }
    assert all(one.sample and one.sample.rows == 60 for one in found.values() if one.scored == 20)


def test_an_embedded_judge_scores_all_rows(judge_server: JudgeServer) -> None:
    """It costs nothing, so there is nothing to sample for."""
    settings = sampling(judge_server, {"rows": 5})
    result = evaluate(make_rows(12), METRICS, judge="lexical", settings=settings)
    assert [one.status for one in result.manifest.metrics] == [{"scored": 12}] * 2
    assert result.manifest.sample is None


def test_metrics_that_ask_nobody_are_scored_on_all_rows(judge_server: JudgeServer) -> None:
    """They cost nothing either."""
    ids: dict[str, Any] = {"retrieved_context_ids": ["a", "b"], "reference_context_ids": ["a"]}
    settings = sampling(judge_server, {"rows": 5})
    result = evaluate(make_rows(12, **ids), ["context_recall", "hit_rate"], settings=settings)
    recall, hits = result.manifest.metrics
    assert (recall.scored, hits.scored) == (5, 12)
    assert hits.sample is None


def test_rows_that_no_judge_can_score_are_told_as_such(judge_server: JudgeServer) -> None:
    """An empty question is not applicable, in the sample or not; it is nothing that is missing."""
    rows = make_rows(30)
    for row in rows[:10]:
        row["user_input"] = " "
    result = evaluate(rows, METRICS[:1], settings=sampling(judge_server, {"rows": 8}))
    (one,) = result.manifest.metrics
    assert one.status["not_applicable"] == 10
    assert one.status["scored"] + one.status["not_sampled"] == 20
    assert one.sample is not None
    assert one.sample.rows == 20


def test_embeddings_of_rows_that_are_not_judged_cost_nothing(judge_server: JudgeServer) -> None:
    """The lexical judge's are made here: the endpoint embeds the sample's questions alone."""
    settings = sampling(judge_server, {"rows": 4})
    evaluate(make_rows(30), ["response_relevancy"], settings=settings)
    asked = [text for text in judge_server.stats()["texts"] if "height of tower" in text]
    assert 0 < len({text for text in asked if text.startswith("What is the height")}) <= 4 * 4


def test_a_judge_that_fails_is_told_by_the_rows_it_was_asked_about(
    judge_server: JudgeServer,
) -> None:
    """Not by those that were not sampled: half of the sample failing is half of it."""
    judge_server.faults(fail={"500": 1.0})
    settings = sampling(judge_server, {"rows": 10})
    judge = settings.judge.model_copy(update={"retries": 0})
    settings = settings.model_copy(update={"judge": judge})
    result = evaluate(make_rows(30), METRICS[:1], settings=settings)
    (one,) = result.manifest.metrics
    assert one.status == {"judge_failed": 10, "not_sampled": 20}
    assert one.mean is None
    assert result.unscored() == METRICS[:1]


def test_a_budget_bounds_the_sample(judge_server: JudgeServer) -> None:
    """One that is enough for the sample, though not for all rows, leaves none of it out; a smaller
    one some.
    """
    rows = make_rows(60, good=0.75)
    enough = sampling(judge_server, {"rows": 20}, budget={"max_requests": 70})
    result = evaluate(rows, METRICS, settings=enough)
    assert result.manifest.budget is not None
    assert (result.manifest.budget.share, result.manifest.budget.rows_over) == (1, 0)
    small = sampling(judge_server, {"rows": 20}, budget={"max_requests": 30})
    result = evaluate(rows, METRICS, settings=small)
    status = result.manifest.metrics[0].status
    assert status["not_sampled"] == 40
    assert 0 < status["scored"] < 20
    assert status["scored"] + status["over_budget"] == 20


def test_a_panel_judges_the_sample(judge_server: JudgeServer) -> None:
    """Its votes and its aggregate; the lexical judge beside it is none of it."""
    panel = ["lexical", judge_at(judge_server)]
    settings = make_settings({"judges": panel, "sample": {"rows": 6}})
    result = evaluate(make_rows(20), METRICS[:1], settings=settings)
    (one,) = result.manifest.metrics
    assert one.status == {"scored": 6, "not_sampled": 14}
    assert [judge.scored for judge in one.judges] == [6, 6]


# What it costs


def test_a_dry_run_tells_of_the_sample_and_of_the_whole(judge_server: JudgeServer) -> None:
    """As many requests as the run then sends, and as many as it would have sent for all rows."""
    rows, settings = make_rows(40, good=0.75), sampling(judge_server, {"rows": 10})
    expected = estimate(rows, METRICS, settings=settings)
    whole = estimate(rows, METRICS, settings=sampling(judge_server, None))
    assert judge_server.stats()["requests"] == 0
    evaluate(rows, METRICS, settings=settings)
    assert judge_server.stats()["requests"] == expected.total.requests
    assert expected.whole is not None
    assert expected.whole.requests == whole.total.requests > 3 * expected.total.requests
    told = told_by(lambda console: print_estimate(console, expected))
    assert "Sample: 10 of 40 rows by Context relevance (graded)" in told
    assert f"All rows would need {whole.total.requests:,} requests" in told
    assert expected.as_json()["sample"]["groups"][0]["judged"] == 10


def test_the_table_tells_what_the_sample_cost_and_what_all_would_have(
    judge_server: JudgeServer,
) -> None:
    """Of 200 rows 50 were judged: all of them would have cost four times as much."""
    settings = sampling(judge_server, {"rows": 50})
    result = evaluate(make_rows(200, good=0.6), ["context_recall"], settings=settings)
    report = result.manifest.sample
    assert report is not None
    assert (report.judged, report.spent.requests) == (50, 50)
    assert report.whole is not None
    assert report.whole.requests == 200
    assert report.whole.usd == pytest.approx(4 * (report.spent.usd or 0), rel=0.01)
    told = told_by(lambda console: print_summary(console, result.manifest))
    assert "Sample: 50 of 200 rows judged, the others by the lexical judge alone" in told
    assert "spent: 50 requests" in told
    assert "all rows would have cost about 200 requests" in told
    assert "narrower than those of the judged rows alone: context_recall" in told


def told_by(show: Callable[[Console], None]) -> str:
    """What is printed, on one line."""
    printed = io.StringIO()
    show(make_console(file=printed, width=300))
    return " ".join(printed.getvalue().split())


# Elsewhere


def test_gates_judge_all_rows(judge_server: JudgeServer) -> None:
    """A build is promoted by what all of its questions say."""
    settings = sampling(judge_server, {"rows": 5}, metrics=METRICS)
    assert settings.samples
    assert not gate_run_settings(settings).samples


@pytest.fixture
def nightly(judge_server: JudgeServer, tmp_path: Path) -> Callable[..., Settings]:
    """Settings of a night of 30 rows, with a sample or without."""
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", make_rows(30, good=0.75))
    return lambda sample=None: sampling(
        judge_server,
        sample,
        logs=f"{tmp_path}/logs/dt={{date}}/",
        store=f"{tmp_path}/store",
        metrics=METRICS,
        alerts={"rules": [], "checks": {"canaries": 0}},
    )


def test_what_was_drawn_stands_beside_the_rows(
    nightly: Callable[..., Settings], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """The plan names the judged rows by marks, so that a retry judges the same ones."""
    settings = nightly({"rows": 10})
    first = run_night(settings, NIGHT).manifest
    (path,) = (tmp_path / "store/rows").rglob("sample.json")
    assert [len(group["marks"]) for group in json.loads(path.read_text())["groups"]] == [10, 10]
    asked = judge_server.stats()["requests"]
    again = run_night(settings, NIGHT).manifest
    assert (again.run, again.metrics) == (first.run, first.metrics)
    assert judge_server.stats()["requests"] == asked


def test_a_run_that_died_in_its_sample_goes_on_with_it(
    nightly: Callable[..., Settings], judge_server: JudgeServer
) -> None:
    """The rows that were drawn are judged, and none of them twice: but for the replies that were on
    their way, one of each of four parts, it costs what an undisturbed run does.
    """

    def killed(*_: object) -> None:
        if next(replies) > 7:
            raise MemoryError

    settings, replies = nightly({"rows": 10}).model_copy(update={"shards": 2}), count(1)
    judge = settings.judge.model_copy(update={"concurrency": 1})
    settings = settings.model_copy(update={"judge": judge})
    staged = Night(settings).stage(NIGHT)
    with pytest.raises(MemoryError):
        score_parts(settings, staged, list_parts(settings, staged), killed)
    died_after = judge_server.stats()["requests"]
    assert 7 < died_after < 20
    manifest = run_night(settings, NIGHT).manifest
    assert manifest.run == staged.ref.run
    assert [one.status for one in manifest.metrics] == [{"scored": 10, "not_sampled": 20}] * 2
    asked = judge_server.stats()["requests"]
    judge_server.reset()
    evaluate(make_rows(30, good=0.75), METRICS, settings=sampling(judge_server, {"rows": 10}))
    assert judge_server.stats()["requests"] == 30
    assert 30 <= asked <= 30 + 4


def test_a_night_that_is_judged_whole_afterwards_pays_for_the_rest_alone(
    nightly: Callable[..., Settings], judge_server: JudgeServer
) -> None:
    """It takes over no part with rows that were not judged, and finds the replies to the others.
    Sampled once more, it is the first run again.
    """
    first = run_night(nightly({"rows": 10}), NIGHT).manifest
    asked = judge_server.stats()["requests"]
    whole = run_night(nightly(), NIGHT).manifest
    assert [one.status for one in whole.metrics] == [{"scored": 30}] * 2
    assert whole.sample is None
    assert whole.usage.answered_from_store == first.usage.requests == asked
    sent = judge_server.stats()["requests"]
    again = run_night(nightly({"rows": 10}), NIGHT).manifest
    assert (again.run, again.metrics) == (first.run, first.metrics)
    assert judge_server.stats()["requests"] == sent


def test_of_a_part_that_is_missing_the_rows_of_the_sample_failed(
    nightly: Callable[..., Settings],
) -> None:
    """The others are no failures of the judge: it would not have been asked about them."""
    settings = nightly({"rows": 10}).model_copy(update={"shards": 3})
    staged = Night(settings).stage(NIGHT)
    done = [part for part in list_parts(settings, staged) if part[1] < 2]
    assert score_parts(settings, staged, done) == []
    manifest = Night(settings).publish(staged, ["no machine was left"])
    for summary in manifest.metrics:
        assert summary.status["scored"] + summary.status["judge_failed"] == 10
        assert summary.status["not_sampled"] == 20
        assert summary.sample is not None
        assert summary.sample.rows == 30


def test_few_rows_for_an_alert_are_warned_of(
    nightly: Callable[..., Settings], caplog: pytest.LogCaptureFixture
) -> None:
    """When the night begins, not when the rule says no_data."""
    rule = {"metric": "context_recall", "min": 0.5}
    alerts = make_settings({"alerts": {"rules": [rule]}}).alerts
    settings = nightly({"rows": 10}).model_copy(update={"alerts": alerts})
    run_night(settings, NIGHT)
    told = "10 rows of context_recall are judged, but its alert rule needs 20"
    assert [told in one.message for one in caplog.records if one.levelname == "WARNING"] == [True]


def test_a_night_without_logs_has_no_sample_to_fail_by(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """It is told as a night without data, like any other."""
    places = {"logs": f"{tmp_path}/logs/dt={{date}}/", "store": f"{tmp_path}/store"}
    settings = sampling(judge_server, {"half_width": 0.02, "strata": ["channel"]}, **places)
    with pytest.raises(CoverageShort, match="no log file"):
        run_night(settings, NIGHT)


def test_the_embedded_judge_lets_replies_through_between_two_rows() -> None:
    """It computes, so rows that only wait for it do it one after another: a reply that comes after
    so many turns of the event loop finds no more than so many rows done, not all of them.
    """
    turns, done_by_then = 20, list[int]()

    class Away(ScriptedJudge):
        async def reply(self, request: Ask, attempt: int) -> Reply:
            for _ in range(turns):
                await asyncio.sleep(0)
            done_by_then.append(len(computed))
            return await super().reply(request, attempt)

    async def score_all() -> list[dict[str, Score]]:
        return await asyncio.gather(*(panel.score([guessed], row) for row in rows))

    computed.clear()
    rows = [LogRow(f"row-{number}", f"When is {number}?", ()) for number in range(300)]
    marks = (mark_of(rows[0].question_key, rows[0].id),)
    embedded = make_cheap_judges(Corpus(), Files("unused"))
    plan = SamplePlan(groups=(Group(metrics=("guessed",), rows=300, judged=1, marks=marks),))
    panel = SampledPanel([Member(a_broker(Away()))], "mean", None, plan, embedded)
    scores = asyncio.run(score_all())
    assert Counter(score["guessed"].status for score in scores) == {"scored": 1, "not_sampled": 299}
    assert len(computed) == 300
    assert done_by_then == [pytest.approx(turns / 2, abs=turns / 2)]


class Said(BaseModel):
    """A verdict."""

    grade: int


UNKNOWN = Prompt("unknown", 1, Said, "Say how good it is.")  # which has no baseline


computed: list[str] = []
"""Questions that the lexical judge has looked at."""


def look(data: Mapping[str, Any], _: Lexicon) -> Said:
    """A baseline that says what it was asked."""
    computed.append(str(data["question"]))
    return Said(grade=1)


GUESSED = Prompt("guessed", 1, Said, "Say how good it is.", baseline=look)


@metric(version=1, prompts=[GUESSED], calls="1")
def guessed(row: LogRow) -> Steps[Score]:
    """What the lexical judge says too."""
    verdict = yield from ask(GUESSED, question=row.user_input)
    return Score(verdict.grade / 2)


@metric(version=1, prompts=[UNKNOWN], calls="1")
def unknown(row: LogRow) -> Steps[Score]:
    """What only an LLM can say."""
    if not row.user_input:
        return Score.not_applicable("empty question")
    verdict = yield from ask(UNKNOWN, question=row.user_input)
    return Score(verdict.grade / 2)


def test_a_metric_that_the_embedded_judge_cannot_answer_is_sampled_all_the_same() -> None:
    """By the judged rows alone: the others have no score of any judge, nor do they need one to be
    told as not applicable.
    """
    group = Group(metrics=("unknown",), rows=3, judged=0, marks=())
    judge = ScriptedJudge()
    embedded = make_cheap_judges(Corpus(), Files("unused"))
    plan = SamplePlan(groups=(group,))
    panel = SampledPanel([Member(a_broker(judge))], "mean", None, plan, embedded)
    rows = [LogRow("a", "When?", ()), LogRow("b", "", ())]
    scores = [asyncio.run(panel.score([unknown], row))["unknown"] for row in rows]
    assert [score.status for score in scores] == [Status.NOT_SAMPLED, Status.NOT_APPLICABLE]
    assert [score.cheap for score in scores] == [None, None]
    assert not judge.asked


# What its record says


def test_a_budget_that_is_too_small_for_the_sample_is_warned_of(
    nightly: Callable[..., Settings], caplog: pytest.LogCaptureFixture
) -> None:
    """It is enough for half of the questions: of the sample's 24 rows some twelve, fewer than the
    rule needs, though of all rows there are enough. The page does not count the rows that were
    never asked about among those that it let be judged.
    """
    rule = {"metric": "context_recall", "min": 0.5, "min_rows": 14}
    changed = {
        "alerts": make_settings({"alerts": {"rules": [rule]}}).alerts,
        "budget": make_settings({"budget": {"max_requests": 40}}).budget,
    }
    manifest = run_night(nightly({"rows": 24}).model_copy(update=changed), NIGHT).manifest
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert any("but alert rules need 14: they will have no_data" in one for one in told), told
    notes = find_night_status(manifest).notes
    assert manifest.budget is not None
    assert f"The budget excluded {manifest.budget.rows_over} rows of the sample." in notes


def test_an_interval_that_is_wider_than_asked_for_is_told(judge_server: JudgeServer) -> None:
    """Forty rows are too few for a half width of 0.01, and all of them are judged."""
    settings = sampling(judge_server, {"half_width": 0.01})
    manifest = evaluate(make_rows(40, good=0.5), ["context_recall"], settings=settings).manifest
    (one,) = manifest.metrics
    assert one.status == {"scored": 40}
    told = told_by(lambda console: print_summary(console, manifest))
    assert "40 of 40 rows judged" in told
    assert "wider than ±0.01: context_recall ±0.1" in told

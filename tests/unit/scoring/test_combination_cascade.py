"""A cascade of judges: a cheap judge answers what it is certain of, the next judge the rest."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rich.console import Console

import ragmetrics
from ragmetrics.cli.output.summary import print_summary
from ragmetrics.config import JudgeSettings, Settings, make_settings, with_overrides
from ragmetrics.errors import InputError, JudgeError, JudgeRefused, SettingsError, Unanswered
from ragmetrics.judges.client_base import MeteredJudge
from ragmetrics.metrics import GRADE, SUPPORT, Grade, Support, select
from ragmetrics.people import learn
from ragmetrics.people.calibration.thresholds import fit_certain_thresholds
from ragmetrics.people.calibration.units import Unit
from ragmetrics.pipeline import Result, run_night
from ragmetrics.records import Ask, LogRow, Score, Status
from ragmetrics.scoring import judge_info, plan_costs
from ragmetrics.scoring.combination import is_certain
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.panel import Panel
from ragmetrics.scoring.part import drive
from ragmetrics.storage import Files, Runs
from tests.builders import night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.scripted import ScriptedJudge, a_broker

pytestmark = pytest.mark.usefixtures("without_pages")

METRICS = ["context_relevance", "context_recall"]
GRADED = Ask(GRADE, {"question": "Why?", "context": "Because."})
CLAIMED = Ask(SUPPORT, {"question": "Why?", "contexts": ["Because."], "sentences": ["A.", "B."]})
ROW = LogRow("1", "Why is the sky blue?", ("good one", "fair one", "bad one"))
ASIDES = ["The tower is high.", "Nothing at all."]


def by_context(name: str, grades: dict[str, Any]) -> ScriptedJudge:
    """A judge that grades a context by its first word; a list has the grades of the repeats."""

    def answer(request: Ask, attempt: int) -> str:
        grade = grades[request.data["context"].split()[0]]
        number = request.repeat[-1] if request.repeat else 0
        return json.dumps({"grade": grade[number] if isinstance(grade, list) else grade})

    return ScriptedJudge(answer, name=name)


def expected(request: Ask, *distributions: tuple[float, ...]) -> Any:
    """A verdict with probabilities."""
    assert request.prompt.expect is not None
    return request.prompt.expect(distributions, request.data)


def score(*members: Member) -> Score:
    """The context_relevance of a row with three contexts, by a cascade."""

    async def main() -> Score:
        panel = Panel(members, "cascade")
        [found] = [one async for one in drive([ROW], select(["context_relevance"]), panel)]
        return found.scores["context_relevance"]

    return asyncio.run(main())


def test_the_next_judge_is_asked_only_what_the_first_is_not_certain_of() -> None:
    """Grades of 0 and 2 stand; a grade of 1 is the next judge's."""
    first = by_context("first", {"good": 2, "fair": 1, "bad": 0})
    last = by_context("last", {"good": 0, "fair": 2, "bad": 2})
    one = Member(a_broker(first))
    found = score(one, Member(a_broker(last)))
    assert found.details["grades"] == [2, 2, 0]
    assert found.details["answered_by"] == {"first": 2, "last": 1}
    assert (sum(first.asked.values()), sum(last.asked.values())) == (3, 1)
    counted = one.client.counters["context_relevance"]
    assert (counted.certain, counted.escalated) == (2, 1)


def test_repeats_that_differ_are_not_certain() -> None:
    """Of two repeats both must agree, whatever grade the first gave."""
    first = by_context("first", {"good": [2, 2], "fair": [2, 0], "bad": [0, 1]})
    last = by_context("last", {"good": 1, "fair": 1, "bad": 1})
    found = score(Member(a_broker(first), repeats=2), Member(a_broker(last)))
    assert found.details["grades"] == [2, 1, 1]


@pytest.mark.parametrize(("temperature", "asked"), [(0.0, 0), (0.5, 2)])
def test_equal_repeats_at_temperature_0_are_no_certainty(temperature: float, asked: int) -> None:
    """They are equal whatever the judge knows, so a yes or no goes to the next judge."""
    chosen = JudgeSettings(name="openai", temperature=temperature, repeats=2)
    judges = [ScriptedJudge(lambda request, attempt: '{"supported": [1, 1]}') for _ in range(2)]

    async def main() -> None:
        first = a_broker(judges[0], meter=MeteredJudge(settings=chosen))
        panel = Panel([Member(first, repeats=2), Member(a_broker(judges[1]))], "cascade")
        row = replace(ROW, reference="The sky is blue. The sea is too.")
        assert [one async for one in drive([row], select(["context_recall"]), panel)]

    asyncio.run(main())
    assert judges[0].asked.total() == asked
    assert judges[1].asked.total() == (0 if asked else 1)


def test_three_judges_stand_in_line() -> None:
    """Each is asked what all before it left."""
    judges = [
        by_context("a", {"good": 2, "fair": 1, "bad": 1}),
        by_context("b", {"good": 0, "fair": 0, "bad": 1}),
        by_context("c", {"good": 0, "fair": 2, "bad": 1}),
    ]
    found = score(*(Member(a_broker(judge)) for judge in judges))
    assert found.details["grades"] == [2, 0, 1]
    assert found.details["answered_by"] == {"a": 1, "b": 1, "c": 1}
    assert [sum(judge.asked.values()) for judge in judges] == [3, 2, 1]


def test_what_a_judge_fails_to_answer_goes_to_the_next_one_and_is_counted() -> None:
    """The row is scored; the judge that failed is named."""

    def answer(request: Ask, attempt: int) -> str:
        raise JudgeError("it is down", transient=True)

    last = by_context("last", {"good": 2, "fair": 2, "bad": 0})
    found = score(Member(a_broker(ScriptedJudge(answer, name="first"))), Member(a_broker(last)))
    assert (found.status, found.failed) == (Status.SCORED, ("first",))
    assert found.details["answered_by"] == {"last": 3}


def test_without_its_last_judge_the_run_ends() -> None:
    """Otherwise only rows of which the first judge is certain would be in the mean."""

    def refuse(request: Ask, attempt: int) -> str:
        raise JudgeRefused("wrong key")

    first = by_context("first", {"good": 2, "fair": 1, "bad": 0})
    with pytest.raises(JudgeRefused, match="wrong key"):
        score(Member(a_broker(first)), Member(a_broker(ScriptedJudge(refuse, name="last"))))


@pytest.mark.parametrize(
    ("request_", "answers", "certain"),
    [
        (GRADED, [Grade(grade=2)], True),
        (GRADED, [Grade(grade=0)], True),
        (GRADED, [Grade(grade=1)], False),
        (GRADED, [Grade(grade=2), Grade(grade=1)], False),
        (CLAIMED, [Support(supported=[1, 0]), Support(supported=[1, 0])], True),
        (CLAIMED, [Support(supported=[1, 0]), Support(supported=[1, 1])], False),
        (GRADED, [Grade(grade=2), Unanswered(Status.UNREADABLE, "no JSON")], False),
        (CLAIMED, [Support(supported=[1, 0])], False),
        (CLAIMED, [expected(CLAIMED, (0.05, 0.95), (0.96, 0.04))], True),
        (CLAIMED, [expected(CLAIMED, (0.05, 0.95), (0.94, 0.06))], False),
        (GRADED, [expected(GRADED, (0.0, 0.08, 0.92))], True),
        (GRADED, [expected(GRADED, (0.0, 1.0, 0.0))], False),
        (GRADED, [expected(GRADED, (0.1, 0.0, 0.9))], False),
    ],
)
def test_certain_is_the_same_level_at_either_end(
    request_: Ask, answers: Sequence[Any], certain: bool
) -> None:
    """With probabilities: within 0.05 of either end. A missing answer is never certain, nor is a
    single yes or no.
    """
    assert is_certain(request_, answers) is certain


# Settings


def judges(server: JudgeServer, **more: Any) -> list[dict[str, Any]]:
    """A reranker, then a language model, on one server."""
    place = {"base_url": server.base_url, "retries": 1}
    reranker = {"name": "rerank", "model": "bge", "thresholds": [0.3, 0.7], **place}
    model = {
        "name": "openai",
        "model": "large",
        "usd_per_million_prompt_tokens": 2.0,
        "usd_per_million_completion_tokens": 8.0,
        **place,
    }
    return [reranker | more, model]


def cascade(server: JudgeServer, **more: Any) -> Settings:
    """Settings with a cascade of both."""
    return make_settings({"judges": judges(server), "aggregate": "cascade", **more})


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        (["openai"], "needs two `judges`"),
        (["lexical", "openai"], "costs nothing; to use it first, set `sample: {draw: active}`"),
        (["openai", "openai"], "needs `repeats: 2` or more"),
        (
            [{"name": "openai", "repeats": 2}, {"name": "openai", "repeats": 2}],
            "no effect on the last judge",
        ),
    ],
)
def test_judges_that_cannot_be_a_cascade_are_named(panel: list[Any], message: str) -> None:
    """The error says what to set."""
    with pytest.raises(SettingsError, match=message):
        make_settings({"judges": panel, "aggregate": "cascade"})


def test_a_labelled_set_for_drift_needs_one_judge() -> None:
    """A cascade has no level on a labelled set."""
    panel = [{"name": "openai", "repeats": 2}, "openai"]
    alerts = {"drift_set": "labels.jsonl"}
    with pytest.raises(SettingsError, match="drift_set"):
        make_settings({"judges": panel, "aggregate": "cascade", "alerts": alerts})


def test_a_judge_named_on_the_command_line_replaces_the_cascade(
    judge_server: JudgeServer,
) -> None:
    """One judge is no cascade; two are checked like those of the settings."""
    settings = cascade(judge_server)
    assert with_overrides(settings, "lexical").aggregate == "mean"
    with pytest.raises(SettingsError, match="costs nothing"):
        with_overrides(settings, ["lexical", "openai"])


def test_a_metric_that_the_last_judge_cannot_score_is_refused(judge_server: JudgeServer) -> None:
    """Two rerankers score no recall, in whatever order."""
    one, _ = judges(judge_server)
    settings = make_settings({"judges": [one, one], "aggregate": "cascade", "metrics": METRICS})
    with pytest.raises(InputError, match="cannot score context_recall"):
        judge_info(settings)


def test_the_fingerprint_is_not_that_of_a_panel(judge_server: JudgeServer) -> None:
    """Scores of a cascade are compared with no others."""
    info, _ = judge_info(cascade(judge_server))
    panel, _ = judge_info(make_settings({"judges": judges(judge_server)}))
    assert info.name == "cascade of rerank:bge, openai:large"
    assert info.fingerprint != panel.fingerprint


# A night


def rows(count: int = 60) -> list[dict[str, Any]]:
    """Rows with three contexts each."""
    made = make_rows(count, good=0.6)
    return [one | {"retrieved_contexts": [*one["retrieved_contexts"], *ASIDES]} for one in made]


def scored(server: JudgeServer, **more: Any) -> Result:
    """The rows by the cascade."""
    return ragmetrics.evaluate(rows(), METRICS, settings=cascade(server, **more))


def test_a_reranker_before_a_language_model(judge_server: JudgeServer) -> None:
    """The model grades the doubtful contexts and all claims; usage and price are by judge."""
    manifest = scored(judge_server).manifest
    of = manifest.usage_by_metric["context_relevance"]
    first, last = of["rerank:bge"], of["openai:large"]
    assert first.certain > 0 and first.escalated > 0
    assert last.requests + last.shared == first.escalated
    assert "rerank:bge" not in manifest.usage_by_metric["context_recall"]
    assert last.usd is not None and first.usd is None
    assert all(metric.scored == 60 for metric in manifest.metrics)


def of_night(panel: list[Any], log: Path, folder: Path) -> Settings:
    """Settings of nights of one log, with a store in a folder."""
    return make_settings(
        {
            "judges": panel,
            "aggregate": "cascade",
            "metrics": METRICS,
            "logs": str(log),
            "store": str(folder / "store"),
        }
    )


def test_a_repeated_night_asks_for_nothing(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Whether a reranker is certain is read from its cached grade, so the same verdicts count."""
    log = write_jsonl(tmp_path / "log.jsonl", rows())
    settings = of_night(judges(judge_server), log, tmp_path)
    first = run_night(settings, NIGHT).manifest
    asked = judge_server.stats()["requests"]
    again = run_night(settings.model_copy(update={"shards": 3}), NIGHT).manifest
    assert judge_server.stats()["requests"] == asked
    assert [metric.mean for metric in again.metrics] == [metric.mean for metric in first.metrics]


def test_a_reranker_that_is_down_costs_no_row_and_is_a_finding(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """The model answers everything, which costs more: a warning says so."""
    log = write_jsonl(tmp_path / "log.jsonl", rows())
    reranker, model = judges(judge_server)
    reranker |= {"base_url": "http://127.0.0.1:9/v1", "retries": 0}
    settings = of_night([reranker, model], log, tmp_path)
    night = run_night(settings, NIGHT).manifest
    assert all(metric.scored == 60 for metric in night.metrics)
    [finding] = [finding for finding in night.findings if "judge=rerank:bge" in finding.key]
    assert (finding.level, finding.severity) == ("breach", "warning")


def test_a_mean_of_easy_rows_is_said_to_be_one(
    judge_server: JudgeServer, start_judge: Callable[[], JudgeServer]
) -> None:
    """Where the last judge answers nothing usable, only rows without a doubtful context count."""
    broken = start_judge()
    broken.faults(nonsense=True)
    reranker, model = judges(judge_server)
    panel = [reranker, model | {"base_url": broken.base_url, "reasks": 0}]
    settings = make_settings({"judges": panel, "aggregate": "cascade"})
    log = [*rows(), *(row | {"retrieved_contexts": ["Nothing."]} for row in make_rows(20))]
    for settings_, warned in ((settings, True), (cascade(judge_server), False)):
        found = ragmetrics.evaluate(log, ["context_relevance"], settings=settings_)
        console = Console(file=StringIO(), width=400)
        print_summary(console, found.manifest)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert ("the mean is one of easier rows" in text) is warned


def test_a_night_without_its_first_judge_is_no_regression(
    judge_server: JudgeServer, start_judge: Callable[[], JudgeServer], tmp_path: Path
) -> None:
    """The model grades all contexts then, and lower ones; no rule compares that with other nights,
    on that night or later."""
    reranker, model = judges(judge_server)
    first = start_judge()
    # Certain that every context answers.
    reranker |= {"thresholds": [-1.0, -1.0], "base_url": first.base_url, "retries": 0}
    rule = {"metric": "context_relevance", "max_drop": 0.05, "versus": "trailing:7"}
    night: list[Any] = []
    for number in range(5):
        when = NIGHT + timedelta(days=number)
        new = [row | {"user_input": f"{row['user_input'][:-1]} {number}?"} for row in rows()]
        write_jsonl(tmp_path / "logs" / f"{when}.jsonl", new)
        first.faults(fail={"500": 1.0} if number == 3 else {})
        settings = night_settings(
            tmp_path,
            logs="logs/{date}.jsonl",
            judges=[reranker, model],
            aggregate="cascade",
            metrics=["context_relevance"],
            rules=[rule],
        )
        night.append(run_night(settings, when).manifest)
    assert night[2].metrics[0].mean - night[3].metrics[0].mean > 0.2
    [without] = [finding for finding in night[3].findings if finding.kind == "metric"]
    [after] = [finding for finding in night[4].findings if finding.kind == "metric"]
    assert (without.level, without.drop) == ("ok", None)
    assert "not compared yet" in without.message
    assert (after.level, after.drop) == ("ok", 0.0)


def test_a_recorded_cascade_is_replayed(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Each judge from its part of the recording, with the same scores."""
    place = tmp_path / "recording.jsonl"
    settings = cascade(judge_server)
    log = write_jsonl(tmp_path / "log.jsonl", rows())
    first = ragmetrics.evaluate(str(log), METRICS, settings=settings, record=place)
    names = [f"recorded:{place}#{name}" for name in ("rerank:bge", "openai:large")]
    played = make_settings({"judges": names, "aggregate": "cascade"})
    again = ragmetrics.evaluate(str(log), METRICS, settings=played)
    assert [metric.mean for metric in again.manifest.metrics] == [
        metric.mean for metric in first.manifest.metrics
    ]


def test_a_cascade_teaches_no_learned_judge(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Its last judge gives verdicts on doubtful requests alone."""
    with pytest.raises(SettingsError, match="cheap: learned"):
        cascade(judge_server, sample={"rows": 100, "cheap": "learned"})
    with pytest.raises(InputError, match="several judges"):
        learn(cascade(judge_server), Files(str(tmp_path)))


def test_the_plan_prices_both_ways(judge_server: JudgeServer, tmp_path: Path) -> None:
    """`cascade` at what it cost, the other ways as if the last judge had given every verdict."""
    log = write_jsonl(tmp_path / "log.jsonl", rows(160))
    reranker, model = judges(judge_server)
    reranker["usd_per_million_prompt_tokens"] = 0.0
    settings = of_night([reranker, model], log, tmp_path)
    night = run_night(settings, NIGHT).manifest
    plan = plan_costs(Runs(Files(settings.store)).nights(last=7), 0.1)
    graded, claimed = plan.metrics
    ways = {way.name: way for way in graded.ways}
    of = night.usage_by_metric["context_relevance"]["rerank:bge"]
    left = of.escalated / (of.certain + of.escalated)
    cheap, plain = ways["cascade"], ways["plain sample"]
    assert cheap.usd is not None and plain.usd is not None and cheap.rows == plain.rows
    assert cheap.usd == pytest.approx(plain.usd * left)
    alone = {way.name: way for way in claimed.ways}  # only the model can score it
    assert alone["cascade"].usd == pytest.approx(alone["plain sample"].usd)
    assert plan.cheapest_sample is None or plan.cheapest_sample.name != "cascade"


def test_an_estimate_takes_the_judges_for_as_certain_as_last_night(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Without such a night they count as certain of nothing; cached grades are read as they are. A
    claim costs no request of the reranker, which cannot judge it."""
    store = str(tmp_path / "store")
    settings = of_night(judges(judge_server), write_jsonl(tmp_path / "1.jsonl", rows()), tmp_path)
    before = ragmetrics.estimate(rows(), METRICS, settings=settings, store=store)
    night = run_night(settings, NIGHT).manifest
    assert before.at_most
    assert before.total.requests > night.usage.requests
    claims = before.by_metric["context_recall"]["openai:large"]
    assert claims.requests == night.usage_by_metric["context_recall"]["openai:large"].requests
    assert "rerank:bge" not in before.by_metric["context_recall"]

    other = [row | {"user_input": f"{row['user_input'][:-1]} today?"} for row in rows()]
    after = ragmetrics.estimate(other, METRICS, settings=settings, store=store)
    asked = ragmetrics.evaluate(other, METRICS, settings=settings).manifest.usage
    assert not after.at_most and after.about
    assert after.total.requests == pytest.approx(asked.requests, rel=0.1)
    again = ragmetrics.estimate(rows(), METRICS, settings=settings, store=store)
    assert again.total.requests == 0 and not again.at_most


@pytest.mark.pages
def test_the_page_of_rows_says_which_judge_answered(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Under each metric, a line for each judge with the number of its verdicts."""
    log = write_jsonl(tmp_path / "log.jsonl", rows())
    settings = of_night(judges(judge_server), log, tmp_path)
    run_night(settings, NIGHT)
    page = (tmp_path / "store" / "dashboard" / str(NIGHT) / "rows.html").read_text("utf-8")
    assert "<bdi>rerank:bge</bdi>" in page and "3 verdicts</bdi>" in page
    assert "<bdi>openai:large</bdi>" in page and "<bdi>1 verdict</bdi>" in page


# Thresholds


def unit(strength: float, label: float) -> Unit:
    """A labelled context with its score."""
    return Unit("1", "q", "0", "c", label, None, strength=strength)


def test_thresholds_enclose_the_doubtful_scores() -> None:
    """Scores below 0.3 are always bad and those from 0.7 on always good; between, both occur."""
    units = [unit(place / 1000, 0.0) for place in range(300)]
    units += [unit(place / 1000, float(place % 2)) for place in range(300, 700)]
    units += [unit(place / 1000, 1.0) for place in range(700, 1000)]
    found = fit_certain_thresholds(units)
    assert found is not None
    assert found.thresholds == pytest.approx((0.31, 0.69), abs=0.015)
    assert found.certain == pytest.approx(0.62, abs=0.03)


def test_scores_that_say_nothing_have_none() -> None:
    """Nor have so few that chance may explain that all are good."""
    assert fit_certain_thresholds([unit(n, float(n % 2)) for n in range(200)]) is None
    bad = [unit(-n - 1, 0.0) for n in range(29)]
    assert fit_certain_thresholds([*bad, *(unit(n, 1.0) for n in range(58))]) is None
    assert fit_certain_thresholds([*bad, *(unit(n, 1.0) for n in range(59))]) is not None


@pytest.mark.parametrize("usual", [0.0, 1.0])
def test_one_grade_for_all_is_never_certain(usual: float) -> None:
    """Where nearly all labels are equal, few grades would be wrong, and no night would differ."""
    side = 1.0 if usual else -1.0
    units = [unit(side * (n + 1), usual) for n in range(970)]
    assert fit_certain_thresholds(units) is None
    rare = [unit(-side * (n + 1), 1 - usual) for n in range(30)]
    found = fit_certain_thresholds([*units, *rare])
    assert found is not None
    low, high = found.thresholds
    strengths = [one.strength or 0.0 for one in rare]
    assert not any(strength >= high if usual else strength < low for strength in strengths)


@given(
    st.lists(
        st.tuples(st.floats(-20, 20), st.sampled_from([0.0, 0.5, 1.0])), min_size=59, max_size=200
    )
)
def test_at_most_one_in_twenty_certain_grades_is_wrong(pairs: list[tuple[float, float]]) -> None:
    """On the labels that they were fitted to, unless both ends meet."""
    found = fit_certain_thresholds([unit(*pair) for pair in pairs])
    if found is None:
        return
    low, high = found.thresholds
    assert low <= high
    below = [label > 0 for strength, label in pairs if strength < low]
    above = [label < 1 for strength, label in pairs if strength >= high]
    if low < high:
        assert sum(below) <= 0.05 * len(below)
        assert sum(above) <= 0.05 * len(above)

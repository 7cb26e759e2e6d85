"""`ragmetrics plan`: what a night cost, and what its intervals would cost by other ways."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from typer.testing import CliRunner

from ragmetrics.cli.app import app
from ragmetrics.cli.output.plan import print_plan
from ragmetrics.cli.table import make_console
from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline import run_night
from ragmetrics.records import Manifest, SampledMean, SampleReport, Usage
from ragmetrics.scoring import CostPlan, cost_plan, plan_costs
from ragmetrics.scoring.cost_plan import DECISIONS, Way
from ragmetrics.scoring.row_costs import usd_by_decisions
from ragmetrics.scoring.sampling.prediction_powered import rows_to_judge
from ragmetrics.scoring.sampling.sample_size import FEWEST, known
from ragmetrics.storage import Files, Runs, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import night, summary
from tests.fakes.page_writing import write_overview

PRICES = {"usd_per_million_prompt_tokens": 0.4, "usd_per_million_completion_tokens": 1.6}
METRICS = ["context_relevance", "context_precision", "context_recall"]
ROWS = 160


def settings_of(folder: Path, server: JudgeServer, **more: Any) -> Settings:
    """A paid judge, and a store in a folder."""
    judge = judge_at(server) | PRICES | more.pop("judge", {})
    return make_settings(
        night_values(folder, logs="logs/{date}.jsonl", metrics=METRICS, judge=judge) | more
    )


def run(folder: Path, server: JudgeServer, day: int = 0, again: bool = False, **more: Any) -> None:
    """One night; `again`: with the rows of the first night."""
    when: date = NIGHT + timedelta(days=day)
    rows = make_rows(ROWS, good=0.6)
    if not again:
        rows = [row | {"user_input": f"{row['user_input'][:-1]} on day {day}?"} for row in rows]
    write_jsonl(folder / "logs" / f"{when}.jsonl", rows)
    run_night(settings_of(folder, server, **more), when)


def read(folder: Path, **more: Any) -> CostPlan:
    """The plan from the store in a folder."""
    files = Files(str(folder / "store"))
    return plan_costs(Runs(files).nights(last=7), **more)


def ways(plan: CostPlan, metric: str) -> dict[str, Way]:
    """The ways of a metric by name."""
    (found,) = (one for one in plan.metrics if one.metric == metric)
    return {way.name: way for way in found.ways}


def test_one_whole_night_prices_all_rows_and_a_plain_sample(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """What needs other nights is said; a metric with verdicts of another one costs nothing."""
    run(tmp_path, judge_server)
    plan = read(tmp_path, half_width=0.1)
    (newest,) = Runs(Files(str(tmp_path / "store"))).nights()
    found = ways(plan, "context_recall")
    usage = sum(newest.usage_by_metric["context_recall"].values(), Usage())
    assert plan.usd == newest.usage.usd
    assert found["all rows"].usd == pytest.approx(usage.usd)
    plain = found["plain sample"]
    assert plain.rows is not None and 100 <= plain.rows < ROWS
    assert plain.usd == pytest.approx((usage.usd or 0) * plain.rows / ROWS)
    assert found["prediction-powered"].needs == "a night with `sample:`, drawn uniformly"
    assert found["learned judge"].needs.startswith("a learned judge that is used (`ragmetrics lear")
    assert found["active sampling"].needs == "a night with `sample: {draw: active}`"
    assert plan.free == ("context_precision",)
    assert plan.total("all rows") == pytest.approx(plan.usd)
    assert plan.total("learned judge") is None


def test_a_learned_judge_is_planned_before_a_night_uses_it(
    tmp_path: Path, judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the correlation r of its row scores: it needs 1 - r^2 of the rows of a plain sample."""
    run(tmp_path, judge_server)
    fitted = {"context_recall": 0.6}
    monkeypatch.setattr(cost_plan, "learned_correlations", lambda settings, files: fitted)
    chosen = settings_of(tmp_path, judge_server)
    plan = read(tmp_path, half_width=0.085, settings=chosen, files=Files(chosen.store))
    found, other = ways(plan, "context_recall"), ways(plan, "context_relevance")
    (newest,) = Runs(Files(str(tmp_path / "store"))).nights()
    spread = known([one for one in newest.metrics if one.metric == "context_recall"]).spread
    assert found["learned judge"].rows == max(rows_to_judge(0.085, spread, 0.6, ROWS), FEWEST)
    assert (found["learned judge"].rows or 0) < (found["plain sample"].rows or 0)
    assert other["learned judge"].rows is None


def test_sampled_nights_price_the_sample_of_both_judges(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """By their standard deviation and correlation; dollars per row are those of judged rows."""
    for day in range(2):
        run(tmp_path, judge_server, day, sample={"rows": 120})
    plan = read(tmp_path, half_width=0.09)
    found = ways(plan, "context_relevance")
    plain, powered = found["plain sample"], found["prediction-powered"]
    assert plain.rows and powered.rows and powered.rows <= plain.rows <= ROWS
    assert plan.metrics[0].judged == 120 and plan.metrics[0].rows == ROWS
    last = plan.metrics[0].usd or 0
    assert found["all rows"].usd == pytest.approx(last / 120 * ROWS, rel=0.05)


def test_a_night_without_a_price_takes_that_of_the_settings(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Else money is not known, and what is needed is said; rows are known either way."""
    unpriced = dict.fromkeys(PRICES)
    run(tmp_path, judge_server, judge=unpriced)
    plan = read(tmp_path)
    found = ways(plan, "context_recall")["all rows"]
    assert plan.usd is None and found.usd is None and found.rows == ROWS
    assert found.needs.startswith("prices of the judge")
    priced = read(tmp_path, settings=settings_of(tmp_path, judge_server))
    assert priced.usd and ways(priced, "context_recall")["all rows"].usd
    assert priced.total("all rows") == pytest.approx(priced.usd)


def test_prices_of_a_batch_are_its_own(judge_server: JudgeServer, tmp_path: Path) -> None:
    """Half of those of single requests, if the settings say so."""

    def usd(name: str, factor: float) -> float | None:
        prices = {key: value * factor for key, value in PRICES.items()}
        chosen = settings_of(tmp_path, judge_server, judge={"name": name, **prices})
        usage = Usage(requests=93, prompt_tokens=9_000)
        asked = {"context_recall": {"openai:gpt-6-luna": usage}}
        one = night(usage=usage, usage_by_metric=asked)
        return plan_costs([one], settings=chosen).usd

    single, batch = usd("openai", 1), usd("openai-batch", 0.5)
    assert single == pytest.approx(0.0036) and batch == pytest.approx(0.0018)


def test_verdicts_from_the_store_are_no_price(tmp_path: Path, judge_server: JudgeServer) -> None:
    """A night that asked nobody cost nothing, and says nothing of what new rows cost."""
    run(tmp_path, judge_server, again=True)
    first = read(tmp_path)
    run(tmp_path, judge_server, day=1, again=True)
    both = read(tmp_path)
    assert both.usd == 0.0
    assert ways(both, "context_recall")["all rows"].usd == pytest.approx(
        ways(first, "context_recall")["all rows"].usd
    )
    files = Files(str(tmp_path / "store"))
    alone = plan_costs(Runs(files).nights(last=1))
    assert ways(alone, "context_recall")["all rows"].needs == (
        "a night whose verdicts are not all in the store already"
    )


def sampled_night(number: int, half: float, **report: Any) -> Manifest:
    """A night whose sample of 400 rows gave an interval of this half width."""
    mean = SampledMean(
        rows=9_000, mean=0.7, low=0.66, high=0.74, weight=0.9, spread=0.4, correlation=0.8
    )
    usage = {"openai:a": Usage(requests=400, prompt_tokens=40_000, usd=0.2)}
    one = summary("context_recall", 0.7, judge="openai:a", low=0.7 - half, high=0.7 + half)
    one = one.model_copy(update={"sample": mean, "status": {"scored": 400, "not_sampled": 8_600}})
    return night(
        number,
        metrics=[one],
        usage=usage["openai:a"],
        usage_by_metric={"context_recall": usage},
        sample=SampleReport(
            rows=400, half_width=None, judged=400, spent=usage["openai:a"], whole=None, **report
        ),
    )


def test_each_kind_of_sample_prices_its_own_way() -> None:
    """The learned judge by its correlation, active sampling by the intervals that it gave."""
    uniform = ways(plan_costs([sampled_night(0, 0.03)]), "context_recall")
    learned = ways(plan_costs([sampled_night(0, 0.03, learned=True)]), "context_recall")
    active = ways(plan_costs([sampled_night(0, 0.03, draw="active")]), "context_recall")
    wanted = rows_to_judge(0.02, 0.4, 0.8, 9_000)
    assert uniform["prediction-powered"].rows == wanted == learned["learned judge"].rows
    assert learned["prediction-powered"].needs and uniform["learned judge"].needs
    rows = active["active sampling"].rows
    assert rows == pytest.approx(400 * (0.03 / 0.02) ** 2, abs=1)
    assert active["active sampling"].usd == pytest.approx((rows or 0) * 0.2 / 400)
    assert active["prediction-powered"].needs


@given(half=st.floats(0.001, 0.5), wanted=st.floats(0.001, 0.99), learned=st.booleans())
def test_no_way_judges_more_rows_than_there_are(half: float, wanted: float, learned: bool) -> None:
    """Whatever the data; both judges together never need more rows than one alone."""
    plan = plan_costs([sampled_night(0, half, learned=learned)], wanted)
    found = ways(plan, "context_recall")
    assert all(one.rows is None or 100 <= one.rows <= 9_000 for one in found.values())
    both = found["learned judge" if learned else "prediction-powered"].rows
    plain = found["plain sample"].rows
    assert both is not None and plain is not None and both <= plain
    cheapest = plan.cheapest_sample
    assert cheapest is None or (cheapest.usd or 0) <= (found["all rows"].usd or 0)


def test_where_all_rows_are_too_few_the_interval_says_so() -> None:
    """A half width that no number of rows gives is not promised."""
    plan = plan_costs([sampled_night(0, 0.03)], half_width=0.001)
    found = ways(plan, "context_recall")["plain sample"]
    assert found.rows == 9_000 and found.half_width == pytest.approx(1.96 * 0.4 / 9_000**0.5)
    assert plan.cheapest_sample is None


def test_what_cannot_be_planned_is_an_error_or_said() -> None:
    """No night, no interval, no sensible half width, no paid judge."""
    with pytest.raises(InputError, match="no night is published yet"):
        plan_costs([])
    with pytest.raises(InputError, match="half width"):
        plan_costs([night()], 1.5)
    assert plan_costs([night()]).metrics == ()
    usage = {"openai:a": Usage(requests=3, prompt_tokens=40, usd=0.2)}
    bare = summary("context_recall", 0.7, low=None, high=None)
    one = night(metrics=[bare], usage_by_metric={"context_recall": usage})
    found = ways(plan_costs([one]), "context_recall")
    assert found["plain sample"].needs == "a night with an interval of the mean"
    assert found["all rows"].rows is not None and not found["all rows"].needs


def test_the_command_prints_a_table_of_80_columns_or_one_object(
    tmp_path: Path, judge_server: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the sums of all metrics, and a sentence for what is not known."""
    run(tmp_path, judge_server)
    store = str(tmp_path / "store")
    found = CliRunner().invoke(app, ["plan", store, "--half-width", "0.1", "--json"])
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["half_width"] == 0.1 and told["night"] == str(NIGHT)
    assert told["totals"]["all rows"] == pytest.approx(told["usd"])
    assert told["totals"]["active sampling"] is None
    capsys.readouterr()
    print_plan(make_console(width=80), read(tmp_path, half_width=0.1))
    text = capsys.readouterr().out
    assert "Night of 2026-11-19: $" in text and "all metrics" in text
    assert "prediction-powered: not known yet: needs a night with `sample:`" in text
    assert max(map(len, text.split("prediction-powered: not")[0].splitlines())) <= 80


def test_the_first_page_says_what_the_night_cost_and_what_a_sample_would(tmp_path: Path) -> None:
    """With a price; a store without one says nothing of money there."""

    def page(*found: Manifest) -> str:
        write_overview(Files(str(tmp_path)), found)
        return (tmp_path / "index.html").read_text("utf-8")

    whole = sampled_night(0, 0.01)
    status = {"scored": 9_000}
    dear = Usage(requests=9_000, prompt_tokens=900_000, usd=4.5)
    whole = whole.model_copy(
        update={
            "metrics": [whole.metrics[0].model_copy(update={"status": status, "sample": None})],
            "usage": dear,
            "usage_by_metric": {"context_recall": {"openai:a": dear}},
            "sample": None,
        }
    )
    told = page(whole)
    assert "<b>$4.50</b> last night" in told and "would give ±0.02 by a" in told
    assert "</b> last night" not in page(night()) and "for the night" not in page(night())


def test_an_empty_store_is_an_error(tmp_path: Path) -> None:
    """Exit code 2, with a sentence."""
    found = CliRunner().invoke(app, ["plan", str(tmp_path / "none")])
    assert found.exit_code != 0
    files = open_store(make_settings({"store": str(tmp_path / "none")}))
    with pytest.raises(InputError, match="no night"):
        plan_costs(Runs(files).nights())


def test_the_price_of_decisions_is_that_of_nights_they_judged(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """All rows; what a row cost on these nights, whatever judged the others."""
    place = {"name": "decision", "model": "luna", "usd_per_million_prompt_tokens": 0.1}
    run(tmp_path, judge_server, day=0)
    before = {one.metric: one for one in read(tmp_path).metrics}
    way = next(one for one in before["context_relevance"].ways if one.name == DECISIONS)
    assert (way.rows, way.usd, way.needs) == (ROWS, None, "a night with `judge: decision`")
    run(tmp_path, judge_server, day=1, judge=place)
    paid = Runs(Files(str(tmp_path / "store"))).nights(last=1)[-1].usage.usd
    run(tmp_path, judge_server, day=2)
    assert read(tmp_path).total(DECISIONS) == pytest.approx(paid, rel=0.02)


def test_a_night_of_canaries_alone_has_no_price_of_decisions(
    judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Its verdicts were in the store: they would seem to cost nothing."""
    place = {"name": "decision", "model": "luna", "usd_per_million_prompt_tokens": 0.1}
    run(tmp_path, judge_server, day=0, judge=place)
    decided = Runs(Files(str(tmp_path / "store"))).nights(last=1)[-1]
    asked = {"canaries": {decided.judge.name: Usage(requests=15)}}
    silent = decided.model_copy(update={"usage_by_metric": asked})
    assert usd_by_decisions([silent], "context_relevance") == "a night with `judge: decision`"
    assert isinstance(usd_by_decisions([decided, silent], "context_relevance"), float)

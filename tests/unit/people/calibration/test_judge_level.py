"""The judge's level on a fixed labelled set: what it explains of a drop, and what it does not."""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import load_settings, make_settings
from ragmetrics.dashboard.trend_figure import trend_figure
from ragmetrics.dashboard.trends import trends
from ragmetrics.errors import InputError
from ragmetrics.people import fixed_sets, judge_drift_set, load_calibrations
from ragmetrics.records.judging import Usage
from ragmetrics.rules.corrections import subtract_drift
from ragmetrics.stats import Drop, compare
from ragmetrics.storage import Runs, open_store
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.drifting import FIRST, Nights, of_kind
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import write_jsonl

RELEVANCE = {"metric": "context_relevance", "max_drop": 0.05, "versus": "trailing:7"}
PRECISION = {"metric": "context_precision", "max_drop": 0.05, "versus": "trailing:7"}
NOW = datetime(2026, 11, 11, 2, tzinfo=UTC)


Make = Callable[..., Nights]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, judge_process: JudgeServer) -> Path:
    """Three nights on which nothing changed, and nothing was told."""
    judge_process.reset()
    folder = tmp_path_factory.mktemp("calm")
    made = Nights(folder, judge_process, [RELEVANCE, PRECISION])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "testing")
        for _ in range(3):
            night = made.run()
            assert all(finding.level == "ok" for finding in night.findings), night.findings
    return folder


@pytest.fixture
def after(tmp_path: Path, calm: Path, judge_server: JudgeServer) -> Make:
    """The nights after those, with rules of their own."""
    shutil.copytree(calm, tmp_path, dirs_exist_ok=True)
    return lambda *rules: Nights(tmp_path, judge_server, list(rules), begun=3)


def fixed(tmp_path: Path, judge: JudgeServer, **alerts: Any) -> Any:
    """Settings with a labelled set of thirty rows for the nightly."""
    path = write_jsonl(tmp_path / "fixed.jsonl", make_labelled(30))
    return make_settings(
        {
            "store": str(tmp_path / "store"),
            "judge": judge_at(judge),
            "alerts": {"drift_set": str(path), **alerts},
        }
    )


# What is told


def test_a_drifted_judge_is_told_and_no_metric_alert_fires(after: Make) -> None:
    """Retrieval is as it was, and the judge grades lower by 0.1: the alert says judge drift."""
    night = after(RELEVANCE, PRECISION).run(strict=True)
    (level,) = [one for one in of_kind(night, "judge_drift") if one.key.endswith("/level")]
    assert (level.level, level.state, level.transition) == ("breach", "firing", "fired")
    assert "context_relevance fell by 0.1" in level.message
    assert "it explains at least part of the drop of context_relevance" in level.message
    relevance, precision = of_kind(night, "metric")
    assert (relevance.level, relevance.state) == ("ok", "ok")
    assert relevance.drop is not None
    assert relevance.drop > 0.05
    assert relevance.explained == pytest.approx(0.1, abs=0.04)
    assert "judge drift explains 0." in relevance.message
    assert precision.state == "ok"


def test_both_at_once_are_both_told(after: Make) -> None:
    """A drop beyond what the judge explains fires, and says how much of it is the judge's."""
    made = after(RELEVANCE)
    night = made.run(strict=True, lost=0.5)
    fired = {finding.kind for finding in night.findings if finding.transition == "fired"}
    assert {"judge_drift", "metric"} <= fired
    (relevance,) = of_kind(night, "metric")
    assert relevance.explained == pytest.approx(0.1, abs=0.04)
    assert "remains" in relevance.message


def test_a_drop_by_an_unchanged_judge_fires_alone(after: Make) -> None:
    """The judge's level is known and did not move: nothing is explained."""
    made = after(RELEVANCE)
    night = made.run(lost=0.3)
    (relevance,) = of_kind(night, "metric")
    assert (relevance.state, relevance.explained) == ("firing", None)
    assert all(one.level == "ok" for one in of_kind(night, "judge_drift"))


def test_a_fall_that_no_rule_watches_is_none_by_the_judge_alone(after: Make) -> None:
    """The headline does not say that retrieval got worse, until it did; the judge's part is off."""
    made = after()
    assert made.run(strict=True).falls == []
    (fall,) = (
        fall for fall in made.run(strict=True, lost=0.5).falls if fall.metric == RELEVANCE["metric"]
    )
    assert fall.before - fall.now - fall.drop == pytest.approx(0.1, abs=0.04)


def test_a_mean_that_fell_below_its_line_by_the_judge_alone_is_fine(
    after: Make,
) -> None:
    """A `min` rule is held against the mean as it were without the drift."""
    made = after({"metric": "context_relevance", "min": 0.45})
    (drifted,) = of_kind(made.run(strict=True), "metric")
    assert drifted.mean is not None
    assert drifted.mean < 0.45
    assert drifted.level == "ok"
    assert drifted.explained == pytest.approx(0.1, abs=0.04)


def test_without_the_set_judged_tonight_nothing_is_explained(after: Make) -> None:
    """The metric fires, for it may have fallen; and a warning says what is missing."""
    made = after(RELEVANCE)
    night = made.run(strict=True, judged=False)
    (relevance,) = of_kind(night, "metric")
    assert relevance.state == "firing"
    level = next(one for one in of_kind(night, "judge_drift") if one.key.endswith("/level"))
    assert (level.level, level.severity) == ("no_data", "warning")
    assert "not judged" in level.message


def test_a_judge_that_failed_on_the_set_alone_silences_no_rule(
    after: Make, judge_server: JudgeServer
) -> None:
    """It gave no verdict on the set, and all on the night's rows: what fell fires."""
    made = after(RELEVANCE)
    day = FIRST + timedelta(days=3)
    now = datetime.combine(day, datetime.min.time(), UTC) + timedelta(days=1, hours=2)
    judge_server.faults(fail={"malformed": 1.0})
    assert judge_drift_set(made.settings, open_store(made.settings), now) is not None
    judge_server.reset()
    night = made.run(lost=0.3, judged=False)
    assert {one.level for one in of_kind(night, "judge_drift")} == {"no_data"}
    (relevance,) = of_kind(night, "metric")
    assert (relevance.state, relevance.explained) == ("firing", None)


def test_verdicts_from_the_store_do_not_drift(after: Make) -> None:
    """Where all of a night's replies were kept ones, the judge of today explains nothing."""
    from ragmetrics.rules.judge_movement import fresh_share

    night = after(RELEVANCE).run()
    assert fresh_share(night, "context_relevance") == 1
    kept = {"openai:gpt-6-luna": Usage(requests=20, answered_from_store=60)}
    same = night.model_copy(update={"usage_by_metric": {"context_relevance": kept}})
    assert fresh_share(same, "context_relevance") == 0.25
    assert fresh_share(same, "context_precision") == 0.25, "it reuses the grades"
    fused = {"context_recall + context_relevance": kept}
    both = night.model_copy(update={"usage_by_metric": fused})
    assert fresh_share(both, "context_relevance") == 0.25
    nothing = night.model_copy(update={"usage_by_metric": {}})
    assert fresh_share(nothing, "context_relevance") == 1, "of a judge on this machine"


def test_the_set_tells_the_steps_from_night_to_night(after: Make) -> None:
    """By them it is estimated how far the judge moves anyway; a judge that is as it was steps 0."""
    made = after(RELEVANCE)
    made.run(strict=True)
    files = open_store(made.settings)
    sets = fixed_sets(made.settings, files, load_calibrations(files))
    assert sets is not None
    found = list(sets.steps("context_relevance", Runs(files).nights()))
    assert [day for day, _ in found] == [FIRST + timedelta(number) for number in (1, 2, 3)]
    assert [step.difference for _, step in found] == pytest.approx([0, 0, -0.1], abs=0.04)
    assert found[0][1].difference == 0
    assert list(sets.steps("hit_rate", Runs(files).nights())) == []


def test_the_trend_is_marked_where_the_judge_moved(after: Make) -> None:
    """A dotted line on the night of the drift, in the metrics that it is about."""
    made = after(RELEVANCE)
    for _ in range(2):
        made.run(strict=True)
    shown = {trend.metric: trend for trend in trends(Runs(open_store(made.settings)).nights())}
    marked = [point.drifted for point in shown["context_relevance"].points]
    assert marked == [False, False, False, True, False]
    labels = [
        note["text"] for note in trend_figure(shown["context_relevance"])["layout"]["annotations"]
    ]
    assert labels == ["judge drift"]


# The nightly's own calibration


def test_the_set_is_judged_afresh_each_day_and_once(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """The same day asks nothing again; the next asks all of it anew, of no kept reply."""
    settings = fixed(tmp_path, judge_server)
    files = open_store(settings)
    asked = []
    for now in (NOW, NOW + timedelta(hours=3), NOW + timedelta(days=1)):
        judge_server.reset()
        assert judge_drift_set(settings, files, now) is None
        asked.append(judge_server.stats()["requests"])
    assert asked[0] == asked[2] > 0
    assert asked[1] == 0
    assert len(load_calibrations(files, name="fixed")) == 2


def test_only_so_many_rows_and_the_metrics_of_the_night_are_judged(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """It costs a few dozen requests."""
    settings = fixed(tmp_path, judge_server, drift_rows=20)
    settings = settings.model_copy(update={"metrics": ("context_precision",)})
    assert judge_drift_set(settings, open_store(settings), NOW) is None
    assert judge_server.stats()["requests"] == 20 * 2, "a grade for each context"
    (found,) = load_calibrations(open_store(settings))
    assert [metric.metric for metric in found.metrics] == ["context_relevance"]


def test_a_judge_that_refuses_costs_the_night_nothing(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Why the set was not judged is told, and the night goes on."""
    judge_server.faults(api_key="another")
    problem = judge_drift_set(fixed(tmp_path, judge_server), open_store(make_settings({})), NOW)
    assert problem is not None
    assert problem.startswith("labelled set fixed for judge drift: ")


def test_a_set_for_metrics_that_are_not_scored_is_a_mistake(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """In the settings, so it is told at once."""
    settings = fixed(tmp_path, judge_server).model_copy(update={"metrics": ("hit_rate",)})
    with pytest.raises(InputError, match="drift_set: none of the metrics"):
        judge_drift_set(settings, open_store(settings), NOW)


def test_a_batch_judge_is_asked_live(tmp_path: Path, judge_server: JudgeServer) -> None:
    """The night's alerts do not wait for a batch; the model is the same."""
    settings = fixed(tmp_path, judge_server)
    batch = settings.judge.model_copy(update={"name": "openai-batch"})
    assert (
        judge_drift_set(settings.model_copy(update={"judge": batch}), open_store(settings), NOW)
        is None
    )
    assert judge_server.stats()["by_path"].keys() == {"/v1/chat/completions"}


def test_the_set_stands_beside_the_settings(tmp_path: Path) -> None:
    """As other relative paths do."""
    path = tmp_path / "ragmetrics.yaml"
    path.write_text("alerts: {drift_set: fixed.jsonl}\n")
    assert load_settings(path).alerts.drift_set == str(tmp_path / "fixed.jsonl")


# What is left of a drop


def drop_of(noise: random.Random, by: float, questions: int, spread: float) -> Drop:
    """A drop over questions whose scores move by chance, too."""
    before = {f"q{i}": [noise.gauss(0.6, 0.2)] for i in range(questions)}
    now = {q: [value - by + noise.gauss(0, spread)] for q, (value,) in before.items()}
    found = compare(before, now)
    assert found is not None
    return found


@pytest.mark.parametrize(("retrieval", "least", "most"), [(0.0, 0, 6), (0.1, 285, 300)])
def test_what_is_left_is_found_as_often_as_it_is_there(
    retrieval: float, least: int, most: int
) -> None:
    """In 300 nights with a drift of 0.1: without another drop at most 2% fire at a chance of 1%,
    with one of 0.1 at least 95%, at `max_drop: 0.03`."""
    noise, fired = random.Random(7), 0
    for _ in range(300):
        drop = drop_of(noise, 0.1 + retrieval, 200, 0.2)
        left = subtract_drift(drop, drop_of(noise, 0.1, 50, 0.1))
        fired += left.drop > 0.03 and left.p_value < 0.01
    assert least <= fired <= most


def test_the_variance_of_what_is_left_is_the_sum_of_both() -> None:
    """And a share of the verdicts has that share of the move, and its variance with the square."""
    noise = random.Random(3)
    drop, move = drop_of(noise, 0.2, 200, 0.2), drop_of(noise, 0.1, 50, 0.1)
    wide, narrow = subtract_drift(drop, move), subtract_drift(drop, move, 0.5)
    assert wide.drop == pytest.approx(drop.drop - move.drop)
    assert narrow.drop == pytest.approx(drop.drop - move.drop / 2)
    assert drop.high - drop.low < narrow.high - narrow.low < wide.high - wide.low
    assert subtract_drift(drop, move, 0.0).p_value >= drop.p_value


def test_an_interval_that_ends_at_1_makes_nothing_surer() -> None:
    """p of what is left rests on the standard errors, not on intervals cut at -1 and 1."""
    noise = random.Random(3)
    drop, move = drop_of(noise, 0.2, 200, 0.2), drop_of(noise, 0.1, 50, 0.1)
    cut = subtract_drift(drop, replace(move, low=move.drop - 1e-6, high=move.drop + 1e-6))
    assert cut.p_value == subtract_drift(drop, move).p_value
    assert cut.error == pytest.approx(math.hypot(drop.error, move.error))
    assert (cut.low, cut.high) == pytest.approx((drop.low - move.drop, drop.high - move.drop))

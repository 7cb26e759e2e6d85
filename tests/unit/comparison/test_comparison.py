"""Comparing two sides: the numbers, what a side may be, and what is refused."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

import ragmetrics
from ragmetrics.comparison import run_gate
from ragmetrics.comparison.comparison import control, measure as measure_aligned
from ragmetrics.comparison.sides import align_rows
from ragmetrics.config import Settings
from ragmetrics.errors import InputError, RagmetricsError
from ragmetrics.pipeline import run_night
from ragmetrics.records import Comparison, IndexBuild, MetricChange
from ragmetrics.scoring import MetricScores
from ragmetrics.stats.comparisons import align
from tests.fakes.build_logs import METRICS, damaged, gate_settings, golden, healthy, write_build
from tests.fakes.logs import make_rows, write_jsonl

NIGHTS = (date(2026, 11, 18), date(2026, 11, 19))
ROWS = golden(80)
VALUES = st.floats(0, 1).map(lambda value: round(value, 6))
SIDE = st.dictionaries(
    st.integers(0, 40).map("q{:02}".format), st.lists(VALUES, min_size=1, max_size=3), min_size=2
)


Questions = dict[str, list[float]]


def measure(
    metric: str, a: Questions, b: Questions, *, higher_is_better: bool = True
) -> MetricChange:
    """The change of a metric between the values of each question's rows."""
    return measure_aligned(metric, *align(a, b), higher_is_better=higher_is_better)


def furthest(
    a: Questions, b: Questions, count: int, *, higher_is_better: bool = True
) -> list[tuple[str, float, float]]:
    """The questions that moved furthest, with their means."""
    one = align_rows(scores(a, higher_is_better), scores(b, higher_is_better))
    return [(one.questions[at], one.a[at], one.b[at]) for at in one.furthest(count)]


def scores(side: Questions, higher_is_better: bool = True) -> MetricScores:
    """A metric's scores of these values, as they are read from a store."""
    rows = [(question, value) for question, values in side.items() for value in values]
    table = pd.DataFrame(rows, columns=["question", "value"]).assign(status="scored")
    return MetricScores("m", table, higher_is_better)


def found(change: MetricChange) -> tuple[float, float, float]:
    """Difference and interval, which must be there."""
    assert change.difference is not None
    assert change.low is not None
    assert change.high is not None
    return change.difference, change.low, change.high


def change_of(result: Comparison, metric: str = "context_recall") -> MetricChange:
    """The change of one metric over all rows."""
    return next(one for one in result.metrics if one.metric == metric)


# Numbers


@given(SIDE)
def test_a_side_is_no_worse_than_itself(side: dict[str, list[float]]) -> None:
    """No difference, an interval of what other questions might show, and a p that says nothing."""
    change = measure("context_recall", side, side)
    difference, low, high = found(change)
    assert difference == 0
    assert low == -high
    assert change.paired
    assert change.p_value == pytest.approx(0.5)
    assert change.mde is not None
    assert change.mde > 0


@given(SIDE, st.data())
def test_exchanged_sides_exchange_the_signs(side: dict[str, list[float]], data: Any) -> None:
    """Of the same questions, and of others: difference and interval are mirrored, p is 1 - p."""
    other = {question: data.draw(st.lists(VALUES, min_size=1, max_size=3)) for question in side}
    if data.draw(st.booleans()):
        other = {f"other {question}": values for question, values in other.items()}
    there, back = measure("m", side, other), measure("m", other, side)
    difference, low, high = found(there)
    assert found(back) == pytest.approx((-difference, -high, -low))
    assert (back.mean_a, back.mean_b) == pytest.approx((there.mean_b, there.mean_a))
    assert there.p_value is not None
    assert back.p_value == pytest.approx(1 - there.p_value)
    assert back.paired == there.paired


@given(SIDE, st.floats(0.01, 0.5), st.booleans())
def test_what_is_taken_from_every_row_is_found(
    side: dict[str, list[float]], shift: float, same: bool
) -> None:
    """Exactly, paired or not; the interval goes with it, on a scale that does not end.

    Of 30 questions or more: the interval of fewer ones agrees with a test against 0.
    """
    name = "{}" if same else "other {}"
    side = {f"{q} {n}": [value + 10 for value in side[q]] for q in side for n in range(30)}
    worse = {name.format(q): [value - shift for value in values] for q, values in side.items()}
    kept = {name.format(q): values for q, values in side.items()}
    before, after = measure("m", side, kept), measure("m", side, worse)
    assert found(after) == pytest.approx([value - shift for value in found(before)])
    assert after.paired == same
    assert after.loss == pytest.approx(shift)


def test_no_interval_reaches_beyond_what_scores_can_differ_by() -> None:
    """Three questions say little, and scores from 0 to 1 all the same differ by 1 at most."""
    before, now = {"q1": [1.0], "q2": [0.9], "q3": [0.1]}, {"q1": [0.0], "q2": [0.9], "q3": [1.0]}
    other = {f"other {question}": values for question, values in now.items()}
    assert found(measure("m", before, other))[1:] == (-1, 1)
    _, low, high = found(measure("m", before, now))
    assert -1 <= low < high <= 1


def test_where_lower_is_better_a_rise_is_the_loss() -> None:
    """p is that of a rise."""
    low = {f"q{i:02}": [i / 100] for i in range(30)}
    high = {
        question: [values[0] + 0.1 + i / 1000] for i, (question, values) in enumerate(low.items())
    }
    rise = measure("noise_sensitivity", low, high, higher_is_better=False)
    fall = measure("noise_sensitivity", high, low, higher_is_better=False)
    assert rise.p_value is not None
    assert rise.p_value < 0.001
    assert fall.p_value is not None
    assert fall.p_value > 0.999
    assert rise.loss == rise.difference
    assert rise.loss is not None
    assert rise.loss > 0.1


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ({}, {}, "no row was scored before and after"),
        ({"q1": [1.0], "q2": [1.0]}, {}, "no row was scored after"),
        ({"q1": [1.0]}, {"q1": [0.0]}, "less than two questions to compare"),
    ],
)
def test_too_few_questions_are_not_compared(a: Questions, b: Questions, why: str) -> None:
    """The means are told, and why nothing else is."""
    change = measure("m", a, b)
    assert (change.difference, change.p_value, change.reason) == (None, None, why)
    assert change.mean_a == (1.0 if a else None)
    assert not change.significantly_worse()


def test_all_tests_are_one_family() -> None:
    """Benjamini-Hochberg over those that were compared; the others have no p."""
    changes = [MetricChange(metric="m", p_value=p) for p in (0.02, None, 0.8)]
    assert [one.p_adjusted for one in control(changes)] == [pytest.approx(0.04), None, 0.8]


def test_of_unchanged_sides_at_most_one_in_twenty_looks_worse() -> None:
    """Anywhere: 100 comparisons of 20 lines, 60 questions each, which the judge's noise moves."""
    random = np.random.default_rng(6)
    surely = 0
    for _ in range(100):
        changes = []
        for _ in range(20):
            level = random.random(60)
            a, b = ({f"q{n}": [v] for n, v in enumerate(side)} for side in _noisy(random, level))
            changes.append(measure("m", a, b))
        surely += any(one.significantly_worse() for one in control(changes))
    assert surely <= 0.05 * 100 + 2 * (0.05 * 0.95 * 100) ** 0.5


def _noisy(random: np.random.Generator, level: NDArray[np.float64]) -> NDArray[np.float64]:
    """Two sides of the same questions, by a judge that changes its mind about some."""
    return np.clip(level + random.normal(0, 0.1, (2, len(level))), 0, 1)


def test_a_sure_loss_is_above_the_limit_and_significant() -> None:
    """As a gate holds a build: both, and p after control of the family."""
    change = MetricChange(metric="m", difference=-0.06, p_value=0.01, p_adjusted=0.04)
    assert change.significantly_worse(0.05)
    assert not change.significantly_worse(0.06)
    assert not change.model_copy(update={"p_adjusted": 0.06}).significantly_worse(0.05)
    assert not change.model_copy(update={"difference": 0.06}).significantly_worse()


def test_questions_that_moved_furthest_come_first() -> None:
    """Either way; among equals those that got worse. What did not move is not told."""
    a = {"same": [1.0], "up": [0.0], "down": [0.5], "far": [1.0], "gone": [1.0]}
    b = {"same": [1.0], "up": [0.5], "down": [0.0], "far": [0.0], "new": [0.0]}
    assert [name for name, _, _ in furthest(a, b, 5)] == ["far", "down", "up"]
    assert [name for name, _, _ in furthest(a, b, 5, higher_is_better=False)][1:] == ["up", "down"]
    assert furthest(a, b, 1) == [("far", 1.0, 0.0)]


# Logs


def test_rows_compared_with_themselves_differ_in_nothing() -> None:
    """By every metric that can be scored."""
    result = ragmetrics.compare(ROWS, ROWS)
    compared = [metric for metric in result.metrics if not metric.reason]
    assert len(compared) == 6
    assert {one.difference for one in compared} == {0}
    assert (result.moved, result.significantly_worse(), result.undecided) == ([], [], [])


def test_the_same_on_both_sides_is_told(tmp_path: Path) -> None:
    """A slip in a pipeline would pass each time."""
    log = str(write_jsonl(tmp_path / "a.jsonl", golden(20)))
    again = str(write_jsonl(tmp_path / "b.jsonl", golden(20)))
    same = "before and after are the same data, so there is no difference"
    assert ragmetrics.compare(log, log, metrics=["id_recall"]).notices == [same]
    assert ragmetrics.compare(log, again, metrics=["id_recall"]).notices == []


def test_a_log_without_a_row_is_named(tmp_path: Path) -> None:
    """Of two logs one must know which."""
    log, empty = write_jsonl(tmp_path / "a.jsonl", golden(20)), tmp_path / "b.jsonl"
    empty.touch()
    with pytest.raises(
        InputError, match=f"^after, {empty}: the logs hold no row that can be read$"
    ):
        ragmetrics.compare(str(log), str(empty), metrics=["id_recall"])


def test_a_damaged_index_is_found() -> None:
    """The drop, that it is sure, and the questions that lost what they had."""
    now = damaged(ROWS, 0.2, seed=3)
    result = ragmetrics.compare(ROWS, now, metrics=METRICS, rows=3)
    change = change_of(result)
    assert change.significantly_worse(0.05)
    assert (change.questions, change.paired) == (80, True)
    lost = {new["user_input"] for old, new in zip(ROWS, now, strict=True) if old != new}
    moved = [one for one in result.moved if one.metric == "context_recall"]
    assert len(moved) == 3
    assert {one.user_input for one in moved} <= lost
    assert [(one.value_a, one.value_b) for one in moved] == [(1.0, 0.0)] * 3


def test_logs_exchanged_give_the_same_numbers_turned_round(tmp_path: Path) -> None:
    """Whichever is A, both are weighed by the words of both."""
    one = write_jsonl(tmp_path / "one.jsonl", ROWS)
    other = write_jsonl(tmp_path / "other.jsonl", damaged(ROWS, 0.2, seed=3))
    there, back = (
        ragmetrics.compare(*pair, metrics=METRICS) for pair in ((one, other), (other, one))
    )
    for metric in METRICS:
        difference, low, high = found(change_of(there, metric))
        assert found(change_of(back, metric)) == pytest.approx((-difference, -high, -low))


def test_equal_rows_of_different_logs_get_equal_scores() -> None:
    """What else is in a log does not move them, though the judge weighs words by the log."""
    more = make_rows(40, good=0.5)
    for number, row in enumerate(more):
        row["user_input"] = f"Which ferry carries bicycle {number}?"
    result = ragmetrics.compare(ROWS, [*ROWS, *more], metrics=["context_relevance"])
    assert change_of(result, "context_relevance").paired
    assert change_of(result, "context_relevance").difference == 0


def test_segments_tell_where() -> None:
    """Rows of one channel alone were damaged, and that channel alone is significantly worse."""
    hit = damaged([row for row in ROWS if row["tags"]["channel"] == "app"], 0.4, seed=1)
    now = [*(row for row in ROWS if row["tags"]["channel"] == "web"), *hit]
    result = ragmetrics.compare(ROWS, now, by="channel", metrics=METRICS)
    lost = [one.segment for one in result.significantly_worse(0.05) if one.segment]
    assert {str(one) for one in lost} == {"channel=app"}
    assert len(result.segments) == 2 * len(METRICS)


def test_tags_that_nobody_named_are_shown_and_fail_nothing() -> None:
    """Of both sides, as on the page of a night. The metrics are as significant as without them."""
    hit = damaged([row for row in ROWS if row["tags"]["channel"] == "app"], 0.4, seed=1)
    now = [*(row for row in ROWS if row["tags"]["channel"] == "web"), *hit]
    shown = ragmetrics.compare(ROWS, now, metrics=METRICS)
    none, asked = (ragmetrics.compare(ROWS, now, by=by, metrics=METRICS) for by in ((), "channel"))
    assert (none.segments, shown.segments) == ([], asked.segments)
    assert shown.metrics == none.metrics == asked.metrics
    assert any(segment.significantly_worse() for segment in shown.segments)
    assert not any(change.segment for change in shown.significantly_worse())
    other = [{**row, "tags": {"place": row["tags"]["channel"]}} for row in now]
    assert ragmetrics.compare(ROWS, other, metrics=METRICS).segments == []


def test_a_tag_that_no_row_has_is_an_error_that_names_the_others() -> None:
    """A tag that is misspelt would look like a comparison without a segment that fell."""
    with pytest.raises(InputError, match="no scored row has the tag nobody; tags of the rows: cha"):
        ragmetrics.compare(ROWS, ROWS, by=["channel", "nobody"], metrics=METRICS)


def test_rows_without_an_index_build_are_noted() -> None:
    """It is a field of every row, and no tag that somebody could have misspelt."""
    result = ragmetrics.compare(ROWS, ROWS, by=["channel", "index_build"], metrics=METRICS)
    assert result.notices == ["no scored row has the tag index_build"]


def test_a_value_of_one_side_alone_has_its_mean() -> None:
    """And nothing to compare it with."""
    now = [{**row, "tags": {"channel": "phone"}} for row in ROWS]
    result = ragmetrics.compare(ROWS, now, by="channel", metrics=["context_recall"])
    phone = next(segment for segment in result.segments if str(segment.segment) == "channel=phone")
    assert phone.mean_b == pytest.approx(0.9)
    assert (phone.mean_a, phone.reason) == (None, "no row was scored before")


def test_a_notebook_shows_the_comparison_as_a_table() -> None:
    """Names of sides and tags are text, and no HTML."""
    rows = [{**row, "tags": {"channel": "<b>"}} for row in ROWS]
    page = ragmetrics.compare(rows, ROWS, by="channel", metrics=METRICS)._repr_html_()
    assert "<p>Before: rows<br>After: rows</p>" in page
    assert ("&lt;b&gt;" in page, "<b>" in page) == (True, False)


def test_the_table_has_a_line_per_change() -> None:
    """Metrics, then segments, with what they are named by."""
    table = ragmetrics.compare(ROWS, ROWS, by="channel", metrics=METRICS).to_pandas()
    assert list(table["metric"]) == [*METRICS, *(name for name in METRICS for _ in range(2))]
    assert list(table["value"].dropna().unique()) == ["app", "web"]
    assert {"mean_a", "mean_b", "difference", "low", "high", "p_value", "mde"} <= set(table.columns)


# Results, nights, runs


def test_results_are_compared_as_they_were_scored() -> None:
    """Nothing is scored again; those scored in another way are refused, the others compared."""
    before = ragmetrics.evaluate(ROWS, ["context_recall", {"hit_rate": {"k": 1}}])
    now = ragmetrics.evaluate(damaged(ROWS, 0.3, 1), ["context_recall", {"hit_rate": {"k": 2}}])
    result = ragmetrics.compare(before, now)
    assert change_of(result).significantly_worse()
    refused = change_of(result, "hit_rate")
    assert refused.reason == (
        "scored with other prompts, parameters, embeddings or another version after"
    )
    assert result.undecided == [refused]


def test_other_judges_are_named() -> None:
    """Where no metric is left, it is an error that says which judge judged which side."""
    before = ragmetrics.evaluate(ROWS, ["context_recall"])
    manifest = before.manifest
    judge = manifest.judge.model_copy(update={"name": "gpt", "fingerprint": "f2"})
    other = [metric.model_copy(update={"fingerprint": "f2"}) for metric in manifest.metrics]
    now = ragmetrics.evaluate(ROWS, ["context_recall"])
    now.manifest = manifest.model_copy(update={"judge": judge, "metrics": other})
    with pytest.raises(InputError, match=r"judge before lexical \(\w+\), after gpt \(f2\)"):
        ragmetrics.compare(before, now)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Two nights in a store, the second by an index build that lost a fifth of its rows."""
    folder = tmp_path_factory.mktemp("team")
    rows = {NIGHTS[0]: ROWS, NIGHTS[1]: damaged(ROWS, 0.2, seed=3)}
    for number, (night, of_night) in enumerate(rows.items()):
        said = [{**row, "index_build": f"n{number}"} for row in of_night]
        write_jsonl(folder / "logs" / f"{night}.jsonl", said)
    write_build(folder, "b1", ROWS)
    write_build(folder, "b2", damaged(ROWS, 0.2, seed=3))
    settings = gate_settings(folder)
    for night in NIGHTS:
        run_night(settings, night)
    return settings


def test_nights_are_named_by_date(team: Settings) -> None:
    """The run that speaks for each; by text or as dates."""
    result = ragmetrics.compare("2026-11-18", NIGHTS[1], settings=team)
    assert change_of(result).significantly_worse(0.05)
    assert result.a.name.startswith("night 2026-11-18 (run ")
    assert (result.a.rows, result.b.rows) == (80, 80)
    assert result.moved[0].user_input.startswith("What is the height of tower")


def test_runs_are_named_by_id(team: Settings) -> None:
    """The same numbers as of the nights that they are."""
    by_date = ragmetrics.compare(*map(str, NIGHTS), settings=team)
    runs = [one.name.split("run ")[1].rstrip(")") for one in (by_date.a, by_date.b)]
    by_run = ragmetrics.compare(*runs, settings=team)
    assert by_run.metrics == by_date.metrics
    assert by_run.a.name == f"run {runs[0]} (night 2026-11-18)"


def test_a_log_is_weighed_as_the_night_it_is_compared_with(team: Settings) -> None:
    """The night's own log, scored now, differs in nothing from the night."""
    log = team.logs.replace("{date}", str(NIGHTS[1]))
    result = ragmetrics.compare(NIGHTS[1], log, settings=team)
    assert {one.metric: found(one)[0] for one in result.metrics} == dict.fromkeys(METRICS, 0)


def test_a_log_is_scored_by_what_the_night_was_alone(team: Settings) -> None:
    """What nobody could compare is not scored; who asks for it is told."""
    log = team.logs.replace("{date}", str(NIGHTS[1]))
    with_more = team.model_copy(update={"metrics": (*METRICS, "context_precision")})
    result = ragmetrics.compare(NIGHTS[0], log, settings=with_more)
    assert [metric.metric for metric in result.metrics] == METRICS
    asked = ragmetrics.compare(
        NIGHTS[0], log, metrics=[*METRICS, "context_precision"], settings=team
    )
    assert change_of(asked, "context_precision").reason == "no row was scored before"


def test_builds_are_compared_by_their_logs(team: Settings) -> None:
    """As by a gate: the same questions, and about the same drop."""
    result = ragmetrics.compare("build:b1", "build:b2", settings=team)
    gate = run_gate(team, IndexBuild(dataset="towers", build="b2", serving="b1"))
    recall = next(metric for metric in gate.metrics if metric.metric == "context_recall")
    assert change_of(result).loss == pytest.approx(recall.drop)
    assert result.a.name == f"build b1 ({team.gate.logs.replace('{build}', 'b1')})"


def test_a_build_without_a_log_is_known_by_its_nights(team: Settings, tmp_path: Path) -> None:
    """Only its rows count, of a night that two builds served."""
    mixed = date(2026, 11, 20)
    rows = [{**row, "index_build": f"m{n % 2}"} for n, row in enumerate(healthy(ROWS, seed=2))]
    settings = team.model_copy(
        update={"logs": f"{tmp_path}/{{date}}.jsonl", "store": f"{tmp_path}/store"}
    )
    write_jsonl(tmp_path / f"{mixed}.jsonl", rows)
    run_night(settings, mixed)
    result = ragmetrics.compare("build:m0", "build:m1", settings=settings)
    assert (result.a.rows, result.b.rows) == (40, 40)
    assert result.a.name == "build m0 (night 2026-11-20)"
    assert not change_of(result).paired
    assert (change_of(result).questions_a, change_of(result).questions_b) == (40, 40)


def test_other_datasets_are_told(team: Settings) -> None:
    """They may be compared, if whoever does so knows."""
    log = team.logs.replace("{date}", str(NIGHTS[1]))
    other = team.model_copy(update={"dataset": "bridges"})
    result = ragmetrics.compare(NIGHTS[0], log, settings=other)
    assert result.notices == ["before: data set towers; after: data set bridges"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("2026-11-02", "2026-11-02: no run of that night in "),
        (
            "2026-13-02",
            "2026-13-02: not a valid date; write ./2026-13-02 for a folder of that name",
        ),
        ("0123456789", "0123456789: no such run in "),
        ("nonsense", "nonsense: not a log, a date"),
        ("logs/nothing.jsonl", "logs/nothing.jsonl: no such log"),
        ("build:b9", "build b9: no log at "),
        ("build:../b9", "build:../b9: not a valid name of an index build"),
        (7, "rows: expected a path, dicts or a table, not int"),
    ],
)
def test_a_side_that_is_not_there_is_one_sentence(team: Settings, given: Any, said: str) -> None:
    """Which one, and what there may be instead."""
    with pytest.raises(RagmetricsError) as told:
        ragmetrics.compare(NIGHTS[0], given, settings=team)
    assert str(told.value).startswith(said)
    assert "\n" not in str(told.value)


def test_rows_without_a_verdict_are_told(team: Settings) -> None:
    """A mean of what is left may not stand for them."""
    night = ragmetrics.compare(NIGHTS[0], NIGHTS[1], settings=team)
    run = night.b.name.split("run ")[1].rstrip(")")
    part = Path(team.store, f"scores/dt={NIGHTS[1]}/run={run}/metric=context_recall")
    kept = {path: path.read_bytes() for path in part.glob("*.parquet")}
    try:
        for path in kept:
            path.unlink()
        result = ragmetrics.compare(NIGHTS[0], NIGHTS[1], settings=team)
    finally:
        for path, data in kept.items():
            path.write_bytes(data)
    assert result.notices == ["after: context_recall: the judge gave no verdict on 80 of 80 rows"]
    assert change_of(result).reason == "no row was scored after"
    assert result.undecided == [change_of(result)]

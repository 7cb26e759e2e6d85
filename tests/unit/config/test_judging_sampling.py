"""Sampling: which rows are drawn, how many, and what the sample says of all of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import SampleSettings, make_settings
from ragmetrics.errors import SettingsError
from ragmetrics.metrics import select
from ragmetrics.records import Manifest, SampledMean, Status, question_key
from ragmetrics.records.judging import Usage
from ragmetrics.scoring import wanted_rows
from ragmetrics.scoring.sampling.draw import SamplingFrame, draw_all
from ragmetrics.scoring.sampling.estimate import STRATUM, sampled_mean, strata_of
from ragmetrics.scoring.sampling.plan import Group, RowIds, SamplePlan, stratum_of
from ragmetrics.scoring.sampling.prediction_powered import prediction_powered, rows_to_judge
from ragmetrics.scoring.sampling.report import whole_cost
from ragmetrics.scoring.sampling.sample_size import FEWEST, Known, comparable, known
from ragmetrics.stats import mean_interval
from tests.fakes.nights import night, summary

Record = dict[str, Any]
RELEVANCE, RECALL = select(["context_relevance", "context_recall"])
QUESTIONS = st.lists(st.integers(0, 30), min_size=1, max_size=120)


def record(question: object, row: object = 0, **more: Any) -> Record:
    """A staged row, as far as the draw looks at it."""
    base = {"id": f"row-{row}", "user_input": f"Question {question}?", "tags": [], "language": "en"}
    return {**base, "reference": "", **more}


def records(questions: Sequence[object]) -> list[Record]:
    """Rows of these questions, with ids of their own."""
    return [record(question, number) for number, question in enumerate(questions)]


def plan(rows: Sequence[Record], /, **sample: Any) -> SamplePlan:
    """What is drawn of rows that are to be judged by both metrics."""
    settings = SampleSettings(**sample)
    census = SamplingFrame([[RELEVANCE], [RECALL]], settings.strata)
    for row in rows:
        census.count(row)
    return draw_all(settings, census, [], {})


def drawn(rows: Sequence[Record], /, **sample: Any) -> set[tuple[str, str]]:
    """Question and id of the rows whose context_relevance is judged."""
    found = plan(rows, **sample).group(RELEVANCE.name)
    assert found is not None
    return {(row["user_input"], row["id"]) for row in judged(rows, found)}


def judged(rows: Sequence[Record], group: Group) -> list[Record]:
    """The rows that are judged, as a panel or an estimate finds them: by their marks, in order."""
    marks = RowIds()
    told = [(row, marks.of(question_key(row["user_input"]), row["id"])) for row in rows]
    return [row for row, mark in told if group.judges(mark)]


# Which rows


@given(QUESTIONS, st.integers(2, 40), st.randoms(use_true_random=False))
def test_the_sample_does_not_hang_on_the_order(
    questions: list[int], count: int, shuffled: random.Random
) -> None:
    """So it is the same however the logs are cut into files, and the night into shards."""
    rows = records(questions)
    again = shuffled.sample(rows, len(rows))
    assert drawn(rows, rows=count) == drawn(again, rows=count)
    assert len(drawn(rows, rows=count)) == min(count, len(rows))


@given(st.integers(2, 60), st.integers(2, 60))
def test_a_sample_is_part_of_every_larger_one(few: int, more: int) -> None:
    """A night that judges more rows judges those of the others too."""
    rows = records([number // 2 for number in range(60)])
    smaller, larger = sorted((few, more))
    assert drawn(rows, rows=smaller) <= drawn(rows, rows=larger)


@given(st.integers(0, 10_000))
def test_a_late_row_takes_the_place_of_one_other_at_most(late: int) -> None:
    """Rows that were judged stay judged, but for the last one to get in."""
    rows = records(range(100))
    before = drawn(rows, rows=20)
    after = drawn([*rows, record(f"late {late}", "late")], rows=20)
    assert len(before - after) <= 1


def test_another_seed_draws_other_rows() -> None:
    """For who does not want the same questions for ever."""
    rows = records(range(500))
    same, other = drawn(rows, rows=100, seed=0), drawn(rows, rows=100, seed=1)
    assert drawn(rows, rows=100) == same
    assert len(same & other) < 40


def test_a_question_that_comes_every_night_is_judged_every_night() -> None:
    """Whatever the ids of its rows: the rules compare question by question."""
    first, second = records(range(400)), [record(number, f"b-{number}") for number in range(400)]
    asked = [{question for question, _ in drawn(one, rows=100)} for one in (first, second)]
    assert asked[0] == asked[1]


def test_rows_of_a_question_that_is_asked_often_are_drawn_one_by_one() -> None:
    """Half of all rows are of one question: about half of the sample is, not all or nothing."""
    rows = records([0] * 1_000 + list(range(1, 1_001)))
    shares = [
        sum(question == "Question 0?" for question, _ in drawn(rows, rows=200, seed=seed)) / 200
        for seed in range(10)
    ]
    assert all(0.35 < share < 0.65 for share in shares)


@given(QUESTIONS, st.integers(2, 40))
def test_rows_of_one_id_are_judged_one_by_one(questions: list[int], count: int) -> None:
    """Ids are often those of questions, the same for each time it is asked: a sample of so many
    rows is no row larger for it, and none is judged for having the id of another.
    """
    rows = [record(question, question) for question in questions]
    group = plan(rows, rows=count).group(RELEVANCE.name)
    assert group is not None
    assert len(judged(rows, group)) == group.judged == min(count, len(rows))


def test_each_row_has_the_same_chance() -> None:
    """Over 400 seeds each of 60 rows, some of one question, is drawn in a third of the samples."""
    rows = records([number // 3 if number < 30 else number for number in range(60)])
    counts = Counter(one for seed in range(400) for one in drawn(rows, rows=20, seed=seed))
    expected, spread = 400 / 3, math.sqrt(400 * 2 / 9)
    assert len(counts) == 60
    assert all(abs(count - expected) < 4.5 * spread for count in counts.values())


def test_each_metric_has_a_sample_of_the_rows_that_have_what_it_needs() -> None:
    """Thirty rows of 1,000 have a reference: context_recall is judged on 20 of them."""
    rows = records(range(1_000))
    for row in rows[:30]:
        row["reference"] = "At nine."
    found = plan(rows, rows=20)
    groups = {group.metrics: (group.rows, group.judged) for group in found.groups}
    assert groups == {(RELEVANCE.name,): (1_000, 20), (RECALL.name,): (30, 20)}


@pytest.mark.parametrize("sample", [{"rows": 20}, {"half_width": 0.02}], ids=str)
def test_where_nothing_can_be_scored_nothing_is_drawn(sample: dict[str, float]) -> None:
    """A night without rows, and a metric without rows that have what it needs."""
    for rows in ([], records(range(5))):
        group = plan(rows, **sample).group(RECALL.name)
        assert group is not None
        assert (group.rows, group.judged, group.marks) == (0, 0, None)


# Strata


def tagged(**sizes: int) -> list[Record]:
    """So many rows of each section."""
    sections = [name for name, size in sizes.items() for _ in range(size)]
    return [record(at, at, tags=[("section", name)]) for at, name in enumerate(sections)]


def by_section(rows: Sequence[Record], chosen: set[tuple[str, str]]) -> Counter[str]:
    """The sections of the rows that were drawn."""
    return Counter(dict(row["tags"])["section"] for row in rows if row_key(row) in chosen)


def row_key(row: Record) -> tuple[str, str]:
    """Question and id."""
    return row["user_input"], row["id"]


def test_strata_are_sampled_in_proportion_with_at_least_two_each() -> None:
    """A section with 3 of 1,000 rows is in the sample too."""
    rows = tagged(billing=800, api=197, rare=3)
    found = by_section(rows, drawn(rows, rows=100, strata=["section"]))
    assert found == {"billing": 79, "api": 19, "rare": 2}


def test_small_strata_are_sampled_as_one_where_there_are_too_many() -> None:
    """One of its own for each ten judged rows, the largest first."""
    rows = tagged(**{f"s{number:02d}": 100 - number for number in range(50)})
    group = plan(rows, rows=60, strata=["section"]).group(RELEVANCE.name)
    assert group is not None
    assert sorted(group.strata) == [f"s{number:02d}" for number in range(6)]
    assert group.judged == 60
    assert group.stratum("s00") == "s00"
    assert group.stratum("s49") == ""


def test_the_language_is_a_tag_too_and_a_missing_tag_a_value() -> None:
    """As it is for segments: a tag of that name goes before what the row says."""
    names = ("language", "section")
    told = stratum_of({"section": "api"}, "de", names)
    assert told == stratum_of({"section": "api", "language": "de"}, "en", names)
    assert told != stratum_of({}, "de", names)
    table = pd.DataFrame({"tag:language": ["de", "de"], "tag:section": ["api", None]})
    group = Group(metrics=("m",), rows=2, judged=2, strata=(told,))
    assert strata_of(table, names, group) == [told, ""]


# How many


def sampled(spread: float | None, correlation: float | None) -> SampledMean:
    """What a sampled night says of a metric."""
    return SampledMean(
        rows=9_000,
        mean=0.7,
        low=0.68,
        high=0.72,
        weight=0.5,
        spread=spread,
        correlation=correlation,
    )


def test_rows_says_how_many_unless_there_are_fewer() -> None:
    """The simple way to say it."""
    assert wanted_rows(SampleSettings(rows=500), 20_000, Known()) == 500
    assert wanted_rows(SampleSettings(rows=500), 300, Known()) == 300


def test_the_first_night_is_as_large_as_any_may_have_to_be() -> None:
    """No scores in [0, 1] spread more than by 0.5, and no cheap judge is relied on: 2,404 rows."""
    wanted = wanted_rows(SampleSettings(half_width=0.02), 20_000, known([]))
    assert wanted == rows_to_judge(0.02, 0.5, 0.0, 20_000)
    assert 2_000 < wanted < 2_500


def test_later_nights_are_as_large_as_the_nights_before_say() -> None:
    """By the mean square of their spreads, and the mean correlation."""
    found = [
        summary("m", 0.7, sample=sampled(0.3, 0.5)),
        summary("m", 0.7, sample=sampled(0.4, 0.7)),
    ]
    seen = known(found)
    assert (seen.spread, seen.correlation) == pytest.approx((math.sqrt(0.125), 0.6))
    wanted = wanted_rows(SampleSettings(half_width=0.02), 20_000, seen)
    assert wanted == rows_to_judge(0.02, seen.spread, 0.6, 20_000) < 900


def test_a_night_that_all_was_judged_tells_the_spread_by_its_interval() -> None:
    """But nothing of the cheap judge, so nothing is hoped of it."""
    whole = summary("m", 0.7)  # 200 rows, 0.03 either way
    seen = known([whole])
    assert (seen.spread, seen.correlation) == pytest.approx((0.03 / 1.96 * math.sqrt(200), 0))


def test_a_night_without_spread_does_not_make_the_next_one_tiny() -> None:
    """A hundred rows at least, or all that there are."""
    alike = known([summary("m", 1.0, sample=sampled(0.0, None))])
    assert wanted_rows(SampleSettings(half_width=0.02), 20_000, alike) == FEWEST
    assert wanted_rows(SampleSettings(half_width=0.02), 60, alike) == 60


def test_only_the_last_seven_nights_by_the_same_judge_count() -> None:
    """Another judge may have another spread."""
    nights: list[Manifest] = [night(number) for number in range(9)]
    nights.append(night(9, metrics=[summary("context_recall", 0.9, judge="another")]))
    found = comparable(nights, "context_recall", "context_recall-lexical")
    assert len(found) == 7
    assert {one.fingerprint for one in found} == {"context_recall-lexical"}
    assert comparable(nights, "context_recall", None) == []


@pytest.mark.parametrize(
    ("sample", "told"),
    [
        ({}, "set either rows or half_width"),
        ({"rows": 500, "half_width": 0.02}, "set either rows or half_width"),
        ({"rows": 1}, "greater than or equal to 2"),
        ({"rows": True}, "should be a number"),
        ({"half_width": 0}, "greater than 0"),
        ({"rows": 5, "share": 0.5}, "there is no such key"),
    ],
    ids=str,
)
def test_a_mistake_in_the_settings_is_told(sample: Record, told: str) -> None:
    """With the key."""
    with pytest.raises(SettingsError, match=rf"sample.*{told}"):
        make_settings({"sample": sample})


# The mean


def table(count: int = 400, judged: int = 80, seed: int = 4) -> pd.DataFrame:
    """Rows of a sampled night, the first of them judged, by a cheap judge that helps."""
    chance = np.random.default_rng(seed)
    truth = chance.choice([0.0, 0.5, 1.0], count)
    of_sample = np.arange(count) < judged
    return pd.DataFrame(
        {
            "question": [f"q{number // 2}" for number in range(count)],
            "value": np.where(of_sample, truth, np.nan),
            "status": np.where(of_sample, "scored", "not_sampled"),
            "cheap": np.clip(truth + 0.3 * chance.standard_normal(count), 0, 1),
            STRATUM: np.where(np.arange(count) % 3 > 0, "a", "b"),
        }
    )


def without_value(rows: pd.DataFrame, status: Status) -> pd.DataFrame:
    """The rows, one of them with this in place of its judged value."""
    here = rows.index == 3
    return rows.assign(
        value=rows["value"].mask(here), status=rows["status"].mask(here, status.value)
    )


def test_the_mean_is_the_prediction_powered_one() -> None:
    """By the scores of both judges, questions and strata; the judged rows alone stand beside it."""
    rows = table()
    best, alone = sampled_mean(rows)
    questions, strata = (rows[name].to_numpy(dtype=str) for name in ("question", STRATUM))
    found = prediction_powered(rows["cheap"], rows["value"], questions, strata)
    assert found is not None
    assert alone is not None
    assert best == found.best
    assert (alone.rows, alone.weight) == (400, found.weight)
    assert (alone.mean, alone.low, alone.high) == (
        found.plain.mean,
        found.plain.low,
        found.plain.high,
    )
    assert found.plain.error is not None
    assert alone.spread == pytest.approx(found.plain.error * math.sqrt(80))
    assert 0.7 < (alone.correlation or 0) < 0.95


def test_rows_that_nobody_can_score_are_not_in_the_mean() -> None:
    """They have neither score, sampled or not."""
    rows = table()
    none = rows.iloc[:50].assign(value=np.nan, cheap=np.nan, status="not_applicable")
    assert sampled_mean(pd.concat([rows, none], ignore_index=True)) == sampled_mean(rows)


def test_a_row_that_the_judge_failed_on_counts_as_not_judged() -> None:
    """It is one of the rows that the mean is of all the same."""
    rows = table()
    best, alone = sampled_mean(without_value(rows, Status.JUDGE_FAILED))
    assert best is not None
    assert alone is not None
    assert (best.n, alone.rows) == (79, 400)


def test_a_row_that_the_cheap_judge_failed_on_has_its_mean() -> None:
    """Any value will do, as long as it is the same for judged rows and others."""
    rows = table()
    rows.loc[::5, "cheap"] = np.nan
    best, _ = sampled_mean(rows)
    filled = rows.assign(cheap=rows["cheap"].fillna(rows["cheap"].mean()))
    assert best == sampled_mean(filled)[0]


def test_a_cheap_judge_that_says_nothing_leaves_the_judged_rows() -> None:
    """As of a metric whose prompt it cannot answer."""
    rows = table().assign(cheap=np.nan, **{STRATUM: ""})
    best, alone = sampled_mean(rows)
    plain = mean_interval(rows["value"][:80].to_numpy(), rows["question"][:80].to_numpy(dtype=str))
    assert best is not None
    assert plain is not None
    assert alone is not None
    assert (best.low, best.high) == pytest.approx((plain.low, plain.high))
    assert (alone.weight, alone.correlation) == (0, None)


def test_where_the_judge_finds_rows_to_be_none_they_are_in_no_mean() -> None:
    """The mean is that of the rows that can be scored, of which nobody knows how many there are;
    the lexical judge narrows its interval all the same.
    """
    rows = table().assign(**{STRATUM: ""})
    none = (rows.index % 4 == 0) & (rows.index < 80)
    rows.loc[none, "value"] = np.nan
    rows.loc[none, "status"] = "not_applicable"
    best, alone = sampled_mean(rows)
    scored = rows[rows["status"] == "scored"]
    plain = mean_interval(
        scored["value"].to_numpy(dtype=float), scored["question"].to_numpy(dtype=str)
    )
    assert best is not None
    assert alone is not None
    assert plain is not None
    assert (best.n, best.clusters, alone.rows) == (60, 40, None)
    assert alone.mean == pytest.approx(plain.mean)
    assert (alone.low, alone.high) == pytest.approx((plain.low, plain.high), abs=0.01)
    assert (alone.correlation or 0) > 0.5
    assert width(best.low, best.high) < 0.9 * width(alone.low, alone.high)


def test_a_stratum_above_its_share_weighs_no_more_where_rows_are_none() -> None:
    """Of ten rare rows all are judged, and score 0; of 390 others every tenth, which scores 1."""
    count = np.arange(400)
    rare, sample = count < 10, (count < 10) | (count % 10 == 0)
    none = sample & (count % 20 == 0)
    rows = pd.DataFrame(
        {
            "question": count.astype(str),
            "value": np.where(sample & ~none, np.where(rare, 0.0, 1.0), np.nan),
            "status": np.select([none, sample], ["not_applicable", "scored"], "not_sampled"),
            "cheap": 0.5,
            STRATUM: np.where(rare, "rare", "usual"),
        }
    )
    best, _ = sampled_mean(rows)
    assert best is not None
    assert best.mean == pytest.approx(1 - 10 / 400, abs=0.03)


def width(low: float | None, high: float | None) -> float:
    """Of an interval that there is."""
    assert low is not None
    assert high is not None
    return high - low


def test_without_a_judged_row_there_is_no_mean() -> None:
    """The lexical judge's is not in its place."""
    assert sampled_mean(table(judged=0)) == (None, None)


# The cost


def costs(usage: Usage, left: int = 90, *, name: str = "openai", **status: int) -> Usage | None:
    """What all rows of a metric would have cost, of which ten were drawn, and others left."""
    found = summary("m", 0.7, status=status or {"scored": 10, "not_sampled": left})
    drawn = SamplePlan(groups=(Group(metrics=("m",), rows=10 + left, judged=10),))
    return whole_cost({"m": {name: usage}}, drawn, {"m": found})


def test_all_rows_cost_as_much_as_the_judged_ones_row_by_row() -> None:
    """Ten of 100 rows asked for 20 requests, four of them known: 180 more, each at a sixteenth of
    what was spent.
    """
    spent = Usage(requests=16, answered_from_store=4, prompt_tokens=1_600, usd=0.32)
    whole = costs(spent)
    assert whole is not None
    assert (whole.requests, whole.prompt_tokens) == (196, 19_600)
    assert whole.usd == pytest.approx(196 * 0.02)


def test_rows_that_turned_out_to_be_none_were_asked_about_too() -> None:
    """Two of the ten drawn ones: the others are still nine times as many as were drawn."""
    whole = costs(Usage(requests=20), scored=8, not_applicable=2, not_sampled=90)
    assert whole == Usage(requests=200)


def test_rows_that_the_budget_left_out_would_have_cost_as_much() -> None:
    """Five of the ten drawn: 20 requests were for five of 100 rows."""
    whole = costs(Usage(requests=20), scored=5, over_budget=5, not_sampled=90)
    assert whole == Usage(requests=400)
    assert costs(Usage(requests=20), 0, scored=5, over_budget=5) == Usage(requests=40)
    assert costs(Usage(), over_budget=10, not_sampled=90) == Usage()
    assert costs(Usage(requests=1), over_budget=10, not_sampled=90) is None


def test_texts_that_were_known_are_no_requests_for_embeddings() -> None:
    """One request is for sixteen texts: of 32 texts half were known, so each further ten rows
    have two.
    """
    half = Usage(requests=1, answered_from_store=16)
    assert costs(half, name="embeddings") == Usage(requests=1 + 9 * 2)


def test_requests_of_several_metrics_together_cannot_be_told_apart() -> None:
    """A night of `fuse: row`, which was removed, is published again all the same."""
    drawn = SamplePlan(groups=(Group(metrics=("a", "b"), rows=100, judged=10),))
    summaries = {name: summary(name, 0.7) for name in ("a", "b")}
    assert whole_cost({"a + b": {"openai": Usage(requests=10)}}, drawn, summaries) is None


def test_where_all_answers_were_known_nobody_can_tell() -> None:
    """And a metric of which all rows were judged costs no more."""
    known_already = Usage(answered_from_store=20)
    assert costs(known_already) is None
    assert costs(known_already, 0) == known_already

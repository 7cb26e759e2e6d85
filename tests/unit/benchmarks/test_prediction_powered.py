"""Prediction-powered means: against the formulas of PPI++, the plain mean, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from ragmetrics.scoring.sampling.prediction_powered import (
    Powered,
    allocate,
    prediction_powered,
    row_spread,
    rows_to_judge,
)
from ragmetrics.stats import mean_interval
from research.prediction_powered import cheap_scores, measure, measure_planned

Floats = NDArray[np.float64]
NAMES = st.sampled_from("abcdefgh")
UNIT = st.floats(0, 1)
ROWS = st.lists(st.tuples(UNIT, st.none() | UNIT, NAMES, st.sampled_from("xyz")), min_size=1)
SIZES = st.dictionaries(NAMES, st.integers(1, 500), min_size=1)


def night(
    rows: int = 2_000, judged: int = 400, correlation: float = 0.6, seed: int = 3
) -> tuple[Floats, Floats]:
    """The cheap scores of all rows, the expensive ones of the first so many."""
    random = np.random.default_rng(seed)
    expensive = random.choice([0.0, 0.5, 1.0], rows, p=[0.2, 0.3, 0.5])
    cheap = cheap_scores(expensive, correlation, random)
    return cheap, np.where(np.arange(rows) < judged, expensive, np.nan)


def powered(cheap: Floats, expensive: Floats, strata: list[str] | None = None) -> Powered:
    """The estimate of rows whose questions are all different."""
    found = prediction_powered(cheap, expensive, np.arange(len(cheap)), strata)
    assert found is not None
    return found


# The formulas


def test_it_is_ppi_plus_plus() -> None:
    """By the formulas of the paper, in which judged rows and the others are two samples."""
    cheap, expensive = night()
    found = powered(cheap, expensive)
    y, f, other = expensive[:400], cheap[:400], cheap[400:]
    best = np.cov(y, f)[0, 1] / np.var(f) / (1 + len(y) / len(other))
    lam = found.weight * len(other) / len(cheap)
    assert lam == pytest.approx(best, rel=0.05)
    assert found.best.mean == pytest.approx(lam * other.mean() + (y - lam * f).mean())
    variance = lam**2 * np.var(other) / len(other) + np.var(y - lam * f) / len(y)
    assert found.best.error == pytest.approx(math.sqrt(variance), rel=0.01)


def test_of_rows_that_are_all_judged_it_is_the_plain_mean() -> None:
    """There is nothing left for the cheap judge to say."""
    cheap, expensive = night(judged=2_000)
    found = powered(cheap, expensive)
    plain = mean_interval(expensive, np.arange(2_000))
    assert plain is not None
    assert found.weight == 0
    assert found.best == found.plain
    told = (found.best.mean, found.best.low, found.best.high, found.best.error, found.best.mde)
    assert told == pytest.approx((plain.mean, plain.low, plain.high, plain.error, plain.mde))


@pytest.mark.parametrize("cheap", ["constant", "reversed"])
def test_a_cheap_judge_that_does_not_help_is_not_asked(cheap: str) -> None:
    """One that says the same of all rows, or the contrary: the plain mean of the judged rows."""
    scores, expensive = night()
    found = powered(np.full(2_000, 0.4) if cheap == "constant" else -scores, expensive)
    plain = mean_interval(expensive[:400], np.arange(400))
    assert plain is not None
    assert found.weight == 0
    assert found.best == found.plain
    assert (found.best.low, found.best.high) == pytest.approx((plain.low, plain.high))
    assert (found.rows, found.best.n) == (2_000, 400)


def test_a_sample_that_was_easy_is_corrected() -> None:
    """The cheap judge knows that the rows that were not judged are worse."""
    random = np.random.default_rng(5)
    truth = np.clip(
        np.where(np.arange(2_000) < 400, 0.8, 0.6) + 0.2 * random.normal(size=2_000), 0, 1
    )
    cheap = truth + 0.02 * random.normal(size=2_000)
    found = powered(cheap, np.where(np.arange(2_000) < 400, truth, np.nan))
    assert found.plain.mean - truth.mean() > 0.1
    assert found.best.mean == pytest.approx(truth.mean(), abs=0.03)


def test_repeated_rows_add_no_certainty() -> None:
    """Each row logged three times, all of them judged or none, is as good as once."""
    cheap, expensive = night(rows=600, judged=100)
    once = powered(cheap, expensive)
    thrice = prediction_powered(
        np.tile(cheap, 3), np.tile(expensive, 3), np.tile(np.arange(600), 3)
    )
    assert thrice is not None
    assert (thrice.best.low, thrice.best.high) == pytest.approx((once.best.low, once.best.high))


# Strata


def test_a_stratified_mean_by_hand() -> None:
    """Known sizes weigh the strata's means; spread between strata counts with all rows."""
    cheap = np.zeros(90)
    expensive = np.full(90, np.nan)
    expensive[:10], expensive[60:70] = [0.0, 1.0] * 5, [1.0] * 8 + [0.5] * 2
    found = powered(cheap, expensive, ["hard"] * 60 + ["easy"] * 30).best
    hard, easy = expensive[:10], expensive[60:70]
    assert found.mean == pytest.approx(2 / 3 * 0.5 + 1 / 3 * 0.9)
    within = (2 / 3) ** 2 * np.var(hard) / 10 + (1 / 3) ** 2 * np.var(easy) / 10
    between = (2 / 3 * (0.5 - found.mean) ** 2 + 1 / 3 * (0.9 - found.mean) ** 2) / 90
    assert found.error == pytest.approx(math.sqrt(20 / 18 * (within + between)))


def test_strata_narrow_the_interval_where_they_differ() -> None:
    """The same rows, judged in proportion: what lies between strata is known."""
    right = np.tile([0.0] * 19 + [1.0] + [1.0] * 19 + [0.0], 50)
    names = ["hard"] * 20 + ["easy"] * 20
    expensive = np.where(np.arange(2_000) < 400, right, np.nan)
    strata = powered(np.zeros(2_000), expensive, names * 50).best
    assert strata.error is not None
    assert strata.error < 0.7 * (powered(np.zeros(2_000), expensive).best.error or 0)


def test_a_stratum_without_judged_questions_is_joined_to_the_largest() -> None:
    """Its rows count, by the judged rows of the largest one."""
    cheap, expensive = night(rows=1_000, judged=300)
    lone = ["big"] * 990 + ["small"] * 10
    assert powered(cheap, expensive, lone) == powered(cheap, expensive)


# What it refuses


def test_nothing_judged_has_no_mean() -> None:
    """None, not the cheap judge's mean."""
    assert prediction_powered([0.5, 0.6], [math.nan, math.nan], ["a", "b"]) is None


def test_one_judged_question_has_a_mean_without_an_interval() -> None:
    """Nor has the plain one."""
    cheap, expensive = night(judged=1)
    found = powered(cheap, expensive)
    assert found.best.low is found.best.high is found.plain.low is None


def test_a_row_without_a_cheap_score_is_refused() -> None:
    """It has no place in a mean over all rows."""
    with pytest.raises(ValueError, match="score of the cheap judge"):
        prediction_powered([0.5, math.nan], [0.5, 0.5], ["a", "b"])


def test_lists_of_different_lengths_are_refused() -> None:
    """With the lengths."""
    with pytest.raises(ValueError, match=r"not \[2, 3\]"):
        prediction_powered([0.5, 0.6], [0.5, 0.6, 0.7], ["a", "b"])


@given(ROWS, st.booleans())
def test_whatever_the_scores(
    rows: list[tuple[float, float | None, str, str]], stratified: bool
) -> None:
    """The error is not above the plain one; the interval is in [0, 1] and holds the mean."""
    cheap, expensive, questions, strata = zip(*rows, strict=True)
    scores = [math.nan if one is None else one for one in expensive]
    found = prediction_powered(cheap, scores, questions, strata if stratified else None)
    if all(one is None for one in expensive):
        assert found is None
        return
    assert found is not None
    assert found.weight >= 0
    assert (found.best.error or 0) <= (found.plain.error or 0) + 1e-12
    if found.best.low is not None and found.best.high is not None:
        assert 0 <= found.best.low <= found.best.mean <= found.best.high <= 1
        assert found.best.low < found.best.high


@given(st.floats(0.1, 10), st.floats(-5, 5))
def test_the_cheap_judges_scale_does_not_matter(factor: float, shift: float) -> None:
    """A score from 1 to 5 helps as much as one from 0 to 1."""
    cheap, expensive = night(rows=300, judged=60)
    once, other = powered(cheap, expensive), powered(factor * cheap + shift, expensive)
    assert other.best.mean == pytest.approx(once.best.mean, abs=1e-9)
    assert other.best.error == pytest.approx(once.best.error, abs=1e-9)
    assert other.weight * factor == pytest.approx(once.weight, abs=1e-9)


# How many rows


def test_rows_are_sampled_in_proportion_or_where_they_differ() -> None:
    """Neyman: rows times spread."""
    sizes = {"big": 900, "small": 100}
    assert allocate(sizes, 100) == {"big": 90, "small": 10}
    assert allocate(sizes, 100, {"big": 0.1, "small": 0.9}) == {"big": 50, "small": 50}


def test_a_small_stratum_gets_two_and_no_more_than_it_has() -> None:
    """What it cannot give is taken of the others."""
    assert allocate({"big": 998, "rare": 2}, 50) == {"big": 48, "rare": 2}
    assert allocate({"a": 10, "b": 1_000}, 110, {"a": 1.0, "b": 0.01}) == {"a": 10, "b": 100}


@given(SIZES, st.integers(0, 2_000), st.booleans())
def test_the_sample_is_as_large_as_asked(sizes: dict[str, int], rows: int, neyman: bool) -> None:
    """Or as many rows as there are; two of each stratum wherever the sample is large enough."""
    spreads = {name: index / 10 for index, name in enumerate(sizes)} if neyman else None
    given_to = allocate(sizes, rows, spreads)
    assert given_to.keys() == sizes.keys()
    assert sum(given_to.values()) == min(rows, sum(sizes.values()))
    assert all(0 <= given_to[name] <= sizes[name] for name in sizes)
    if rows >= 2 * len(sizes):
        assert all(given_to[name] >= min(2, sizes[name]) for name in sizes)


def test_a_half_width_needs_so_many_rows() -> None:
    """Scores of SD 0.4 to within 0.02: 1,539 of them, and fewer with a judge that helps."""
    plain, helped = (rows_to_judge(0.02, 0.4, r, 1_000_000) for r in (0.0, 0.6))
    assert plain == pytest.approx((1.96 * 0.4 / 0.02) ** 2, rel=0.005)
    assert helped == pytest.approx(0.64 * plain, rel=0.01)
    assert rows_to_judge(0.02, 0.4, 1.0, 1_000_000) < 100


def test_no_more_rows_are_asked_for_than_there_are() -> None:
    """Where all are too few."""
    assert rows_to_judge(0.001, 0.4, 0.0, 500) == 500
    assert rows_to_judge(0.001, 0.4, 0.0, 2) == 2


def test_the_half_width_is_reached() -> None:
    """A sample of the size that was said, by the judge that was supposed."""
    rows = rows_to_judge(0.03, 0.39, 0.6, 5_000)
    found = powered(*night(rows=5_000, judged=rows)).best
    assert found.low is not None
    assert found.high is not None
    assert (found.high - found.low) / 2 == pytest.approx(0.03, rel=0.1)


# Simulation


def test_a_judge_that_agrees_narrows_the_interval_and_keeps_its_coverage() -> None:
    """Correlation 0.6: by 15% or more. research/prediction_powered.py has 2,000 nights."""
    found = measure("correlation 0.6", nights=400, rows=3_000, judged=200)
    assert found.gain >= 0.15
    assert 0.92 <= found.coverage <= 0.98


def test_a_judge_that_knows_nothing_does_not_widen_it() -> None:
    """Correlation 0: by 2% at most."""
    found = measure("correlation 0", nights=400, rows=3_000, judged=200)
    assert found.gain >= -0.02
    assert 0.92 <= found.coverage <= 0.98


def test_rows_of_a_question_are_not_independent() -> None:
    """Up to three rows a question with the same grade: the coverage is kept."""
    found = measure("correlation 0.6, 1-3 rows a question", nights=400, rows=1_000, judged=400)
    assert 0.92 <= found.coverage <= 0.98


def test_rows_that_turn_out_to_be_none_keep_the_coverage() -> None:
    """One in five, of which nobody knows how many there are among the others."""
    found = measure("correlation 0.6, one row in five is none", nights=250, rows=2_000, judged=200)
    assert found.gain >= 0.08
    assert 0.915 <= found.coverage <= 0.985


@pytest.mark.parametrize("how", ["in proportion", "by Neyman"])
def test_strata_keep_the_coverage(how: str) -> None:
    """Eight of unequal sizes, easy and hard."""
    found = measure(f"eight strata, sampled {how}", nights=250, rows=1_500, judged=200)
    assert 0.915 <= found.coverage <= 0.985


def test_nights_are_as_wide_as_was_asked_for_once_there_is_one_to_plan_by() -> None:
    """The first judges as many rows as any scores may need; the next ones fewer, and no more."""
    first, *later = measure_planned(series=25, rows=3_000, half_width=0.05)
    assert first.half_width < 0.045
    for night in later:
        assert night.judged < 0.6 * first.judged
        assert night.half_width == pytest.approx(0.05, rel=0.06)


# Unequal inclusion probabilities


@given(ROWS, st.dictionaries(st.sampled_from("xyz"), st.floats(0.001, 1), min_size=3))
def test_equal_probabilities_change_nothing(
    rows: list[tuple[float, float | None, str, str]], chances: dict[str, float]
) -> None:
    """Bit by bit the numbers without them, if they are equal in each stratum that stays apart."""
    cheap, value, names, strata = zip(*rows, strict=True)
    expensive = [math.nan if item is None else item for item in value]
    plain = prediction_powered(cheap, expensive, names)
    same = prediction_powered(cheap, expensive, names, None, [0.3] * len(rows))
    assert (plain is None) == (same is None)
    if plain and same:
        assert (plain.best, plain.plain, plain.weight) == (same.best, same.plain, same.weight)
    counts = {
        name: len({q for _, y, q, s in rows if s == name and y is not None}) for name in "xyz"
    }
    if all(counts[name] >= 2 for name in set(strata)):
        apart = prediction_powered(cheap, expensive, names, strata)
        own = prediction_powered(cheap, expensive, names, strata, [chances[s] for s in strata])
        assert apart is not None
        assert own is not None
        assert (apart.best, apart.plain) == (own.best, own.plain)


@given(ROWS, st.lists(st.floats(0.05, 1), min_size=40, max_size=40), st.floats(0.1, 1))
def test_only_the_ratios_of_probabilities_matter(
    rows: list[tuple[float, float | None, str, str]], chances: list[float], factor: float
) -> None:
    """Weights are divided by their sum, so that failures of the judge do no harm."""
    cheap, value, names, _ = zip(*rows, strict=True)
    expensive = [math.nan if item is None else item for item in value]
    own = np.array([chances[n % 40] for n in range(len(rows))])
    found = prediction_powered(cheap, expensive, names, None, own)
    scaled = prediction_powered(cheap, expensive, names, None, factor * own)
    if found and scaled:
        assert scaled.plain.mean == pytest.approx(found.plain.mean, abs=1e-9)


def test_over_all_samples_of_a_small_population_it_is_unbiased() -> None:
    """All 1,023 samples of ten rows, weighted by their chances: the bias is a small part of the
    error, while that of the unweighted mean is larger than the error of the mean.
    """
    y = np.array([0.0, 0.0, 0.1, 0.0, 0.2, 0.9, 1.0, 0.8, 1.0, 0.9])
    pi = np.array([0.3, 0.3, 0.3, 0.3, 0.3, 0.9, 0.9, 0.9, 0.9, 0.9])
    total = weighted = unweighted = squares = 0.0
    for sample in range(1, 1 << 10):
        judged = np.array([bool(sample >> bit & 1) for bit in range(10)])
        chance = float(np.where(judged, pi, 1 - pi).prod())
        seen = np.where(judged, y, math.nan)
        found = prediction_powered(np.zeros(10), seen, np.arange(10), None, pi)
        assert found is not None
        total += chance
        weighted += chance * found.plain.mean
        squares += chance * (found.plain.mean - y.mean()) ** 2
        unweighted += chance * float(y[judged].mean())
    error = math.sqrt(squares / total)
    assert abs(weighted / total - y.mean()) < 0.3 * error
    assert unweighted / total - y.mean() > error


@pytest.mark.parametrize("chance", [0.0, 1.5, math.nan])
def test_a_probability_that_is_none_is_refused(chance: float) -> None:
    """Each judged row was drawn with some chance; of the others none is read."""
    with pytest.raises(ValueError, match="inclusion probability"):
        prediction_powered([0.1, 0.2], [1.0, math.nan], ["a", "b"], None, [chance, 0.5])
    assert prediction_powered([0.1, 0.2], [1.0, math.nan], ["a", "b"], None, [0.5, chance])


def test_the_spread_of_a_row_is_that_of_a_plain_sample() -> None:
    """Of equal probabilities it is the error times the root of the rows; of others it is close."""
    random = np.random.default_rng(8)
    value = random.random(4_000)
    pi = np.where(value > 0.7, 0.4, 0.1)
    seen = np.where(random.random(4_000) < pi, value, math.nan)
    spread = row_spread(seen, np.arange(4_000), pi)
    assert spread == pytest.approx(value.std(), rel=0.06)
    alike = np.where(np.arange(4_000) < 500, value, math.nan)
    found = prediction_powered(np.zeros(4_000), alike, np.arange(4_000))
    assert found is not None
    assert found.plain.error is not None
    own = row_spread(alike, np.arange(4_000), np.full(4_000, 0.125))
    assert own == pytest.approx(found.plain.error * math.sqrt(500))
    assert row_spread([math.nan], ["a"], [0.5]) is None

"""The interval of a mean: checked against scipy, its own defining equation, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from ragmetrics.stats import Mean, detectable, mean_interval
from ragmetrics.stats.intervals import ALIKE, FEWEST_QUESTIONS
from research.coverage import Cell, cover

UNIT = st.floats(0, 1)
ROWS = st.lists(st.tuples(UNIT, st.sampled_from("abcdef")), min_size=1, max_size=30)
SPREAD = st.lists(UNIT, min_size=3, max_size=20).filter(lambda values: np.ptp(values) > ALIKE)


def apart(values: list[float] | np.ndarray, **more: float) -> Mean:
    """The mean of rows whose questions are all different."""
    found = mean_interval(values, [f"q{i}" for i in range(len(values))], **more)
    assert found is not None
    return found


def width(found: Mean) -> float:
    """How wide the interval is."""
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_outside_0_1_it_is_the_t_interval() -> None:
    """Cosines of independent rows: mean and interval are scipy's."""
    values = [-0.2, 0.9, 0.4, 0.1, 0.7]
    found = apart(values)
    low, high = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((np.mean(values), low, high))
    assert found.error == pytest.approx(stats.sem(values))
    assert (found.n, found.clusters) == (5, 5)


def test_the_clustered_error_by_hand() -> None:
    """Values 1, 3 | -2 | 6 | 2 have m = 2; sums of deviations 0, -4, 4, 0; se^2 = 4/3 * 32 / 25."""
    found = mean_interval([1, 3, -2, 6, 2], ["a", "a", "b", "c", "d"])
    assert found is not None
    assert (found.mean, found.error) == (2.0, pytest.approx(math.sqrt(4 / 3 * 32 / 25)))
    half = stats.t.ppf(0.975, 25 / 7 - 1) * math.sqrt(4 / 3 * 32 / 25)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))


def assert_solves_wilson(found: Mean, n_eff: float, questions: int) -> None:
    """Both bounds p satisfy (m - p)^2 = t^2 p (1 - p) / n_eff."""
    t = stats.t.ppf(0.975, questions - 1)
    for bound in (found.low, found.high):
        assert bound is not None
        expected = t**2 * bound * (1 - bound) / n_eff
        assert (found.mean - bound) ** 2 == pytest.approx(expected, abs=1e-12)


@given(SPREAD)
def test_inside_0_1_the_bounds_solve_wilsons_equation(values: list[float]) -> None:
    """Of as many zeros and ones as say as much as the values and half a one more at each end.

    The ends are the furthest values, the further one further yet.
    """
    mean, ends = np.mean(values), np.array([min(values), max(values)])
    further = np.maximum(1, 2 * np.abs(ends - mean) / np.ptp(values)) ** 0.75
    added = [*values, *np.clip(mean + (ends - mean) * further, 0, 1)]
    weights = [1.0] * len(values) + [0.5, 0.5]
    centre = np.average(added, weights=weights)
    variance = np.average(np.square(added - centre), weights=weights)
    assert_solves_wilson(apart(values), len(values) * centre * (1 - centre) / variance, len(values))


@given(st.integers(0, 40), st.integers(0, 40))
def test_of_zeros_and_ones_it_is_wilsons_interval(zeros: int, ones: int) -> None:
    """With t for z: the effective number of questions is their number."""
    if zeros + ones >= FEWEST_QUESTIONS:
        found = apart([0.0] * zeros + [1.0] * ones)
        assert_solves_wilson(found, zeros + ones, zeros + ones)


def test_repeated_rows_add_no_certainty() -> None:
    """Each row logged three times gives the interval of the rows logged once."""
    values = [0.1, 0.5, 0.6, 0.9, 1.0]
    once = mean_interval(values, list("abcde"))
    thrice = mean_interval(values * 3, list("abcde") * 3)
    assert once is not None
    assert thrice is not None
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))
    assert (thrice.n, thrice.clusters) == (15, 5)


def test_clustering_widens_the_interval_where_rows_repeat() -> None:
    """Rows of one question that agree are worth less than rows of different questions."""
    values = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5]
    clustered = mean_interval(values, list("aaabbbccc"))
    assert clustered is not None
    assert width(clustered) > 1.5 * width(apart(values))


@given(ROWS)
def test_for_values_in_0_1_the_interval_stays_there(rows: list[tuple[float, str]]) -> None:
    """It holds the mean, has a width, and needs at least two questions' worth of rows."""
    values, clusters = zip(*rows, strict=True)
    found = mean_interval(values, clusters)
    assert found is not None
    assert found.clusters == len(set(clusters))
    shares = np.unique(clusters, return_counts=True)[1] / len(clusters)
    if 1 / np.square(shares).sum() < FEWEST_QUESTIONS:
        assert found.low is found.high is found.mde is None
    else:
        assert found.low is not None
        assert found.high is not None
        assert found.mde is not None
        assert 0 <= found.low <= found.mean <= found.high <= 1
        assert found.low < found.high
        assert found.mde > 0


@given(ROWS)
def test_failures_mirror_successes(rows: list[tuple[float, str]]) -> None:
    """The interval of 1 - x is that of x, turned round."""
    values, clusters = zip(*rows, strict=True)
    one, other = (mean_interval(side, clusters) for side in (values, [1 - x for x in values]))
    assert one is not None
    assert other is not None
    if one.low is not None and one.high is not None and one.mde is not None:
        assert (other.low, other.high) == pytest.approx((1 - one.high, 1 - one.low), abs=1e-9)
        assert other.mde == pytest.approx(one.mde)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_equal_values_are_no_certainty(value: float) -> None:
    """Ten rows of ten at 0 or 1 do not prove the next; more rows prove more."""
    ten, thousand = apart([value] * 10), apart([value] * 1000)
    assert 0.1 < width(ten) < 0.7
    assert 0 < width(thousand) < 0.1


@pytest.mark.parametrize("questions", [10, 100])
def test_values_that_are_all_but_equal_are_no_certainty_either(questions: int) -> None:
    """A score of 0.9999999 among ones, as some metrics round, says as little as a one."""
    alike, equal = apart([1.0] * (questions - 1) + [0.9999999]), apart([1.0] * questions)
    assert alike.low == pytest.approx(equal.low, abs=1e-6)


def test_one_question_with_nearly_all_rows_is_one_question() -> None:
    """Five questions of which one has 95 rows of 99 have a mean and an error, and no interval."""
    found = mean_interval([1.0] * 95 + [0.0] * 4, ["a"] * 95 + list("bcde"))
    assert found is not None
    assert found.error is not None
    assert found.low is found.high is found.mde is None


def test_no_value_has_no_mean() -> None:
    """Nothing scored: None, not NaN."""
    assert mean_interval([], []) is None


def test_one_question_has_a_mean_without_an_interval() -> None:
    """However often it was asked."""
    assert mean_interval([0.25, 0.75], ["a", "a"]) == Mean(0.5, None, None, 2, 1, None)


def test_more_confidence_is_wider() -> None:
    """The confidence is a parameter."""
    values = [0.2, 0.4, 0.9, 0.5]
    assert width(apart(values, confidence=0.99)) > width(apart(values, confidence=0.8))


def test_the_detectable_effect_is_that_of_the_guarded_error() -> None:
    """Zeros and ones with half a one more at each end."""
    values = [0.0] * 5 + [1.0] * 15
    found = apart(values)
    error = math.sqrt((15.5 / 21) * (5.5 / 21) / 20)
    assert found.mde == pytest.approx(detectable(error, 19))


@pytest.mark.parametrize("layout", ["one row each", "1-10 rows each"])
@pytest.mark.parametrize("mean", ["0.02", "middle", "0.98"])
@pytest.mark.parametrize("kind", ["graded", "binary", "continuous"])
def test_the_interval_holds_the_truth_19_nights_of_20(kind: str, mean: str, layout: str) -> None:
    """500 simulated nights of 30 questions: research/coverage.py has 2,000, and larger ones."""
    found = cover(Cell(kind, mean, 30, layout), nights=500)
    assert found.told == 1
    assert found.share is not None
    assert 0.92 <= found.share <= 0.98


def test_the_plain_t_interval_does_not() -> None:
    """Of thirty zeros and ones with a mean near 0.02, mostly zeros alone, it says "exactly 0"."""
    assert cover(Cell("binary", "0.02", 30, "one row each"), nights=500).t_share < 0.6


@pytest.mark.parametrize("rare", [0.01, 0.02])
def test_rare_scores_on_either_side_are_covered(rare: float) -> None:
    """A night shows some of them on one side only: the other side stays possible. On the observed
    range alone it held 53% and 76%.
    """
    random, held, nights = np.random.default_rng(5), 0, 500
    for _ in range(nights):
        found = apart(random.choice([0.0, 0.5, 1.0], 100, p=[rare, 1 - 2 * rare, rare]))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.5 <= found.high
    assert held >= 0.93 * nights


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_equal_middle_scores_leave_room_for_rarer_ones(end: float) -> None:
    """Two rows in a hundred differ: one night in seven shows none of them, and must cover it."""
    rng = np.random.default_rng(7)
    truth, covered = 0.5 + 0.02 * (end - 0.5), 0
    for _ in range(500):
        found = apart(np.where(rng.random(100) < 0.02, end, 0.5))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert covered >= 0.93 * 500


def test_rare_low_scores_are_covered() -> None:
    """Most rows score 0.5 and none more, as where each row has one relevant context of two: the
    interval reaches further down, where the rare rows are. On the scale from 0 to 1 it held 91%.
    """
    random, held, nights = np.random.default_rng(5), 0, 1_000
    scores, chances = np.array([0.0, 0.25, 0.5]), [0.03, 0.02, 0.95]
    for _ in range(nights):
        found = apart(random.choice(scores, 100, p=chances))
        assert found.low is not None
        assert found.high is not None
        assert found.mean - found.low >= found.high - found.mean - 1e-9
        held += found.low <= float(scores @ chances) <= found.high
    assert 0.93 <= held / nights <= 0.985


@given(st.lists(UNIT, min_size=80, max_size=120))
def test_with_many_questions_the_interval_holds_the_mean_and_stays_on_the_scale(
    values: list[float],
) -> None:
    """Whatever the values: from 80 questions on their range is the scale."""
    found = apart(values)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.mean <= found.high <= 1

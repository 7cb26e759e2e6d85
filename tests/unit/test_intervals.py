"""The interval of a mean: checked against scipy, its own defining equation, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragmetrics.stats.intervals import Mean, mean_interval

UNIT = st.floats(0, 1)
ROWS = st.lists(st.tuples(UNIT, st.sampled_from("abcdef")), min_size=1, max_size=30)
NIGHTS = 400


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
    """Values 1, 3 | -2 | 6 have m = 2; sums of deviations 0, -4, 4; se^2 = 3/2 * 32 / 16."""
    found = mean_interval([1, 3, -2, 6], ["a", "a", "b", "c"])
    assert found is not None
    assert (found.mean, found.error) == (2.0, pytest.approx(math.sqrt(3)))
    t = stats.t.ppf(0.975, 2)
    assert (found.low, found.high) == pytest.approx((2 - t * 3**0.5, 2 + t * 3**0.5))


@given(st.lists(UNIT, min_size=2, max_size=20).filter(lambda values: np.std(values) > 0.01))
def test_inside_0_1_the_bounds_solve_wilsons_equation(values: list[float]) -> None:
    """Both bounds p satisfy (m - p)^2 = t^2 p (1 - p) / n_eff, with n_eff = m (1 - m) / se^2."""
    found, t = apart(values), stats.t.ppf(0.975, len(values) - 1)
    n_eff = found.mean * (1 - found.mean) / stats.sem(values) ** 2
    for bound in (found.low, found.high):
        assert bound is not None
        assert (found.mean - bound) ** 2 == pytest.approx(t**2 * bound * (1 - bound) / n_eff)


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
    """It holds the mean, and needs at least two questions."""
    values, clusters = zip(*rows, strict=True)
    found = mean_interval(values, clusters)
    assert found is not None
    assert found.clusters == len(set(clusters))
    if found.clusters < 2:
        assert found.low is found.high is found.error is None
    else:
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.mean + 1e-12
        assert found.mean - 1e-12 <= found.high <= 1


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_equal_values_are_no_certainty(value: float) -> None:
    """Ten rows of ten at 0 or 1 do not prove the next; more rows prove more."""
    ten, thousand = apart([value] * 10), apart([value] * 1000)
    assert 0.1 < width(ten) < 0.7
    assert 0 < width(thousand) < 0.1


def test_zeros_and_ones_mirror_each_other() -> None:
    """The interval of failures is that of successes, turned round."""
    good, bad = apart([1.0] * 9 + [0.0]), apart([0.0] * 9 + [1.0])
    assert (good.low, good.high) == pytest.approx((1 - (bad.high or 0), 1 - (bad.low or 0)))


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


@pytest.mark.parametrize("questions", [20, 80])
@pytest.mark.parametrize("kind", ["zero_or_one", "grades", "clustered"])
def test_the_interval_holds_the_truth_19_nights_of_20(kind: str, questions: int) -> None:
    """Simulated nights: 95% of the intervals hold the true mean, repeated rows or not.

    A few more may hold it where the mean takes few values, as that of twenty zeros and ones.
    """
    random = np.random.default_rng(7)
    held = 0
    for _ in range(NIGHTS):
        repeats = (
            random.integers(1, 6, questions) if kind == "clustered" else np.ones(questions, int)
        )
        clusters = np.repeat([f"q{i}" for i in range(questions)], repeats)
        if kind == "grades":
            values, truth = random.choice([0, 0.5, 1], len(clusters), p=[0.2, 0.3, 0.5]), 0.65
        else:
            by_question = random.random(questions) < 0.7
            values, truth = np.repeat(by_question, repeats).astype(float), 0.7
        found = mean_interval(values, clusters)
        assert found is not None
        held += (found.low or 0) <= truth <= (found.high or 0)
    assert 0.915 <= held / NIGHTS <= 0.995

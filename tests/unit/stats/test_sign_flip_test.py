"""The permutation test of few pairs, beside all patterns of signs written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from ragmetrics.stats.sign_flip_test import sign_flip_interval, sign_flip_p_value

SCORES = st.one_of(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0]), st.floats(-1, 1))
DIFFERENCES = st.lists(SCORES.map(lambda value: round(value, 6)), min_size=2, max_size=9)


def all_patterns(differences: list[float]) -> float:
    """The mid-p of all patterns of signs, each counted."""
    signs = np.array(list(product([1, -1], repeat=len(differences))))
    means, own = signs @ np.array(differences), sum(differences)
    larger, as_large = np.mean(means > own + 1e-9), np.mean(abs(means - own) <= 1e-9)
    return float(larger + as_large / 2)


@given(DIFFERENCES)
def test_p_is_that_of_all_patterns_of_signs(differences: list[float]) -> None:
    """Counted one by one; it is at least that of all questions falling together."""
    least = 0.5 ** len(differences)
    expected = min(max(all_patterns(differences), least), 1 - least)
    assert sign_flip_p_value(np.array(differences)) == pytest.approx(expected)


@given(DIFFERENCES)
def test_p_of_a_rise_is_the_rest(differences: list[float]) -> None:
    """Lower is better for some metrics."""
    own = np.array(differences)
    assert sign_flip_p_value(own) + sign_flip_p_value(-own) == pytest.approx(1)


def test_questions_that_did_not_move_do_not_matter() -> None:
    """They have no sign."""
    own = np.array([0.5, 0.25, 0.5, -0.25, 1.0, 0.75, 0.5])
    assert sign_flip_p_value(np.append(own, [0.0] * 20)) == pytest.approx(all_patterns([*own]))


def test_zeros_and_ones_are_compared_by_mcnemars_mid_p_test() -> None:
    """Eight fell, two rose, nineteen did not move."""
    p_value = sign_flip_p_value(np.array([1.0] * 8 + [-1.0] * 2 + [0.0] * 19))
    expected = stats.binom.sf(8, 10, 0.5) + stats.binom.pmf(8, 10, 0.5) / 2
    assert p_value == pytest.approx(expected)


def test_of_many_moves_p_is_that_of_the_t_test() -> None:
    """Both test the same mean; 29 normal differences have no ties."""
    drawn = np.random.default_rng(3).normal(0.1, 0.3, (20, 29))
    for sample in drawn:
        expected = stats.ttest_1samp(sample, 0, alternative="greater").pvalue
        assert sign_flip_p_value(sample) == pytest.approx(expected, abs=0.01)


@given(st.lists(SCORES, min_size=6, max_size=9), st.sampled_from([0.9, 0.95]))
def test_the_interval_holds_what_the_test_does_not_reject(
    differences: list[float], confidence: float
) -> None:
    """Inside its bounds the shifted differences are not significant, beyond them they are."""
    own = np.array(differences)
    rest, step = (1 - confidence) / 2, 0.02 * float(own.std()) + 1e-6
    low, high = sign_flip_interval(own, confidence=confidence)
    assert low <= own.mean() + 1e-9
    assert own.mean() - 1e-9 <= high
    assert sign_flip_p_value(own - low + step) <= rest or own.std() < 1e-6
    assert sign_flip_p_value(high + step - own) <= rest or own.std() < 1e-6
    assert sign_flip_p_value(own - low - step) > rest or own.std() < 1e-6


@given(DIFFERENCES)
def test_the_interval_excludes_0_where_p_is_small_enough(differences: list[float]) -> None:
    """On either side."""
    own = np.array(differences)
    low, high = sign_flip_interval(own, confidence=0.95)
    assert (low > 0) == (sign_flip_p_value(own) <= 0.025)
    assert (high < 0) == (sign_flip_p_value(-own) <= 0.025)


def test_so_few_questions_have_no_bounds() -> None:
    """Five that all fall would do so by chance once in 32 times."""
    assert sign_flip_interval(np.full(5, 0.5), confidence=0.95) == (-np.inf, np.inf)
    assert sign_flip_interval(np.full(6, 0.5), confidence=0.95) == (0.5, 0.5)

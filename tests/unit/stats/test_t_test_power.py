"""What can be detected: checked against the noncentral t, published sample sizes and itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st
from scipy import stats

from ragmetrics.stats import detectable, smallest_enough
from ragmetrics.stats.t_test import MOST_QUESTIONS
from research.coverage import power_of_a_limit

EFFECTS = st.floats(0.02, 2)
SPREADS = st.floats(0.01, 2)


@pytest.mark.parametrize("freedom", [9, 29, 99, 999])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_the_power_is_that_of_the_noncentral_t(freedom: int, alpha: float, power: float) -> None:
    """A test of the effect that is said to be detectable finds it so often."""
    effect = detectable(1.0, freedom, alpha=alpha, power=power)
    limit = stats.t.ppf(1 - alpha, freedom)
    assert stats.nct.sf(limit, freedom, effect) == pytest.approx(power, abs=0.025)


def test_it_is_in_units_of_the_error() -> None:
    """Twice the error, twice the effect; none, none."""
    assert detectable(0.2, 50) == pytest.approx(2 * detectable(0.1, 50))
    assert detectable(0.0, 50) == 0


def test_published_sample_sizes() -> None:
    """Half a standard deviation, one-sided 5%, 80% power: 27 pairs, or 51 on each side."""
    assert smallest_enough(lambda n: detectable(1 / math.sqrt(n), n - 1) < 0.5, 2) == 27
    both = math.sqrt(2)
    assert smallest_enough(lambda n: detectable(both / math.sqrt(n), 2 * n - 2) < 0.5, 2) == 51


@given(st.integers(2, 1_000), st.integers(2, 200_000))
def test_the_search_finds_the_first(fewest: int, first: int) -> None:
    """Of a condition that holds from some number on."""
    found = smallest_enough(lambda n: n >= first, fewest)
    assert found == (max(first, fewest) if first <= MOST_QUESTIONS else None)


def test_a_limit_as_far_as_is_detectable_is_told_four_nights_of_five() -> None:
    """Simulated: research/coverage.py has more of it."""
    assert 0.75 <= power_of_a_limit(100, nights=500) <= 0.9

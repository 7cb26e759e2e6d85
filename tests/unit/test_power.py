"""What can be detected: checked against the noncentral t, published sample sizes and itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st
from scipy import stats

from benchmarks.coverage import power_of_a_limit
from ragmetrics.stats import detectable, smallest_enough
from ragmetrics.stats.power import MOST_QUESTIONS, questions_needed, questions_needed_unpaired

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
    assert questions_needed(0.5, 1.0) == 27
    assert questions_needed_unpaired(0.5, 1.0, 1.0) == 51


@given(EFFECTS, SPREADS)
def test_the_number_needed_is_the_smallest_that_detects_it(effect: float, spread: float) -> None:
    """So many detect it, and one less does not."""
    needed = questions_needed(effect, spread)
    if needed is None:
        assert detectable(spread / math.sqrt(MOST_QUESTIONS), MOST_QUESTIONS - 1) >= effect
        return
    assert detectable(spread / math.sqrt(needed), needed - 1) < effect
    if needed > 2:
        assert detectable(spread / math.sqrt(needed - 1), needed - 2) >= effect


@given(EFFECTS, SPREADS)
def test_pairing_needs_fewer_where_questions_move_less_than_they_differ(
    effect: float, spread: float
) -> None:
    """Differences as spread as the questions themselves: half of each side's number."""
    pairs, sides = (
        questions_needed(effect, spread),
        questions_needed_unpaired(effect, spread, spread),
    )
    if pairs is not None and sides is not None and pairs > 30:
        assert sides == pytest.approx(2 * pairs, rel=0.1)


def test_those_at_hand_are_not_counted_away() -> None:
    """With 100 questions at hand no fewer are named."""
    assert questions_needed(0.5, 1.0, fewest=100) == 100


@pytest.mark.parametrize("effect", [0.0, -0.1, 1e-9])
def test_no_number_shows_what_is_no_effect(effect: float) -> None:
    """Nor one too small for 100,000 questions."""
    assert questions_needed(effect, 0.3) is None
    assert questions_needed_unpaired(effect, 0.3, 0.3) is None


@given(st.integers(2, 1_000), st.integers(2, 200_000))
def test_the_search_finds_the_first(fewest: int, first: int) -> None:
    """Of a condition that holds from some number on."""
    found = smallest_enough(lambda n: n >= first, fewest)
    assert found == (max(first, fewest) if first <= MOST_QUESTIONS else None)


def test_a_limit_as_far_as_is_detectable_is_told_four_nights_of_five() -> None:
    """Simulated: benchmarks/coverage.py has more of it."""
    assert 0.75 <= power_of_a_limit(100, nights=500) <= 0.9

"""Families: p values adjusted together, checked against scipy."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from scipy import stats

from ragmetrics.stats import adjust_p_values


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_it_is_scipys_benjamini_hochberg(p_values: list[float]) -> None:
    """In the order given, ties and zeros among them."""
    assert adjust_p_values(p_values) == pytest.approx(list(stats.false_discovery_control(p_values)))


def test_one_p_value_stays_as_it_is() -> None:
    """A family of one needs no control; of none there is none."""
    assert adjust_p_values([0.03]) == [0.03]
    assert adjust_p_values([]) == []

"""Quantiles of times: their values and the order statistics of their intervals."""

from __future__ import annotations

import numpy as np

from ragmetrics.scoring.quantiles import quantiles
from ragmetrics.stats import Numbers


def test_the_interval_of_a_median_is_that_of_its_order_statistics() -> None:
    """Of 100 values the 40th and the 61st, as tables have it."""
    (median,) = quantiles(np.arange(1.0, 101.0), (0.5,))
    assert (median.value, median.low, median.high) == (50.5, 40.0, 61.0)


def test_without_a_value_there_is_none() -> None:
    """A night whose log has no times."""
    assert quantiles(np.array([])) == []


def test_intervals_hold_the_quantile_in_95_of_100_draws() -> None:
    """Also of skewed times, and of a quantile far out."""
    random, true = np.random.default_rng(7), np.exp(1.6449)
    draws: Numbers = np.exp(random.normal(size=(400, 500)))
    held = [one.low <= true <= one.high for draw in draws for one in quantiles(draw, (0.95,))]
    assert 0.93 <= np.mean(held) <= 0.99

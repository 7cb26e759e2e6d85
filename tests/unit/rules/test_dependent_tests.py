"""Tests that share nights: their correlation, and the bound of the chance of any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import special, stats

from ragmetrics.rules.dependent_tests import chance_of_any, rule_links


def bound(p_value: float, *links: float) -> float:
    """The chance of any, as a number."""
    return float(chance_of_any(np.array(p_value), links))


@pytest.mark.parametrize("p_value", [0.0004, 0.02, 0.3, 0.7])
@pytest.mark.parametrize("link", [-0.4, 0.0, 0.6, 0.95])
def test_two_tests_are_exact(p_value: float, link: float) -> None:
    """As the bivariate normal distribution of scipy."""
    height = -special.ndtri(p_value)
    both = stats.multivariate_normal([0, 0], [[1, link], [link, 1]]).cdf([height, height])
    assert bound(p_value, link) == pytest.approx(1 - both, abs=1e-6)


@given(st.floats(0, 1), st.lists(st.floats(-0.99, 1), max_size=5))
def test_the_bound_is_between_p_and_bonferroni(p_value: float, links: list[float]) -> None:
    """One test alone has its own p; equal tests count once; correlation never costs."""
    found = bound(p_value, *links)
    assert p_value - 1e-12 <= found <= min(1.0, (len(links) + 1) * p_value) + 1e-9
    assert bound(p_value) == p_value
    assert bound(p_value, *[1.0] * len(links)) == pytest.approx(p_value)


def test_links_of_the_default_rule() -> None:
    """Tonight with two baselines that share six of seven nights; and two nights together."""
    alike = (1 + 6 / 49) / (1 + 1 / 7)
    pooled = (1 / 2 + 1 / 7) / np.sqrt((1 + 1 / 7) * (1 / 2 + 1 / 7))
    assert rule_links(2, 7) == pytest.approx([alike, pooled])
    assert rule_links(1, 7) == ()
    assert rule_links(2, 0, fixed=True) == pytest.approx([np.sqrt(1 / 2)])


@pytest.mark.parametrize(
    ("nights", "before", "fixed"), [(2, 7, 0), (2, 1, 0), (3, 7, 0), (3, 1, 1)]
)
def test_any_test_of_a_rule_is_rarer_than_the_bound(nights: int, before: int, fixed: int) -> None:
    """Of 200,000 histories in which nothing changed; half as often would be Bonferroni's waste."""
    noise = np.random.default_rng(4).normal(size=(200_000, nights + before))
    sums = np.cumsum(np.pad(noise, ((0, 0), (1, 0))), axis=1)

    def mean(start: int, count: int) -> np.ndarray:
        return (sums[:, start + count] - sums[:, start]) / count

    pooled = [(k, nights if fixed else k) for k in range(1, nights + 1)]
    alone = [] if fixed else [(1, j + 1) for j in range(1, nights)]
    scores = [
        (mean(start, before) - mean(0, k)) / np.sqrt(1 / k + 1 / before)
        for k, start in (*pooled, *alone)
    ]
    p_value = 0.002
    share = (np.max(scores, axis=0) > -special.ndtri(p_value)).mean()
    found = bound(p_value, *rule_links(nights, before, fixed=bool(fixed)))
    assert 0.75 * found < share < found + 3 * np.sqrt(found / len(noise))

"""Inclusion probabilities by uncertainty, the draw by permanent random keys, its uniform part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from ragmetrics.scoring.sampling.inclusion import (
    inclusion_probabilities,
    order_sample,
    relative_probabilities,
    uniform_part,
    variance_ratio,
)

Floats = NDArray[np.float64]
UNCERTAIN = st.lists(st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5]), min_size=1, max_size=60)
KEYS = st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=60)


@given(UNCERTAIN)
def test_the_expected_loss_is_bounded(uncertain: list[float]) -> None:
    """If all rows turn out to be equally uncertain, the variance grows by 2% at most."""
    p = relative_probabilities(uncertain)
    assert p.min() > 0
    assert p.mean() == pytest.approx(1)
    assert float((1 / p).mean()) <= 1.02 + 1e-9


@given(UNCERTAIN, st.integers(1, 70))
def test_probabilities_sum_to_the_sample(uncertain: list[float], size: int) -> None:
    """They are at most 1, and larger for a row that is more uncertain."""
    pi = inclusion_probabilities(relative_probabilities(uncertain), size)
    assert pi.sum() == pytest.approx(min(size, len(uncertain)))
    assert ((pi > 0) & (pi <= 1)).all()
    order = np.argsort(uncertain, kind="stable")
    assert (np.diff(pi[order]) >= -1e-12).all()


@given(UNCERTAIN)
def test_by_what_is_expected_nothing_is_lost(uncertain: list[float]) -> None:
    """The variance is that of equal probabilities or less; an even uncertainty changes nothing."""
    p = relative_probabilities(uncertain)
    assert variance_ratio(uncertain, p * 0.1) <= 1 + 1e-9
    assert variance_ratio(np.ones(9), np.full(9, 0.3)) == pytest.approx(1)


def test_no_shape_with_the_same_bound_is_better() -> None:
    """The probabilities minimise the expected variance among all that keep the bound."""
    random = np.random.default_rng(5)
    uncertain = random.choice([0.05, 0.2, 0.5], 300)
    best = relative_probabilities(uncertain)
    expected = float((uncertain**2 / best).mean())
    bound = float((1 / best).mean())
    for _ in range(300):
        other = (
            best * np.exp(0.05 * random.standard_normal(3))[np.searchsorted([0.1, 0.3], uncertain)]
        )
        other /= other.mean()
        if float((1 / other).mean()) <= bound:
            assert float((uncertain**2 / other).mean()) >= expected - 1e-9


@given(KEYS, st.integers(1, 60), st.floats(0.01, 1))
def test_equal_probabilities_draw_the_lowest_keys(keys: list[int], size: int, pi: float) -> None:
    """So a uniform draw is what it was before there was any other."""
    known = np.array(keys, dtype=np.uint64)
    drawn = order_sample(known, np.full(len(known), pi), size)
    assert sorted(known[drawn].tolist()) == sorted(keys)[:size]


def test_rows_are_drawn_with_their_probabilities() -> None:
    """Over 4,000 draws of 20 of 80 rows, each row as often as it should be."""
    random = np.random.default_rng(3)
    pi = inclusion_probabilities(relative_probabilities(np.linspace(0.01, 0.5, 80)), 20)
    counts = np.zeros(80)
    for _ in range(4_000):
        counts[order_sample(random.integers(0, 2**64, 80, dtype=np.uint64), pi, 20)] += 1
    error = np.sqrt(4_000 * pi * (1 - pi))
    assert (np.abs(counts - 4_000 * pi) < 4.5 * error + 0.01 * 4_000 * pi).all()


def test_another_uncertainty_keeps_most_of_the_sample() -> None:
    """The keys stay: rows whose probability did not fall are drawn again."""
    random = np.random.default_rng(4)
    keys = random.integers(0, 2**64, 5_000, dtype=np.uint64)
    first, second = (
        set(order_sample(keys, inclusion_probabilities(p, 500), 500).tolist())
        for p in (np.ones(5_000), relative_probabilities(random.random(5_000)))
    )
    assert len(first & second) > 440


def test_the_uniform_part_knows_nothing_of_the_uncertainty() -> None:
    """Of two kinds of rows, one drawn more often, it has both in their share of all rows."""
    random = np.random.default_rng(6)
    uncertain = np.repeat([0.02, 0.5], [3_000, 1_000])
    pi = inclusion_probabilities(relative_probabilities(uncertain), 400)
    shares, sizes, in_sample = [], [], []
    for _ in range(200):
        keys = random.integers(0, 2**64, 4_000, dtype=np.uint64)
        drawn = np.zeros(4_000, dtype=bool)
        drawn[order_sample(keys, pi, 400)] = True
        part = uniform_part(keys, drawn)
        assert (drawn | ~part).all()
        shares.append((part & (uncertain > 0.1)).sum() / part.sum())
        in_sample.append((drawn & (uncertain > 0.1)).sum() / 400)
        sizes.append(part.sum())
    assert np.mean(shares) == pytest.approx(0.25, abs=0.006)
    assert np.mean(in_sample) > 0.3
    assert np.mean(sizes) > 0.8 * 400


@given(KEYS, st.integers(1, 60))
def test_of_equal_probabilities_all_is_uniform(keys: list[int], size: int) -> None:
    """There is nothing to leave out, unless keys are equal."""
    known = np.array(sorted(set(keys)), dtype=np.uint64)
    drawn = np.zeros(len(known), dtype=bool)
    drawn[order_sample(known, np.full(len(known), 0.5), size)] = True
    assert (uniform_part(known, drawn) == drawn).all()

"""The interval of a paired drop: Tango's, of graded moves too, and what it covers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from ragmetrics.stats import Numbers
from ragmetrics.stats.intervals import paired_interval
from ragmetrics.stats.t_test import MeanDifference
from research.coverage import DROPS, cover_drop

DIFFERENCES = st.lists(st.floats(-1, 1), min_size=2, max_size=40).map(np.array)


def moved(lost: int, gained: int, n: int, far: float = 1.0) -> Numbers:
    """So many of n questions that lost and gained as far."""
    return far * np.repeat([1.0, -1.0, 0.0], [lost, gained, n - lost - gained])


def interval(differences: Numbers) -> tuple[float, float]:
    """The one that people see."""
    return paired_interval(differences, confidence=0.95)


def as_published(n: int) -> float:
    """The confidence at which t^2 / (n - 1) is the normal quantile's z^2 / n."""
    z = float(stats.norm.ppf(0.975))
    return float(2 * stats.t.cdf(z * math.sqrt((n - 1) / n), n - 1) - 1)


def test_of_zeros_and_ones_it_is_tangos() -> None:
    """Airway data of Bentur et al. 2009, as Fagerland, Lydersen and Laake 2014 have it."""
    found = paired_interval(moved(1, 7, 21), confidence=as_published(21))
    assert found == pytest.approx((-0.517, -0.026), abs=0.0005)


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (1, 0), (5, 0), (4, 2), (9, 1), (3, 3)])
def test_its_ends_are_the_drops_that_a_score_test_just_allows(lost: int, gained: int) -> None:
    """The likeliest share of gains at each end found by search, not by formula."""
    n, t = 40, float(stats.t.ppf(0.975, 39))
    for end in interval(moved(lost, gained, n)):
        shares = np.linspace(max(0.0, -end), (1 - end) / 2, 200_003)[1:-1]
        likely = (
            lost * np.log(shares + end)
            + gained * np.log(shares)
            + (n - lost - gained) * np.log1p(-2 * shares - end)
        )
        variance = 2 * shares[np.argmax(likely)] + end - end**2
        distance = (lost - gained) / n - end
        assert distance**2 == pytest.approx(t**2 * variance / (n - 1), rel=0.01)


def test_where_nothing_moved_it_is_near_the_rule_of_three() -> None:
    """Of three hundred questions one in 75 may be lost for all that is known."""
    low, high = interval(np.zeros(300))
    assert -low == high == pytest.approx(4 / 300, rel=0.05)


def test_what_all_lost_alike_is_no_spread_but_no_proof_either() -> None:
    """As wide as where nothing moved, and around what they lost."""
    width = interval(np.zeros(40))[1]
    assert interval(np.full(40, 0.2)) == pytest.approx((0.2 - width, 0.2 + width))


@pytest.mark.parametrize("n", [20, 100, 1_000])
def test_moves_half_as_far_make_it_half_as_wide(n: int) -> None:
    """Seen moves say how far unseen ones may be."""
    whole, half = (np.array(interval(moved(2, 1, n, far))) for far in (1.0, 0.5))
    assert half == pytest.approx(whole / 2)


def test_of_many_small_moves_it_is_that_of_t() -> None:
    """Nothing is added where enough was seen, whatever all questions lost together."""
    lost = np.random.default_rng(3).normal(0.05, 0.02, 300)
    assert interval(lost) == pytest.approx(MeanDifference.paired(lost).interval(0.95), abs=1e-4)


@given(DIFFERENCES)
def test_it_holds_the_mean_within_what_scores_can_differ_by(differences: Numbers) -> None:
    """Whatever the differences; of those turned round it is the mirror image."""
    low, high = interval(differences)
    assert -1 <= low <= differences.mean() <= high <= 1
    assert low < high
    assert interval(-differences) == pytest.approx((-high, -low), abs=1e-9)


@given(DIFFERENCES)
def test_more_confidence_is_wider(differences: Numbers) -> None:
    """On both sides."""
    (low, high), (lower, higher) = (
        paired_interval(differences, confidence=confidence) for confidence in (0.8, 0.99)
    )
    assert lower <= low <= high <= higher


def covers(far: float, share: float, n: int) -> float:
    """How often it holds the truth where a question loses so much or nothing: a sum, not a
    simulation."""
    lost = np.arange(n)
    chances = stats.binom.pmf(lost, n, share)
    ends = [interval(moved(count, 0, n, far)) for count in lost[chances > 1e-6]]
    held = [low <= far * share <= high for low, high in ends]
    return float(chances[chances > 1e-6] @ held)


@pytest.mark.parametrize("n", [30, 100, 300])
@pytest.mark.parametrize(("far", "share"), [(1.0, 0.02), (0.5, 0.05)])
def test_few_questions_that_moved_are_enough(far: float, share: float, n: int) -> None:
    """One in 50 loses 1, one in 20 loses 0.5: t holds the truth in 45% to 93% of the nights."""
    assert covers(far, share, n) >= 0.94


@pytest.mark.parametrize("n", [100, 300])
def test_where_many_moved_it_covers_what_it_says(n: int) -> None:
    """One in ten loses 0.5."""
    assert 0.93 <= covers(0.5, 0.1, n) <= 0.97


@pytest.mark.parametrize(
    "kind", ["15% move, SD 0.02", "the same, and 1 in 10 loses 0.5", "all lose 0.05, SD 0.02"]
)
def test_graded_moves_are_covered_as_well(kind: str) -> None:
    """Simulated, within chance of 93% to 97%: research/coverage.py has more of it."""
    assert 0.91 <= cover_drop(DROPS[kind], 100, nights=400)[0] <= 0.985

"""Two means and how far they are apart: scipy's tests, and a guard where one side seems certain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ragmetrics.stats import MeanDifference

FEW = np.array([0.2, 0.9, 0.1, 0.7, 0.4])
MANY = np.array([0.6, 0.8, 0.7, 0.9, 0.8, 0.7, 0.8, 0.6])


def test_paired_is_the_t_test_of_the_differences() -> None:
    """As scipy has it."""
    found, oracle = MeanDifference.paired(FEW), stats.ttest_1samp(FEW, 0, alternative="greater")
    assert (found.statistic, found.p_value) == pytest.approx(
        (oracle.statistic, oracle.pvalue), abs=0.02
    )


def test_unpaired_is_welchs_where_the_smaller_side_has_the_larger_spread() -> None:
    """As scipy has it."""
    found = MeanDifference.unpaired(MANY, FEW)
    oracle = stats.ttest_ind(MANY, FEW, equal_var=False)
    assert (found.statistic, found.p_two_sided) == pytest.approx((oracle.statistic, oracle.pvalue))


def test_a_small_side_without_spread_proves_little() -> None:
    """13 of 259 and none of 37: common enough by Fisher's exact test, near certain by Welch's."""
    before, now = np.repeat([1.0, 0.0], [13, 246]), np.zeros(37)
    fisher = stats.fisher_exact([[13, 246], [0, 37]], alternative="greater").pvalue
    welch = stats.ttest_ind(before, now, equal_var=False, alternative="greater").pvalue
    assert welch < 0.001 < 0.05 < fisher
    assert MeanDifference.unpaired(before, now).p_value > 0.05


def test_no_spread_at_all_is_as_sure_as_the_pairs_are_many() -> None:
    """Five pairs that all lost the same: one pattern of 32."""
    assert MeanDifference.paired(np.full(5, 0.1)).p_value == 1 / 32
    assert MeanDifference.paired(np.zeros(5)).p_value == 0.5
    assert MeanDifference(0.0, 0.0, 3).p_two_sided == 1.0

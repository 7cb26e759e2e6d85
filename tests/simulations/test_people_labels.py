"""What people would say in worlds whose truth is known: a small form of `research labels`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ragmetrics.people.labels.people_estimate import ErrorRates, JudgedNight, rogan_gladen
from research.label_ceiling import best_test, labels_needed, rates_of
from research.people_labels import DESIGNS, FORMS, measure

DRAWS = 150
LEAST = 0.895
"""Three standard errors below 95% with so many draws."""


@pytest.mark.parametrize("form", FORMS)
def test_graded_rows_are_covered_and_their_bias_is_told(form: str) -> None:
    """60 labels of several contexts a row: the truth is covered, a bias of 0.1 is told in 90% of
    the draws, and none is told where there is none; the interval is narrower than that of labels
    alone.
    """
    for design in DESIGNS:
        found = measure(form, "grades", design, DRAWS)
        assert found.coverage >= LEAST, design
        assert found.half_width < 0.85 * found.labels_alone, design
        assert found.told <= 0.1 if form == "none" else found.told >= 0.9, design


def test_rows_of_one_verdict_are_covered() -> None:
    """Their bias of 0.1 needs about 100 labels."""
    assert measure("flips", "yes or no", "uniform", DRAWS).coverage >= LEAST
    assert measure("flips", "yes or no", "uniform", DRAWS, labels=150).told >= 0.9


def test_error_rates_cover_the_truth() -> None:
    """With both rates estimated from a labelled set of 200 units."""
    random, truth, covered = np.random.default_rng(2014), 0.6, 0
    for _ in range(1_000):
        positive, negative = random.binomial(120, 0.9) / 120, random.binomial(80, 0.85) / 80
        share = random.binomial(400, truth * 0.9 + (1 - truth) * 0.15) / 400
        night = JudgedNight(share, math.sqrt(share * (1 - share) / 400))
        found = rogan_gladen(night, ErrorRates(120, 80, positive, negative))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= truth <= found.high
    assert 0.93 <= covered / 1_000 <= 0.98


@pytest.mark.parametrize("design", DESIGNS)
def test_no_test_of_60_labels_tells_it_nine_times_in_ten(design: str) -> None:
    """The best possible one cannot, and ours is at most 12 points below it."""
    rates = rates_of("flips", design)
    most = best_test(rates, 60)
    assert 0.65 < most < 0.8
    assert measure("flips", "yes or no", design, DRAWS).told > most - 0.12
    assert 80 <= labels_needed(rates) <= 100

"""The mean that people would give, the judge's bias, and draws of rows to label."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from ragmetrics.people.labels.people_estimate import (
    ErrorRates,
    JudgedNight,
    PeopleEstimate,
    bias_difference,
    people_mean,
    rogan_gladen,
)
from ragmetrics.people.labels.row_draw import draw_order, relative_chances
from ragmetrics.scoring.sampling.prediction_powered import prediction_powered

TONIGHT = [JudgedNight(0.7, 0.01)]
VALUES = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 30), st.floats(0.1, 5)),
    min_size=4,
    max_size=40,
)


def of(rows: list[tuple[float, float, int, float]], nights: int = 1) -> PeopleEstimate | None:
    """The estimate of rows of judge, people, question and weight, in turn of some nights."""
    f, y, question, weight = (np.array(one) for one in zip(*rows, strict=True))
    places = [JudgedNight(0.5 + 0.1 * number, 0.01) for number in range(nights)]
    return people_mean(f, y, question, places, np.arange(len(f)) % nights, weight)


def test_a_judge_that_agrees_has_no_bias() -> None:
    """People would say what the judge says; the interval of the bias has a width all the same."""
    f = np.linspace(0, 1, 40)
    found = people_mean(f, f, range(40), TONIGHT, np.zeros(40))
    assert found is not None
    assert found.mean.mean == pytest.approx(0.7)
    assert found.bias == pytest.approx(0)
    assert found.bias_low < -0.005 < 0.005 < found.bias_high
    assert found.p_value == pytest.approx(1)


def test_a_shift_is_the_bias() -> None:
    """A judge that always gives 0.1 more is told to be biased by 0.1."""
    y = np.linspace(0, 0.9, 40)
    found = people_mean(y + 0.1, y, range(40), TONIGHT, np.zeros(40))
    assert found is not None
    assert (found.bias, found.mean.mean) == (pytest.approx(0.1), pytest.approx(0.6))
    assert found.weight == pytest.approx(1)
    assert found.p_value < 0.001


def test_a_judge_that_says_nothing_leaves_the_labels_mean() -> None:
    """A judge with one value for all rows has no weight, and people's mean is that of the labels,
    moved by what the judge saw change since the labelled night.
    """
    y = np.array([0.0, 1.0] * 20)
    tonight, before = JudgedNight(0.6, 0.0), JudgedNight(0.7, 0.0)
    here = people_mean(np.full(40, 0.7), y, range(40), [before], np.zeros(40))
    moved = people_mean(np.full(40, 0.7), y, range(40), [tonight, before], np.ones(40))
    assert here is not None
    assert moved is not None
    assert (here.weight, here.mean.mean) == (0, pytest.approx(0.5))
    assert moved.mean.mean == pytest.approx(0.4)


def test_tonights_labels_give_the_prediction_powered_mean() -> None:
    """With labels of tonight it is the estimator of a sampled night, up to the labels' share."""
    random = np.random.default_rng(3)
    y = random.random(4_000)
    f = np.clip(0.6 * y + 0.2 * random.random(4_000) + 0.2, 0, 1)
    seen = np.where(np.arange(4_000) < 80, y, np.nan)
    other = prediction_powered(f, seen, np.arange(4_000))
    night = JudgedNight(float(f.mean()), float(f.std()) / math.sqrt(4_000))
    found = people_mean(f[:80], y[:80], range(80), [night], np.zeros(80))
    assert found is not None
    assert other is not None
    assert found.mean.mean == pytest.approx(other.best.mean, abs=0.002)
    assert found.mean.error == pytest.approx(other.best.error, rel=0.05)


def test_the_nights_uncertainty_is_in_the_interval() -> None:
    """The worse the night is known, the wider the interval; the bias does not depend on it."""
    y = np.linspace(0, 0.9, 60)
    wide, narrow = (
        people_mean(y + 0.1, y, range(60), [JudgedNight(0.7, error)], np.zeros(60))
        for error in (0.05, 0.001)
    )
    assert wide is not None
    assert narrow is not None
    assert wide.mean.error == pytest.approx(math.hypot(0.05, narrow.mean.error or 0), rel=0.01)
    assert wide.bias_high - wide.bias_low == pytest.approx(narrow.bias_high - narrow.bias_low)


def test_labels_of_one_question_count_together() -> None:
    """Twice the same rows tell no more than once."""
    random = np.random.default_rng(5)
    f, y = random.random(40), random.random(40)
    once = people_mean(f, y, range(40), TONIGHT, np.zeros(40))
    twice = people_mean(
        np.tile(f, 2), np.tile(y, 2), [*range(40), *range(40)], TONIGHT, np.zeros(80)
    )
    assert once is not None
    assert twice is not None
    assert twice.mean.error == pytest.approx(once.mean.error)


@pytest.mark.parametrize("questions", [0, 1, 3])
def test_too_few_questions_have_no_estimate(questions: int) -> None:
    """Below four questions there is none, however many rows they have."""
    count = 10 * questions
    of_rows = [number % max(1, questions) for number in range(count)]
    assert people_mean([0.5] * count, [0.5] * count, of_rows, TONIGHT, [0] * count) is None


def test_lists_of_unequal_length_are_refused() -> None:
    """A caller that mixes up rows gets an error and no number."""
    with pytest.raises(ValueError, match="one length"):
        people_mean([0.5] * 5, [0.5] * 4, range(5), TONIGHT, [0] * 5)


@given(rows=VALUES, nights=st.integers(1, 3))
def test_the_estimate_is_within_its_interval(
    rows: list[tuple[float, float, int, float]], nights: int
) -> None:
    """Of values in [0, 1] all are in [0, 1]; p and weight are in range; nothing is NaN."""
    found = of(rows, nights)
    if found is None:
        assert len({question for _, _, question, _ in rows}) < 4
        return
    mean = found.mean
    assert mean.low is not None
    assert mean.high is not None
    assert 0 <= mean.low <= mean.mean <= mean.high <= 1
    assert found.bias_low <= found.bias <= found.bias_high
    assert 0 <= found.p_value <= 1
    assert found.weight >= 0


@given(rows=VALUES, factor=st.floats(0.5, 2))
def test_order_and_scale_of_weights_do_not_matter(
    rows: list[tuple[float, float, int, float]], factor: float
) -> None:
    """The same labels in another order, with all weights times a number, tell the same."""
    one, other = of(rows), of([(f, y, q, factor * w) for f, y, q, w in reversed(rows)])
    if one is None or other is None:
        assert one is other
        return
    assert other.bias == pytest.approx(one.bias, abs=1e-6)
    assert other.mean.low == pytest.approx(one.mean.low, abs=1e-6)


# The same bias on all nights


def test_two_nights_are_compared_as_by_welch() -> None:
    """With two nights it is Welch's t test of the differences."""
    random = np.random.default_rng(7)
    f, y = random.random(50), random.random(50)
    night = np.array([0] * 20 + [1] * 30)
    found = bias_difference(f, y, range(50), night)
    expected = stats.ttest_ind((f - y)[:20], (f - y)[20:], equal_var=False).pvalue
    assert found == pytest.approx(expected, rel=1e-6)


def test_one_night_or_a_few_labels_are_not_compared() -> None:
    """There is nothing to compare one night with, nor nights of four labels."""
    f, y = np.linspace(0, 1, 8), np.linspace(1, 0, 8)
    assert bias_difference(f, y, range(8), np.zeros(8)) is None
    assert bias_difference(f, y, range(8), [0] * 4 + [1] * 4) is None


# By error rates


def test_rogan_gladen_by_hand() -> None:
    """(0.3 + 0.8 - 1) / (0.9 + 0.8 - 1) = 1/7."""
    found = rogan_gladen(JudgedNight(0.3, 0.01), ErrorRates(200, 300, 0.9, 0.8))
    assert found is not None
    assert found.mean == pytest.approx(1 / 7)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1 / 7 < found.high


def test_a_judge_by_chance_tells_nothing() -> None:
    """Where sensitivity and specificity add up to about 1 there is no estimate."""
    night = JudgedNight(0.5, 0.02)
    assert rogan_gladen(night, ErrorRates(100, 100, 0.55, 0.5)) is None
    assert rogan_gladen(night, ErrorRates(0, 100, 1, 1)) is None


@given(
    mean=st.floats(0, 1),
    error=st.floats(0, 0.2),
    rates=st.tuples(st.integers(1, 500), st.integers(1, 500), st.floats(0, 1), st.floats(0, 1)),
)
def test_rogan_gladen_is_in_range(
    mean: float, error: float, rates: tuple[int, int, float, float]
) -> None:
    """All numbers are in [0, 1], and the interval contains the mean."""
    found = rogan_gladen(JudgedNight(mean, error), ErrorRates(*rates))
    if found is not None:
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.mean <= found.high <= 1


# Draws


@given(
    signal=st.lists(st.floats(0, 10) | st.just(math.nan), min_size=1, max_size=50),
    extra=st.booleans(),
)
def test_chances_are_known_and_bounded(signal: list[float], extra: bool) -> None:
    """Their mean is 1, and no row has less than a sixth of that, whatever the signal."""
    found = relative_chances([signal, [0.3] * len(signal)] if extra else [signal], len(signal))
    assert found.mean() == pytest.approx(1)
    assert found.min() >= 1 / 6
    assert found.max() <= 6


def test_without_a_signal_the_draw_is_uniform() -> None:
    """Also where the signal is the same for all rows."""
    assert relative_chances([], 3).tolist() == [1, 1, 1]
    assert relative_chances([[0.2, 0.2, 0.2]], 3).tolist() == [1, 1, 1]


def test_rows_are_drawn_in_proportion_to_their_chances() -> None:
    """Of 30 drawn of 600 rows, one with twice the chance is drawn twice as often."""
    random = np.random.default_rng(11)
    chances = np.where(np.arange(600) < 200, 2.0, 0.5)
    drawn = np.zeros(600)
    for _ in range(2_000):
        drawn[draw_order(random.random(600), chances)[:30]] += 1
    shares = drawn[:200].mean() / 2_000, drawn[200:].mean() / 2_000
    assert shares[0] == pytest.approx(0.1, rel=0.05)
    assert shares[1] == pytest.approx(0.025, rel=0.05)

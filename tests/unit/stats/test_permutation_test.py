"""The permutation test within questions: exact, one-sided, and sharper than t where few fell."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from ragmetrics.stats import compare, compare_nights
from ragmetrics.stats.permutation_test import MOST_QUESTIONS, chance_of_order
from tests.fakes.examples import examples


def _nights(values: np.ndarray) -> list[dict[str, float]]:
    """Nights x questions as maps by question."""
    return [{f"q{n}": float(value) for n, value in enumerate(night)} for night in values]


def _exact(values: np.ndarray) -> float:
    """By all ways to choose each question's value of the last night."""
    nights, questions = values.shape
    total = values.sum(axis=0)
    drops = np.array(
        [
            float(((total - x) / (nights - 1) - x).mean())
            for choice in product(range(nights), repeat=questions)
            for x in [values[list(choice), np.arange(questions)]]
        ]
    )
    last = float((values[:-1].mean(axis=0) - values[-1]).mean())
    return float(np.mean(drops >= last - 1e-9))


@pytest.mark.parametrize("seed", range(4))
def test_the_chance_is_that_of_all_deals(seed: int) -> None:
    """With few questions all deals can be counted; the drawn ones come to the same share."""
    values = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], (4, 5))
    found = chance_of_order(_nights(values[:-1]), _nights(values[-1:]))
    exact = _exact(values)
    assert found is not None
    # The share is known from 50 deals that fell as far: to about a seventh, twice that at worst.
    assert found == pytest.approx(exact, rel=0.45, abs=0.02)


def test_two_nights_together_are_dealt_together() -> None:
    """Of 3 + 2 nights a question that is 1, 1, 1, 0, 0 stands so in one of ten deals."""
    nights = _nights(np.array([[1.0], [1.0], [1.0], [0.0], [0.0]]))
    assert chance_of_order(nights[:3], nights[3:]) == pytest.approx(0.1, rel=0.45)


def test_of_many_nights_on_both_sides_the_values_are_shuffled() -> None:
    """A question at 1 for eight nights and at 0 for eight: one of 12,870 ways to deal them."""
    nights = _nights(np.array([[1.0]] * 8 + [[0.0]] * 8))
    found = chance_of_order(nights[:8], nights[8:])
    assert found is not None
    assert 2e-5 <= found <= 2e-4


def test_what_never_moved_and_falls_is_sure_although_few_questions_fall() -> None:
    """Five of sixty questions fall to 0 after six nights at 1: no chance by their history."""
    values = np.ones((7, 60))
    values[-1, :5] = 0
    before, now = _nights(values[:-1]), _nights(values[-1:])
    together = {question: [night[question] for night in before] for question in now[0]}
    by_t = compare(together, {question: [value] for question, value in now[0].items()})
    by_order = chance_of_order(before, now)
    assert by_t is not None
    assert by_order is not None
    assert by_t.p_value > 0.01
    assert by_order < 1e-3  # exactly 7 ** -5, which 99,999 deals cannot show


def test_what_moves_every_night_says_little() -> None:
    """Questions that are 0 on every other night anyway: the same fall is no news."""
    values = np.indices((7, 60)).sum(axis=0) % 2 * 1.0
    values[-1, :5] = 0
    found = chance_of_order(_nights(values[:-1]), _nights(values[-1:]))
    assert found is not None
    assert found > 0.05


def test_unchanged_nights_give_every_chance_alike() -> None:
    """Over 400 unchanged golden sets, p is below a level about as often as it says."""
    random = np.random.default_rng(11)
    found = []
    for number in range(400):
        level = random.random(40)
        values = np.where(random.random((5, 40)) < 0.2, random.random((5, 40)), level)
        chance = chance_of_order(_nights(values[:-1]), _nights(values[-1:]), seed=number)
        assert chance is not None
        found.append(chance)
    for level in (0.05, 0.2, 0.5):
        share = float(np.mean(np.array(found) <= level))
        assert share == pytest.approx(level, abs=4 * (level * (1 - level) / 400) ** 0.5)


@hypothesis_settings(max_examples=examples(40))
@given(
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(0, 1_000),
)
def test_it_is_a_chance_the_same_each_time(old: int, new: int, count: int, seed: int) -> None:
    """p lies in (0, 1], comes out again with the same seed, and no rise is a drop."""
    values = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], (old + new, count))
    before, now = _nights(values[:old]), _nights(values[old:])
    found = chance_of_order(before, now)
    assert found is not None
    assert 0 < found <= 1
    assert chance_of_order(before, now) == found
    risen = [{question: 2.0 for question in night} for night in now]
    least = chance_of_order(before, risen)
    assert least is not None
    assert least > 0.9 or old + new < 3


def test_questions_of_one_side_and_gaps_count_for_what_they_have() -> None:
    """A question that was not asked on each night is dealt over those on which it was."""
    before = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "gone": 0.0}]
    now = [{"a": 0.0, "b": 0.0, "new": 1.0}]
    found = chance_of_order(before, now)
    assert found == pytest.approx(1 / 6, rel=0.45)  # one of three for a, one of two for b


def test_nothing_to_deal_is_told() -> None:
    """No question on both sides: None. None that moved: chance says all. Too many: the t test."""
    assert chance_of_order([{"a": 1.0}], [{"b": 1.0}]) is None
    assert chance_of_order([{"a": 1.0}], [{"a": 1.0}]) == 1.0
    many = np.zeros((2, MOST_QUESTIONS + 1))
    many[0] = 1.0
    assert chance_of_order(_nights(many[:1]), _nights(many[1:])) is None


def test_a_question_with_fewer_rows_now_is_no_surer_than_by_t() -> None:
    """Ten rows a question on five nights, one tonight: its mean moves more by itself, so that 20%
    of unchanged nights were below 5% by the order alone."""
    random, found = np.random.default_rng(5), list[float]()
    for _ in range(100):
        rows = [(random.random((40, count)) < 0.5) * 1.0 for count in (10,) * 5 + (1,)]
        nights = [{f"q{n}": own.tolist() for n, own in enumerate(night)} for night in rows]
        drop = compare_nights(nights[:-1], nights[-1:])
        assert drop is not None
        found.append(drop.p_value)
    assert float(np.mean(np.array(found) <= 0.05)) <= 0.1

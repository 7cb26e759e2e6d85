"""Change dating by the order of each question's values: right where only a few questions fell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from ragmetrics.rules.change_point import ChangePoint, Undated, date_change, date_change_in_order
from tests.fakes.examples import examples

Nights = list[dict[str, float]]
QUESTIONS = 60


def golden(random: np.random.Generator, levels: Sequence[float], noise: float = 0.07) -> Nights:
    """The same questions every night, which differ far more than the nights do."""
    ease = random.uniform(0.2, 0.8, QUESTIONS)
    return as_nights([ease + level + random.normal(0, noise, QUESTIONS) for level in levels])


def as_nights(values: Sequence[Sequence[float]] | np.ndarray) -> Nights:
    """Nights x questions as maps by question."""
    return [{f"q{i}": float(value) for i, value in enumerate(night)} for night in values]


def few_fall(nights: int, first: int, falling: int = 5) -> np.ndarray:
    """Nights of zeros and ones, of which a few questions fall to 0 and stay."""
    values = np.tile(np.arange(QUESTIONS) % 10 > 0, (nights, 1)).astype(float)
    values[first:, 1 : 1 + falling] = 0.0
    return values


@pytest.mark.parametrize("since", [1, 2, 4])
def test_five_of_sixty_questions_tell_the_night(since: int) -> None:
    """By their own history; by a t test over all questions no drop is shown at all."""
    nights = as_nights(few_fall(6 + since, 6))
    found = date_change_in_order(nights)
    assert isinstance(found, ChangePoint)
    assert found.first == 6
    assert set(found.nights) <= {5, 6}
    assert found.drop == pytest.approx(5 / 60)
    rows = [{question: [value] for question, value in night.items()} for night in nights]
    assert date_change(rows) in (Undated.NO_DROP, Undated.SEVERAL)


def test_the_true_night_is_in_the_set_in_95_of_100_series() -> None:
    """A fall of 0.05 with a noise of 0.07 a row; in 90 of 100 at least, less what chance takes."""
    random = np.random.default_rng(5)
    found = [date_change_in_order(golden(random, [0.0] * 5 + [-0.05] * 3)) for _ in range(100)]
    dated = [one for one in found if isinstance(one, ChangePoint)]
    assert len(dated) >= 90
    assert sum(5 in one.nights for one in dated) >= 90
    assert sum(one.first == 5 for one in dated) >= 90


def test_nights_that_did_not_change_are_seldom_dated() -> None:
    """At most 5% of them, the largest of all splits held against the largest of each deal."""
    random = np.random.default_rng(6)
    found = [date_change_in_order(golden(random, [0.0] * 6)) for _ in range(100)]
    assert sum(one is Undated.NO_DROP for one in found) >= 100 - 12


@pytest.mark.parametrize(
    "levels", [[0.0] * 4 + [-0.1] * 2 + [0.0] * 4, [-0.03 * night for night in range(9)]]
)
def test_a_level_that_comes_back_or_drifts_has_no_first_night(levels: list[float]) -> None:
    """It did not fall once and stay."""
    found = date_change_in_order(golden(np.random.default_rng(7), levels))
    assert found in (Undated.SEVERAL, Undated.NO_DROP)


def test_a_level_that_rose_did_not_fall() -> None:
    """The test is one-sided."""
    nights = golden(np.random.default_rng(8), [0.0] * 4 + [0.1] * 4)
    assert date_change_in_order(nights) is Undated.NO_DROP


def test_what_never_moved_did_not_fall() -> None:
    """There is nothing to deal."""
    assert date_change_in_order(as_nights(np.ones((5, 30)))) is Undated.NO_DROP


def test_two_nights_are_too_few() -> None:
    """With one night before and one since there is nothing to choose from."""
    assert date_change_in_order(as_nights(few_fall(2, 1))) is Undated.TOO_FEW


def test_other_questions_every_night_are_another_test() -> None:
    """Without questions that were asked on all nights there is no history to hold them against."""
    nights = [{f"n{night}-{i}": 1.0 for i in range(30)} for night in range(5)]
    assert date_change_in_order(nights) is None


@hypothesis_settings(max_examples=examples(25))
@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=6, max_size=6), min_size=2),
    st.floats(-5, 5),
)
def test_only_the_order_of_the_nights_matters(values: list[list[float]], shift: float) -> None:
    """Not how high a question stands on all nights; and the same nights give the same answer."""
    nights = as_nights(np.array(values).T)
    lifted = as_nights(np.array(values).T + shift)
    found, again = date_change_in_order(nights), date_change_in_order(lifted)
    assert isinstance(found, ChangePoint) == isinstance(again, ChangePoint)
    if isinstance(found, ChangePoint) and isinstance(again, ChangePoint):
        assert (found.first, found.nights, found.p_value) == (
            again.first,
            again.nights,
            again.p_value,
        )
        assert found.first in found.nights
        assert found.drop > 0

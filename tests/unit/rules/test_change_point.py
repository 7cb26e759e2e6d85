"""Since which night the level is lower: found, bounded, or not dated at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics.rules.change_point import ChangePoint, Undated, date_change

Nights = list[dict[str, list[float]]]
QUESTIONS = 80


def golden(random: np.random.Generator, levels: Sequence[float], noise: float = 0.07) -> Nights:
    """The same questions every night, which differ far more than the nights do."""
    ease = random.uniform(0.2, 0.8, QUESTIONS)
    return [
        {
            f"q{i}": [value]
            for i, value in enumerate(ease + level + random.normal(0, noise, QUESTIONS))
        }
        for level in levels
    ]


def traffic(random: np.random.Generator, levels: Sequence[float], questions: int = 300) -> Nights:
    """Other questions every night, that are answered or not."""
    return [
        {f"n{night}-{i}": [float(x)] for i, x in enumerate(random.random(questions) < 0.7 + level)}
        for night, level in enumerate(levels)
    ]


def dated(nights: Nights) -> ChangePoint:
    """The change, which must be found."""
    found = date_change(nights)
    assert isinstance(found, ChangePoint), found
    return found


# What is found


@pytest.mark.parametrize("before", [3, 4, 6])
@pytest.mark.parametrize("since", [1, 2, 4])
def test_the_first_lower_night_is_named(before: int, since: int) -> None:
    """Three nights before are enough, and so is the first lower one."""
    nights = golden(np.random.default_rng(1), [0.0] * before + [-0.1] * since)
    found = dated(nights)
    assert (found.first, found.nights) == (before, (before,))
    assert found.drop == pytest.approx(0.1, abs=0.03)
    assert found.p_value < 0.001


def test_nights_of_different_size_and_questions_that_come_and_go() -> None:
    """A night of ten questions is not a night of eighty; who was not asked is not missed."""
    nights = golden(np.random.default_rng(2), [0, 0, 0, 0, -0.1, -0.1])
    nights[1] = dict(list(nights[1].items())[:10])
    nights[5] = dict(list(nights[5].items())[30:])
    nights[5]["new"] = [0.0, 1.0]
    assert dated(nights).first == 4


def test_traffic_is_dated_too_with_more_doubt() -> None:
    """Unpaired, more nights may be the first; the true one is among them."""
    found = dated(traffic(np.random.default_rng(3), [0.0] * 5 + [-0.15] * 3))
    assert 5 in found.nights
    assert found.first in found.nights


def test_rows_of_a_question_count_as_one() -> None:
    """Each row logged ten times gives the same date and the same p."""
    nights = golden(np.random.default_rng(4), [0, 0, 0, -0.05])
    often = [{question: values * 10 for question, values in night.items()} for night in nights]
    once, tenfold = dated(nights), dated(often)
    assert (once.first, once.nights) == (tenfold.first, tenfold.nights)
    assert once.p_value == pytest.approx(tenfold.p_value)


def test_a_judge_without_noise_dates_exactly() -> None:
    """No spread at all: the night is sure, and rounding makes no change of its own."""
    same = {f"q{i}": [0.1] for i in range(20)}
    lower = {f"q{i}": [0.1 - 0.05 * (i < 10)] for i in range(20)}
    found = dated([same] * 7 + [lower] * 3)
    assert (found.first, found.nights) == (7, (7,))


# What is not dated


@pytest.mark.parametrize("nights", [0, 1, 2])
def test_two_nights_are_too_few(nights: int) -> None:
    """One before and one since: there is nothing to choose from."""
    assert date_change(golden(np.random.default_rng(1), [0.0, -0.5][:nights])) is Undated.TOO_FEW


def test_nights_without_questions_are_too_few() -> None:
    """Nothing scored: no split can be tested."""
    assert date_change([{}, {}, {}, {}]) is Undated.TOO_FEW


def test_a_level_that_rose_is_no_drop() -> None:
    """Only what got worse is dated."""
    assert date_change(golden(np.random.default_rng(1), [0, 0, 0, 0.2])) is Undated.NO_DROP


@pytest.mark.parametrize(
    "levels",
    [
        [-0.03 * night for night in range(10)],
        [0, 0, 0, -0.2, -0.2, 0, 0, -0.2, -0.2],
        [0, 0, 0, -0.1, -0.1, -0.1, -0.2, -0.2, -0.2],
    ],
    ids=["drift", "twice", "two steps"],
)
def test_what_is_no_single_change_is_not_dated(levels: list[float]) -> None:
    """A drift, a drop that came back, and two steps have no one first night."""
    assert date_change(golden(np.random.default_rng(5), levels)) is Undated.SEVERAL


# Over many series


def shares(make: Callable[[], Nights], series: int) -> tuple[float, float, float]:
    """Of so many series: a change found, the true night among those named, and named alone."""
    found = [date_change(make()) for _ in range(series)]
    changes = [one for one in found if isinstance(one, ChangePoint)]
    held = sum(5 in change.nights for change in changes)
    return len(changes) / series, held / series, sum(one.nights == (5,) for one in changes) / series


@pytest.mark.parametrize("make", [golden, traffic])
def test_unchanged_nights_are_seldom_dated(
    make: Callable[[np.random.Generator, Sequence[float]], Nights],
) -> None:
    """At most 5% by the bound; of 200 series 20 would be its double, seen once in ten thousand."""
    random = np.random.default_rng(11)
    assert shares(lambda: make(random, [0.0] * 8), 200)[0] <= 0.10


def test_the_true_night_is_among_those_named() -> None:
    """In at least 95% of series by the bound, and mostly alone: 0.88 of 200 leaves room."""
    random = np.random.default_rng(12)
    found, held, alone = shares(lambda: golden(random, [0.0] * 5 + [-0.05] * 3), 200)
    assert found == held
    assert alone >= 0.88


@given(st.lists(st.lists(st.floats(0, 1), min_size=0, max_size=5), min_size=0, max_size=6))
def test_whatever_the_nights_the_answer_is_sound(rows: list[list[float]]) -> None:
    """A night that is named is one of the series, among the set, and lower."""
    nights = [{f"q{i}": [value] for i, value in enumerate(values)} for values in rows]
    found = date_change(nights)
    if isinstance(found, ChangePoint):
        assert found.first in found.nights
        assert set(found.nights) <= set(range(1, len(nights)))
        assert found.drop > 0
        assert 0 <= found.p_value < 0.05

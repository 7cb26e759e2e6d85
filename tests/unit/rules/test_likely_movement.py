"""How far levels move from night to night: the estimate, and what is likely."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from ragmetrics.records.changes import KNOWN_FROM
from ragmetrics.rules.change_point import ChangePoint, Undated, date_change, date_change_in_order
from ragmetrics.rules.likely_movement import (
    FEWEST_STEPS,
    degrees_of_freedom,
    estimate_movement,
    likely_movement,
)
from ragmetrics.stats import LevelError, NightStep, compare_aligned, with_movement
from tests.fakes.examples import examples

FINITE = st.floats(-0.2, 0.2).filter(lambda one: one == 0 or abs(one) > 1e-6)
STEPS = st.lists(
    st.builds(NightStep, FINITE, st.floats(0, 0.05), st.floats(0.2, 1)),
    min_size=FEWEST_STEPS,
    max_size=30,
)


def steps_of(levels: np.ndarray, error: float, random: np.random.Generator) -> list[NightStep]:
    """The steps of nights with these levels, whose means have an error by their questions."""
    return [
        NightStep(float(step), error)
        for step in np.diff(levels) + random.normal(0, error, len(levels) - 1)
    ]


# What is likely of the movement


def test_a_movement_that_is_plain_counts_as_it_is() -> None:
    """Sixty nights by a judge whose level moves by much more than the questions explain."""
    random = np.random.default_rng(5)
    steps = steps_of(random.normal(0, 0.05, 61), 0.005, random)
    found, sd = likely_movement(steps, 0.005, 50), estimate_movement(steps)
    assert sd
    assert found.error == pytest.approx(sd, rel=0.1)


def test_the_more_nights_do_not_move_the_less_counts() -> None:
    """Without nights it is what judges usually move by, and it never vanishes."""
    random = np.random.default_rng(6)
    errors = [likely_movement([], 0.02, 0.0).error]
    for nights in (8, 28, 90):
        still = [steps_of(np.zeros(nights), 0.02, random) for _ in range(50)]
        found = [likely_movement(steps, 0.014, 0.8 * nights).error for steps in still]
        errors.append(float(np.mean(found)))
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.02
    assert 0 < errors[-1] < 0.012


def test_one_real_change_is_not_taken_for_movement() -> None:
    """It is one large step of many, and bounded as in the estimate."""
    random = np.random.default_rng(7)
    levels = np.where(np.arange(61) < 30, 0.2, 0.0)
    steps = steps_of(levels, 0.02, random)
    still = steps_of(np.zeros(61), 0.02, random)
    changed, same = (likely_movement(one, 0.014, 50).error for one in (steps, still))
    assert changed < same + 0.005


@given(STEPS, st.floats(0, 0.05), st.floats(0, 60), st.floats(1, 100))
@hypothesis_settings(max_examples=examples(60), deadline=None)
def test_what_is_likely_has_the_scale_of_the_steps(
    steps: list[NightStep], error: float, freedom: float, scale: float
) -> None:
    """Scores of 0 to 100 move a hundred times as far."""
    found = likely_movement(steps, error, freedom)
    scaled = [NightStep(one.difference * scale, one.error * scale, one.share) for one in steps]
    other = likely_movement(scaled, error * scale, freedom, scale)
    assert 0 <= found.error < 0.25
    assert other.error == pytest.approx(found.error * scale, rel=1e-3, abs=1e-6 * scale)


# The estimate


@pytest.mark.parametrize("sd", [0.01, 0.02])
def test_the_movement_is_found(sd: float) -> None:
    """On average over series of four weeks, within a twelfth."""
    random = np.random.default_rng(3)
    found = [
        estimate_movement(steps_of(random.normal(0, sd, 29), 0.01, random)) for _ in range(400)
    ]
    assert math.sqrt(np.mean(np.square(found))) == pytest.approx(sd, rel=1 / 12)


def test_a_judge_that_gives_equal_verdicts_does_not_move() -> None:
    """No step, or steps that the questions explain: exactly 0."""
    assert estimate_movement([NightStep(0.0, 0.0)] * 10) == 0
    assert estimate_movement([NightStep(0.01, 0.02), NightStep(-0.01, 0.02)] * 5) == 0


def test_too_few_nights_tell_nothing() -> None:
    """Seven steps are needed of nights with enough new verdicts."""
    steps = [NightStep(0.02 * (-1) ** n, 0.005) for n in range(FEWEST_STEPS)]
    assert estimate_movement(steps)
    assert estimate_movement(steps[1:]) is None
    assert estimate_movement([*steps[1:], NightStep(0.3, 0.005, share=0.1)]) is None


def test_a_level_that_changed_once_is_no_movement() -> None:
    """A drop of 0.2 among four weeks adds no more than one large step."""
    random = np.random.default_rng(4)
    levels = np.where(np.arange(29) < 14, 0.2, 0.0)
    found = [estimate_movement(steps_of(levels, 0.01, random)) for _ in range(200)]
    assert np.mean(np.square(found)) < 0.006**2


def test_new_verdicts_alone_carry_the_movement() -> None:
    """Where half of them are new, a step of half the size is as large a movement."""
    whole = [NightStep(0.03 * (-1) ** n, 0.001) for n in range(10)]
    half = [NightStep(one.difference / 2, 0.001, share=0.5) for one in whole]
    first, second = estimate_movement(whole), estimate_movement(half)
    assert first is not None
    assert second == pytest.approx(first, rel=0.01)


@given(STEPS)
@hypothesis_settings(max_examples=examples(60), deadline=None)
def test_the_estimate_is_a_number_whatever_the_steps_are(steps: list[NightStep]) -> None:
    """Not below 0, and the same of steps in the other direction."""
    found = estimate_movement(steps)
    assert found is not None
    assert 0 <= found < 10
    turned = [NightStep(-one.difference, one.error, one.share) for one in reversed(steps)]
    assert estimate_movement(turned) == pytest.approx(found, rel=1e-6, abs=1e-9)


@given(STEPS, st.floats(0.1, 10))
@hypothesis_settings(max_examples=examples(60), deadline=None)
def test_the_estimate_has_the_scale_of_the_steps(steps: list[NightStep], scale: float) -> None:
    """Scores of 0 to 100 move a hundred times as far."""
    found = estimate_movement(steps)
    assert found is not None
    scaled = [NightStep(one.difference * scale, one.error * scale, one.share) for one in steps]
    assert estimate_movement(scaled) == pytest.approx(found * scale, rel=1e-4, abs=1e-7)


def test_unchanged_nights_are_called_different_as_rarely_as_they_should_be() -> None:
    """Two nights that a judge moves by 0.02 each: about one pair in twenty, where two in three
    were.
    """
    random, sure = np.random.default_rng(5), np.zeros(2)
    base = random.uniform(0.4, 0.6, 150)
    for _ in range(400):
        sd = estimate_movement(steps_of(random.normal(0, 0.02, 29), 0.008, random))
        old, new = (base + random.normal(0, 0.02) + random.normal(0, 0.07, 150) for _ in range(2))
        drop = compare_aligned(old, new)
        assert drop is not None
        assert sd is not None
        found = with_movement(drop, LevelError(sd * 2**0.5, degrees_of_freedom(28)))
        sure += [not one.low <= 0 <= one.high for one in (drop, found)]
    before, after = sure / 400
    assert before > 0.5
    assert 0.02 < after < 0.09


# Since when


def test_a_level_that_moves_every_night_is_not_dated() -> None:
    """Without the movement some night is named; with it none is, and a real fall still is."""
    random = np.random.default_rng(6)
    quiet = random.uniform(0.4, 0.6, 80)
    moods = np.array([0.02, 0.01, 0.02, 0.0, 0.015, 0.01, -0.01, -0.02])
    nights = [quiet + mood + random.normal(0, 0.03, 80) for mood in moods]
    level = LevelError(0.015, 18)

    def dated(nights: list[np.ndarray], level: LevelError | None) -> list[object]:
        maps = [{f"q{n}": float(x) for n, x in enumerate(night)} for night in nights]
        rows = [{name: [x] for name, x in night.items()} for night in maps]
        return [date_change_in_order(maps, level=level), date_change(rows, level=level)]

    assert all(one is not Undated.NO_DROP for one in dated(nights, None))
    assert dated(nights, level) == [Undated.NO_DROP, Undated.NO_DROP]
    fallen = [night - 0.15 * (number >= 6) for number, night in enumerate(nights)]
    for change in dated(fallen, level):
        assert isinstance(change, ChangePoint)
        assert change.first == 6


def test_the_words_know_from_how_many_nights_a_movement_is_known() -> None:
    """A night more than steps between nights."""
    assert KNOWN_FROM == FEWEST_STEPS + 1

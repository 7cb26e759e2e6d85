"""The alert rules on nights whose truth is known: a small form of `python -m research alarms`.

The bounds leave room for chance at these numbers, and none for a rule that is broken: suspects that
fire by their number alone fired on two nights of three.
"""

from __future__ import annotations

import numpy as np
import pytest

from research.false_alarms import (
    LOSING,
    WORLDS,
    detection,
    escalations,
    false_alarms,
    noise,
)


def test_the_simulated_judge_is_as_noisy_as_real_ones() -> None:
    """15% of the rows change between runs, and a row's standard deviation is 0.02 on average."""
    changing, deviation = noise(np.random.default_rng(1))
    assert changing == pytest.approx(0.15, abs=0.001)
    assert deviation == pytest.approx(0.02, abs=0.002)


@pytest.mark.parametrize(("name", "world", "versus"), WORLDS)
def test_unchanged_nights_fire_next_to_nothing(name: str, world, versus: str) -> None:
    """At 1% three of 25 nights come once in 500 times; traffic, plainly compared, always fires."""
    found = false_alarms(world(np.random.default_rng(2), 25), versus)
    assert found.fired <= 2
    assert found.firing <= 3
    if name == "traffic":
        assert found.plain >= 22


@pytest.mark.parametrize("golden", [True, False])
def test_firing_alerts_escalate_next_to_never_where_nothing_changed(golden: bool) -> None:
    """At 1% three of 26 nights come once in 400 times; a second fall is found each time."""
    found = escalations(np.random.default_rng(5), 26, golden=golden)
    assert found.unchanged <= 2
    assert found.worse == found.trials == 2


def test_a_drop_of_005_is_found_the_first_night() -> None:
    """One row in ten loses 0.5: at 95% of trials fewer than 13 of 15 come once in 27
    times, and by a rule that finds half as many 13 come once in 270.
    """
    found = detection(np.random.default_rng(3), 15, LOSING, segment=False)
    assert found.drop == pytest.approx(0.05, abs=0.002)
    assert found.fired >= 13


def test_a_drop_in_one_segment_is_named_right() -> None:
    """In at least 90% of trials, by the alerts and as the carrier: 12 of 15 leaving room."""
    found = detection(np.random.default_rng(4), 15, LOSING, segment=True)
    assert found.named_by_alerts >= 12
    assert found.named_by_carriers >= 12

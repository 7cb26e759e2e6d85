"""Weeks that go by the day: a small form of `python -m research weekdays`, on made scores."""

from __future__ import annotations

import numpy as np

from research.weekday_world import World, made_sections
from research.weekdays import unchanged

SECTIONS = made_sections(np.random.default_rng(1))


def test_weeks_fire_where_nights_are_held_as_they_are_and_not_like_with_like() -> None:
    """Six weeks of a strong cycle: several alarms, and none."""
    plain = unchanged(World(mix_tags=()), SECTIONS, 0.84, 42, 1)
    assert plain.fired >= 4
    assert unchanged(World(), SECTIONS, 0.84, 42, 1).fired == 0

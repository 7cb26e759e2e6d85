"""`versus: previous` on traffic that goes by the day of the week, without tags that say so."""

from __future__ import annotations

import numpy as np

from research.weekday_world import World, made_sections
from research.weekdays import PREVIOUS, unchanged


def test_previous_compares_a_day_with_the_same_day_of_a_week_before() -> None:
    """On 120 nights of a strong cycle at most 4 fire, those of the first weeks included: against
    the night before, whatever its day, 9 did, and an alert was firing on 30. About six seconds.
    """
    sections = made_sections(np.random.default_rng(15))
    found = unchanged(World(tagged=False, settings=PREVIOUS), sections, 0.84, 120, 15)
    assert found.fired <= 4
    assert found.firing <= 12

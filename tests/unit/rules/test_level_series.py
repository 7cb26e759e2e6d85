"""Levels of nights, and how far they move."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from ragmetrics.rules.level_series import movement_of

ERROR = 0.015
"""Standard error of a night's level by its questions."""
BEFORE = 7
"""Nights that tonight is compared with."""


def chances(sd: float, nights: int, draws: int) -> np.ndarray:
    """One-sided p of a drop in nights whose level moves by `sd` around 0.6."""
    rng = np.random.default_rng(20_261_126)
    both = (1 + 1 / BEFORE) ** 0.5
    found = []
    for _ in range(draws):
        levels = 0.6 + rng.normal(0, np.hypot(sd, ERROR), nights + 1)
        past = levels[:-1]
        moved = movement_of(np.arange(nights), past, np.full(nights, ERROR))
        assert moved
        drop = past[-BEFORE:].mean() - levels[-1]
        error = np.hypot(ERROR, moved.error)
        freedom = moved.freedom * (error / moved.error) ** 4
        found.append(special.stdtr(freedom, -drop / (error * both)))
    return np.array(found)


@pytest.mark.parametrize("nights", [8, 14, 30])
@pytest.mark.parametrize("sd", [0.05, 0.1, 0.15])
def test_levels_that_move_much_are_seldom_a_drop(sd: float, nights: int) -> None:
    """The nights show more than is usual, so they count and the prior does not."""
    assert (chances(sd, nights, 200) < 0.01).mean() <= 0.045

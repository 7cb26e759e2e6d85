"""Changes in words: as many digits as the interval bears, and words where nothing changed."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ragmetrics.records import (
    UnwatchedDrop,
    unwatched_drop_text,
)
from ragmetrics.text import drop_text, drop_words

NUMBERS = st.floats(-1, 1)


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((0.107, 0.0712, 0.1428), "drop 0.107 [0.071, 0.143]"),
        ((0.3123, 0.2512, 0.3734), "drop 0.31 [0.25, 0.37]"),
        ((0.2, 0.2, 0.2), "drop 0.200 [0.200, 0.200]"),
        ((-0.005, -0.02, 0.01), "drop -0.005 [-0.020, 0.010]"),
        ((0.107, None, None), "drop 0.107"),
        ((0.0, 0.0, 0.0), "no change"),
        ((-0.0001, -0.0003, 0.0001), "no change"),
        ((0.0, None, None), "no change"),
        ((-0.0004, -0.012, 0.011), "no change [-0.012, 0.011]"),
        ((0.004, -0.06, 0.068), "no change [-0.06, 0.07]"),
    ],
)
def test_a_drop_in_words(numbers: tuple[float, float | None, float | None], told: str) -> None:
    """Two digits where the interval is wide, else three; no bare zero."""
    assert drop_text(*numbers) == told


@given(NUMBERS, NUMBERS, NUMBERS)
def test_no_number_is_minus_nothing(drop: float, low: float, high: float) -> None:
    """Neither -0.000 nor 0.000 stands alone as a drop, whatever the numbers are."""
    told, interval = drop_words(drop, *sorted((low, high)))
    assert float(told or 1) if told != "no change" else True
    assert "-0.000" not in interval
    assert "-0.00," not in interval


def a_fall(**change: object) -> UnwatchedDrop:
    """Recall fell."""
    values = {"before": 0.89, "now": 0.58, "drop": 0.31, "low": 0.25, "high": 0.37}
    told = {"metric": "context_recall", "label": "7 nights before", "questions": 1200}
    return UnwatchedDrop.model_validate({**values, **told, **change})


def test_a_fall_in_words() -> None:
    """What fell, how far, and that no rule watches it."""
    told = unwatched_drop_text(a_fall())
    assert told == "context_recall fell by 0.31 [0.25, 0.37] (no alert rule)"


def test_what_is_worse_when_high_rose() -> None:
    """The word follows the means, the numbers say how much worse it is."""
    told = unwatched_drop_text(a_fall(metric="noise_sensitivity", before=0.1, now=0.41))
    assert told == "noise_sensitivity rose by 0.31 [0.25, 0.37] (no alert rule)"

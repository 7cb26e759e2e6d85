"""Active sampling on nights whose truth is known: a small form of `python -m research active`."""

from __future__ import annotations

from functools import partial

import pytest

from research.active_sampling import CELLS, DRIFTED, Found, measure, synthetic

NIGHTS, ROWS, HALF_WIDTH = 40, 4_000, 0.04


def simulated(name: str) -> dict[str, Found]:
    """Few small nights of a cell, for a wide interval."""
    if name in CELLS:
        return measure(name, CELLS[name], NIGHTS, ROWS, HALF_WIDTH)
    now, past = (partial(synthetic, sharp=0.3, truth=one) for one in DRIFTED[name])
    return measure(name, now, NIGHTS, ROWS, HALF_WIDTH, before=past)


@pytest.mark.parametrize("name", [*CELLS, *DRIFTED])
def test_it_needs_no_more_rows_than_a_plain_sample(name: str) -> None:
    """At most 1.02 times as many, but for the noise of 40 nights; the intervals hold the truth."""
    found = simulated(name)
    assert found["active"].needed < 1.05 * found["plain"].needed
    assert found["active"].coverage >= 0.85


@pytest.mark.parametrize("name", [cell for cell in CELLS if "half of" in cell or "strata" in cell])
def test_it_needs_fewer_where_doubts_are_right(name: str) -> None:
    """Fewer than with the cheap judge alone, and less than half of a plain sample."""
    found = simulated(name)
    assert found["active"].needed < 0.95 * found["powered"].needed < 0.5 * found["plain"].needed

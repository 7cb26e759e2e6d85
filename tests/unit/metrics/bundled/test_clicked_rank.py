"""clicked_rank: how far down users clicked, and what users who look at every rank would click."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ragmetrics.metrics.bundled.clicked_rank import clicked_rank
from ragmetrics.records import Status
from tests.fakes.rankings import play
from tests.unit.metrics.bundled.test_click_rate import clicked

SEEN = (1.0, 0.5, 0.05)


@pytest.mark.parametrize(
    ("ids", "value"), [(("a",), 1), (("b", "c"), 1 / 2), (("c", "b"), 1 / 2), (("c",), 1 / 3)]
)
def test_the_first_clicked_context_of_the_list_counts(ids: tuple[str, ...], value: float) -> None:
    """In whatever order they were clicked."""
    assert play(clicked_rank, clicked(*ids)).value == value


def test_no_click_is_zero_with_its_reason() -> None:
    """As nothing relevant in `mrr`."""
    score = play(clicked_rank, clicked())
    assert (score.value, score.reason) == (0.0, "no click")


@pytest.mark.parametrize(("ids", "value"), [(("a",), 1), (("b",), 1), (("c",), 10 / 3)])
def test_a_click_on_a_rank_that_few_look_at_counts_for_more(
    ids: tuple[str, ...], value: float
) -> None:
    """1 / (rank * propensity), where propensities below 0.1 count as 0.1."""
    row = replace(clicked(*ids), context_propensities=SEEN)
    assert play(clicked_rank, row).value == pytest.approx(value)


@pytest.mark.parametrize("propensities", [(), (1.0,), (1.0, 0.0, 0.5), (1.0, 1.5, 0.5)])
def test_propensities_that_are_none_are_not_used(propensities: tuple[float, ...]) -> None:
    """One for each context, each above 0 and at most 1, of those that were clicked."""
    row = replace(clicked("b"), context_propensities=propensities)
    score = play(clicked_rank, row)
    assert score.status is Status.NOT_APPLICABLE
    assert score.reason == "context_propensities: not one from 0 to 1 for each context"


def test_propensities_undo_position_bias() -> None:
    """Of users who look at every rank, the first relevant context is at 1/2 on average; with
    propensities the mean of those who look at the top first is the same.
    """
    rng, seen = np.random.default_rng(3), (1.0, 0.6, 0.3)
    relevant, looked = rng.integers(0, 3, 8_000), rng.random(8_000)
    values = [
        play(clicked_rank, replace(row, context_propensities=seen)).value
        for place, luck in zip(relevant, looked, strict=True)
        for row in [clicked(*(["abc"[place]] if luck < seen[place] else []))]
    ]
    assert np.mean(values) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3, abs=0.02)

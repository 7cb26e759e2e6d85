"""Small forms of `python -m research learned`, on items whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from ragmetrics.people.calibration.learned_fit import Examples
from research.learned_judge import (
    Labelled,
    ScoredRows,
    compare_ways,
    quality_at,
    scored_rows,
    simulate_refitted,
)

ROWS, ITEMS = 300, 3


@pytest.fixture(scope="module")
def labelled() -> Labelled:
    """Rows of three items. The evidence says little of them, the second feature more."""
    random = np.random.default_rng(5)
    easy = np.repeat(random.standard_normal(ROWS), ITEMS)
    features = random.standard_normal((ROWS * ITEMS, 4))
    features[:, 1] += easy
    strength = 0.5 * features[:, 0] + 1.5 * features[:, 1] + random.standard_normal(ROWS * ITEMS)
    rows = np.repeat(np.arange(ROWS), ITEMS)
    names = np.array([f"Question {number}?" for number in rows])
    examples = Examples(features, (strength > 0).astype(int), names, rows.astype(str))
    return Labelled("made", 1, examples, (features[:, 0] > 0).astype(np.float64))


def test_more_verdicts_never_make_it_much_worse(labelled: Labelled) -> None:
    """AUC on unseen questions, with 100 and with 800 verdicts."""
    few, many = (quality_at(labelled, count).auc.value or 0 for count in (100, 800))
    assert many > few - 0.01
    assert many > 0.85


def test_it_needs_fewer_rows_than_a_plain_sample(labelled: Labelled) -> None:
    """For the same half width, with the coverage that it claims; active sampling adds to it."""
    found = compare_ways("made", scored_rows(labelled, 800), 100, rows=4_000, half_width=0.03)
    plain = found["plain sample"].needed
    embedded, learned = (found[f"with the {one} judge"].needed for one in ("lexical", "learned"))
    assert learned < embedded < 1.02 * plain
    assert found["with the learned judge, active"].needed < 1.05 * learned
    for cell in found.values():
        assert cell.half_width == pytest.approx(0.03, rel=0.1)
        assert cell.coverage >= 0.88


def test_a_model_of_the_very_sample_keeps_the_coverage(labelled: Labelled) -> None:
    """Each night fits it to its own judged rows alone: 95%, give or take four standard errors."""
    covered, plain = simulate_refitted(labelled, judged=120, draws=100, rows=1_000)
    assert covered >= 0.86
    assert plain >= 0.86


def test_a_constant_judge_costs_nothing() -> None:
    """A cheap score that says nothing needs as many rows as the plain sample."""
    dear = np.random.default_rng(0).integers(0, 2, 500).astype(float)
    constant = ScoredRows(dear, dict.fromkeys(("lexical", "learned"), np.full(500, 0.5)))
    found = compare_ways("constant", constant, 20, rows=2_000, half_width=0.05)
    rows = [cell.rows for cell in found.values()]
    assert max(rows) - min(rows) <= 1  # each way has draws of its own

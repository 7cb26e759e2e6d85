"""Gates of few golden questions, in the synthetic worlds of `research.gate_holds`: seconds."""

from __future__ import annotations

import pytest

from research.gate_holds import held, worlds

DRAWS = 150
WORLDS = worlds(None)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("questions", [12, 20, 25])
def test_few_questions_hold_an_unchanged_build_once_in_twenty_at_most(
    world: str, questions: int
) -> None:
    """Whatever their number, also below `min_questions`."""
    assert held(WORLDS[world], questions, DRAWS).exact <= 0.05


@pytest.mark.parametrize("world", WORLDS)
def test_a_build_without_a_quarter_of_its_passages_is_held(world: str) -> None:
    """By 28 questions as often as by the t test, give or take; the gate until now held none."""
    found = held(WORLDS[world], 28, DRAWS, lost=0.25)
    assert found.old == 0.0
    assert found.exact >= 0.75
    assert found.exact >= found.by_t - 0.12

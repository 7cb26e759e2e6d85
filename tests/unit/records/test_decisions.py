"""Questions of decision models: which may be asked, and what their answers mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import UnreadableReply
from ragmetrics.metrics import GRADE
from ragmetrics.records import (
    Predicate,
    ScoreQuestion,
    distributions,
    expected_level,
    hard,
    likeliest_level,
    questions_of,
    strength,
)

SCORE = ScoreQuestion("", ("worst", "middle", "best"))


def test_a_predicate_has_two_levels() -> None:
    """Its probability is that of the upper one."""
    ((false, true),) = distributions('{"answers":[0.9]}', [Predicate()])
    assert (false, true) == (pytest.approx(0.1), 0.9)


def test_the_expectation_of_a_score() -> None:
    """Levels count from 0; the strength is a share of the highest one."""
    (read,) = distributions('{"answers":[[0.2,0.3,0.5]]}', [SCORE])
    assert expected_level(read) == pytest.approx(1.3)
    assert strength(read) == pytest.approx(0.65)
    assert likeliest_level(read) == 2
    assert hard(read) == (0.0, 0.0, 1.0)


@given(st.lists(st.floats(0.001, 1), min_size=3, max_size=3))
def test_probabilities_are_scaled_to_add_up_to_one(shares: list[float]) -> None:
    """A sum that rounding moved takes no expectation out of its range."""
    scaled = [share / sum(shares) * 1.009 for share in shares]
    if max(scaled) > 1:
        return
    (read,) = distributions(f'{{"answers":[{scaled}]}}', [SCORE])
    assert sum(read) == pytest.approx(1)
    assert 0 <= expected_level(read) <= 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"answers":[]}',
        '{"answers":[0.5]}',
        '{"answers":[[0.5,0.5]]}',
        '{"answers":[[0.5,0.3,0.1]]}',
        '{"answers":[[0.5,0.6,-0.1]]}',
        '{"answers":[[0.5,0.5,null]]}',
        '{"answers":[[NaN,0.5,0.5]]}',
        '{"answers":[[true,0,0]]}',
        '{"answers":[[1e999,0,0]]}',
        '{"answers":[[' + "9" * 400 + ",0,0]]}",
    ],
)
def test_what_is_no_distribution_is_unreadable(text: str) -> None:
    """Every option has a probability in [0, 1], and together they are 1."""
    with pytest.raises(UnreadableReply):
        distributions(text, [SCORE])


@pytest.mark.parametrize(
    "asked",
    [
        [ScoreQuestion("", ("only",))],
        [ScoreQuestion("", tuple(map(str, range(11))))],
        [SCORE, ScoreQuestion("", ("no", "yes"))],
        ["grade"],
        None,
    ],
)
def test_questions_that_cannot_be_asked_are_told(asked: Any) -> None:
    """What the code of a metric gives must not end a run."""
    prompt = replace(GRADE, questions=lambda data: asked)
    with pytest.raises(UnreadableReply, match="grade: the questions failed"):
        questions_of(prompt, {})

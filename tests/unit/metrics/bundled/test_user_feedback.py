"""user_feedback: a thumb, a rating or a category as a value, and what it cannot know."""

from __future__ import annotations

from typing import Any

import pytest

from ragmetrics.errors import InputError
from ragmetrics.metrics.bundled.user_feedback import user_feedback
from ragmetrics.records import BadRow, Score, Status, read_row
from research.feedback_coverage import coverage
from tests.fakes.rankings import play


def said(value: Any, **parameters: Any) -> Score:
    """The score of a row with such feedback."""
    row = read_row({"user_input": "q", "retrieved_contexts": ["c"], "feedback": value}, "1")
    return play(user_feedback, row, **parameters)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((True, 1), (1, 1), ("thumbs_up", 1), ("👍", 1), ({"thumb": "up"}, 1), ("Helpful", 1)),
        *((False, 0), (0, 0), (-1, 0), ("down", 0), ("👎", 0), ({"category": "outdated"}, 0)),
        *((0.25, 0.25), ("4/5", 0.75), ({"rating": 2, "best": 5}, 0.25), (1.0, 1), ("10/10", 1)),
    ],
)
def test_thumbs_ratings_and_categories_are_one_number(value: Any, expected: float) -> None:
    """However a tool writes them: 1 is the best, 0 the worst."""
    assert said(value).value == expected


def test_a_team_names_its_scale_and_its_categories() -> None:
    """With `best`, 1 is the worst rating and no thumb up; other categories are good or bad."""
    assert said(1, best=5).value == 0
    assert said(4, best=5).value == 0.75
    assert said("solved_it", good=["solved it"]).value == 1
    assert said("too old", bad=["too old"]).value == 0


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no feedback"),
        ("", "no feedback"),
        (4, "a rating without its scale: write 4/5, or set `best`"),
        ("9/5", "a rating outside of its scale"),
        ("nan", "a rating without its scale: write 4/5, or set `best`"),
        ("meh", "a category that is neither `good` nor `bad`: name it in one of them"),
    ],
)
def test_other_rows_are_not_applicable_with_their_reason(value: Any, reason: str) -> None:
    """A user who said nothing is neither content nor not, and no value is guessed."""
    score = said(value)
    assert (score.value, score.status, score.reason) == (None, Status.NOT_APPLICABLE, reason)


def test_a_comment_is_no_category() -> None:
    """Free text may name people: it is not kept."""
    with pytest.raises(BadRow, match=r"feedback: a category has at most 60 characters"):
        said("I called Ms Miller, who told me that the deposit is not 50 euros any more.")


def test_a_scale_needs_two_ratings() -> None:
    """A parameter that makes no sense is refused."""
    with pytest.raises(InputError, match="best is 1"):
        said(1, best=1)


def test_intervals_cover_under_five_per_cent_response_but_not_under_self_selection() -> None:
    """Where every user answers equally often, the interval holds the mean of all; where contented
    users answer half as often, it holds that of those who answer, and misses that of all.
    """
    equal = coverage(trials=150, rows=4_000, up=0.05, down=0.05)
    assert 0.90 <= equal.of_all <= 0.99
    selected = coverage(trials=150, rows=4_000, up=0.04, down=0.08)
    assert 0.90 <= selected.of_answering <= 0.99
    assert selected.of_all < 0.2

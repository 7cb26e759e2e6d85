"""context_relevance: the mean grade of the retrieved contexts, halved; replies played by hand."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.metrics import GRADE, Grade
from ragmetrics.metrics.bundled.context_relevance import band, context_relevance
from ragmetrics.records import Ask, Score, Status
from tests import builders
from tests.builders import end

QUESTION = "When was the tower opened?"
DATA = {"question": QUESTION, "context": "It was opened in 1889."}
GRADES = st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=12)


a_row = partial(builders.a_row, user_input=QUESTION)


def replies(*grades: int) -> list[Grade]:
    """What the judge says of each context asked about."""
    return [Grade.model_validate({"grade": grade}) for grade in grades]


def score(grades: list[int]) -> Score:
    """The score of a row whose contexts are graded like this."""
    steps = context_relevance.play(a_row(*(f"context {i}" for i in range(len(grades)))))
    next(steps)
    return end(steps, *replies(*grades))


def test_asks_one_grade_per_context_in_one_wave() -> None:
    """Each context is asked about on its own, with the question, in rank order."""
    requests = next(context_relevance.play(a_row("one", "two")))
    assert requests == [
        Ask(GRADE, {"question": QUESTION, "context": "one"}),
        Ask(GRADE, {"question": QUESTION, "context": "two"}),
    ]


def test_value_is_the_halved_mean_grade() -> None:
    """Grades 2, 1, 0, 0 are (3 / 4) / 2 = 0.375."""
    found = score([2, 1, 0, 0])
    assert found == Score(0.375, details={"grades": [2, 1, 0, 0], "band": "poor"})


def test_equal_contexts_make_equal_requests() -> None:
    """A context retrieved twice has one key, so that the driver asks once."""
    first, second = next(context_relevance.play(a_row("same", "same")))
    assert first.key == second.key


# Empty cases


def test_blank_context_is_grade_0_and_not_asked() -> None:
    """A blank context counts in the denominator, at its own rank, without a call."""
    steps = context_relevance.play(a_row(" ", "text", "\t\n"))
    assert [request.data["context"] for request in next(steps)] == ["text"]
    found = end(steps, *replies(2))
    assert (found.value, found.details["grades"]) == (pytest.approx(1 / 3), [0, 2, 0])


def test_one_missing_grade_leaves_the_row_unanswered() -> None:
    """A mean over part of the contexts would be another number: Unanswered goes up."""
    steps = context_relevance.play(a_row("one", "two"))
    next(steps)
    with pytest.raises(Unanswered, match="timed out"):
        steps.send([*replies(2), Unanswered(Status.JUDGE_FAILED, "timed out")])


# Replies


@pytest.mark.parametrize(
    "reply",
    [
        '{"grade": 2}',
        'The grade is:\n```json\n{"grade": 2}\n```\nAnything else?',
        ' {"grade": 2, "why": "it says so"} ',
    ],
)
def test_reads_a_grade_with_prose_around_it(reply: str) -> None:
    """Chatty models are understood."""
    assert GRADE.parse(reply, DATA).grade == 2


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "2",
        "relevant",
        '{"grade": 3}',
        '{"grade": -1}',
        '{"grade": 1.5}',
        '{"grade": null}',
        '{"grade": "high"}',
        '{"score": 2}',
        '{"grade": 2',
    ],
)
def test_any_other_reply_is_unreadable(reply: str) -> None:
    """Only one object with the grade 0, 1 or 2 is a verdict."""
    with pytest.raises(UnreadableReply):
        GRADE.parse(reply, DATA)


# Properties


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (1.0, "excellent"),
        (0.9, "excellent"),
        (0.89, "good"),
        (0.7, "good"),
        (0.69, "moderate"),
        (0.5, "moderate"),
        (0.49, "poor"),
        (0.0, "poor"),
    ],
)
def test_bands_begin_at_their_limit(value: float, word: str) -> None:
    """Excellent from 0.9, good from 0.7, moderate from 0.5, poor below."""
    assert band(value) == word


@given(GRADES)
def test_value_lies_between_the_extreme_grades(grades: list[int]) -> None:
    """The value is in [0, 1], and between the lowest and the highest grade, halved."""
    value = score(grades).value
    assert value is not None
    assert min(grades) / 2 <= value <= max(grades) / 2


@given(GRADES.flatmap(lambda grades: st.tuples(st.just(grades), st.permutations(grades))))
def test_rank_does_not_matter(both: tuple[list[int], list[int]]) -> None:
    """The same grades in another order give the same value: ranking is precision's business."""
    assert score(both[0]).value == score(both[1]).value


@given(GRADES, st.data())
def test_a_better_context_gives_a_better_value(grades: list[int], data: st.DataObject) -> None:
    """Raising one grade by 1 raises the value by exactly 1 / 2k."""
    place = data.draw(st.integers(0, len(grades) - 1))
    if grades[place] < 2:
        better = [grade + (i == place) for i, grade in enumerate(grades)]
        gain = (score(better).value or 0) - (score(grades).value or 0)
        assert gain == pytest.approx(1 / (2 * len(grades)))

"""noise_sensitivity: wrong statements that stand in a retrieved context; replies played by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.errors import InputError, Unanswered, UnreadableReply
from ragmetrics.metrics import GROUNDED, Support, metric_families
from ragmetrics.metrics.bundled.faithfulness import STATEMENTS, Statements, faithfulness
from ragmetrics.metrics.bundled.noise_sensitivity import MODES, noise_sensitivity
from ragmetrics.records import Ask, Score, Status
from tests import builders
from tests.builders import end

QUESTION = "When was it opened, and where?"
RESPONSE = "It was opened in Paris in 1888."
REFERENCE = "It was opened in 1889. It stands in Paris."
TRUTHS = ["It was opened in 1889.", "It stands in Paris."]
STATED = ["It is in Paris.", "It was opened in 1888."]
BIT = st.sampled_from([0, 1])


class Night(NamedTuple):
    """All verdicts there can be on a row."""

    correct: list[int]
    """Per statement: whether the reference supports it."""
    holds: list[list[int]]
    """Per context and statement."""
    truths: list[list[int]]
    """Per context and sentence of the reference."""


@st.composite
def nights(draw: st.DrawFn) -> Night:
    """Up to five statements and five contexts; the reference has two sentences."""
    statements, contexts = draw(st.integers(1, 5)), draw(st.integers(1, 5))

    def table(width: int) -> st.SearchStrategy[list[list[int]]]:
        row = st.lists(BIT, min_size=width, max_size=width)
        return st.lists(row, min_size=contexts, max_size=contexts)

    correct = draw(st.lists(BIT, min_size=statements, max_size=statements))
    return Night(correct, draw(table(statements)), draw(table(len(TRUTHS))))


a_row = partial(builders.a_row, user_input=QUESTION, response=RESPONSE, reference=REFERENCE)


def supported(*verdicts: int) -> Support:
    """One verdict per statement."""
    return Support.model_validate({"supported": verdicts})


def play(night: Night, mode: str = "relevant") -> Score:
    """The score after these verdicts, asked for or not."""
    bound = noise_sensitivity.with_parameters({"mode": mode})
    steps = bound.play(a_row(*(f"context {n}" for n in range(len(night.holds)))))
    next(steps)
    steps.send([Statements(statements=[[f"Statement {n}." for n in range(len(night.correct))]])])
    if all(night.correct):
        return end(steps, supported(*night.correct))
    steps.send([supported(*night.correct)])
    wrong = [n for n, correct in enumerate(night.correct) if not correct]
    answers = [
        supported(*(holds[n] for n in wrong), *truths)
        for holds, truths in zip(night.holds, night.truths, strict=True)
    ]
    return end(steps, *answers)


def test_asks_about_the_reference_and_then_about_each_context() -> None:
    """The correct statement is left out; wrong ones and the reference share a call per context."""
    steps = noise_sensitivity.play(a_row("one", " ", "two"))
    assert next(steps) == [Ask(STATEMENTS, {"question": QUESTION, "sentences": [RESPONSE]})]
    against = {"question": QUESTION, "contexts": [REFERENCE], "statements": STATED}
    assert steps.send([Statements(statements=[STATED])]) == [Ask(GROUNDED, against)]
    together = [STATED[1], *TRUTHS]
    assert steps.send([supported(1, 0)]) == [
        Ask(GROUNDED, {"question": QUESTION, "contexts": ["one"], "statements": together}),
        Ask(GROUNDED, {"question": QUESTION, "contexts": ["two"], "statements": together}),
    ]


def test_shares_the_statements_of_faithfulness() -> None:
    """The first request is the very one of faithfulness, in one family, so it is asked once."""
    row = a_row("one")
    assert next(noise_sensitivity.play(row)) == next(faithfulness.play(row))
    both = [faithfulness, noise_sensitivity]
    assert metric_families(both) == [tuple(both)]


NIGHT = Night(
    correct=[1, 0, 0, 0],
    holds=[[1, 1, 0, 0], [0, 1, 1, 0]],
    truths=[[0, 1], [0, 0]],
)


def test_relevant_counts_what_stands_in_a_relevant_context() -> None:
    """Of three wrong statements the first stands in the relevant context: 1 of 4."""
    found = play(NIGHT)
    assert found.value == 0.25
    assert (found.details["wrong"], found.details["misled"]) == ([1, 2, 3], [1])
    assert found.details["relevant_contexts"] == [0]


def test_irrelevant_counts_what_stands_in_irrelevant_ones_only() -> None:
    """The first stands in a relevant context as well, the second does not, the third nowhere."""
    found = play(NIGHT, "irrelevant")
    assert found.value == 0.25
    assert found.details["misled"] == [2]


def test_contexts_are_named_by_their_rank_among_all() -> None:
    """Blank contexts are not asked about, but they keep their place."""
    steps = noise_sensitivity.play(a_row(" ", "text"))
    next(steps)
    steps.send([Statements(statements=[STATED])])
    steps.send([supported(1, 0)])
    found = end(steps, supported(1, 1, 0))
    details = {"statements": STATED, "wrong": [1], "misled": [1], "relevant_contexts": [1]}
    assert found == Score(0.5, details=details)


# Empty cases


def test_no_statement_is_not_applicable() -> None:
    """A response that claims nothing cannot be wrong."""
    steps = noise_sensitivity.play(a_row("context"))
    next(steps)
    found = end(steps, Statements(statements=[[]]))
    assert found == Score(None, "no statement in the response", status=Status.NOT_APPLICABLE)


def test_no_wrong_statement_is_zero_and_no_context_is_asked_about() -> None:
    """A correct response ends after two calls."""
    steps = noise_sensitivity.play(a_row("context"))
    next(steps)
    steps.send([Statements(statements=[STATED])])
    found = end(steps, supported(1, 1))
    assert found == Score(0.0, details={"statements": STATED, "wrong": [], "misled": []})


def test_an_empty_question_is_scored_all_the_same() -> None:
    """The question only helps to understand the statements."""
    assert "user_input" not in noise_sensitivity.needs
    assert next(noise_sensitivity.play(a_row("context", user_input="")))


def test_an_unknown_mode_is_an_error() -> None:
    """A misspelt mode ends the run, naming what there is."""
    bound = noise_sensitivity.with_parameters({"mode": "all"})
    with pytest.raises(InputError, match="mode: 'all' is none of relevant, irrelevant"):
        next(bound.play(a_row("context")))


@pytest.mark.parametrize(
    "earlier", [[], [Statements(statements=[STATED])], [Statements(statements=[STATED]), (0, 0)]]
)
def test_no_verdict_leaves_the_row_unanswered(earlier: Sequence[Any]) -> None:
    """Unanswered goes up to the driver, from each of the calls."""
    steps = noise_sensitivity.play(a_row("context"))
    next(steps)
    for answer in earlier:
        steps.send([supported(*answer) if isinstance(answer, tuple) else answer])
    with pytest.raises(Unanswered, match="timed out"):
        steps.send([Unanswered(Status.JUDGE_FAILED, "timed out")])


def test_verdicts_on_part_of_what_was_asked_are_unreadable() -> None:
    """A verdict missing for a sentence of the reference is a verdict missing."""
    data = {"question": "?", "contexts": ["x"], "statements": [STATED[1], *TRUTHS]}
    with pytest.raises(UnreadableReply, match="2 verdicts for 3 statements"):
        GROUNDED.parse('{"supported": [1, 0]}', data)


# Properties


def ragas(night: Night, mode: str) -> float:
    """The arithmetic of ragas 0.4, in matrices over statements and contexts."""
    holds, truths = (np.array(table, dtype=bool).T for table in (night.holds, night.truths))
    wrong = ~np.array(night.correct, dtype=bool)
    relevant = truths.any(axis=0, keepdims=True)
    in_relevant = (relevant & holds).any(axis=1)
    in_irrelevant = (~relevant & holds).any(axis=1) & ~in_relevant
    return float(np.mean(wrong & (in_relevant if mode == "relevant" else in_irrelevant)))


@settings(deadline=None)
@given(nights(), st.sampled_from(MODES))
def test_value_is_that_of_ragas(night: Night, mode: str) -> None:
    """What is not asked, verdicts of contexts on correct statements, changes nothing."""
    assert play(night, mode).value == pytest.approx(ragas(night, mode))


@settings(deadline=None)
@given(nights())
def test_the_modes_never_count_the_same_statement(night: Night) -> None:
    """Both are in [0, 1], and together not more than the share of wrong statements."""
    values = [play(night, mode).value or 0 for mode in MODES]
    assert min(values) >= 0
    assert sum(values) <= night.correct.count(0) / len(night.correct) + 1e-9


@settings(deadline=None)
@given(nights(), st.sampled_from(MODES), st.randoms())
def test_the_rank_of_contexts_does_not_matter(night: Night, mode: str, chance: Any) -> None:
    """The same contexts in another order give the same value."""
    order = chance.sample(range(len(night.holds)), len(night.holds))
    mixed = Night(night.correct, [night.holds[n] for n in order], [night.truths[n] for n in order])
    assert play(mixed, mode).value == play(night, mode).value


@settings(deadline=None)
@given(nights(), st.sampled_from(MODES), st.data())
def test_a_corrected_statement_never_raises_the_value(
    night: Night, mode: str, data: st.DataObject
) -> None:
    """Lower is better: what becomes right is no longer counted."""
    place = data.draw(st.integers(0, len(night.correct) - 1))
    better = [1 if n == place else correct for n, correct in enumerate(night.correct)]
    assert (play(night._replace(correct=better), mode).value or 0) <= (play(night, mode).value or 0)

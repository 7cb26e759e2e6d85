"""Escalations: a firing alert that gets worse than what people were last told, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.delivery.state import AlertStates, advance_states, judge_findings, messages_of
from ragmetrics.records import Finding, Told
from ragmetrics.rules import evaluate_rules
from tests.fakes.past import NOISY, a_night, fallen, recall, scores, story, the, uneven, view

CLEAN = [NOISY, NOISY, NOISY]


def transitions(told: list[Finding]) -> list[str | None]:
    """What was said of each night."""
    return [one.transition for one in told]


def after(*falls: float, rules: list[Rule] | None = None, **more: Any) -> list[str | None]:
    """What is said of nights that are so much below three clean ones."""
    rules = rules or recall(max_drop=0.05, versus="trailing:7")
    told = story(rules, *CLEAN, *(fallen(by) for by in falls), **more)
    return transitions(told)[3:]


def test_a_further_fall_is_told_at_once_and_then_is_the_new_level() -> None:
    """From the last notification, whatever the nights between were; a level that goes up and down
    escalates once.
    """
    assert after(0.1, 0.08, 0.12, 0.3) == ["fired", None, None, "escalated"]
    assert after(0.1, 0.3, 0.2, 0.3, 0.2, 0.3) == ["fired", "escalated", None, None, None, None]
    assert after(0.1, 0.2, 0.3, 0.0) == ["fired", "escalated", "escalated", "resolved"]


def test_a_slow_fall_is_told_by_steps() -> None:
    """No night is much worse than the one before; the sum is."""
    assert after(0.1, 0.12, 0.14, 0.16, 0.18) == ["fired", None, None, "escalated", None]


def test_a_fall_within_the_limit_or_by_chance_is_not_told() -> None:
    """Less than `worse_by`, or more of it by few questions, up and down."""
    assert after(0.1, 0.14, 0.14) == ["fired", None, None]
    rules = recall(max_drop=0.05, versus="trailing:7")
    clean = [[0.5] * 20] * 3
    told = story(rules, *clean, fallen(0.3, clean[0]), uneven(0.37, spread=0.3), uneven(0.37))
    assert transitions(told)[3:] == ["fired", None, None]


def test_worse_by_is_the_step_of_a_rule() -> None:
    """As far as `max_drop`, or 0.05 of a rule without one, if it does not say so."""
    given = {"versus": "trailing:7", "max_drop": 0.05}
    assert after(0.1, 0.2, 0.35, rules=recall(**given, worse_by=0.2)) == [
        *("fired", None, "escalated")
    ]
    assert after(0.2, 0.26, 0.31, rules=recall(max_drop=0.1, versus="trailing:7")) == [
        *("fired", None, "escalated")
    ]
    assert after(0.2, 0.24, 0.26, rules=recall(min=0.7)) == ["fired", None, "escalated"]


def test_the_finding_says_from_what_to_what() -> None:
    """Since the night of the last message, over the questions of both."""
    told = story(recall(max_drop=0.05, versus="trailing:7"), *CLEAN, fallen(0.1), fallen(0.4))
    found = told[-1].escalation
    assert found is not None
    assert (found.before, found.now) == pytest.approx((0.7, 0.4))
    assert found.notified.night == told[-2].since
    assert str(found).startswith("worse than in the last message (2026-11-18): 0.700 → 0.400, drop")


def test_another_judge_hides_no_further_fall() -> None:
    """The nights before it fired do not compare any more; those since the new judge do."""
    nights = [*CLEAN, fallen(0.1), fallen(0.1), fallen(0.1), fallen(0.4), fallen(0.4)]
    judges = [*["judge-1"] * 5, *["judge-2"] * 3]
    told = story(recall(max_drop=0.05, versus="trailing:7"), *nights, judges=judges)
    assert transitions(told)[3:] == ["fired", None, None, "escalated", None]
    assert {one.state for one in told[3:]} == {"firing"}


@pytest.mark.parametrize("gates", [True, False])
def test_a_second_index_build_that_falls_further_escalates(gates: bool) -> None:
    """Also where a gate promoted it: the build before it served no night that is a measure."""
    builds = ["b1", "b1", "b2", "b2", "b3", "b3"]
    falls = [0.0, 0.0, 0.1, 0.1, 0.4, 0.4]
    nights = [
        scores(fallen(by), index_build=build) for build, by in zip(builds, falls, strict=True)
    ]
    serving = [["b1"], ["b1"], ["b2", "b1"], ["b2", "b1"], ["b3", "b2"], ["b3", "b2"]]
    rules = recall(max_drop=0.05, versus="serving")
    told = story(rules, *nights, serving=serving if gates else ())
    assert transitions(told) == [None, None, "fired", None, "escalated", None]
    assert {one.baseline_label for one in told[2:]} == {"index build b1"}


def test_a_run_whose_missing_rows_come_late_is_held_against_what_was_told() -> None:
    """The same run, published again: half of its rows were there when it fired."""
    settings = AlertSettings(rules=tuple(recall(max_drop=0.05, versus="previous")))
    before, messages = a_night(scores(NOISY), ago=1), list[Told]()
    said = []
    for values in (fallen(0.1), fallen(0.1), fallen(0.4), fallen(0.4)):
        tonight = a_night(scores(values))
        book = AlertStates().heard(messages)
        found = evaluate_rules(settings, view(tonight, before, book=book))
        after, told = judge_findings(book, found, tonight.manifest.date, 7)
        messages += messages_of(after, told, tonight.manifest.run)
        said.append(the(told, "metric").transition)
    assert said == ["fired", None, "escalated", None]


@pytest.mark.parametrize("clean", [True, False])
def test_a_night_whose_manifest_is_not_kept_hides_no_further_fall(clean: bool) -> None:
    """It was told, and could not be written: what is left of it is the mean that people know."""
    settings = AlertSettings(rules=tuple(recall(min=0.79)))
    kept = [a_night(scores(NOISY), ago=9)] if clean else []
    book, said = AlertStates(), []
    for ago, by in ((3, 0.1), (2, 0.1), (1, 0.4), (0, 0.4)):
        tonight = a_night(scores(fallen(by)), ago=ago)
        found = evaluate_rules(settings, view(tonight, *kept, book=book))
        run = f"run-{ago}"
        book, told = advance_states(book, found, tonight.manifest.date, 7, run=run)
        said.append(the(told, "metric").transition)
    assert said == ["fired", None, "escalated", None]


def test_a_judge_that_is_another_is_not_held_against_a_mean_that_is_not_kept() -> None:
    """The nights that are there say that the judge of then may not be tonight's."""
    settings = AlertSettings(rules=tuple(recall(min=0.79)))
    before, book, said = a_night(scores(NOISY), ago=9), AlertStates(), []
    for ago, by, judge in ((1, 0.1, "judge-1"), (0, 0.4, "judge-2")):
        tonight = a_night(scores(fallen(by)), ago=ago, judge=judge)
        found = evaluate_rules(settings, view(tonight, before, book=book))
        book, told = advance_states(book, found, tonight.manifest.date, 7, run=f"run-{ago}")
        said.append(the(told, "metric").transition)
    assert said == ["fired", None]

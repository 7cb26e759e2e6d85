"""Slow declines: levels for one mix of questions, the test for a fall, and the alert."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.records import Finding, TagMean
from ragmetrics.rules import for_later_nights
from ragmetrics.rules.decline_test import find_decline, night_levels
from ragmetrics.rules.tagged_rows import tag_chance
from tests.fakes.past import Past, a_night, hold_rules, scores

RULES = (Rule(metric="context_recall", max_drop=0.05, versus="trailing:7"),)
SETTINGS = AlertSettings(rules=RULES)
FIRST = 40
"""First night on which the rules are evaluated; the nights before are only kept."""
DAYS = np.arange(90)
FALL = np.clip((DAYS - 59) / 30, 0, 1) * 0.05


def noise(seed: int, count: int = 90, spread: float = 0.01) -> np.ndarray:
    """The same noise each time."""
    return np.random.default_rng(seed).normal(0, spread, count)


# levels


@given(
    st.lists(st.tuples(*[st.integers(1, 50)] * 3), min_size=2, max_size=20),
    st.tuples(*[st.floats(0, 1)] * 3),
    st.floats(-0.2, 0.2),
)
def test_levels_do_not_depend_on_the_mix(
    mixes: list[tuple[int, int, int]], sections: tuple[float, float, float], step: float
) -> None:
    """Without noise the levels of two nights differ by the change of all sections alone."""
    questions = np.array(mixes, dtype=float)
    change = np.zeros(len(mixes))
    change[-1] = step
    means = np.array(sections) + change[:, None]
    questions[0] += 10  # every section is known in the first nights
    levels = night_levels(questions, means, len(mixes))
    assert levels[-1] - levels[0] == pytest.approx(step, abs=1e-9)
    assert np.ptp(levels[:-1]) == pytest.approx(0, abs=1e-9)


def test_a_new_section_is_compared_with_all_rows() -> None:
    """What a new value of a tag is worse by does not disappear in an effect of its own."""
    questions = np.array([[50.0, 50.0, 0.0]] * 20 + [[25.0, 25.0, 50.0]] * 10)
    means = np.tile([0.8, 0.6, 0.3], (30, 1))
    levels = night_levels(questions, means, 14)
    assert levels[0] == pytest.approx(0.7)
    assert levels[-1] == pytest.approx(0.5)


# the test


def test_a_fall_over_thirty_nights_is_found() -> None:
    """With its size, and significant, although no night differs from the week before."""
    found = find_decline(0.7 + noise(1) - FALL, DAYS, np.ones(90))
    assert found is not None
    assert found.fall == pytest.approx(0.05, abs=0.01)
    assert found.before == pytest.approx(0.7, abs=0.01)
    assert found.p_value < 1e-6


@given(st.integers(0, 10_000), st.floats(0, 0.1), st.integers(0, 6))
def test_days_of_the_week_are_no_decline(seed: int, height: float, day: int) -> None:
    """A weekly cycle changes neither the fall nor its p."""
    levels = 0.7 + noise(seed)
    plain, weekly = (
        find_decline(series, DAYS, np.ones(90))
        for series in (levels, levels + height * (day == DAYS % 7))
    )
    assert plain is not None
    assert weekly is not None
    assert weekly.fall == pytest.approx(plain.fall, abs=1e-9)
    assert weekly.p_value == pytest.approx(plain.p_value, rel=1e-4)


def test_quiet_nights_are_rarely_significant() -> None:
    """Of 2,000 quiet series a share of about p, times the number of shapes, has such a p."""
    levels = np.random.default_rng(3).normal(0.7, 0.02, (2_000, 90))
    found = find_decline(levels, DAYS, np.ones(90))
    assert found is not None
    assert (found.p_value < 0.001).mean() < 0.008


def test_levels_that_wander_are_not_taken_for_independent() -> None:
    """Nights that resemble the night before give larger p than independent ones would."""
    steps = np.random.default_rng(4).normal(0, 0.02, (500, 90))
    wandering = steps.copy()
    for night in range(1, 90):
        wandering[:, night] = 0.5 * wandering[:, night - 1] + 0.87 * steps[:, night]
    found = find_decline(wandering, DAYS, np.ones(90))
    assert found is not None
    assert (found.p_value < 0.001).mean() < 0.03


@pytest.mark.parametrize("count", [0, 1, 41])
def test_too_few_nights_say_nothing(count: int) -> None:
    """Less than six weeks have no nights before the fall."""
    assert find_decline(np.zeros(count), np.arange(count), np.ones(count)) is None


def test_a_rise_is_no_decline() -> None:
    """p is one-sided."""
    found = find_decline(0.7 + noise(5) + FALL, DAYS, np.ones(90))
    assert found is not None
    assert found.p_value > 0.01


# tags


def test_a_tag_explains_scores_where_its_values_differ() -> None:
    """The F test over all nights together; one value alone explains nothing."""
    night = {
        "a": TagMean(questions=50, mean=0.9, scatter=5),
        "b": TagMean(questions=50, mean=0.4, scatter=5),
    }
    assert tag_chance([night]) < 1e-9
    assert tag_chance([{"a": night["a"]}]) == 1.0
    alike = {name: TagMean(questions=50, mean=0.5, scatter=5) for name in "ab"}
    assert tag_chance([alike]) == pytest.approx(1.0)


def test_a_manifest_keeps_the_means_by_tag_of_watched_metrics() -> None:
    """A question has one vote, which its rows share; without a drop rule nothing is kept."""
    scored = scores([0.0, 1.0, 1.0, 0.5], section=["a", "a", "b", "b"])
    scored.table["question"] = ["q1", "q1", "q2", "q3"]
    night = a_night(scored)
    kept = for_later_nights(SETTINGS, night.manifest, night.scores).metrics[0].by_tag["section"]
    assert (kept["a"].questions, kept["a"].mean, kept["a"].scatter) == (1.0, 0.5, 0.25)
    assert (kept["b"].questions, kept["b"].mean) == (2.0, 0.75)
    for other in (
        AlertSettings(rules=()),
        AlertSettings(rules=RULES, slow_decline=None),
        AlertSettings(rules=RULES, mix_tags=()),
    ):
        assert not for_later_nights(other, night.manifest, night.scores).metrics[0].by_tag


def test_named_tags_are_one_tag_of_their_cells() -> None:
    """`mix_tags` are standardised by together; with more than 100 cells nothing is kept."""
    settings = AlertSettings(rules=RULES, mix_tags=("section", "user"))
    few = scores([0.5] * 8, section=["a", "b"] * 4, user=["x", "x", "y", "y"] * 2)
    many = scores([0.5] * 200, section=["a", "b"] * 100, user=[f"u{n}" for n in range(200)])
    kept = [
        for_later_nights(settings, context.manifest, context.scores).metrics[0].by_tag
        for context in (a_night(few), a_night(many))
    ]
    assert [one.questions for one in kept[0]["section and user"].values()] == [2.0] * 4
    assert kept[1] == {}


# the alert


def nights(
    means: Sequence[float], settings: AlertSettings = SETTINGS, **shares: Sequence[int]
) -> list[list[Finding]]:
    """The slow declines of nights in a row; `b` counts rows of section b, which score 0.4 less."""
    book, past, told = AlertStates(), list[Past](), list[list[Finding]]()
    for place, mean in enumerate(means):
        hard = shares["b"][place] if shares else 0
        values = [
            mean + (0.02 if n % 2 else -0.02) - (0.4 if n < hard else 0.0) for n in range(100)
        ]
        sections = ["b" if n < hard else "a" for n in range(100)]
        scored = scores(values, **({"section": sections} if shares else {}))
        scored.table["question"] = [f"n{place}q{n}" for n in range(100)]
        tonight = a_night(scored, ago=len(means) - place - 1)
        manifest = for_later_nights(settings, tonight.manifest, tonight.scores)
        tonight = Past(manifest, tonight.scores)
        found = hold_rules(settings, tonight, past) if place >= FIRST else []
        book, found = advance_states(book, found, manifest.date, 7)
        past.append(Past(tonight.manifest.model_copy(update={"findings": found}), tonight.scores))
        told.append([one for one in found if one.kind == "slow_decline"])
    return told


def test_a_slow_decline_fires_once_and_resolves() -> None:
    """Silent before 42 nights; one message while it lasts; resolved when the level is back."""
    levels = 0.8 + noise(6, 80, 0.004)
    levels[45:75] -= np.arange(1, 31) / 30 * 0.06
    told = nights(levels.tolist())
    assert not any(told[:41])
    assert told[41][0].level == "ok"
    fired = [place for place, one in enumerate(told) if one and one[0].transition == "fired"]
    assert len(fired) == 1
    assert 50 < fired[0] < 75
    found = told[74][0]
    assert found.state == "firing"
    assert found.metric == "context_recall"
    assert "over " in found.message and "no single night stands out" in found.message
    assert found.drop == pytest.approx(0.06, abs=0.015)


def test_a_drop_that_a_rule_reports_is_no_slow_decline() -> None:
    """The nights of an incident do not count: one cause is one alert."""
    levels = 0.8 + noise(7, 75, 0.004)
    levels[50:] -= 0.2
    told = nights(levels.tolist())
    assert not any(one.level == "breach" for night in told for one in night)


def test_a_season_of_the_mix_is_no_slow_decline() -> None:
    """The mean falls by 0.12 as section b is asked for more often; its level does not fall."""
    share = [10 + max(0, place - 45) for place in range(75)]
    told = nights((0.8 + noise(8, 75, 0.004)).tolist(), b=share)
    assert told[-1]
    assert not any(one.level == "breach" for night in told for one in night)
    assert told[-1][0].mix_tags == ["section"]


def test_without_the_setting_or_a_rule_nothing_is_watched() -> None:
    """`slow_decline: null`, and metrics without a rule, have none; those with `min` alone do."""
    levels = [0.8] * 45
    assert not any(nights(levels, AlertSettings(rules=RULES, slow_decline=None)))
    assert not any(nights(levels, AlertSettings(rules=())))
    assert any(
        nights(levels, AlertSettings(rules=RULES, slow_decline=None, checks={"slow_decline": 0.03}))
    )
    assert any(nights(levels, AlertSettings(rules=(Rule(metric="context_recall", min=0.1),))))


def test_golden_questions_that_came_start_the_history_again() -> None:
    """Harder golden questions lower the mean: nights before them do not count."""
    settings, past = SETTINGS, list[Past]()
    for place in range(60):
        values = [0.8 - 0.001 * max(0, place - 30)] * 40
        new = {"q": date(2026, 11, 1)}
        tonight = a_night(scores(values), ago=59 - place, golden_since=new)
        past.append(tonight)
    found = hold_rules(settings, past[-1], past[:-1])
    assert past[-1].manifest.date - date(2026, 11, 1) < timedelta(days=42)
    assert not [one for one in found if one.kind == "slow_decline"]

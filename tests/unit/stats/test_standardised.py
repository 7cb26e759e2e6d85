"""A drop of like for like: an estimator checked by identities and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics.stats import (
    Drop,
    StratifiedRows,
    choose_strata,
    compare,
    like_for_like,
)
from ragmetrics.stats.standardised import FEWEST, expected

SCORES = st.lists(st.integers(0, 64).map(lambda parts: parts / 64), min_size=2, max_size=30)
"""Means of equal ones are exact: rounding alone is no spread, of which degrees of freedom speak."""


def rows(values, strata=None) -> StratifiedRows:
    """One row per question, by at most one partition."""
    levels = [] if strata is None else [np.array(strata, dtype=np.intp)]
    return StratifiedRows(np.arange(len(values)), np.array(values, dtype=float), levels)


def plain(before, now) -> Drop:
    """The drop with no regard to strata; no question is on both sides."""
    found = compare(
        {f"a{i}": [one] for i, one in enumerate(before)},
        {f"b{i}": [one] for i, one in enumerate(now)},
    )
    assert found is not None
    return found


def drop(before, old, now, new) -> Drop:
    """The drop by strata."""
    return like_for_like(plain(before, now), rows(before, old), rows(now, new))


def numbers(found: Drop) -> tuple[float, ...]:
    """What a drop says of like for like."""
    return found.drop, found.low, found.high, found.p_value, found.freedom


@given(SCORES, SCORES)
def test_one_stratum_is_the_plain_drop(before: list[float], now: list[float]) -> None:
    """Where all rows are alike, nothing is the mix, and the interval is that of Welch's test."""
    found = drop(before, [0] * len(before), now, [0] * len(now))
    assert numbers(found) == pytest.approx(numbers(plain(before, now)), abs=1e-9)
    assert found.mix == pytest.approx(0, abs=1e-9)
    assert found.alone == 0 or len(before) < FEWEST


@given(st.integers(0, 10_000), st.permutations(range(4)))
def test_the_names_of_strata_mean_nothing(seed: int, order: list[int]) -> None:
    """Strata numbered otherwise give the same drop."""
    random = np.random.default_rng(seed)
    before, now = random.random(80), random.random(30)
    old, new = random.integers(4, size=80), random.integers(4, size=30)
    names = np.array(order)
    again = drop(before, names[old], now, names[new])
    assert numbers(again) == pytest.approx(numbers(drop(before, old, now, new)))


@given(st.integers(0, 10_000))
def test_with_equal_mixes_it_is_the_plain_difference(seed: int) -> None:
    """Both sides have each stratum in the same share: no part of the drop is the mix."""
    random = np.random.default_rng(seed)
    old, new = np.repeat([0, 1, 2], [20, 40, 60]), np.repeat([0, 1, 2], [10, 20, 30])
    found = drop(random.random(120), old, random.random(60), new)
    assert found.mix == pytest.approx(0, abs=1e-12)
    assert found.drop == pytest.approx(found.before - found.now)


def test_what_the_mix_explains_is_no_drop() -> None:
    """Hard rows are nine of ten in place of one of ten, each scored as before."""
    before, old = [1.0, 0.8] * 45 + [0.3, 0.1] * 5, [0] * 90 + [1] * 10
    now, new = [1.0, 0.8] * 5 + [0.3, 0.1] * 45, [0] * 10 + [1] * 90
    found = drop(before, old, now, new)
    assert found.before - found.now == pytest.approx(0.56)
    assert found.mix == pytest.approx(0.56)
    assert found.drop == pytest.approx(0)
    assert found.p_value == pytest.approx(0.5)


def test_a_real_drop_in_a_stratum_that_grew_is_left() -> None:
    """Hard rows are more, and got worse by 0.1: that much of their share is the drop."""
    before, old = [0.9, 0.7] * 50 + [0.5, 0.3] * 50, [0] * 100 + [1] * 100
    now, new = [0.9, 0.7] * 10 + [0.4, 0.2] * 40, [0] * 20 + [1] * 80
    found = drop(before, old, now, new)
    assert found.drop == pytest.approx(0.8 * 0.1)
    assert found.mix == pytest.approx((0.8 - 0.5) * 0.4)


def test_a_stratum_that_is_new_or_was_rare_is_held_against_all_rows() -> None:
    """No mean of its own: its rows count as they did before there were strata, and are told."""
    before, old = np.array([1.0, 0.6] * 50), [0] * 96 + [1] * 4
    now, new = np.array([0.5] * 20), [0] * 10 + [1] * 5 + [2] * 5
    found = drop(before, old, now, new)
    assert found.alone == pytest.approx(0.5)
    expect = (10 * before[:96].mean() + 10 * before.mean()) / 20
    assert found.drop == pytest.approx(expect - 0.5)


def test_rows_of_a_question_share_its_vote() -> None:
    """A question in two strata counts by half in each."""
    before = rows([1.0] * 20 + [0.0] * 20, [0] * 20 + [1] * 20)
    questions, strata = np.array([0, 0, 1]), [np.array([0, 1, 1])]
    now = StratifiedRows(questions, np.zeros(3), strata)
    assert expected(before, now).mean == pytest.approx((0.5 * 1 + 0.5 * 0 + 1 * 0) / 2)


def test_no_more_mix_is_taken_for_normal_than_the_week_had() -> None:
    """A share of hard rows that no night had is no normal week: most of its drop stays."""
    before, old = [0.9, 0.7] * 90 + [0.2, 0.0] * 10, [0] * 180 + [1] * 20
    now, new = [0.9, 0.7] * 50 + [0.2, 0.0] * 50, [0] * 100 + [1] * 100
    sides, base = (rows(before, old), rows(now, new)), plain(before, now)
    usual = [rows([0.8] * 9 + [0.1], [0] * 9 + [1])]
    found = like_for_like(base, *sides, usual=usual)
    assert found.drop > 0.2
    assert found.drop + found.mix == pytest.approx(found.before - found.now)
    assert like_for_like(base, *sides, usual=[sides[1]]).drop == pytest.approx(0)


def test_its_error_is_what_simulation_finds() -> None:
    """Over nights drawn anew, t is as wide as it says; so p is right where nothing changed."""
    random, found = np.random.default_rng(1), []
    means, mix, tonight = np.array([0.3, 0.6, 0.9]), [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]
    for _ in range(600):
        old, new = random.choice(3, 200, p=mix), random.choice(3, 100, p=tonight)
        before, now = random.binomial(1, means[old]), random.binomial(1, means[new])
        found.append(drop(before, old, now, new))
    drops, errors = np.array([one.drop for one in found]), np.array([one.error for one in found])
    assert abs(drops.mean()) < 0.01
    assert drops.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.12)
    assert 0.025 < np.mean([one.p_value < 0.05 for one in found]) < 0.075
    assert 0.93 < np.mean([one.low <= 0 <= one.high for one in found]) < 0.98


# Which tags


def test_the_tag_that_explains_the_scores_is_chosen() -> None:
    """Of a tag that says much and one that says nothing, the first alone."""
    random = np.random.default_rng(2)
    section, noise = random.integers(3, size=300), random.integers(3, size=300)
    values = random.normal(section / 3, 0.3)
    found = choose_strata(rows(values[:200]), {"section": section, "noise": noise}, slice(0, 200))
    assert found.tags == ("section",)
    assert len(found.levels[0]) == 300


def test_two_tags_that_both_count_are_crossed() -> None:
    """The second one divides the strata of the first."""
    random = np.random.default_rng(3)
    tags = {name: random.integers(2, size=400) for name in ("language", "section")}
    values = random.normal(0.6 * tags["language"] + 0.3 * tags["section"], 0.3)
    found = choose_strata(rows(values), tags, slice(0, 400))
    assert found.tags == ("language", "section")
    assert len(np.unique(found.levels[1])) == 4


def test_tags_that_are_named_are_taken_as_they_are() -> None:
    """Whatever they explain, and no other."""
    tags = {name: np.arange(60) % 2 for name in ("a", "b")}
    found = choose_strata(rows(np.arange(60) % 2), tags, slice(0, 60), first=["b"], choose=False)
    assert found.tags == ("b",)


def test_chance_chooses_a_tag_once_in_a_hundred_times() -> None:
    """Five tags that say nothing: less than one series in twenty finds any."""
    random, chosen = np.random.default_rng(4), 0
    for _ in range(200):
        tags = {f"tag {number}": random.integers(4, size=200) for number in range(5)}
        chosen += bool(choose_strata(rows(random.random(200)), tags, slice(0, 200)).tags)
    assert chosen <= 8

"""Did a mean fall: checked against scipy's t tests, with the signs people expect."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from ragmetrics.stats import Drop, compare, detectable
from ragmetrics.stats.intervals import paired_interval
from ragmetrics.stats.sign_flip_test import sign_flip_p_value
from research.coverage import power

BEFORE = [0.9, 0.8, 1.0, 0.6, 0.7, 0.9]
NOW = [0.7, 0.8, 0.6, 0.5, 0.7, 0.4]
PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20)


def side(values: list[float], first: int = 0) -> dict[str, list[float]]:
    """One row per question; questions are numbered from `first`."""
    return {f"q{first + i:02}": [value] for i, value in enumerate(values)}


def drop(before: dict[str, list[float]], now: dict[str, list[float]]) -> Drop:
    """The comparison, which must be possible."""
    found = compare(before, now)
    assert found is not None
    return found


# Paired


def test_paired_is_scipys_paired_t_test() -> None:
    """Shared questions are compared with themselves, 30 or more of them."""
    before, now = BEFORE * 5, NOW * 5
    found, oracle = (
        drop(side(before), side(now)),
        stats.ttest_rel(before, now, alternative="greater"),
    )
    assert found.paired
    assert found.questions == 30
    assert found.drop == pytest.approx(np.mean(BEFORE) - np.mean(NOW))
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert (found.low, found.high) == paired_interval(np.subtract(before, now), confidence=0.95)


def test_few_pairs_are_compared_by_a_permutation_test() -> None:
    """Below 30 questions no normal distribution is assumed: four fell, two did not move."""
    found = drop(side(BEFORE), side(NOW))
    assert found.p_value == sign_flip_p_value(np.subtract(BEFORE, NOW)) == 0.5**5


@given(PAIRS)
def test_of_few_pairs_the_interval_agrees_with_p(pairs: list[tuple[float, float]]) -> None:
    """It excludes 0 exactly where a fall, or a rise, is significant at 2.5%."""
    before, now = (list(values) for values in zip(*pairs, strict=True))
    found = drop(side(before), side(now))
    assert (found.low > 0) == (found.p_value <= 0.025)
    assert (found.high < 0) == (found.p_value >= 0.975)


def test_on_other_scales_its_interval_is_scipys_too() -> None:
    """Nothing is known of how far a question may lie that was not asked."""
    before, now = ([5 * value for value in values * 5] for values in (BEFORE, NOW))
    found = drop(side(before), side(now))
    interval = stats.ttest_rel(before, now).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_rows_of_a_question_count_as_their_mean() -> None:
    """A question asked ten times has one vote."""
    before = {"a": [1.0, 0.0], "b": [0.8], "c": [0.6]}
    now = {"a": [0.5], "b": [0.2] * 10, "c": [0.3, 0.5]}
    assert drop(before, now) == drop(side([0.5, 0.8, 0.6]), side([0.5, 0.2, 0.4]))


def test_questions_of_one_side_alone_are_left_out_of_a_pairing() -> None:
    """New and vanished questions change the mix, not the retrieval."""
    extra = {"old": [0.0], "older": [0.1]}
    assert drop(side(BEFORE) | extra, side(NOW) | {"new": [1.0]}) == drop(side(BEFORE), side(NOW))


def test_pairing_needs_half_of_tonights_questions() -> None:
    """Three shared of six pair; three shared of seven speak for too few."""
    assert drop(side(BEFORE), side(NOW, first=3)).paired
    assert not drop(side(BEFORE), side([*NOW, 0.5], first=3)).paired


# Not paired


def test_otherwise_it_is_scipys_welch_test() -> None:
    """Different questions, more of them before, different spread."""
    before = [*BEFORE, 0.8, 0.9]
    found = drop(side(before), side(NOW, first=50))
    oracle = stats.ttest_ind(before, NOW, equal_var=False, alternative="greater")
    assert not found.paired
    assert found.questions == 6
    assert found.p_value == pytest.approx(oracle.pvalue)
    interval = stats.ttest_ind(before, NOW, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_welch_with_spread_on_one_side_only() -> None:
    """A side without spread adds no degrees of freedom, and no error where it is the larger."""
    now = [0.9, 1.0, 0.7, 1.0, 0.8, 0.9]
    found = drop(side([1.0] * 6), side(now, first=50))
    oracle = stats.ttest_1samp(now, 1.0, alternative="less")
    assert found.p_value == pytest.approx(oracle.pvalue)


def test_a_small_side_without_spread_proves_little() -> None:
    """13 of 259 before, none of 37 now: near certain by Welch's test, common by Fisher's."""
    found = drop(side([1.0] * 13 + [0.0] * 246), side([0.0] * 37, first=500))
    assert found.p_value > 0.05
    assert found.low < 0 < found.high


# Signs


@pytest.mark.parametrize("first", [0, 50], ids=["paired", "welch"])
def test_a_drop_is_positive_where_it_is_worse_now(first: int) -> None:
    """Worse: positive drop and small p; better: the mirror image."""
    worse, better = drop(side(BEFORE), side(NOW, first)), drop(side(NOW), side(BEFORE, first))
    assert worse.drop > 0 > better.drop
    assert worse.p_value < 0.5 < better.p_value
    assert (better.drop, better.low, better.high) == pytest.approx(
        (-worse.drop, -worse.high, -worse.low)
    )
    assert better.p_value == pytest.approx(1 - worse.p_value)


@given(PAIRS, st.sampled_from([0, 50]))
def test_p_and_interval_are_always_numbers(pairs: list[tuple[float, float]], first: int) -> None:
    """Whatever the spread: p in [0, 1], the drop inside its interval."""
    before, now = zip(*pairs, strict=True)
    found = drop(side(list(before)), side(list(now), first))
    assert 0 <= found.p_value <= 1
    assert found.low <= found.drop <= found.high


# No spread


@pytest.mark.parametrize("first", [0, 50], ids=["paired", "welch"])
@pytest.mark.parametrize("now", [0.5, 1.0, 1.5])
def test_without_spread_p_is_that_of_the_signs(now: float, first: int) -> None:
    """All of four fell by as much: one of 2^4 patterns of signs, of C(8, 4) of sides."""
    found = drop(side([1.0] * 4), side([now] * 4, first))
    least = 1 / 70 if first else 1 / 16
    assert found.p_value == pytest.approx({0.5: least, 1.0: 0.5, 1.5: 1 - least}[now])
    assert found.drop == 1.0 - now


@pytest.mark.parametrize("turned", [1, -1])
def test_pairs_without_spread_have_an_interval_all_the_same(turned: int) -> None:
    """Of scores in [0, 1], turned round or not, another question may have lost."""
    same = side([turned * 0.5] * 30)
    found = drop(same, same)
    assert found.drop == 0
    assert -found.low == found.high == pytest.approx(0.126, abs=0.001)


def test_two_questions_that_fell_alike_are_no_proof() -> None:
    """However alike: if nothing changed, one pair in four looks so; of three hundred none does."""
    assert drop(side([1.0, 1.0]), side([0.5, 0.50001])).p_value == pytest.approx(0.25, abs=1e-4)
    assert drop(side([1.0] * 300), side([0.5] * 300)).p_value < 1e-80


# What can be detected


@pytest.mark.parametrize("first", [0, 50], ids=["paired", "welch"])
def test_the_detectable_drop_falls_with_the_questions_and_rises_with_strictness(
    first: int,
) -> None:
    """Four times the questions: about half of it."""
    few = drop(side(BEFORE * 5), side(NOW * 5, 10 * first))
    many = drop(side(BEFORE * 20), side(NOW * 20, 10 * first))
    assert 1.9 < few.mde / many.mde < 2.3
    assert few.detectable(0.005) > 1.3 * few.mde


def test_the_detectable_drop_counts_half_a_question_more_at_either_end() -> None:
    """By hand: 0 to 0.5 with a mean of 0.2, so the upper end is 0.3 * (2 * 3/5)^0.75 above it."""
    found = drop(side(BEFORE), side(NOW))
    added = np.append(np.subtract(BEFORE, NOW), [0.0, 0.2 + 0.3 * 1.2**0.75])
    weights = [1.0] * 6 + [0.5, 0.5]
    variance = np.average((added - np.average(added, weights=weights)) ** 2, weights=weights)
    assert found.mde == pytest.approx(detectable(float(np.sqrt(variance / 6)), 5))


@pytest.mark.parametrize("questions", [30, 300])
def test_where_nothing_differs_a_rare_loss_could_still_hide(questions: int) -> None:
    """About 2.5 questions of n would have to be lost whole, and never 0."""
    same = side([0.5] * questions)
    assert drop(same, same).mde == pytest.approx(2.5 / questions, rel=0.05)


@given(PAIRS, st.sampled_from([0, 50]))
def test_something_is_always_too_small_to_detect(
    pairs: list[tuple[float, float]], first: int
) -> None:
    """Whatever the scores, the detectable drop is above 0, and the same both ways."""
    before, now = zip(*pairs, strict=True)
    found = drop(side(list(before)), side(list(now), first))
    other = drop(side(list(now)), side(list(before), first))
    assert 0 < found.mde < float("inf")
    assert other.mde == pytest.approx(found.mde)


@pytest.mark.parametrize("paired", [True, False])
def test_the_detectable_drop_is_found_four_nights_of_five(paired: bool) -> None:
    """Simulated: research/coverage.py has more of it."""
    assert 0.75 <= power(paired, 100, nights=500) <= 0.9


# Too few


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({}, {}),
        ({}, side(NOW)),
        (side(BEFORE), {}),
        (side(BEFORE), side([0.5])),
        (side([0.5]), side(NOW)),
        (side([0.5], first=90), side(NOW)),
    ],
)
def test_fewer_than_two_questions_cannot_be_compared(
    before: dict[str, list[float]], now: dict[str, list[float]]
) -> None:
    """One question on a side tells nothing of spread: None."""
    assert compare(before, now) is None


def test_two_questions_can() -> None:
    """Two are enough, and prove little."""
    assert drop(side([0.9, 0.8]), side([0.3, 0.7])).p_value > 0.1


@pytest.mark.parametrize("limit", [0.0, 0.05])
def test_a_drop_of_the_detectable_size_is_above_the_limit_and_significant(limit: float) -> None:
    """On four of five nights; simulated."""
    random = np.random.default_rng(5)
    before, noise = side([0.7] * 60), random.normal(0, 0.05, (400, 60))
    told = [drop(before, side((0.7 + one).tolist())) for one in noise]
    effect = float(np.mean([one.detectable(0.001, limit) for one in told]))
    fallen = [drop(before, side((0.7 - effect + one).tolist())) for one in noise]
    share = float(np.mean([one.drop > limit and one.p_value < 0.001 for one in fallen]))
    assert 0.74 <= share <= 0.88


@pytest.mark.parametrize("count", [12, 40])
@pytest.mark.parametrize("names", ["qq", "qr"])
def test_the_p_of_a_total_loss_is_that_of_zeros(count: int, names: str) -> None:
    """Of the same questions and of others, by few questions and by many."""
    before = {f"{names[0]}{n}": [n % 3 / 5] for n in range(count)}
    now = {f"{names[1]}{n}": [n % 4 / 5] for n in range(count)}
    found, lost = compare(before, now), compare(before, {name: [0.0] for name in now})
    assert found is not None and lost is not None
    assert found.paired == (names == "qq")
    assert found.p_of_all == pytest.approx(lost.p_value)


def test_scores_without_a_lowest_value_have_no_total_loss() -> None:
    """What can fall is not known."""
    found = compare({"a": [5.0], "b": [7.0]}, {"a": [4.0], "b": [6.0]})
    assert found is not None
    assert found.p_of_all == 1.0

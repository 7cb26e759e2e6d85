"""The gate's statistics: what is held, what is promoted, and how often that is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from ragmetrics.comparison.gate.measured_drop import (
    MeasuredDrop,
    further_to_hold,
    further_to_promote,
    measure,
)
from ragmetrics.comparison.gate.verdict import VerdictEvidence, conclude, weigh
from ragmetrics.comparison.gate.verdict_words import lost_from_index, reasons
from ragmetrics.config import Rule, make_settings
from ragmetrics.records import LostPassage, LostPassages, MetricVerdict, Stage, StageShare
from ragmetrics.stats.intervals import paired_interval

SETTINGS = make_settings({})
GATE = SETTINGS.gate
LIMIT = 0.05
QUESTIONS = 150
SEEDS = 300
VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=40)


def side(values: Sequence[float]) -> dict[str, list[float]]:
    """One row per question."""
    return {f"q{number:04}": [float(value)] for number, value in enumerate(values)}


def fall(before: Sequence[float], after: Sequence[float]) -> MeasuredDrop:
    """The comparison, which must be possible."""
    found = measure(side(before), side(after))
    assert found is not None
    return found


def weighed(
    before: Sequence[float], after: Sequence[float], *, missing: int = 0, limit: float = LIMIT
) -> MetricVerdict:
    """What one metric alone says, by the default settings."""
    one = VerdictEvidence("context_recall", fall(before, after), limit, len(before), missing)
    few, missed = GATE.min_questions, GATE.max_missing
    return weigh([one], min_questions=few, max_missing=missed)[0]


# Measuring


def test_from_30_questions_the_drop_is_that_of_a_paired_t_test() -> None:
    """Means and p are scipy's, the interval that of every paired drop; the spread is that of the
    questions' drops.
    """
    before, after = [0.9, 0.8, 1.0, 0.6, 0.7] * 6, [0.7, 0.8, 0.6, 0.5, 0.7] * 6
    found, oracle = (
        fall(before, after),
        stats.ttest_rel(before, after, alternative="greater"),
    )
    assert (found.before, found.after) == pytest.approx((0.8, 0.66))
    assert found.drop == pytest.approx(0.14)
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert found.spread == pytest.approx(np.std(np.subtract(before, after), ddof=1))
    interval = paired_interval(np.subtract(before, after), confidence=0.95)
    assert (found.low, found.high) == pytest.approx(interval)


def test_the_upper_bound_counts_one_more_question_that_lost_everything() -> None:
    """It is the one-sided t bound of the drops with a 1 added."""
    before, after = [0.9, 0.8, 1.0, 0.6, 0.7], [0.8, 0.8, 1.0, 0.6, 0.7]
    drops = [*np.subtract(before, after), 1.0]
    oracle = stats.ttest_1samp(drops, 0, alternative="less").confidence_interval(0.95)
    assert fall(before, after).upper == pytest.approx(oracle.high)


def test_where_nothing_changed_a_rare_loss_is_not_ruled_out() -> None:
    """The bound is about 3/n, the rule of three, and never the 0 that t alone would give."""
    for count in (30, 150, 1_000):
        assert fall([0.5] * count, [0.5] * count).upper == pytest.approx(3 / count, rel=0.15)


@given(VALUES)
def test_numbers_are_in_order(pairs: list[tuple[float, float]]) -> None:
    """The drop lies in its interval and not above its bound, and means differ by it."""
    found = fall(*zip(*pairs, strict=True))
    assert found.low <= found.drop + 1e-12
    assert found.drop <= found.high + 1e-12
    assert found.drop <= found.upper + 1e-12
    assert found.before - found.after == pytest.approx(found.drop, abs=1e-12)
    assert math.isfinite(found.upper)
    assert found.detectable > 0


@given(VALUES.filter(lambda pairs: len(pairs) > 2))
def test_a_build_that_is_worse_on_every_question_looks_no_better(
    pairs: list[tuple[float, float]],
) -> None:
    """Taking the same from each question moves drop, interval and bound the right way."""
    before, after = ([0.25 + 0.75 * value for value in side] for side in zip(*pairs, strict=True))
    found = fall(before, after)
    worse = fall(before, [value - 0.25 for value in after])
    assert worse.drop == pytest.approx(found.drop + 0.25)
    assert worse.high >= found.high - 1e-9
    assert worse.upper >= found.upper - 1e-9


@given(st.permutations(range(12)))
def test_the_order_of_questions_does_not_matter(order: list[int]) -> None:
    """Pairs are by question."""
    before, after = side(np.linspace(0.4, 0.9, 12)), side(np.linspace(0.9, 0.3, 12))
    names = sorted(after)
    assert measure(before, {names[i]: after[names[i]] for i in order}) == measure(before, after)


def test_questions_of_one_build_alone_are_left_out() -> None:
    """They say nothing of the other."""
    both = measure(side([0.9, 0.8, 0.7]), side([0.8, 0.8, 0.6]))
    more = measure(
        side([0.9, 0.8, 0.7]) | {"old": [0.0]}, side([0.8, 0.8, 0.6]) | {"new": [1.0], "er": [1.0]}
    )
    assert both == more


def test_less_than_two_shared_questions_cannot_be_compared() -> None:
    """Nor can none at all."""
    assert measure(side([0.5]), side([0.5])) is None
    assert measure(side([0.5, 0.5]), {"other": [0.5]}) is None


# Deciding


def test_a_sure_drop_above_the_limit_is_held() -> None:
    """One question in five lost."""
    assert weighed([1.0] * 150, [0.0] * 30 + [1.0] * 120).verdict == "hold"


def test_a_sure_drop_below_the_limit_is_no_reason_to_hold() -> None:
    """Every question lost a hundredth: sure, and tolerated."""
    found = weighed([0.9] * 150, [0.89] * 150)
    assert found.p_value is not None
    assert found.p_value < 0.001
    assert found.verdict == "promote"


def test_a_drop_above_the_limit_that_may_be_chance_is_inconclusive() -> None:
    """Few questions that go both ways, with what would decide it."""
    found = weighed([0.5] * 35, [0.0] * 12 + [1.0] * 8 + [0.5] * 15)
    assert found.drop is not None
    assert found.drop > LIMIT
    assert found.verdict == "inconclusive"
    assert found.further is not None
    assert found.further > 0


def test_too_few_questions_decide_nothing() -> None:
    """Whatever they say; what is lacking is told. A night asks for as many rows."""
    assert Rule(metric="context_recall", max_drop=LIMIT).min_rows == GATE.min_questions == 20
    for after, further in (([1.0] * 12, 58), ([0.0] * 12, 8)):
        found = weighed([1.0] * 12, after)
        assert (found.verdict, found.further) == ("inconclusive", further)


def test_a_quarter_of_28_questions_that_lost_everything_is_held() -> None:
    """A build without a quarter of its documents: few questions are no reason to let it pass."""
    assert weighed([1.0] * 28, [0.0] * 7 + [1.0] * 21).verdict == "hold"


def test_two_of_28_questions_that_lost_everything_decide_nothing() -> None:
    """If nothing changed, two that moved would both fall once in four times."""
    assert weighed([1.0] * 28, [0.0] * 2 + [1.0] * 26).verdict == "inconclusive"


@pytest.mark.parametrize("stage", ["not_in_index", "not_in_corpus"])
def test_passages_that_are_gone_from_the_index_hold_a_build(stage: Stage) -> None:
    """By themselves, where they are significantly many; the reason says how many, without a p."""
    unsure = weighed([1.0] * 20, [1.0] * 20)
    gone = lost_from_index(lost(stage, p_value=0.006))
    assert conclude([unsure], ["cut short"], gone) == ("hold", None)
    (reason,) = reasons("hold", [unsure], [], {}, SETTINGS, gone, serving="build b1")
    words = {"not_in_index": "gone from the index", "not_in_corpus": "not in the corpus any more"}
    assert reason == f"7 of 21 questions lost a passage that they need: probably {words[stage]}"


@pytest.mark.parametrize("stage", ["below_cut", "filtered", "renamed", "edited", "undecided"])
def test_passages_that_are_still_there_hold_nothing(stage: Stage) -> None:
    """Whether another passage serves as well is what the metrics say."""
    assert lost_from_index(lost(stage, p_value=0.006)) == []


def test_a_few_passages_that_are_gone_hold_nothing() -> None:
    """Their number is not significant."""
    assert lost_from_index(lost("not_in_index", p_value=0.2)) == []
    assert lost_from_index(None) == []


def lost(stage: Stage, p_value: float) -> LostPassages:
    """Seven of 21 questions lost a passage."""
    share = StageShare(
        stage=stage,
        passages=7,
        questions=7,
        of=21,
        share=1 / 3,
        low=0.2,
        high=0.5,
        p_value=p_value,
        significant=p_value < 0.05,
    )
    passage = LostPassage(stage=stage, evidence="no question retrieves it now")
    stages, own = [share], [passage] * 7
    return LostPassages(questions=21, needed=21, fallen=7, lost=7, stages=stages, passages=own)


def test_missing_questions_keep_from_promoting_but_not_from_holding() -> None:
    """Nobody knows what became of them; what is known to be lost is lost."""
    good = [1.0] * 150
    assert weighed(good, good, missing=3).verdict == "promote"
    short = weighed(good, good, missing=4)
    assert (short.verdict, short.further) == ("inconclusive", None)
    assert weighed(good, [0.0] * 30 + [1.0] * 120, missing=60).verdict == "hold"


def test_the_family_is_controlled() -> None:
    """What one metric alone would be held for, one of twenty by chance is not."""
    chance = np.random.default_rng(7)
    shaken = chance.normal(0, 0.3, 40)
    shaken += 0.1 - shaken.mean()
    alone = VerdictEvidence("a", fall([0.5] * 40, 0.5 - shaken), LIMIT, 40, 0)
    others = [
        VerdictEvidence(f"b{n}", fall([0.5] * 40, [0.5] * 40), LIMIT, 40, 0) for n in range(19)
    ]
    assert weigh([alone], min_questions=30, max_missing=0.02)[0].verdict == "hold"
    assert weigh([alone, *others], min_questions=30, max_missing=0.02)[0].verdict == "inconclusive"


def test_all_metrics_must_pass_and_one_may_hold() -> None:
    """The gate is what its metrics are."""
    promote = weighed([1.0] * 150, [1.0] * 150)
    hold = weighed([1.0] * 150, [0.0] * 30 + [1.0] * 120)
    unsure = weighed([1.0] * 40, [1.0] * 40)
    assert unsure.verdict == "inconclusive"
    assert conclude([promote, promote]) == ("promote", None)
    assert conclude([promote, hold, unsure]) == ("hold", None)
    assert conclude([promote, unsure]) == ("inconclusive", unsure.further)
    assert conclude([]) == ("inconclusive", None)


def test_an_obstacle_keeps_from_promoting_and_no_number_helps() -> None:
    """A log that is cut short, say; but a proven drop is held all the same."""
    promote = weighed([1.0] * 150, [1.0] * 150)
    unsure = weighed([1.0] * 40, [1.0] * 40)
    hold = weighed([1.0] * 150, [0.0] * 30 + [1.0] * 120)
    assert conclude([promote], ["cut short"]) == ("inconclusive", None)
    assert conclude([promote, unsure], ["cut short"]) == ("inconclusive", None)
    assert conclude([hold], ["cut short"]) == ("hold", None)


# Questions still needed


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.4])
def test_with_the_questions_told_the_gate_promotes_four_times_in_five(spread: float) -> None:
    """As many as are told are enough with the power of 80%, when the build is as good."""
    needed = further_to_promote(0.0, spread, 30, LIMIT)
    assert needed is not None
    chance = np.random.default_rng(1)
    count = 30 + needed
    promoted = [
        weighed([0.5] * count, 0.5 - chance.normal(0, spread, count)).verdict == "promote"
        for _ in range(100)
    ]
    assert np.mean(promoted) >= 0.72  # 0.8 less two standard errors of a hundred trials


def test_with_the_questions_told_a_drop_is_held_four_times_in_five() -> None:
    """The drop is well above the limit, so that it is the test against 0 which decides."""
    drop, spread = 0.15, 0.6
    needed = further_to_hold(drop, spread, 30, LIMIT)
    assert needed is not None
    chance = np.random.default_rng(2)
    count = 30 + needed
    held = [
        fall([0.5] * count, 0.5 - chance.normal(drop, spread, count)).p_value < 0.05
        for _ in range(200)
    ]
    assert np.mean(held) == pytest.approx(0.8, abs=0.08)


def test_a_drop_near_its_limit_needs_more_questions_than_one_that_is_far_from_it() -> None:
    """With as many as are told, it is measured above the limit four times in five."""
    drop, spread, tests = 0.06, 0.2, 2
    needed = further_to_hold(drop, spread, 30, LIMIT, tests=tests)
    assert needed is not None
    chance, count = np.random.default_rng(4), 30 + needed
    drawn = [chance.normal(drop, spread, count) for _ in range(200)]
    held = [
        sample.mean() > LIMIT
        and stats.ttest_1samp(sample, 0, alternative="greater").pvalue < 0.05 / 2
        for sample in drawn
    ]
    assert np.mean(held) == pytest.approx(0.8, abs=0.08)


def test_few_questions_are_told_to_become_as_many_as_the_t_test_needs() -> None:
    """How many fewer would do is not known: at 30 the told power is that of the test."""
    assert further_to_hold(0.2, 0.3, 22, LIMIT) == 8


@given(st.floats(-0.2, 0.049), st.floats(0, 0.6), st.integers(30, 500))
def test_one_question_less_would_not_do(drop: float, spread: float, questions: int) -> None:
    """The number told is the smallest."""
    needed = further_to_promote(drop, spread, questions, LIMIT)
    if needed:
        assert further_to_promote(drop, spread, questions + needed, LIMIT) == 0
        assert further_to_promote(drop, spread, questions + needed - 1, LIMIT) == 1


@pytest.mark.parametrize(("limit", "least"), [(0.05, 53), (0.02, 132), (0.01, 265)])
def test_a_small_limit_needs_many_questions(limit: float, least: int) -> None:
    """Even where nothing changed: docs/how-to/gates.md tells the numbers."""
    for count, verdict in ((least - 1, "inconclusive"), (least, "promote")):
        assert weighed([0.5] * count, [0.5] * count, limit=limit).verdict == verdict


def test_no_number_is_told_where_none_would_do() -> None:
    """A drop at its limit is neither below nor above it; no change is no drop."""
    assert further_to_promote(0.05, 0.2, 150, LIMIT) is None
    assert further_to_promote(0.0499999, 0.2, 150, LIMIT) is None
    assert further_to_hold(0.0, 0.2, 150) is None
    assert further_to_hold(-0.1, 0.2, 150) is None


# How often it is wrong


@cache
def simulated(share: float, seed: int) -> str:
    """The verdict on two metrics over 150 questions, of which each is lost with a probability,
    while one in twenty moves a little up or down.
    """
    chance = np.random.default_rng(seed)
    before = np.where(chance.random(QUESTIONS) < 0.9, 1.0, 0.0)
    moved = chance.choice([-0.25, 0.0, 0.25], QUESTIONS, p=[0.025, 0.95, 0.025])
    lost = chance.random(QUESTIONS) < share
    evidence = []
    for name, scale in (("context_recall", 1.0), ("context_relevance", 0.5)):
        after = np.where(lost, 0.0, np.clip(before + moved, 0, 1))
        one = fall(scale * before, scale * after)
        evidence.append(VerdictEvidence(name, one, LIMIT, QUESTIONS, 0))
    return conclude(weigh(evidence, min_questions=30, max_missing=0.02))[0]


def share_of(verdict: str, lost: float) -> float:
    """Of many gates, those with a verdict."""
    return float(np.mean([simulated(lost, seed) == verdict for seed in range(SEEDS)]))


def test_a_build_that_lost_nothing_is_promoted_and_never_held() -> None:
    """300 gates of builds as good as the one that serves."""
    held, promoted = share_of("hold", 0.0), share_of("promote", 0.0)
    print(f"nothing lost: {held:.3f} held, {promoted:.3f} promoted")
    assert held == 0.0
    assert promoted >= 0.95


def test_a_build_that_lost_a_share_as_large_as_its_limit_is_promoted_in_one_of_twenty() -> None:
    """Where the true drop of recall is the limit: the error that the bound is for."""
    promoted = share_of("promote", LIMIT / 0.9)
    print(f"drop as large as the limit: {promoted:.3f} promoted")
    assert promoted <= 0.075  # 0.05 and two standard errors of 300 trials


def test_a_build_that_lost_much_is_held_and_never_promoted() -> None:
    """15% of its answers."""
    held, promoted = share_of("hold", 0.15), share_of("promote", 0.15)
    print(f"15% lost: {held:.3f} held, {promoted:.3f} promoted")
    assert promoted == 0.0
    assert held >= 0.98


def test_t_alone_would_promote_too_much() -> None:
    """Where 5% of 60 questions are lost whole, one such build in five would pass by t alone."""
    chance = np.random.default_rng(3)
    plain, guarded = 0, 0
    for _ in range(SEEDS):
        after = np.where(chance.random(60) < LIMIT, 0.0, 1.0)
        found = fall([1.0] * 60, after)
        error = found.spread / math.sqrt(60)
        plain += found.drop + stats.t.ppf(0.95, 59) * error < LIMIT
        guarded += found.upper < LIMIT
    print(f"false promotions: t alone {plain / SEEDS:.3f}, as decided {guarded / SEEDS:.3f}")
    assert plain / SEEDS > 0.1
    assert guarded / SEEDS <= 0.075

"""Agreement of raters and ranking by scores: hand-computed values, published ones, and oracles."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import ArrayLike
from scipy import stats

from ragmetrics.people.calibration.agreement_figures import (
    auc_statistic,
    auc_within_statistic,
    calibration_error_statistic,
    confusion,
    kappa_statistic,
    reliability,
    spearman_statistic,
)
from ragmetrics.stats import Statistic, alpha_statistic, krippendorff_alpha
from ragmetrics.stats.krippendorff import Level
from ragmetrics.stats.resampling import resampled, unweighted


def cohen_kappa(a: Any, b: Any, weights: Any = None) -> float | None:
    """Kappa of all units."""
    return unweighted(kappa_statistic(a, b, weights), np.size(a))


def auc(labels: Any, scores: Any) -> float | None:
    """The AUC of all units."""
    return unweighted(auc_statistic(labels, scores), np.size(labels))


def bootstrap_interval(statistic: Statistic, groups: Any) -> tuple[float, float] | None:
    """The interval of one statistic."""
    return resampled({"figure": statistic}, groups)["figure"][1]


def spearman(a: Any, b: Any) -> float | None:
    """Spearman's correlation of all units."""
    return unweighted(spearman_statistic(a, b), np.size(a))


def auc_within(groups: Any, labels: Any, scores: Any) -> float | None:
    """The AUC within rows of all units."""
    return unweighted(auc_within_statistic(groups, labels, scores), np.size(labels))


GAP = math.nan
# Krippendorff 2011, section C/D: four observers, twelve units, with gaps.
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
    [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
]
CLASSES = st.sampled_from([0.0, 0.5, 1.0])
PAIRS = st.lists(st.tuples(CLASSES, CLASSES), min_size=1, max_size=12)
SCORED = st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=14)
COUNTS = st.integers(0, 3)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    """Nothing here may divide by zero, not even silently."""
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error", RuntimeWarning)  # one of NumPy; not those of Hypothesis
        yield


def near(value: float | None) -> object:
    """The value, up to rounding; None only equals None."""
    return None if value is None else pytest.approx(value, abs=1e-9)


# Cohen's kappa


def test_kappa_by_hand() -> None:
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: 0.7 observed, 0.5 by chance, so 0.4."""
    a = [1] * 25 + [0] * 25
    b = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
    assert cohen_kappa(a, b) == near(0.4)


def test_quadratic_kappa_by_hand() -> None:
    """One near miss of four, 0.0625, against 5 / 16 over all pairings: 1 - 0.2."""
    assert cohen_kappa([0, 0.5, 1, 1], [0, 0.5, 0.5, 1], "quadratic") == near(0.8)


def test_two_classes_need_no_weights() -> None:
    """With two values there are no near misses: both kappas are one."""
    a, b = [1, 1, 0, 0, 1], [1, 0, 0, 1, 1]
    assert cohen_kappa(a, b, "quadratic") == near(cohen_kappa(a, b))


@pytest.mark.parametrize("weights", [None, "quadratic"])
def test_kappa_is_none_where_it_means_nothing(weights: object) -> None:
    """No unit, or both raters say one thing only: there is no chance to correct for."""
    assert cohen_kappa([], [], weights) is None  # type: ignore[arg-type]
    assert cohen_kappa([1, 1], [1, 1], weights) is None  # type: ignore[arg-type]


def test_raters_of_different_lengths_are_an_error() -> None:
    """Nothing is cut to fit."""
    with pytest.raises(ValueError, match="one length"):
        cohen_kappa([1, 0], [1])


@given(PAIRS)
def test_kappa_is_that_of_the_definition(pairs: list[tuple[float, float]]) -> None:
    """Against the mean over all pairings of the two raters' values."""
    a, b = zip(*pairs, strict=True)
    for weights, apart in ((None, lambda x, y: float(x != y)), ("quadratic", _square)):
        observed = sum(apart(x, y) for x, y in pairs) / len(pairs)
        chance = sum(apart(x, y) for x, y in product(a, b)) / len(pairs) ** 2
        expected = 1 - observed / chance if chance else None
        assert cohen_kappa(a, b, weights) == near(expected)  # type: ignore[arg-type]


# Krippendorff's alpha


@pytest.mark.parametrize(("level", "alpha"), [("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(level: Level, alpha: float) -> None:
    """Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability": gaps and four raters."""
    assert krippendorff_alpha(PUBLISHED, level) == pytest.approx(alpha, abs=0.0005)


def test_alpha_of_two_raters_by_hand() -> None:
    """Ten units, four disagreements: 1 - 19 * 8 / (2 * 14 * 6) = 0.095, as published."""
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert krippendorff_alpha([first, second], "interval") == near(1 - 19 * 8 / (2 * 14 * 6))


@pytest.mark.parametrize("level", ["ordinal", "interval"])
@pytest.mark.parametrize(
    "ratings",
    [
        [],
        [[], []],
        [[1, 1], [1, 1]],
        [[1, 0, 1]],
        [[1, GAP], [GAP, 0]],
        [[GAP, GAP], [GAP, GAP]],
    ],
)
def test_alpha_is_none_where_it_means_nothing(ratings: list[list[float]], level: Level) -> None:
    """Nothing rated twice, or one value only."""
    assert krippendorff_alpha(ratings, level) is None


@given(
    st.integers(2, 4).flatmap(
        lambda raters: st.lists(
            st.lists(st.sampled_from([0.0, 1.0, 3.0, GAP]), min_size=raters, max_size=raters),
            min_size=1,
            max_size=10,
        )
    ),
    st.sampled_from(["ordinal", "interval"]),
)
def test_alpha_is_that_of_the_coincidence_matrix(units: list[list[float]], level: Level) -> None:
    """Against the textbook way: coincidences of values, and the distances between them."""
    ratings = np.array(units).T
    assert krippendorff_alpha(ratings, level) == near(_alpha_by_coincidences(units, level))


@given(PAIRS, st.sampled_from(["ordinal", "interval"]))
def test_raters_have_no_order(pairs: list[tuple[float, float]], level: Level) -> None:
    """Alpha is the same whoever is called the first; full agreement is 1."""
    a, b = np.array(pairs).T
    assert krippendorff_alpha([a, b], level) == near(krippendorff_alpha([b, a], level))
    assert krippendorff_alpha([a, a], level) == (near(1.0) if len(set(a)) > 1 else None)


# Ranking


def test_auc_by_hand() -> None:
    """Of four pairs two are won, one is a tie: 2.5 / 4."""
    assert auc([1, 1, 0, 0], [0.9, 0.4, 0.4, 0.6]) == near(2.5 / 4)


def test_auc_within_is_the_mean_of_the_rows() -> None:
    """Row a ranks rightly, row b wrongly, row c has one class only: (1 + 0) / 2; pooled 2/3."""
    rows = ["a", "a", "b", "b", "b", "c"]
    labels, scores = [1, 0, 0, 0, 1, 0], [5, 4, 3, 3, 2, 0]
    assert auc_within(rows, labels, scores) == near(0.5)
    assert auc(labels, scores) == near(5 / 8)


def test_ranking_is_none_where_it_means_nothing() -> None:
    """No unit, one class, no spread."""
    assert auc([], []) is None
    assert auc([1, 1], [0.1, 0.2]) is None
    assert auc_within([], [], []) is None
    assert auc_within(["a", "b"], [1, 0], [1, 0]) is None
    assert spearman([], []) is None
    assert spearman([1, 1], [0.1, 0.2]) is None


@given(SCORED)
def test_auc_counts_pairs(units: list[tuple[bool, int]]) -> None:
    """Against counting every pair of a positive and a negative unit."""
    good = [score for positive, score in units if positive]
    bad = [score for positive, score in units if not positive]
    wins = sum((g > b) + (g == b) / 2 for g in good for b in bad)
    expected = wins / (len(good) * len(bad)) if good and bad else None
    found = auc(*zip(*units, strict=True))
    assert found == near(expected)
    turned = auc([p for p, _ in units], [-s for _, s in units])
    assert turned == near(None if expected is None else 1 - expected)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=20))
def test_spearman_is_scipys(pairs: list[tuple[int, int]]) -> None:
    """With ties."""
    a, b = zip(*pairs, strict=True)
    constant = len(set(a)) == 1 or len(set(b)) == 1
    expected = None if constant else float(stats.spearmanr(a, b).statistic)
    assert spearman(a, b) == near(expected)


def test_many_distinct_scores_rank_like_few() -> None:
    """Ranks are counted another way where scores are many; the figures are the same."""
    random = np.random.default_rng(3)
    labels, scores = random.random(200) < 0.3, random.permutation(200)
    assert spearman(labels, scores) == near(float(stats.spearmanr(labels, scores).statistic))
    assert auc(labels, scores) == near(
        stats.mannwhitneyu(scores[labels], scores[~labels]).statistic
        / (labels.sum() * (~labels).sum())
    )


# Confusion and reliability


def test_confusion_counts_every_pair_of_values() -> None:
    """One line per label, one entry per verdict that was given at all."""
    assert confusion([0, 0, 1, 0.5], [0, 1, 1, 1]) == {
        0.0: {0.0: 1, 1.0: 1},
        0.5: {0.0: 0, 1.0: 1},
        1.0: {0.0: 0, 1.0: 1},
    }


def test_reliability_by_hand() -> None:
    """Judged 0.1 and observed 0.5 of 2; judged 0.95 and observed 1 of 2: error 0.225."""
    (low, high), error = reliability([0, 1, 1, 1], [0.1, 0.1, 0.9, 1.0], ["a", "b", "c", "d"])
    assert (low.low, low.high, low.n, low.judged, low.observed) == (0.1, 0.2, 2, 0.1, 0.5)
    assert (high.low, high.high, high.n) == (0.9, 1.0, 2)
    assert high.observed_low is not None
    assert 0 < high.observed_low < 1 == high.observed_high
    assert error == near(0.5 * 0.4 + 0.5 * 0.05)


def test_what_is_no_share_has_no_reliability() -> None:
    """No unit, or scores outside [0, 1]."""
    assert reliability([], [], []) == ([], None)
    assert reliability([1, 0], [-2.0, 0.5], ["a", "b"]) == ([], None)


def test_one_question_has_a_share_without_an_interval() -> None:
    """As everywhere: units of one question are one observation."""
    [alone], _ = reliability([1, 0], [0.5, 0.5], ["a", "a"])
    assert (alone.low, alone.high, alone.n, alone.judged, alone.observed) == (0.5, 0.6, 2, 0.5, 0.5)
    assert (alone.observed_low, alone.observed_high) == (None, None)


def test_calibration_error_by_hand() -> None:
    """Forty units in two bins: judged 0.2 and 0.8, observed 0.5 and 0.9: error 0.2."""
    scores, labels = [0.2] * 20 + [0.8] * 20, [1, 0] * 10 + [1] * 18 + [0] * 2
    assert unweighted(calibration_error_statistic(labels, scores), 40) == near(0.2)


def test_calibration_error_of_few_units_is_that_of_their_mean() -> None:
    """Bins of fewer than twenty units would measure chance: errors of both signs cancel."""
    assert unweighted(calibration_error_statistic([1, 0], [0.6, 0.6]), 2) == near(0.1)
    assert unweighted(calibration_error_statistic([], []), 0) is None


def test_calibration_error_keeps_equal_scores_together() -> None:
    """The order of the units has no part in it: a constant score has one bin."""
    statistic = calibration_error_statistic([1] * 20 + [0] * 180, [0.1] * 200)
    assert unweighted(statistic, 200) == near(0)


def calibration_errors(
    labels: ArrayLike, scores: dict[str, Any], questions: list[str]
) -> dict[str, Any]:
    """The calibration error of each list of scores, with its interval."""
    errors, by_chance = (
        {name: calibration_error_statistic(labels, x, by_chance=null) for name, x in scores.items()}
        for null in (False, True)
    )
    return resampled(errors, questions, by_chance)


@pytest.mark.parametrize(("size", "draws"), [(200, 60), (900, 20)])
def test_right_probabilities_are_rarely_told_to_be_wrong(size: int, draws: int) -> None:
    """Their interval holds 0 in about 95% of draws. That of p ** 2 for p never does, and it holds
    the error in about 90%. Units of a question share half of their probability.
    """
    random = np.random.default_rng(7)
    questions = [f"q{n // 2}" for n in range(size)]
    right, wrong, covered = 0, 0, 0
    for _ in range(draws):
        truth = (np.repeat(random.random(size // 2), 2) + random.random(size)) / 2
        labels = random.random(size) < truth
        scores = {"right": truth, "wrong": truth**2}
        figures = calibration_errors(labels, scores, questions)
        right += figures["right"][1][0] == 0
        low, high = figures["wrong"][1]
        wrong += low > 0
        covered += low <= (truth - truth**2).mean() <= high
    assert right >= 0.85 * draws and wrong == draws and covered >= 0.8 * draws


def test_calibration_error_is_given_without_the_bias_of_chance() -> None:
    """Of right probabilities it is nearer to 0 than the plain one, which chance alone makes; a real
    error stays. Its interval holds it.
    """
    random = np.random.default_rng(4)
    truth, questions = random.random(200), [f"q{n // 2}" for n in range(200)]
    right, plain, wrong = [], [], []
    for _ in range(20):
        labels = random.random(200) < truth
        figures = calibration_errors(labels, {"right": truth, "wrong": truth**4}, questions)
        plain.append(unweighted(calibration_error_statistic(labels, truth), 200) or 0)
        for name, values in (("right", right), ("wrong", wrong)):
            value, interval = figures[name]
            assert value is not None and interval is not None
            assert 0 <= interval[0] <= value <= interval[1]
            values.append(value)
    assert np.mean(right) < 0.75 * np.mean(plain)
    assert np.mean(wrong) == pytest.approx(np.abs(truth - truth**4).mean(), abs=0.015)


def test_a_biased_figure_of_one_question_is_plain() -> None:
    """Nothing is known of its bias, and it has no interval."""
    statistic = calibration_error_statistic([1, 0], [0.6, 0.6])
    one = {"error": statistic}
    assert resampled(one, ["a", "a"], one) == {"error": (near(0.1), None)}


# Resampling


@given(
    st.lists(st.tuples(CLASSES, CLASSES, COUNTS), min_size=1, max_size=10),
    st.sampled_from(
        [
            kappa_statistic,
            lambda a, b: kappa_statistic(a, b, "quadratic"),
            lambda a, b: alpha_statistic([a, b], "ordinal"),
            lambda a, b: alpha_statistic([a, b], "interval"),
            spearman_statistic,
            lambda a, b: auc_statistic(np.asarray(a) == 1, b),
        ]
    ),
)
def test_counting_a_unit_twice_is_having_it_twice(
    units: list[tuple[float, float, int]],
    make: Callable[[Sequence[float], Sequence[float]], Statistic],
) -> None:
    """Every figure of counts is the figure of the units written out so often."""
    a, b, counts = zip(*units, strict=True)
    written = np.repeat(a, counts), np.repeat(b, counts)
    found = float(make(a, b)(np.array([counts], dtype=float))[0])
    expected = float(make(*written)(np.ones((1, sum(counts))))[0]) if sum(counts) else math.nan
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_rows_are_drawn_whole() -> None:
    """The AUC within rows weighs each row by how often it was drawn."""
    statistic = auc_within_statistic(["a", "a", "b", "b"], [1, 0, 1, 0], [2, 1, 1, 2])
    counts = np.array([[1.0, 1, 1, 1], [3, 3, 1, 1], [0, 0, 0, 0]])
    assert statistic(counts) == pytest.approx([0.5, 0.75, math.nan], nan_ok=True)


def test_intervals_are_seeded_and_hold_the_figure() -> None:
    """The same data give the same interval on every machine."""
    random = np.random.default_rng(5)
    labels = random.random(300) < 0.5
    scores = labels + random.normal(size=300)
    groups = [f"q{i // 3}" for i in range(300)]
    area = auc_statistic(labels, scores)
    first, again = (bootstrap_interval(area, groups) for _ in range(2))
    assert first == again

    assert first is not None
    assert first[0] < (auc(labels, scores) or 0) < first[1]
    assert 0.05 < first[1] - first[0] < 0.2


def test_questions_are_drawn_and_not_units() -> None:
    """Units that only repeat their question say no more than one of them."""
    random = np.random.default_rng(5)
    labels = random.random(60) < 0.5
    scores = labels + random.normal(size=60)
    groups = [str(i) for i in range(60)]
    single = bootstrap_interval(auc_statistic(labels, scores), groups)
    tenfold = np.repeat(labels, 10), np.repeat(scores, 10)
    assert bootstrap_interval(auc_statistic(*tenfold), np.repeat(groups, 10)) == single


def test_no_interval_without_two_questions_or_a_figure() -> None:
    """One question, none, or a figure that is not defined."""
    area = auc_statistic([1, 0], [1, 0])
    assert bootstrap_interval(area, ["a", "a"]) is None
    assert bootstrap_interval(auc_statistic([], []), []) is None
    constant = auc_statistic([1, 1, 1], [1, 2, 3])
    assert bootstrap_interval(constant, ["a", "b", "c"]) is None


def test_the_interval_holds_the_truth_19_times_of_20() -> None:
    """Simulated judges: 95% of the intervals hold the true AUC, up to the noise of 200 trials."""
    random = np.random.default_rng(11)
    truth = float(stats.norm.cdf(1 / math.sqrt(2)))
    held = 0
    for _ in range(200):
        labels = random.random(120) < 0.4
        scores = labels + random.normal(size=120)
        groups = [str(i) for i in range(120)]
        found = bootstrap_interval(auc_statistic(labels, scores), groups)
        assert found is not None
        held += found[0] <= truth <= found[1]
    assert 0.90 <= held / 200 <= 0.985


def _square(x: float, y: float) -> float:
    return (x - y) ** 2


def _alpha_by_coincidences(units: list[list[float]], level: Level) -> float | None:
    rated = [[v for v in unit if not math.isnan(v)] for unit in units]
    pairs = [
        (x, y, 1 / (len(unit) - 1))
        for unit in rated
        if len(unit) > 1
        for x, y in permutations(unit, 2)
    ]
    values = sorted({x for x, _, _ in pairs})
    n = {v: sum(weight for x, _, weight in pairs if x == v) for v in values}

    def apart(x: float, y: float) -> float:
        if level == "interval":
            return (x - y) ** 2
        low, high = min(x, y), max(x, y)
        return (sum(n[v] for v in values if low <= v <= high) - (n[x] + n[y]) / 2) ** 2

    observed = sum(weight * apart(x, y) for x, y, weight in pairs)
    expected = sum(n[x] * n[y] * apart(x, y) for x in values for y in values)
    return 1 - (sum(n.values()) - 1) * observed / expected if expected else None

"""The error of an offset between judges: what it adds to a drop, and what both have in common."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from ragmetrics.stats import Drop, OffsetError, compare

SIDE = dict[str, float]


def side(values: np.ndarray, prefix: str = "q") -> SIDE:
    """A value of each question."""
    return {f"{prefix}{place}": float(value) for place, value in enumerate(values)}


def drop_of(before: SIDE, now: SIDE) -> Drop:
    """The drop between two sides."""
    one, other = ({name: [value] for name, value in values.items()} for values in (before, now))
    drop = compare(one, other)
    assert drop
    return drop


RANDOM = np.random.default_rng(3)
OLD = RANDOM.uniform(0.2, 0.6, 200)
NEW = OLD + RANDOM.normal(0.2, 0.1, 200)
BOTH = side(OLD - NEW)
ERROR = float((OLD - NEW).std(ddof=1)) / math.sqrt(200)


def test_without_common_questions_the_variances_are_added() -> None:
    """Of other questions on every side, the offset knows nothing."""
    before, now = side(OLD, "a"), side(OLD, "b")
    drop = drop_of(before, now)
    found = OffsetError(1.0, 0.03, 199, {"c": 0.1, "d": 0.2}).added_to(drop, before, now)
    assert found.error == pytest.approx(math.hypot(drop.error, 0.03))
    assert found.drop == drop.drop
    assert found.low < drop.low < drop.high < found.high


def test_differences_that_are_not_known_count_as_independent() -> None:
    """As for nights whose rows were pruned."""
    before, now = side(OLD), side(NEW)
    drop = drop_of(before, now)
    found = OffsetError(0.5, 0.02, 99, {}).added_to(drop, before, now)
    assert found.error == pytest.approx(math.hypot(drop.error, 0.01))


def test_a_night_that_both_judged_has_the_error_of_the_old_judge() -> None:
    """All questions of tonight by both judges: the new verdicts cancel."""
    random = np.random.default_rng(4)
    earlier = side(OLD + random.normal(0, 0.2, 200) - (OLD - NEW).mean())
    drop = drop_of(earlier, side(NEW))
    found = OffsetError(1.0, ERROR, 199, BOTH).added_to(drop, earlier, side(NEW))
    by_old = drop_of(
        {name: value + (OLD - NEW).mean() for name, value in earlier.items()}, side(OLD)
    )
    assert found.error == pytest.approx(by_old.error, rel=0.01)
    assert found.error < drop.error


def test_verdicts_that_agree_leave_half_a_question_of_error() -> None:
    """The error is never 0."""
    before = side(OLD - (OLD - NEW).mean())
    drop = drop_of(before, side(NEW))
    found = OffsetError(1.0, ERROR, 199, BOTH).added_to(drop, before, side(NEW))
    assert 0 < found.error <= 2 / 201


def test_a_side_without_moved_nights_is_unchanged_but_for_its_test() -> None:
    """No share, no error of an offset."""
    before, now = side(OLD, "a"), side(OLD - 0.1, "b")
    drop = drop_of(before, now)
    found = OffsetError(0.0, 0.5, 199, BOTH).added_to(drop, before, now)
    assert found.error == pytest.approx(drop.error)


def test_a_certain_drop_of_few_questions_stays_certain() -> None:
    """Half a question is the least that common verdicts leave, and no error that a drop without
    them must have.
    """
    before, now = side(np.full(20, 0.9), "a"), side(np.linspace(0.79, 0.81, 20), "b")
    drop = drop_of(before, now)
    found = OffsetError(0.1, 0.001, 199, {"c": 0.1, "d": 0.2}).added_to(drop, before, now)
    assert drop.error < found.error < 1 / 21
    assert found.error == pytest.approx(math.hypot(drop.error, 0.0001))


STRICT = OLD / 3
"""A judge whose scores have a third of the spread."""


def moved(values: np.ndarray) -> SIDE:
    """Other questions by the old judge, in the level of the strict one."""
    return side(values + (STRICT - OLD).mean(), "earlier")


def over_change(both: int) -> Drop:
    """The drop from 1,000 other questions to 200 new ones, with the error of the offset of so many
    that have verdicts of both judges.
    """
    earlier = moved(np.random.default_rng(6).uniform(0.2, 0.6, 1_000))
    drop = drop_of(earlier, side(STRICT))
    differences = (OLD - STRICT)[:both]
    error = float(differences.std(ddof=1)) / math.sqrt(both)
    offset = OffsetError(1.0, error, both - 1, side(differences))
    return offset.added_to(drop, earlier, side(STRICT))


def test_new_questions_by_both_judges_have_the_error_of_the_old_judge() -> None:
    """Also where the spread of the new judge is another one, with which that of the old judge must
    not be pooled.
    """
    earlier = side(np.random.default_rng(6).uniform(0.2, 0.6, 1_000), "earlier")
    by_old = drop_of(earlier, side(OLD))
    found = over_change(200)
    assert not found.paired
    assert found.error == pytest.approx(by_old.error, rel=0.005)


def test_of_a_sample_the_error_is_that_of_the_difference_estimator() -> None:
    """var(before) / N + var(x) / n, with x = new + n / m (old - new - mean) for the m of both."""
    found = over_change(50)
    differences = (OLD - STRICT)[:50]
    values = STRICT + np.append(4 * (differences - differences.mean()), np.zeros(150))
    earlier = np.random.default_rng(6).uniform(0.2, 0.6, 1_000)
    welch = math.sqrt(earlier.var(ddof=1) / 1_000 + values.var(ddof=1) / 200)
    reach = float(special.stdtrit(found.freedom, 0.975)) * welch
    assert 1 < (found.high - found.low) / (2 * reach) < 1.05  # half a question more at either end


def test_judges_that_rarely_differ_leave_a_wider_interval() -> None:
    """Of a sample that shows one difference, the next one may be another."""
    earlier = moved(np.random.default_rng(6).uniform(0.2, 0.6, 1_000))
    drop = drop_of(earlier, side(STRICT))
    differences = np.append(0.5, np.zeros(49))
    error = float(differences.std(ddof=1)) / math.sqrt(50)
    found = OffsetError(1.0, error, 49, side(differences)).added_to(drop, earlier, side(STRICT))
    values = STRICT + np.append(4 * (differences - differences.mean()), np.zeros(150))
    of_earlier = np.array(list(earlier.values()))
    welch = math.sqrt(of_earlier.var(ddof=1) / 1_000 + values.var(ddof=1) / 200)
    reach = float(special.stdtrit(found.freedom, 0.975)) * welch
    assert found.high - found.low > 1.02 * 2 * reach


def test_the_interval_takes_the_spread_of_each_side() -> None:
    """A night whose scores are alike has a narrow interval; p is that of one spread."""
    earlier = side(np.random.default_rng(6).uniform(0.0, 1.0, 1_000), "earlier")
    now = side(np.linspace(0.2, 0.3, 100))
    drop = drop_of(earlier, now)
    found = OffsetError(1.0, 0.001, 99, dict.fromkeys(now, 0.1)).added_to(drop, earlier, now)
    assert found.error == pytest.approx(drop.error)
    assert found.high - found.low < 0.5 * (drop.high - drop.low)


def test_of_the_error_of_other_questions_their_share_is_added() -> None:
    """Half of the questions of both judges are of a night that is compared with nothing here."""
    before, now = side(OLD, "a"), side(OLD, "b")
    drop = drop_of(before, now)
    differences = {**dict.fromkeys(side(OLD, "b"), 0.1), **dict.fromkeys(side(OLD, "c"), 0.1)}
    found = OffsetError(1.0, 0.03, 399, differences).added_to(drop, before, now)
    assert found.error == pytest.approx(math.hypot(drop.error, 0.03 * math.sqrt(0.5)))

"""Offsets between judges, when they differ by more, and nights that are moved by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ragmetrics.records import JudgeBridge, JudgedTwice, JudgeOffset, Manifest, across_change
from ragmetrics.scoring.judge_bridge import find_offset
from tests.fakes.past import TONIGHT, a_night, scores

METRIC = "context_recall"
RANDOM = np.random.default_rng(5)


def rows(old: Any, new: Any, **tags: Any) -> list[JudgedTwice]:
    """One row a question, with the values of a tag."""
    return [
        JudgedTwice(
            question=f"q{place}",
            old=values[0],
            new=values[1],
            tags={name: of[place] for name, of in tags.items()},
        )
        for place, values in enumerate(zip(old, new, strict=True))
    ]


def offset_of(judged: list[JudgedTwice]) -> JudgeOffset:
    """The offset of rows by both judges."""
    found = find_offset(METRIC, "judge-0", "judge-1", judged)
    assert found
    return found


OLD = RANDOM.uniform(0, 0.8, 80)


def test_an_offset_is_the_mean_gain_of_the_questions() -> None:
    """With the interval of its paired comparison."""
    found = offset_of(rows(OLD, OLD + 0.1 + RANDOM.normal(0, 0.02, 80)))
    assert found.offset == pytest.approx(0.1, abs=0.01)
    assert found.low < found.offset < found.high
    assert (found.questions, found.apart) == (80, "")
    assert found.correlation == pytest.approx(1.0, abs=0.05)


def test_rows_of_one_question_have_one_vote() -> None:
    """A question that was asked on every night is one cluster."""
    judged = rows(OLD, OLD + 0.1)
    repeated = [JudgedTwice(question="q0", old=0.0, new=0.9)] * 50
    assert offset_of([*judged, *repeated]).questions == 80
    assert offset_of([*judged, *repeated]).offset < 0.12


def test_less_than_two_questions_have_no_offset() -> None:
    """Nor has a metric of which the old judge says nothing."""
    assert find_offset(METRIC, "a", "b", rows([0.1], [0.2])) is None
    assert find_offset(METRIC, "a", "b", []) is None


def test_few_questions_begin_anew() -> None:
    """Twenty are needed."""
    assert "20 are needed" in offset_of(rows(OLD[:19], OLD[:19])).apart
    assert not offset_of(rows(OLD[:20], OLD[:20])).apart


def test_judges_that_rank_in_another_order_begin_anew() -> None:
    """One that is far below a rank correlation of 0.3 does not measure the same."""
    found = offset_of(rows(OLD, RANDOM.permutation(OLD)))
    assert found.apart.startswith("the rank correlation of both judges is ")


def test_a_judge_of_one_value_has_no_correlation() -> None:
    """Which is not said to be low: nothing is known of it."""
    found = offset_of(rows(OLD, np.ones(80)))
    assert (found.correlation, found.apart) == (None, "")


def test_a_segment_that_is_judged_in_another_way_begins_anew() -> None:
    """With equal old values, the new judge gives one language more."""
    language = ["de" if place % 2 else "en" for place in range(80)]
    gain = np.array([0.3 if of == "de" else 0.0 for of in language])
    found = offset_of(rows(OLD, OLD + gain, language=language))
    assert (
        found.apart
        == ("with equal old scores, the new judge scores language=de by +0.300 unlike other rows")
        or "language=en by -0.300" in found.apart
    )


def test_a_segment_of_another_quality_is_judged_alike() -> None:
    """A new judge that halves all scores has another offset where they are higher, and no other
    way of judging.
    """
    section = ["good" if value > 0.4 else "poor" for value in OLD]
    assert not offset_of(rows(OLD, OLD / 2, section=section)).apart


def noisy_rows(seed: int, means: tuple[float, float], bias: float = 0.0) -> list[JudgedTwice]:
    """600 binary rows of two segments, by two judges who err in 15% of the rows; the new one has
    a bias in the second segment.
    """
    random = np.random.default_rng(seed)
    second = np.arange(600) % 2 == 1
    truth = random.random(600) < np.where(second, means[1], means[0])
    old, new = (np.where(random.random(600) < 0.15, ~truth, truth) for _ in range(2))
    changed = second & (
        random.random(600) < abs(bias) / np.where(bias < 0, new, ~new)[second].mean()
    )
    new = np.where(changed, bias > 0, new)
    segment = ["second" if one else "first" for one in second]
    return rows(old.astype(float), new.astype(float), segment=segment)


def test_noise_of_the_old_verdicts_is_no_bias() -> None:
    """Two judges alike, on a good and on a poor segment: an old verdict tells little of it."""
    apart = [offset_of(noisy_rows(seed, (0.9, 0.4))).apart for seed in range(40)]
    assert apart.count("") >= 38


@pytest.mark.parametrize(("means", "bias"), [((0.9, 0.4), -0.3), ((0.6, 0.6), 0.3)])
def test_a_bias_is_found_among_noise(means: tuple[float, float], bias: float) -> None:
    """The same judges, of which the new one gives one segment 0.3 more or less."""
    apart = [offset_of(noisy_rows(seed, means, bias)).apart for seed in range(40)]
    assert sum("segment=" in one for one in apart) >= 38


@pytest.fixture
def before() -> Manifest:
    """A night by the old judge."""
    return a_night(scores([0.2, 0.4] * 20), ago=1, judge="judge-0").manifest


def bridge(apart: str = "") -> JudgeBridge:
    """A bridge to it, by an offset of 0.1."""
    offset = offset_of(rows(OLD, OLD + 0.1)).model_copy(update={"apart": apart})
    return JudgeBridge(replaced="old", since=TONIGHT, offsets=[offset])


def test_a_night_of_the_old_judge_is_moved_by_the_offset(before: Manifest) -> None:
    """Its mean, its interval with that of the offset, and its scores."""
    (moved,) = across_change([before], bridge())
    old, new = before.summary(METRIC), moved.summary(METRIC)
    assert old and new and old.mean and new.mean and old.low and new.low
    assert new.mean == pytest.approx(old.mean + 0.1)
    assert new.low <= old.low + 0.1
    assert new.fingerprint == "judge-1"
    values = scores([0.2, 0.4]).moved(moved).table["value"].tolist()
    assert values == pytest.approx([0.3, 0.5])


def test_what_is_moved_is_never_stored(before: Manifest) -> None:
    """A manifest that is written again would otherwise have another fingerprint's marks."""
    (moved,) = across_change([before], bridge())
    assert "moved_by" not in moved.model_dump()["metrics"][0]


@pytest.mark.parametrize("other", [None, bridge("why")])
def test_other_nights_stay_as_they_are(before: Manifest, other: JudgeBridge | None) -> None:
    """Without a bridge, and where the judges differ by more than an offset."""
    assert across_change([before], other) == [before]
    tonight = a_night(scores([0.5] * 40)).manifest
    assert across_change([tonight], bridge()) == [tonight]

"""Segments that are significantly worse: those that so many looks at a night bear."""

from __future__ import annotations

import numpy as np
import pytest

from ragmetrics.records import Manifest, Segment, Summary
from ragmetrics.scoring import worse_segments
from ragmetrics.stats import mean_interval
from tests.fakes.nights import night, summary


def segment(value: str, mean: float, half: float = 0.03, **change: object) -> Summary:
    """Recall where `section` has this value."""
    told = {"segment": Segment(tag="section", value=value), "low": mean - half, "high": mean + half}
    return summary("context_recall", mean, **{**told, **change})


def worse(*segments: Summary, **change: object) -> list[str]:
    """The values that are named, of a night whose recall is 0.715."""
    whole = summary("context_recall", 0.715, **change)
    found = worse_segments(night(metrics=[whole], segments=list(segments)))
    return [one.segment.value for one in found if one.segment]


def test_a_little_lower_is_not_worse() -> None:
    """0.707 beside 0.715 says nothing of where to look."""
    assert worse(segment("app", 0.707), segment("web", 0.5)) == ["web"]


def test_one_of_many_has_to_be_surer() -> None:
    """An interval that just leaves out the mean of all rows is enough of one segment, not of 20."""
    near = segment("near", 0.684, 0.03)
    others = [segment(f"s{n}", 0.72) for n in range(19)]
    assert worse(near) == ["near"]
    assert worse(near, *others) == []
    assert worse(segment("far", 0.6), *others) == ["far"]


def test_the_mean_of_all_rows_within_the_interval_is_never_worse() -> None:
    """However few segments there are."""
    assert worse(segment("wide", 0.5, 0.216)) == []


def test_where_lower_is_better_the_higher_are_worse() -> None:
    """By the other end of the interval."""
    high = segment("high", 0.9, higher_is_better=False)
    low = segment("low", 0.2, higher_is_better=False)
    assert worse(high, low, higher_is_better=False) == ["high"]


def test_without_an_interval_nobody_can_tell() -> None:
    """One question is no evidence."""
    assert worse(segment("lone", 0.0, low=None, high=None)) == []


@pytest.mark.parametrize("segments", [5, 20])
def test_nights_without_a_worse_segment_name_one_in_a_few(segments: int) -> None:
    """Segments drawn at random from the same rows: at most 5% of nights name any."""
    rng = np.random.default_rng(1)
    named = sum(bool(worse_segments(_alike(rng, segments))) for _ in range(300))
    assert named <= 0.05 * 300 + 3


def _alike(rng: np.random.Generator, segments: int) -> Manifest:
    values = rng.choice([0.0, 0.5, 1.0], p=[0.2, 0.2, 0.6], size=segments * 15)

    def over(rows: np.ndarray, **change: object) -> Summary:
        found = mean_interval(rows, np.arange(len(rows)))
        assert found is not None
        told = {"low": found.low, "high": found.high, "questions": len(rows)}
        return summary("context_recall", found.mean, **{**told, **change})

    parts = [
        over(part, segment=Segment(tag="section", value=str(n)))
        for n, part in enumerate(np.split(values, segments))
    ]
    return night(metrics=[over(values)], segments=parts)

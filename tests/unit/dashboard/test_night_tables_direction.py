"""Metrics in which lower is better: what is worst, what is shaded, what may be watched."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest

from ragmetrics.config import make_settings
from ragmetrics.dashboard.night_tables import tag_tables
from ragmetrics.dashboard.trends import change
from ragmetrics.errors import InputError
from ragmetrics.metrics import metrics
from ragmetrics.pipeline import Night
from ragmetrics.records import ComparedMeans, Segment, Summary
from ragmetrics.scoring import MetricScores
from ragmetrics.storage import Files
from tests.fakes.nights import finding, night, summary
from tests.fakes.page_writing import write_night

NOISE = "noise_sensitivity"


def noise(mean: float, value: str = "", judge: str = "lexical") -> Summary:
    """A night's noise sensitivity, of all rows or of a segment."""
    segment = Segment(tag="section", value=value) if value else None
    return summary(NOISE, mean, judge, segment=segment, higher_is_better=False)


def test_nearly_each_metric_of_a_judge_rises_with_quality() -> None:
    """Lower is better in it and in wasted hops; metrics of health are no judge's."""
    judged = [metric for metric in metrics().values() if metric.prompts]
    assert [metric.name for metric in judged if not metric.higher_is_better] == [
        NOISE,
        "wasted_hops",
    ]


def test_the_highest_rows_are_the_worst() -> None:
    """Highest first; among equals, those that were lowest before."""
    table = pd.DataFrame(
        {
            "question": ["a", "b", "c"],
            "value": [0.9, 0.9, 0.1],
            "status": "scored",
            "shard": 0,
            "position": [0, 1, 2],
        }
    )
    found = MetricScores(NOISE, table, higher_is_better=False)
    assert found.worst(2, {"a": [0.8], "b": [0.0]}) == [(0, 1, 0.9), (0, 0, 0.9)]


def test_a_rise_is_worse() -> None:
    """The change since the night before is marked as one for the worse."""
    before = night(metrics=[noise(0.1)], segments=[])
    moved = change(night(1), noise(0.4), [before])
    assert moved is not None and moved.by == pytest.approx(0.3) and moved.worse
    fell = change(night(1), noise(0.02), [before])
    assert fell is not None and not fell.worse


def test_high_segments_are_shaded() -> None:
    """A segment significantly above the mean of all rows is the worst of its column."""
    segments = [noise(0.5, "billing"), noise(0.05, "api")]
    (table,) = tag_tables(night(metrics=[noise(0.2)], segments=segments))
    assert [(line.value, line.cells[0].shade) for line in table.lines] == [
        ("billing", 3),
        ("api", 0),
    ]


def test_the_card_says_so(tmp_path: Path) -> None:
    """Whoever opens the page need not know the metric."""
    site = Files(str(tmp_path))
    write_night(site, night(metrics=[noise(0.2)], segments=[]), [], [])
    (page,) = tmp_path.glob("*/index.html")
    assert "Lower is better." in page.read_text()


def test_a_rule_shows_by_how_much_the_mean_rose(tmp_path: Path) -> None:
    """A rule counts a drop for the worse; the page says that the mean rose."""
    means = ComparedMeans(before=0.1, now=0.2, questions=80)
    rose = finding(NOISE, "breach", drop=0.1, drop_low=0.04, drop_high=0.16, rise=True, means=means)
    told = night(metrics=[noise(0.2)], segments=[], findings=[rose])
    write_night(Files(str(tmp_path)), told, [], [])
    (page,) = tmp_path.glob("*/index.html")
    assert 'rise <span class="value">0.10</span>' in page.read_text()


def test_a_min_is_refused_and_a_max_drop_watches_for_a_rise() -> None:
    """A lowest mean would be what everybody wants; the largest change is one for the worse."""
    for limit, refused in (("min", True), ("max_drop", False)):
        rules = [{"metric": NOISE, limit: 0.1}]
        settings = make_settings({"metrics": [NOISE], "alerts": {"rules": rules}})
        raises = pytest.raises(InputError, match="'noise_sensitivity' has no min")
        with raises if refused else nullcontext():
            Night(settings).check()

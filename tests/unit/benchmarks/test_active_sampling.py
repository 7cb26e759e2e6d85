"""Active sampling: what earlier nights show, which rows are drawn, and what reads the weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import SampleSettings
from ragmetrics.records import CheapBin, Segment, question_key
from ragmetrics.scoring import MetricScores, summarise
from ragmetrics.scoring.sampling.draw import SamplingFrame, draw_all
from ragmetrics.scoring.sampling.estimate import PROBABILITY, STRATUM
from ragmetrics.scoring.sampling.inclusion import choose_design, draw
from ragmetrics.scoring.sampling.plan import RowIds
from ragmetrics.scoring.sampling.uncertainty import (
    BINS,
    FEWEST_PAIRS,
    bins_of,
    cheap_bins,
    fit_uncertainty,
)
from ragmetrics.stats import Numbers
from tests.unit.config.test_judging_sampling import RECALL, RELEVANCE, Record, records

UNIT = st.floats(0, 1)


def pairs(rows: int = 4_000, seed: int = 2) -> tuple[Numbers, Numbers]:
    """Scores of a cheap judge that is right about its doubts, and of the expensive one."""
    random = np.random.default_rng(seed)
    cheap = random.beta(0.3, 0.3, rows)
    return cheap, (random.random(rows) < cheap).astype(float)


def fitted(cheap: Numbers, value: Numbers) -> list[CheapBin]:
    """The bins of rows with equal weights."""
    return cheap_bins(cheap, value, np.ones(len(cheap)))


# The uncertainty


def test_the_uncertainty_is_the_spread_of_the_residuals() -> None:
    """Of a cheap score f that is the chance of 1 it is sqrt(f (1 - f)), within a few hundredths.

    Most rows of the first and of the last bin are nearer to the end than its middle.
    """
    cheap, value = pairs(40_000)
    found = fit_uncertainty([fitted(cheap, value)])
    assert found is not None
    middle = (np.arange(1, BINS - 1) + 0.5) / BINS
    assert found.of(np.array([0.0, 1.0])).max() < 0.14
    assert found.of(middle) == pytest.approx(np.sqrt(middle * (1 - middle)), abs=0.03)
    assert found.of(np.array([math.nan]))[0] == found.pooled


def test_nights_add_up_to_what_their_rows_together_show() -> None:
    """Two nights of the same rows cut in two give what one night of all of them gives."""
    cheap, value = pairs()
    whole = fit_uncertainty([fitted(cheap, value)])
    halves = fit_uncertainty([fitted(cheap[n::2], value[n::2]) for n in (0, 1)])
    assert whole is not None
    assert halves is not None
    assert halves.by_bin == pytest.approx(whole.by_bin, rel=1e-6)


def test_few_pairs_show_nothing() -> None:
    """And neither does a cheap judge that has never been wrong."""
    cheap, value = pairs(FEWEST_PAIRS)
    assert fit_uncertainty([fitted(cheap[:-1], value[:-1])]) is None
    assert fit_uncertainty([fitted(cheap, value)]) is not None
    assert fit_uncertainty([fitted(value, value)]) is None
    assert fit_uncertainty([]) is None


@given(st.lists(st.tuples(st.floats(-5, 5), UNIT, st.floats(0.01, 50)), min_size=1, max_size=50))
def test_whatever_the_scores(rows: list[tuple[float, float, float]]) -> None:
    """Bins are sorted, their shares add up, and every score has an uncertainty that is a number."""
    cheap, value, weights = (np.array(column) for column in zip(*rows, strict=True))
    bins = cheap_bins(cheap, value, weights)
    assert [one.bin for one in bins] == sorted({*bins_of(cheap).tolist()})
    assert sum(one.share for one in bins) == pytest.approx(1)
    found = fit_uncertainty([bins] * FEWEST_PAIRS)
    assert found is None or (np.isfinite(found.of(cheap)) & (found.of(cheap) > 0)).all()


# The design


def test_without_a_gain_the_chances_are_equal() -> None:
    """Where doubts are even, or nothing is known, or one metric would lose what another gains."""
    random = np.random.default_rng(1)
    doubtful = np.where(random.random(1_000) < 0.3, 0.5, 0.05)
    assert choose_design([None], 1_000).uniform
    assert choose_design([np.full(1_000, 0.3)], 1_000).relative is None
    assert choose_design([doubtful, 0.55 - doubtful], 1_000).relative is None
    assert choose_design([doubtful], 1_000).relative is not None
    assert choose_design([doubtful, doubtful], 1_000).relative is not None


def test_strata_get_rows_by_their_doubts_and_at_least_two() -> None:
    """Half of the rows are certain; the other stratum gets more than its half of the sample."""
    random = np.random.default_rng(7)
    codes = np.repeat([0, 1, 2], [2_000, 2_000, 3]).astype(np.int32)
    keys = random.integers(0, 2**64, len(codes), dtype=np.uint64)
    relative = choose_design([np.where(codes == 1, 0.5, 0.05)], len(codes)).relative
    found = draw(keys, codes, ["sure", "open", "rare"], 200, relative)
    counts = np.bincount(codes[found.rows])
    assert len(found.rows) == 200
    assert counts[1] > 1.1 * counts[0]
    assert counts[2] == 2
    assert ((found.probabilities > 0) & (found.probabilities <= 1)).all()


def drawn(rows: list[Record], uncertain: dict[str, float], count: int = 40) -> set[tuple[str, str]]:
    """Question and id of the judged rows, by an uncertainty of each question."""
    frame = SamplingFrame([[RELEVANCE], [RECALL]])
    for row in rows:
        frame.count(row)
    doubts = np.array([uncertain[row["user_input"]] for row in rows])
    settings = SampleSettings(rows=count, draw="active")
    plan = draw_all(settings, frame, [], {}, {RELEVANCE.name: doubts})
    group, marks = plan.group(RELEVANCE.name), RowIds()
    assert group is not None
    own = [(row, marks.of(question_key(row["user_input"]), row["id"])) for row in rows]
    return {(row["user_input"], row["id"]) for row, mark in own if group.judges(mark)}


@given(st.randoms(use_true_random=False))
def test_the_sample_does_not_hang_on_the_order_of_the_rows(shuffled: Any) -> None:
    """So it is the same however the night is cut into shards, and a night that is run again."""
    rows = records(range(300))
    doubts = {row["user_input"]: (0.5, 0.02, 0.02)[n % 3] for n, row in enumerate(rows)}
    assert drawn(rows, doubts) == drawn(shuffled.sample(rows, len(rows)), doubts)


def test_a_late_row_changes_little() -> None:
    """The keys stay, so the rows at the border are all that moves."""
    rows = records(range(400))
    doubts = {row["user_input"]: (0.5, 0.02)[n % 2] for n, row in enumerate(rows)}
    late = {**rows[0], "id": "late", "user_input": "Late?"}
    before, after = drawn(rows, doubts), drawn([*rows, late], {**doubts, "Late?": 0.5})
    assert len(before - after) <= 2


# What reads the weights


def active_table(
    rows: int = 4_000, judged: int = 800, seed: int = 9
) -> tuple[pd.DataFrame, Numbers]:
    """An active night as a score table, and the value of every row."""
    cheap, value = pairs(rows, seed)
    random = np.random.default_rng(seed)
    known = fit_uncertainty([fitted(*pairs(seed=1))])
    assert known is not None
    keys = random.integers(0, 2**64, rows, dtype=np.uint64)
    relative = choose_design([known.of(cheap)], rows).relative
    found = draw(keys, np.zeros(rows, dtype=np.int32), [""], judged, relative)
    seen, chances = np.full((2, rows), math.nan)
    seen[found.rows], chances[found.rows] = value[found.rows], found.probabilities
    compared = np.full(rows, None, dtype=object)
    compared[found.rows] = found.compared.astype(object)
    table = pd.DataFrame(
        {
            "question": [f"q{number}" for number in range(rows)],
            "value": seen,
            "status": np.where(np.isnan(seen), "not_sampled", "scored"),
            "cheap": cheap,
            STRATUM: "",
            PROBABILITY: chances,
            "compared": compared,
            "reason": None,
            "votes": [[one, 1 - one] if one == one else None for one in seen],
            "failed": None,
            "spread": np.where(np.isnan(seen), math.nan, 4 * cheap * (1 - cheap)),
            "tag:half": np.where(np.arange(rows) % 2 > 0, "odd", "even"),
        }
    )
    return table, value


def test_every_number_of_a_summary_is_weighted() -> None:
    """Mean, judges, spread and histogram are those of all rows, and not of the doubtful ones."""
    table, value = active_table()
    summary = summarise(MetricScores("graded", table), "", panel=("one", "other"))
    judged = table[table["status"] == "scored"]
    assert summary.mean == pytest.approx(value.mean(), abs=0.03)
    assert summary.low is not None
    assert summary.high is not None
    assert summary.low <= value.mean() <= summary.high
    spread = float((4 * table["cheap"] * (1 - table["cheap"])).mean())
    assert summary.spread == pytest.approx(spread, abs=0.03)
    assert float(judged["spread"].mean()) > spread + 0.04
    assert sum(summary.histogram) == pytest.approx(len(judged), abs=2)
    assert summary.histogram[9] / len(judged) == pytest.approx(value.mean(), abs=0.05)
    assert summary.judges[0].mean == pytest.approx(value.mean(), abs=0.05)
    assert summary.agreement is not None


def test_the_summary_says_what_later_nights_need() -> None:
    """Bins of both scores, the spread of a row, the correlation, and what the sample is worth."""
    table, value = active_table()
    found = summarise(MetricScores("graded", table), "").sample
    assert found is not None
    assert found.effective is not None
    assert found.effective > 1.5 * 800
    assert found.spread == pytest.approx(value.std(), rel=0.05)
    assert found.correlation == pytest.approx(np.corrcoef(table["cheap"], value)[0, 1], abs=0.05)
    again = fit_uncertainty([found.bins])
    assert again is not None
    whole = fit_uncertainty([fitted(table["cheap"].to_numpy(), value)])
    assert whole is not None
    assert again.pooled == pytest.approx(whole.pooled, rel=0.1)


def test_segments_are_weighted_too() -> None:
    """A segment is a part of the same sample."""
    table, value = active_table()
    half = Segment(tag="half", value="odd")
    found = summarise(MetricScores("graded", table), "", half)
    assert found.mean == pytest.approx(value[1::2].mean(), abs=0.05)


def test_rows_that_are_none_keep_their_weights() -> None:
    """One row in five turns out to have nothing to score: the mean is that of the others."""
    table, value = active_table()
    none = np.arange(len(table)) % 5 == 0
    judged = table["status"] == "scored"
    left = table.assign(
        value=table["value"].mask(none),
        status=table["status"].mask(none & judged, "not_applicable"),
    )
    found = summarise(MetricScores("graded", left), "")
    assert found.mean == pytest.approx(value[~none].mean(), abs=0.04)
    assert found.sample is not None
    assert found.sample.spread is not None


def test_comparisons_read_the_uniform_part_alone() -> None:
    """Its mean without weights is that of all rows; that of all judged rows need not be."""
    gaps, whole = [], []
    for seed in range(40):
        table, _ = active_table(1_000, 200, seed)
        scores = MetricScores("graded", table)
        assert len(scores.by_question()) == len(scores.compared) < len(scores.scored)
        doubts = (table["cheap"] - 0.5).abs() < 0.3
        gaps.append(float(doubts[scores.compared.index].mean() - doubts.mean()))
        whole.append(float(doubts[scores.scored.index].mean() - doubts.mean()))
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / math.sqrt(40)
    assert np.mean(whole) > 5 * np.std(whole) / math.sqrt(40)

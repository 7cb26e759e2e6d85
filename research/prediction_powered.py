"""What a cheap judge adds to a sample: `python -m research sampled`.

A night has 20,000 rows, of which 500 are judged by the expensive judge: grades 0, 0.5 and 1 with
chances of 0.2, 0.3 and 0.5, so that the truth is 0.65. The cheap judge scores all rows, correlated
with it by as much as the cell says. Where it says so, a question has 1 to 3 rows with the same
grade, or the rows are of eight strata of unequal sizes, scored 0 or 1 with means from 0.3 to 0.98,
or the expensive judge finds one row in five to be none, which the cheap one takes for a bad one.

Then nights whose sample is planned by the nights before, for a half width of 0.02, as the nightly
does it: the first without any, the fourth by three.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragmetrics.config import SampleSettings
from ragmetrics.records import Summary
from ragmetrics.scoring import MetricScores, summarise, wanted_rows
from ragmetrics.scoring.sampling.estimate import STRATUM, sampled_mean
from ragmetrics.scoring.sampling.inclusion import draw
from ragmetrics.scoring.sampling.sample_size import known
from ragmetrics.scoring.sampling.prediction_powered import (allocate, prediction_powered)
from ragmetrics.scoring.sampling.prediction_powered import (Powered)

NIGHTS = 2_000
SEED = 20_071
ROWS, JUDGED = 20_000, 500
GRADES, CHANCES = np.array([0.0, 0.5, 1.0]), np.array([0.2, 0.3, 0.5])
STRATA = {f"s{number}": 1.0 + number for number in range(8)}
"""Rows of each stratum, in proportion; the first are the hardest."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """What became of a cell's nights."""

    coverage: float
    plain_coverage: float
    gain: float
    """How much narrower the interval was than the plain one, on average over the nights."""
    width: float
    plain_width: float
    weight: float


def cheap_scores(expensive: Floats, correlation: float, random: np.random.Generator) -> Floats:
    """Scores with this correlation to grades of the usual chances, about a half."""
    centre = float(CHANCES @ GRADES)
    spread = math.sqrt(float(CHANCES @ np.square(GRADES - centre)))
    noise = random.standard_normal(len(expensive))
    shared = correlation * (expensive - centre) / spread
    return 0.5 + 0.15 * (shared + math.sqrt(1 - correlation**2) * noise)


def flat_night(
    correlation: float, repeats: int, rows: int, judged: int, random: np.random.Generator
) -> tuple[Powered, float]:
    """A sample of rows at large; the estimate and the truth."""
    sizes = random.integers(1, repeats + 1, rows)
    clusters = np.repeat(np.arange(rows), sizes)[:rows]
    expensive = random.choice(GRADES, rows, p=CHANCES)[clusters]
    cheap = cheap_scores(expensive, correlation, random)
    seen = np.full(rows, np.nan)
    sample = random.choice(rows, judged, replace=False)
    seen[sample] = expensive[sample]
    found = prediction_powered(cheap, seen, clusters)
    assert found is not None
    return found, float(CHANCES @ GRADES)


def stratified_night(
    correlation: float, neyman: bool, rows: int, judged: int, random: np.random.Generator
) -> tuple[Powered, float]:
    """A sample of each stratum; the first strata are hard, the last nearly always right."""
    share = np.array(list(STRATA.values())) / sum(STRATA.values())
    right = np.linspace(0.3, 0.98, len(STRATA))
    stratum = random.choice(len(STRATA), rows, p=share)
    expensive = (random.random(rows) < right[stratum]).astype(float)
    cheap = cheap_scores(expensive, correlation, random)
    names = np.array(list(STRATA))
    sizes = {name: int((stratum == number).sum()) for number, name in enumerate(STRATA)}
    spreads = dict(zip(STRATA, np.sqrt(right * (1 - right)).tolist(), strict=True))
    seen = np.full(rows, np.nan)
    for name, count in allocate(sizes, judged, spreads if neyman else None).items():
        sample = random.choice(np.flatnonzero(names[stratum] == name), count, replace=False)
        seen[sample] = expensive[sample]
    found = prediction_powered(cheap, seen, np.arange(rows), names[stratum])
    assert found is not None
    return found, float(share @ right)


def night_with_none(
    correlation: float, rows: int, judged: int, random: np.random.Generator
) -> tuple[Powered, float]:
    """A sample of rows at large, of which one in five turns out to have nothing to be judged."""
    expensive = random.choice(GRADES, rows, p=CHANCES)
    none = random.random(rows) < 0.2
    cheap = cheap_scores(np.where(none, 0.0, expensive), correlation, random)
    sample = np.isin(np.arange(rows), random.choice(rows, judged, replace=False))
    values = {
        "question": np.arange(rows),
        "value": np.where(sample & ~none, expensive, np.nan),
        "status": np.select([sample & none, sample], ["not_applicable", "scored"], "not_sampled"),
        "cheap": cheap,
        STRATUM: "",
    }
    best, alone = sampled_mean(pd.DataFrame(values))
    assert best is not None
    assert alone is not None
    plain = replace(best, mean=alone.mean, low=alone.low, high=alone.high)
    return Powered(best, plain, alone.weight, rows), float(CHANCES @ GRADES)


CELLS = {
    "correlation 0.6": partial(flat_night, 0.6, 1),
    "correlation 0": partial(flat_night, 0.0, 1),
    "correlation 0.9": partial(flat_night, 0.9, 1),
    "correlation 0.6, 1-3 rows a question": partial(flat_night, 0.6, 3),
    "correlation 0.6, one row in five is none": partial(night_with_none, 0.6),
    "eight strata, sampled in proportion": partial(stratified_night, 0.6, False),
    "eight strata, sampled by Neyman": partial(stratified_night, 0.6, True),
}


def measure(
    name: str, nights: int = NIGHTS, rows: int = ROWS, judged: int = JUDGED, seed: int = SEED
) -> Found:
    """Simulate a cell."""
    random = np.random.default_rng([seed, *map(ord, name)])
    told = []
    for _ in range(nights):
        found, truth = CELLS[name](rows, judged, random)
        one, plain = found.best, found.plain
        assert one.low is not None
        assert one.high is not None
        assert plain.low is not None
        assert plain.high is not None
        told.append(
            (
                one.low <= truth <= one.high,
                plain.low <= truth <= plain.high,
                one.high - one.low,
                plain.high - plain.low,
                found.weight,
            )
        )
    held, plain_held, width, plain_width, weight = np.mean(told, axis=0).tolist()
    return Found(held, plain_held, 1 - width / plain_width, width, plain_width, weight)


SERIES, PLANNED = 250, 4
"""Series of nights, and nights of each, whose samples are planned."""
HALF_WIDTH = 0.02


@dataclass(frozen=True)
class Planned:
    """What became of the nights at one place of their series."""

    judged: float
    half_width: float
    """On average over the series."""
    coverage: float


def planned_night(
    found: list[Summary], rows: int, half_width: float, random: np.random.Generator
) -> Summary:
    """A night with a cheap judge correlated 0.6, sampled by what was found before."""
    expensive = random.choice(GRADES, rows, p=CHANCES)
    sample = SampleSettings(half_width=half_width)
    keys = random.integers(0, 2**63, rows).astype(np.uint64)
    wanted = wanted_rows(sample, rows, known(found))
    drawn = draw(keys, np.zeros(rows, dtype=np.int32), [""], wanted).rows
    value, status = np.full(rows, np.nan), np.full(rows, "not_sampled", dtype=object)
    value[drawn], status[drawn] = expensive[drawn], "scored"
    table = pd.DataFrame(
        {
            "question": np.arange(rows),
            "value": value,
            "status": status,
            "cheap": cheap_scores(expensive, 0.6, random),
            STRATUM: "",
            "reason": None,
            "votes": None,
            "spread": math.nan,
        }
    )
    return summarise(MetricScores("graded", table), "")


def measure_planned(
    series: int = SERIES, rows: int = ROWS, half_width: float = HALF_WIDTH, seed: int = SEED
) -> list[Planned]:
    """Simulate series of planned nights."""
    random = np.random.default_rng([seed, 6])
    truth = float(CHANCES @ GRADES)
    told = np.empty((series, PLANNED, 3))
    for number in range(series):
        found: list[Summary] = []
        for place in range(PLANNED):
            one = planned_night(found, rows, half_width, random)
            assert one.low is not None
            assert one.high is not None
            told[number, place] = (
                one.scored,
                (one.high - one.low) / 2,
                one.low <= truth <= one.high,
            )
            found.append(one)
    return [Planned(*night) for night in told.mean(axis=0).tolist()]


def report(nights: int = NIGHTS) -> Iterator[str]:
    """All figures, line by line."""
    yield "| 500 of 20,000 rows | nights | coverage | plain | half width | plain | narrower by |"
    yield "|---" * 7 + "|"
    for name in CELLS:
        one = measure(name, nights)
        yield (
            f"| {name} | {nights:,} | {one.coverage:.1%} | {one.plain_coverage:.1%} "
            f"| {one.width / 2:.4f} | {one.plain_width / 2:.4f} | {one.gain:.1%} |"
        )
    yield f"\n| half_width: {HALF_WIDTH} of 20,000 rows | judged | half width | coverage |"
    yield "|---" * 4 + "|"
    for place, night in enumerate(measure_planned(min(nights, SERIES)), 1):
        told = f"{night.judged:,.0f} | {night.half_width:.4f} | {night.coverage:.1%}"
        yield f"| night {place} | {told} |"

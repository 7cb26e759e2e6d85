"""Verdicts for a half width of 0.02, by each way to sample: `python -m research active`.

A night has 20,000 rows. Each way plans its sample by three nights before, as the nightly does, and
is then drawn and estimated on new nights. The ways: a plain sample of rows with equal chances; the
same with the lexical judge's scores of all rows (prediction-powered); and active sampling on top.

Synthetic cells: the expensive judge scores 0 or 1, the cheap judge's score f is the chance of 1
that it sees. How much f says (`sure` rows near 0 and 1, or none), and whether the earlier nights
said the truth about it, differ. The last cell: rows that an LLM rated (RAGMETRICS_DATA), drawn
again and again. The labelled sets are in `learned_judge`, with the learned judge beside the
embedded one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from research.moving_world import data_folder
from ragmetrics.config import SampleSettings
from ragmetrics.judges import (
    Corpus,
    LexicalJudge,
    EmbeddingClient,
    HashedEmbedder,
    JudgeClient,
)
from ragmetrics.metrics import select
from ragmetrics.records import LogRow
from ragmetrics.scoring.sampling.sample_size import Known
from ragmetrics.scoring import wanted_rows
from ragmetrics.scoring.metric_run import Member
from ragmetrics.scoring.sampling.cheap_scores import CheapJudges
from ragmetrics.scoring.sampling.inclusion import Design, choose_design, draw
from ragmetrics.scoring.sampling.uncertainty import cheap_bins, fit_uncertainty
from ragmetrics.scoring.sampling.prediction_powered import (prediction_powered, row_spread)
from ragmetrics.scoring.sampling.prediction_powered import (Powered)
from ragmetrics.storage import row_of

NIGHTS = 2_000
ROWS = 20_000
HALF_WIDTH = 0.02
PLANNED_BY, PILOT = 3, 600
"""Nights before, and judged rows of each."""
SEED = 20_071

WAYS = ("plain", "powered", "active")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Night:
    """All rows of a night, as if the dear judge had scored all of them."""

    cheap: Floats
    value: Floats
    questions: NDArray[np.int_]
    strata: NDArray[np.int_]


World = Callable[[int, np.random.Generator], Night]
"""A night of so many rows."""


@dataclass(frozen=True)
class Plan:
    """How nights are sampled, by what earlier nights showed."""

    rows: int
    design: Callable[[Floats], Design]
    """The design of a night from its cheap scores."""


def estimate(night: Night, plan: Plan, random: np.random.Generator) -> Powered:
    """Draw a night by a plan, and estimate its mean."""
    design = plan.design(night.cheap)
    keys = random.integers(0, 2**64, len(night.cheap), dtype=np.uint64)
    names = [f"{code:03d}" for code in range(int(night.strata.max()) + 1)]
    drawn = draw(keys, night.strata.astype(np.int32), names, plan.rows, design.relative)
    seen, chances = np.full((2, len(night.cheap)), np.nan)
    seen[drawn.rows], chances[drawn.rows] = night.value[drawn.rows], drawn.probabilities
    strata = night.strata.astype(np.str_) if len(names) > 1 else None
    found = prediction_powered(night.cheap, seen, night.questions, strata, chances)
    assert found is not None
    return found


def uniform(cheap: Floats) -> Design:
    """Equal chances."""
    return Design()


def plan_by(
    world: World, rows: int, half_width: float, random: np.random.Generator
) -> dict[str, Plan]:
    """The plan of each way, by earlier nights of a world with a uniform sample each."""
    bins, spreads, correlations = [], [], []
    for _ in range(PLANNED_BY):
        night = world(rows, random)
        sample = random.choice(rows, min(PILOT, rows), replace=False)
        seen = np.full(rows, np.nan)
        seen[sample] = night.value[sample]
        bins.append(cheap_bins(night.cheap[sample], night.value[sample], np.ones(len(sample))))
        strata = night.strata.astype(np.str_)
        spreads.append(row_spread(seen, night.questions, np.ones(rows), strata) or 0.0)
        constant = min(np.ptp(night.cheap[sample]), np.ptp(night.value[sample])) < 1e-9
        pairs = np.corrcoef(night.cheap[sample], night.value[sample]) if not constant else None
        correlations.append(float(pairs[0, 1]) if pairs is not None else 0.0)
    spread = float(np.sqrt(np.mean(np.square(spreads))))
    correlation = float(np.mean(correlations))
    fitted = fit_uncertainty(bins)

    def active(cheap: Floats) -> Design:
        return choose_design([fitted.of(cheap) if fitted else None], len(cheap))

    settings = SampleSettings(half_width=half_width)

    def size(known: float, design: Design) -> int:
        seen = Known(spread, known)
        return design.rows(lambda ratios: wanted_rows(settings, rows, seen, max(ratios)))

    return {
        "plain": Plan(size(0.0, Design()), uniform),
        "powered": Plan(size(correlation, Design()), uniform),
        "active": Plan(size(correlation, active(world(rows, random).cheap)), active),
    }


# Synthetic worlds


def synthetic(
    rows: int,
    random: np.random.Generator,
    *,
    sharp: float = 0.5,
    truth: str = "as said",
    strata: int = 1,
    repeats: int = 1,
) -> Night:
    """Chances of 1 by Beta(sharp, sharp): the smaller, the more rows are nearly certain.

    `truth`: "as said", f is the chance; "useless", f says nothing; "even", y - f has the same
    spread everywhere; "misleading", rows with f near 0 and 1 are the wrong ones half of the time.
    """
    sizes = random.integers(1, repeats + 1, rows)
    questions = np.repeat(np.arange(rows), sizes)[:rows]
    count = int(questions.max()) + 1
    chance = random.beta(sharp, sharp, count)
    cheap = chance
    if truth == "useless":
        cheap = random.beta(sharp, sharp, count)
    elif truth == "even":
        value = np.clip(0.5 + 0.15 * random.standard_normal(count), 0, 1)
        cheap = value + 0.15 * random.standard_normal(count)
        return Night(cheap[questions], value[questions], questions, np.zeros(rows, dtype=int))
    elif truth == "misleading":
        chance = np.where(np.abs(cheap - 0.5) > 0.4, 0.5, np.where(cheap > 0.5, 0.95, 0.05))
    group = random.integers(0, strata, count)
    value = (random.random(count) < chance ** (1 + group / 4)).astype(float)
    return Night(cheap[questions], value[questions], questions, group[questions])


CELLS: dict[str, World] = {
    "informative, half of the rows nearly certain": partial(synthetic, sharp=0.3),
    "informative, few rows certain": partial(synthetic, sharp=1.0),
    "rarely sure": partial(synthetic, sharp=3.0),
    "even errors": partial(synthetic, truth="even"),
    "useless cheap judge": partial(synthetic, truth="useless"),
    "misleading: wrong where it seems sure": partial(synthetic, truth="misleading"),
    "informative, eight strata": partial(synthetic, sharp=0.3, strata=8),
    "informative, 1-3 rows a question": partial(synthetic, sharp=0.3, repeats=3),
}
DRIFTED = {
    "misleading tonight, informative before": ("misleading", "as said"),
    "useless tonight, informative before": ("useless", "as said"),
}
"""Cells whose earlier nights were of another kind: tonight's truth, and that of before."""


# Rated rows


def rated_night() -> Night | None:
    """Real ratings by an LLM, from 1 to 5, of the relevance of retrieved contexts, with the
    lexical judge's scores. None without the file.
    """
    path = data_folder() / "azure_northwind.jsonl"
    if not path.is_file():
        return None
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    fields = ("id", "user_input", "retrieved_contexts")
    rows = [row_of({name: record[name] for name in fields}) for record in records]
    value = np.array([(record["labels"]["judge"]["gpt_relevance"] - 1) / 4 for record in records])
    corpus = Corpus()
    for row in rows:
        corpus.add(row.retrieved_contexts, row.user_input)
    found = asyncio.run(_embedded(corpus, "context_relevance", rows))
    cheap = np.array([np.nan if one is None else one for one in found])
    known = ~np.isnan(cheap)
    names = np.array([row.question_key for row in rows])[known]
    questions = np.unique(names, return_inverse=True)[1]
    return Night(cheap[known], value[known], questions, np.zeros(int(known.sum()), int))


async def _embedded(corpus: Corpus, metric: str, rows: Sequence[LogRow]) -> list[float | None]:
    judge = Member(JudgeClient(LexicalJudge(corpus), EmbeddingClient(HashedEmbedder(corpus))))
    scorer, (chosen,) = CheapJudges(judge), select([metric])
    return [(await scorer.guesses([chosen], row))[metric].value for row in rows]


def resampled(known: Night, rows: int, random: np.random.Generator) -> Night:
    """A night of these rows, drawn by whole questions with replacement."""
    order = np.argsort(known.questions, kind="stable")
    counts = np.bincount(known.questions)
    starts = np.cumsum(counts) - counts
    chosen = random.integers(0, len(counts), int(rows / counts.mean() * 1.2) + 10)
    own = counts[chosen]
    places = order[np.repeat(starts[chosen] - np.cumsum(own) + own, own) + np.arange(own.sum())]
    clusters = np.repeat(np.arange(len(chosen)), own)
    places, clusters = places[:rows], clusters[:rows]
    return Night(known.cheap[places], known.value[places], clusters, np.zeros(rows, dtype=int))


def truth_of(world: World, random: np.random.Generator) -> float:
    """The mean of a world, from many nights; exact for labelled rows."""
    if isinstance(world, partial) and world.func is resampled:
        return float(world.args[0].value.mean())
    return float(np.mean([world(200_000, random).value.mean() for _ in range(25)]))


@dataclass(frozen=True)
class Found:
    """What became of a way in a cell."""

    rows: int
    """Rows that were planned."""
    half_width: float
    """On average over the nights."""
    coverage: float
    needed: float
    """Verdicts for the half width asked for: its square falls with their number."""


def measure(
    name: str,
    world: World,
    nights: int = NIGHTS,
    rows: int = ROWS,
    half_width: float = HALF_WIDTH,
    before: World | None = None,
    ways: Sequence[str] = WAYS,
) -> dict[str, Found]:
    """Simulate a cell; `before` is the world of the earlier nights."""
    random = np.random.default_rng([SEED, *map(ord, name)])
    plans = plan_by(before or world, rows, half_width, random)
    truth = truth_of(world, random)
    found = {}
    for way in ways:
        plan, told = plans[way], np.empty((nights, 2))
        for number in range(nights):
            powered = estimate(world(rows, random), plan, random)
            one = powered.plain if way == "plain" else powered.best
            assert one.low is not None
            assert one.high is not None
            told[number] = (one.high - one.low) / 2, one.low <= truth <= one.high
        half, covered = told.mean(axis=0).tolist()
        found[way] = Found(plan.rows, half, covered, plan.rows * (half / half_width) ** 2)
    return found


def report(nights: int = NIGHTS) -> Iterator[str]:
    """All figures, line by line."""
    yield (
        f"| half width {HALF_WIDTH} of {ROWS:,} rows, {nights:,} draws "
        "| plain | powered | active | active / plain | coverage of the three |"
    )
    yield "|---" * 6 + "|"
    for name, world in CELLS.items():
        yield _line(name, measure(name, world, nights))
    for name, (tonight, past) in DRIFTED.items():
        worlds = (partial(synthetic, sharp=0.3, truth=one) for one in (tonight, past))
        yield _line(name, measure(name, next(worlds), nights, before=next(worlds)))
    if (rated := rated_night()) is not None:
        name = "azure_northwind, relevance rated by an LLM"
        yield _line(name, measure(name, partial(resampled, rated), nights))


def _line(name: str, found: dict[str, Found]) -> str:
    needed = {way: one.needed for way, one in found.items()}
    covered = " / ".join(f"{one.coverage:.1%}" for one in found.values())
    counts = " | ".join(f"{one:,.0f}" for one in needed.values())
    return f"| {name} | {counts} | {needed['active'] / needed['plain']:.2f} | {covered} |"

"""What people would say, from 60 labels: `python -m benchmarks labels`.

A night has 2,000 rows, with 1 to 3 rows a question. People grade the contexts of a row 0, 1 or 2
(`context_relevance`), or say yes or no once (a metric of one verdict). The judge agrees with them
except for a bias of 0.1 in the mean, which has one of these forms:

    shift     a half of a grade more, on rows by chance
    scale     the judge's value is 1 - 0.75 (1 - people's): it forgives
    flips     bad contexts become good ones, with chances by their grade
    segment   only the rows of a third of the traffic
    none      it is wrong as often in both directions, so its mean is right

People label 60 rows: of tonight by a uniform draw, by the draw of `labels suggest`, or of an earlier
night that was better by 0.1. Then the labelled sets of `RAGMETRICS_DATA`: their labels are people,
the embedded judge is the judge, and all rows of a set are the night.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragmetrics.stats import JudgedNight, PeopleEstimate, mean_interval, people_mean

DRAWS = 2_000
SEED = 59
ROWS, LABELS = 2_000, 60
FORMS = ("shift", "scale", "flips", "segment", "none")
KINDS = ("grades", "yes or no")
DESIGNS = ("uniform", "suggested", "earlier night")
_BIAS = 0.1

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """A night: the judge's and the people's value of each row, its question, and its draw."""

    judge: Floats
    people: Floats
    question: NDArray[np.int_]
    spread: Floats
    """The disagreement that `labels suggest` expects of each row."""


@dataclass(frozen=True)
class Found:
    """What became of a cell."""

    coverage: float
    told: float
    """Share of the draws in which the judge is told to be biased."""
    half_width: float
    labels_alone: float
    """Half width of the mean of the labelled rows alone."""


def make_world(
    form: str, kind: str, random: np.random.Generator, *, rows: int = ROWS, better: float = 0.0
) -> World:
    """A night. `better` is how much better people find it."""
    sizes = random.integers(1, 4, rows)
    question = np.repeat(np.arange(rows), sizes)[:rows]
    contexts = 5 if kind == "grades" else 1
    steps = 2 if kind == "grades" else 1
    skill = np.clip(random.beta(2.4, 1.6, rows) + better, 0, 1)[question]
    grades = random.binomial(steps, skill[:, None], (rows, contexts)).astype(np.float64) / steps
    segment = (question % 3) == 0
    judge = _judge(form, grades, segment, random)
    value = judge.mean(axis=1)
    return World(value, grades.mean(axis=1), question, np.sqrt(value * (1 - value)))


def _judge(
    form: str, grades: Floats, segment: NDArray[np.bool_], random: np.random.Generator
) -> Floats:
    """The judge's grades, biased by about 0.1 in the mean; noise of both directions is added."""
    step = 0.5 if grades.shape[1] > 1 else 1.0
    noisy = _flip(grades, 0.04, step, random)
    if form == "none":
        return _flip(grades, 0.1, step, random)
    if form == "shift":
        chance = _BIAS / step / float((noisy < 1).mean())
        return np.where(random.random(noisy.shape) < chance, np.minimum(noisy + step, 1), noisy)
    if form == "scale":
        keep = 1 - _BIAS / float((1 - noisy).mean())
        if grades.shape[1] == 1:
            return np.where((noisy < 1) & (random.random(noisy.shape) > keep), 1.0, noisy)
        return 1 - keep * (1 - noisy)
    if form == "flips":
        chance = np.where(noisy == 0, 0.6, 0.4)
        up = (random.random(noisy.shape) < chance) & (noisy < 1)
        scale = _BIAS / float(((1 - noisy) * up).mean())
        return np.where(up & (random.random(noisy.shape) < scale), 1.0, noisy)
    own = segment[:, None] & (noisy < 1)
    scale = _BIAS / float(((1 - noisy) * own).mean())
    return np.where(own & (random.random(noisy.shape) < scale), 1.0, noisy)


def _flip(grades: Floats, chance: float, step: float, random: np.random.Generator) -> Floats:
    """Grades, some of which are moved by a step up or down, as many in both directions."""
    up = (random.random(grades.shape) < chance) & (grades < 1)
    balance = chance * float((grades < 1).mean()) / float((grades > 0).mean())
    down = (random.random(grades.shape) < balance) & (grades > 0) & ~up
    return np.clip(grades + step * up - step * down, 0, 1)


def draw_labels(
    world: World, count: int, random: np.random.Generator, *, suggested: bool
) -> Floats:
    """The weight of each row that people label; 0 for all others."""
    chance = (
        (0.5 + 0.5 * world.spread / (world.spread.mean() + 1e-9))
        if suggested
        else np.ones(len(world.judge))
    )
    chosen = np.argsort(random.exponential(size=len(chance)) / chance)[:count]
    weights = np.zeros(len(chance))
    weights[chosen] = 1 / chance[chosen]
    return weights


def estimate(tonight: World, labelled: World, weights: Floats) -> PeopleEstimate:
    """What people would say of tonight, by labels of a night that may be tonight."""
    chosen = weights > 0
    nights = [_judged(tonight), _judged(labelled)]
    found = people_mean(
        labelled.judge[chosen],
        labelled.people[chosen],
        labelled.question[chosen],
        nights,
        np.full(int(chosen.sum()), int(labelled is not tonight)),
        weights[chosen],
    )
    assert found is not None
    return found


def _judged(world: World) -> JudgedNight:
    found = mean_interval(world.judge, world.question)
    assert found is not None
    assert found.error is not None
    return JudgedNight(found.mean, found.error)


TRUTH = 2.4 / (2.4 + 1.6)


def measure(
    form: str, kind: str, design: str, draws: int = DRAWS, labels: int = LABELS, seed: int = SEED
) -> Found:
    """Simulate a cell."""
    random = np.random.default_rng([seed, *map(ord, form + kind + design)])
    told = []
    for _ in range(draws):
        tonight = make_world(form, kind, random)
        earlier = design == "earlier night"
        labelled = make_world(form, kind, random, better=0.1) if earlier else tonight
        weights = draw_labels(labelled, labels, random, suggested=design == "suggested")
        told.append(_outcome(estimate(tonight, labelled, weights), TRUTH, labelled, weights))
    return Found(*np.mean(told, axis=0).tolist())


def _outcome(
    one: PeopleEstimate, truth: float, world: World, weights: Floats
) -> tuple[float, float, float, float]:
    low, high = one.mean.low, one.mean.high
    assert low is not None
    assert high is not None
    alone = mean_interval(world.people[weights > 0], world.question[weights > 0])
    assert alone is not None
    assert alone.low is not None
    assert alone.high is not None
    return (
        float(low <= truth <= high),
        float(one.p_value < 0.05),
        (high - low) / 2,
        (alone.high - alone.low) / 2,
    )

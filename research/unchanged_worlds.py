"""Nights on which nothing changes but the judge's level, in five worlds; two metrics each.

fresh    other questions every night, zeros and ones (`all_year_world`)
week     the same, whose mix goes by weekday and season and drifts
heavy    other questions every night: most scores at one end, few far from it
golden   the same questions every night; 15% of their scores change between runs
zipf     600 questions, asked as often as 1 / rank^1.1 says: some of a night's recur
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from scipy import special

from research.all_year_world import MISSING, Fall, Years, years
from research.night_rows import Codes, Numbers

METRICS, POPULATION, CHANGING, CHANGE = 2, 600, 0.15, 0.133
_BATCH, _BATCH_OF_QUESTIONS = 1_000, 20
"""Worlds at once; fewer where all questions of all nights are in memory."""
World = Callable[[np.random.Generator, int, int, int, float, Fall | None], Years]
"""From random, worlds, rows, nights, the judge's SD a night and a fall."""


def _fresh(
    random: np.random.Generator, count: int, rows: int, nights: int, sd: float, fall: Fall | None
) -> Years:
    return years(random, count, rows, fall, nights, wobble=sd, mixed=False)


def _week(
    random: np.random.Generator, count: int, rows: int, nights: int, sd: float, fall: Fall | None
) -> Years:
    return years(random, count, rows, fall, nights, wobble=sd)


def default_metrics(random: np.random.Generator, count: int, rows: int, nights: int) -> Years:
    """Other questions every night, scored by six metrics as the default ones: correlated by a half,
    zeros and ones, graded, or continuous.
    """
    means, squares = np.empty((2, count, 6, nights, 1))
    for night in range(nights):
        ease = random.normal(size=(count, 1, rows))
        u = special.ndtr(0.7 * ease + 0.714 * random.normal(size=(count, 6, rows)))
        graded, continuous = np.ceil(4 * u[:, 1] ** 0.5) / 4, u[:, 2] ** 0.4
        most, halves, high = u[:, 3] > 0.15, np.ceil(2 * u[:, 4]) / 2, 0.6 + 0.4 * u[:, 5]
        values = np.stack([u[:, 0] > 0.3, graded, continuous, most, halves, high], axis=1)
        means[:, :, night, 0] = values.mean(axis=-1)
        squares[:, :, night, 0] = (values**2).mean(axis=-1)
    return Years(np.arange(nights), np.full(means.shape, float(rows)), means, squares)


def _levels(
    random: np.random.Generator, count: int, nights: int, sd: float, fall: Fall | None
) -> tuple[Codes, Numbers]:
    """The days, and the level of each metric on each of them."""
    day = np.arange(nights)
    day = day[(random.random(nights) >= MISSING) | (day == nights - 1)]
    levels = random.normal(0, sd, (count, 1, len(day))).repeat(METRICS, axis=1)
    if fall:
        levels[:, 0] -= fall.by * (day >= fall.start)
    return day, levels


def _heavy(
    random: np.random.Generator, count: int, rows: int, nights: int, sd: float, fall: Fall | None
) -> Years:
    day, levels = _levels(random, count, nights, sd, fall)
    means, squares = np.empty((2, *levels.shape, 1))
    for night in range(len(day)):
        far = np.minimum(1.0, 0.03 * random.random((count, METRICS, rows)) ** -0.9)
        far[:, 0] = 1 - far[:, 0]
        values = far + levels[:, :, night, None]
        means[:, :, night, 0] = values.mean(axis=-1)
        squares[:, :, night, 0] = (values**2).mean(axis=-1)
    return Years(day, np.full(means.shape, float(rows)), means, squares)


def _golden(
    random: np.random.Generator, count: int, rows: int, nights: int, sd: float, fall: Fall | None
) -> Years:
    day, levels = _levels(random, count, nights, sd, fall)
    shape = (*levels.shape, rows)
    means = _answers(random, count, rows)[:, :, None] + levels[..., None]
    changing = random.random((count, METRICS, 1, rows)) < CHANGING
    means = means + changing * random.normal(0, CHANGE, shape)
    return Years(day, np.ones(shape), means, recurs=True)


def _zipf(
    random: np.random.Generator, count: int, rows: int, nights: int, sd: float, fall: Fall | None
) -> Years:
    day, levels = _levels(random, count, nights, sd, fall)
    weights = np.arange(1, POPULATION + 1) ** -1.1
    asked = random.multinomial(rows, weights / weights.sum(), (count, 1, len(day)))
    asked = asked.repeat(METRICS, axis=1)
    changing = random.random((count, METRICS, 1, POPULATION)) < CHANGING
    means = _answers(random, count, POPULATION)[:, :, None] + levels[..., None]
    noise = changing * random.normal(0, CHANGE, asked.shape) / np.sqrt(np.maximum(asked, 1))
    return Years(day, asked.astype(np.float64), means + noise, recurs=True)


def _answers(random: np.random.Generator, count: int, questions: int) -> Numbers:
    """What each question scores, metrics correlated: often 1, or graded."""
    ease = random.random((count, 1, questions))
    own = 0.5 * ease + 0.5 * random.random((count, METRICS, questions))
    own[:, 0] = own[:, 0] > 0.35
    own[:, 1] = np.ceil(4 * own[:, 1]) / 4
    return own


WORLDS: Mapping[str, World] = {
    "fresh": _fresh,
    "week": _week,
    "heavy": _heavy,
    "golden": _golden,
    "zipf": _zipf,
}


RECURRING = ("golden", "zipf")
"""Worlds whose questions recur: they take the most time."""


def batches(
    name: str,
    seed: int,
    count: int,
    rows: int,
    nights: int,
    sd: float = 0.0,
    fall: Fall | None = None,
) -> Iterator[Years]:
    """So many worlds of a kind, some at a time. The days with a log are others in each batch."""
    size = _BATCH_OF_QUESTIONS if name in RECURRING else _BATCH
    for first in range(0, count, size):
        random = np.random.default_rng([seed, rows, list(WORLDS).index(name), first])
        yield WORLDS[name](random, min(size, count - first), rows, nights, sd, fall)

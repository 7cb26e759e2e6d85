"""Coverage of what users said, where few answer: `python -m research feedback`.

A night's true share of content users is drawn, and each row's user is content with that chance. A
content user answers with the chance `up`, another one with the chance `down`. Each question has one
to five rows. The interval is that of the night: the mean of the answered rows, clustered by
question. It is held against two truths: the share of content users of all, and of those who answer,
m up / (m up + (1 - m) down). Where `up` and `down` differ, the first cannot be known from the
answers without a model of who answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ragmetrics.stats import mean_interval

TRIALS = 2_000
SEED = 37
MEANS = (0.6, 0.95)
MOST_ROWS = 5


@dataclass(frozen=True)
class Covered:
    """Shares of trials whose interval holds a truth."""

    of_all: float
    of_answering: float
    answered: float
    """Mean share of rows with an answer."""


def coverage(trials: int, rows: int, up: float, down: float) -> Covered:
    """How often the interval of the answered rows holds each truth."""
    rng = np.random.default_rng(SEED)
    of_all = of_answering = known = 0
    answered = 0.0
    for _ in range(trials):
        mean = rng.uniform(*MEANS)
        sizes = rng.integers(1, MOST_ROWS + 1, rows)
        question = np.repeat(np.arange(rows), sizes)[:rows]
        content = rng.random(rows) < mean
        said = rng.random(rows) < np.where(content, up, down)
        found = mean_interval(content[said].astype(float), question[said])
        answered += said.mean() / trials
        if found.low is None or found.high is None:
            continue
        known += 1
        of_all += found.low <= mean <= found.high
        truth = mean * up / (mean * up + (1 - mean) * down)
        of_answering += found.low <= truth <= found.high
    return Covered(of_all / known, of_answering / known, answered)


def report(trials: int) -> Iterator[str]:
    """A table of response and self-selection."""
    yield "rows    up    down  answered  covers all  covers those who answer"
    for rows in (1_000, 4_000, 20_000):
        for up, down in ((0.05, 0.05), (0.01, 0.01), (0.045, 0.055), (0.04, 0.08), (0.02, 0.1)):
            one = coverage(trials, rows, up, down)
            yield (
                f"{rows:6,}  {up:.1%}  {down:.1%}  {one.answered:7.1%}  {one.of_all:9.1%}  "
                f"{one.of_answering:9.1%}"
            )

"""How a judge's strengths become probabilities, as it is stored: `calibrations/fits/ID.json`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from ragmetrics.records.base import Record
from ragmetrics.records.decisions import Distribution
from ragmetrics.records.judging import JudgeName, fingerprint

_EDGE = 1e-3
"""Strengths nearer to 0 or 1 count as this near: a logarithm is finite."""
_TINY = 1e-9


class StrengthMap(Record):
    """The probability of a positive label by a judge's strength s, for one metric's prompts.

        p = 1 / (1 + exp(-(c + a ln(s) - b ln(1 - s)))),   a, b >= 0

    For a graded context it is the expected label.
    Source: Kull, Silva Filho and Flach 2017, "Beta calibration". With a = b it is Platt scaling.
    """

    metric: str
    prompts: list[str]
    """Digests of the prompts whose strengths it was fitted to."""
    c: float
    a: float = Field(ge=0)
    b: float = Field(ge=0)
    labels: int
    questions: int

    levels: tuple[float, float, float] | None = None
    """For grades: the shares of the labels 0, 0.5 and 1."""

    def distributions(self, strengths: ArrayLike) -> list[Distribution]:
        """The distribution of each item over the levels of a verdict, with the mean p.

        That of a grade is the labels' own, tilted until it has the mean: p_l ~ levels_l x^l.
        """
        found = probabilities(strengths, self.c, self.a, self.b)
        return [self._of_grade(p) if self.levels else (1 - p, p) for p in found]

    def _of_grade(self, p: float) -> Distribution:
        low, middle, high = self.levels or (1.0, 0.0, 1.0)
        if not (low and middle and high):
            return (1 - p, 0.0, p)
        mean = 2 * min(max(p, _TINY), 1 - _TINY)
        a, b, c = (2 - mean) * high, (1 - mean) * middle, -mean * low
        x = (math.sqrt(b * b - 4 * a * c) - b) / (2 * a)
        total = low + middle * x + high * x * x
        return (low / total, middle * x / total, high * x * x / total)


def probabilities(strengths: ArrayLike, c: float, a: float, b: float) -> list[float]:
    """The probabilities by the formula of a `StrengthMap`."""
    z = c + log_odds(strengths) @ np.array([a, b])
    found: list[float] = (0.5 + 0.5 * np.tanh(0.5 * z)).tolist()
    return found


def log_odds(strengths: ArrayLike) -> NDArray[np.float64]:
    """The columns ln(s) and -ln(1 - s), whose sum is the log odds."""
    s = np.clip(np.asarray(strengths, dtype=np.float64), _EDGE, 1 - _EDGE)
    return np.column_stack([np.log(s), -np.log1p(-s)])


class Recalibration(Record):
    """What `ragmetrics calibrate --fit` fitted: one judge's strengths to labels, or to verdicts of
    another judge.

    It never changes. `judge: calibration: ID` names it, so that scores by another fit are
    another trend.
    """

    judge: JudgeName
    judge_fingerprint: str
    source: str
    """The labelled set, or the night, whose labels it was fitted to."""
    maps: list[StrengthMap]

    @property
    def id(self) -> str:
        """Its name in settings and in the store: the digest of its contents."""
        return f"fit-{fingerprint(self.model_dump_json())}"  # no number, whatever the digits are

    @property
    def path(self) -> str:
        """Its place in the store."""
        return self.place(self.id)

    @staticmethod
    def place(name: str) -> str:
        """The place of a fit by its `id`."""
        return f"calibrations/fits/{name}.json"

    def map_of(self, prompt: str) -> StrengthMap | None:
        """The map of a prompt by its digest; None without one."""
        return next((known for known in self.maps if prompt in known.prompts), None)

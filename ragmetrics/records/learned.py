"""The learned judge as it is stored: `learned/JUDGE/VERSION.json`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from ragmetrics.records.base import Record
from ragmetrics.records.calibration import Figure, ReliabilityBin
from ragmetrics.records.row import question_key

FOLDS = 10
LIMIT = 5.0
"""Standardised features are cut to this many standard deviations: an odd text stays finite."""
Floats = NDArray[np.float64]


def fold_of(question: str) -> int:
    """The fold of a question: equal for equal normalised questions."""
    return int(question_key(question), 16) % FOLDS


def standardised(features: Floats, mean: Sequence[float], scale: Sequence[float]) -> Floats:
    """Features in standard deviations from the mean, cut to +-5."""
    values: Floats = np.clip((features - np.asarray(mean)) / np.asarray(scale), -LIMIT, LIMIT)
    return values


def level_chances(x: Floats, coefficients: Sequence[ArrayLike]) -> Floats:
    """P(level >= l) by item (line) and l = 1, 2 .. (column), from standardised features.

    A higher level is never more probable than a lower one.
    """
    from scipy import special  # half a second, which few readers need

    chances = np.column_stack(
        [special.expit(one[0] + x @ one[1:]) for one in map(np.asarray, coefficients)]
    )
    return np.minimum.accumulate(chances, axis=1)


class LearnedQuality(Record):
    """How well predictions agree with the verdicts of questions that the model did not see.

    An item is positive where its level is above 0. Intervals are 95%, over questions.
    """

    auc: Figure
    """AUC of all items."""
    auc_within: Figure
    """AUC within rows; no value where no row has items of both classes."""
    embedded_auc: Figure
    """The lexical judge's evidence on the same items."""
    embedded_auc_within: Figure
    auc_gain: Figure
    """The learned judge's AUC minus that of the lexical judge's evidence."""
    correlation: float | None
    """Correlation of predicted and true levels."""
    embedded_correlation: float | None
    """Correlation of the lexical judge's evidence with the true levels."""
    row_correlation: Figure = Figure()
    """Correlation r of predicted and true row scores, which are the mean levels of rows. A sample
    needs 1 - r^2 of the rows of a plain one. No value where all rows have the same score."""
    embedded_row_correlation: Figure = Figure()
    """The lexical judge's evidence on the same rows."""
    brier: float
    """Mean square of predicted chance minus outcome."""
    calibration_error: float | None = None
    reliability: list[ReliabilityBin] = Field(default_factory=list)


class LastNight(Record):
    """The newest night's items, judged in the way in which a night uses the model."""

    night: date
    rows: int
    mean: float
    """Mean row score by the learned judge alone, from 0 to 1."""
    judge_mean: float
    """Mean row score by the judge whose verdicts it predicts."""
    difference: Figure
    """The former minus the latter."""


class LearnedPrompt(Record):
    """The fitted model of one prompt.

        P(level >= l) = 1 / (1 + exp(-(b_0 + sum_j b_j (x_j - mean_j) / scale_j)))

    `coefficients[k][l - 1]` were fitted without the questions of fold k, and predict them.
    """

    name: str
    digest: str
    """Digest of the prompt: another wording has a model of its own."""
    top: int
    """Highest level."""
    features: list[str]
    mean: list[float]
    scale: list[float]
    coefficients: list[list[list[float]]]
    cuts: list[float] = Field(default_factory=list)
    """By level, the chance above which an item has it: as many items do as in the verdicts."""
    verdicts: int
    questions: int
    used: bool
    """False where it is not significantly better than the lexical judge's evidence, or wrong on
    the last night. The lexical judge answers this prompt then."""
    why: str = ""
    """Why it is not used; empty where it is."""
    quality: LearnedQuality
    last_night: LastNight | None = None

    def predicted(self, question: str, features: Floats) -> Floats:
        """P(level >= l) by item and l, by the model of the question's fold."""
        if not len(features):
            return np.empty((0, self.top))
        x = standardised(features, self.mean, self.scale)
        return level_chances(x, self.coefficients[fold_of(question)])


class LearnedModel(Record):
    """The learned judge of one data set and one judge whose verdicts it predicts."""

    version: int
    judge: str
    """Name of the judge whose verdicts it was fitted on."""
    judge_fingerprint: str
    code_version: int
    """Version of the features; a model of another version is not used."""
    features: str = ""
    """Digest of how the features were made; a model of other features is not used."""
    embeddings: str = ""
    """Fingerprint of the embeddings among the features; empty without any."""
    nights: list[date] = Field(default_factory=list)
    """Nights whose verdicts were used."""
    runs: list[str] = Field(default_factory=list)
    """Their runs."""
    prompts: list[LearnedPrompt] = Field(default_factory=list)
    refused: dict[str, str] = Field(default_factory=dict)
    """Prompts without a model, with the reason."""

    @property
    def verdicts(self) -> int:
        """Number of verdicts that it was fitted on."""
        return sum(prompt.verdicts for prompt in self.prompts)

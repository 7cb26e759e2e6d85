"""Fits the model of one prompt to verdicts, and measures it on questions that it has not seen.

Ordinal logistic regression: one logistic regression for each level l, of the items at level l or
above. The evidence of the embedded judge has a small penalty and all other features a ten times
larger one: with few verdicts the model ranks almost as the evidence does, with many it learns more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragmetrics.calibration.units import figure
from ragmetrics.judges import FOLDS, fold_of, level_chances, standardised
from ragmetrics.model import Figure, LearnedPrompt, LearnedQuality, ReliabilityBin
from ragmetrics.stats import (
    Statistic,
    auc_statistic,
    auc_within_statistic,
    bootstrap_intervals,
    fit_logistic,
    reliability,
    unweighted,
)

FEWEST_VERDICTS = 200
"""Fewest verdicts on items of one prompt: with less, models were no better than the evidence."""
FEWEST_OF_A_CLASS = 20
"""Fewest items at level 0, and fewest above it."""
FEWEST_QUESTIONS = 2 * FOLDS
PENALTY, OF_EVIDENCE = 10.0, 1.0
_DIGITS = 9
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Examples:
    """Items with verdicts. All lists have an entry per item."""

    features: Floats
    """A column per feature; the first is the embedded judge's evidence."""
    levels: NDArray[np.int_]
    questions: NDArray[np.str_]
    """Texts of the questions."""
    rows: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.levels)

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int_]) -> Examples:
        """Some of the items."""
        return Examples(*(getattr(self, one)[chosen] for one in self.__dataclass_fields__))


@dataclass(frozen=True)
class Fitted:
    """Coefficients by fold, and the predictions that they give of their own folds."""

    mean: Floats
    scale: Floats
    coefficients: list[list[Floats]]
    chances: Floats
    """P(level >= l) by item and l, from the model that did not see the item's question."""


def refusal(examples: Examples) -> str:
    """Why no model is fitted to these items, as a sentence; empty if one is."""
    count = len(examples)
    if count < FEWEST_VERDICTS:
        return f"{count:,} verdicts; {FEWEST_VERDICTS - count:,} are missing of {FEWEST_VERDICTS}"
    above = int((examples.levels > 0).sum())
    if not above or above == count:
        return f"all {count:,} verdicts are {'positive' if above else 'negative'}"
    fewer = min(above, count - above)
    if fewer < FEWEST_OF_A_CLASS:
        kind = "positive" if above < count - above else "negative"
        return f"only {fewer} of {count:,} verdicts are {kind}; {FEWEST_OF_A_CLASS} are needed"
    questions = len(np.unique(examples.questions))
    if questions < FEWEST_QUESTIONS:
        return f"the verdicts are of {questions} questions; {FEWEST_QUESTIONS} are needed"
    return ""


def fit_folds(
    examples: Examples,
    top: int,
    most: int | None = None,
    seen: NDArray[np.bool_] | None = None,
) -> Fitted:
    """Fit a model for each fold to the items of all other folds, and predict all items.

    For measurements: `most` bounds the items of each model, in their order, and only items that
    are `seen` are used.
    """
    x, levels = examples.features, examples.levels
    mean, spread = x.mean(axis=0), x.std(axis=0)
    scale = np.where(spread > 1e-9, spread, 1.0)
    mean, scale = mean.round(_DIGITS), np.maximum(scale.round(_DIGITS), 10.0**-_DIGITS)
    x = standardised(x, mean.tolist(), scale.tolist())
    penalties = np.full(x.shape[1], PENALTY)
    penalties[0] = OF_EVIDENCE
    names, place = np.unique(examples.questions, return_inverse=True)
    folds = np.array([fold_of(str(one)) for one in names])[place]
    coefficients, chances = [], np.zeros((len(x), top))
    for fold in range(FOLDS):
        others = np.flatnonzero((folds != fold) & (True if seen is None else seen))[:most]
        own = [
            fit_logistic(x[others], levels[others] >= level, penalties).round(_DIGITS)
            for level in range(1, top + 1)
        ]
        inside = folds == fold
        if inside.any():
            chances[inside] = level_chances(x[inside], own)
        coefficients.append(own)
    return Fitted(mean, scale, coefficients, chances)


def fit_prompt(
    name: str, digest: str, top: int, features: Sequence[str], examples: Examples
) -> LearnedPrompt:
    """The model of a prompt. Call `refusal` before."""
    fitted = fit_folds(examples, top)
    found = quality(examples, fitted.chances)
    return LearnedPrompt(
        name=name,
        digest=digest,
        top=top,
        features=list(features),
        mean=fitted.mean.tolist(),
        scale=fitted.scale.tolist(),
        coefficients=[[one.tolist() for one in own] for own in fitted.coefficients],
        verdicts=len(examples),
        questions=len(np.unique(examples.questions)),
        used=is_better(found),
        quality=found,
    )


def is_better(found: LearnedQuality) -> bool:
    """Whether both AUC and correlation are higher than those of the embedded judge's evidence."""
    gain, mine, other = found.auc_gain.value, found.correlation, found.embedded_correlation
    return gain is not None and gain > 0 and mine is not None and mine > (other or 0.0)


def quality(examples: Examples, chances: Floats) -> LearnedQuality:
    """Figures of predictions that did not see their own questions."""
    positive = (examples.levels > 0).astype(np.float64)
    evidence, chance = examples.features[:, 0], chances[:, 0]
    mine, other = auc_statistic(positive, chance), auc_statistic(positive, evidence)
    statistics: dict[str, Statistic] = {
        "auc": mine,
        "embedded_auc": other,
        "auc_gain": lambda counts: mine(counts) - other(counts),
        "auc_within": auc_within_statistic(examples.rows, positive, chance),
        "embedded_auc_within": auc_within_statistic(examples.rows, positive, evidence),
    }
    intervals = bootstrap_intervals(statistics, examples.questions)
    figures: dict[str, Figure] = {
        name: figure(unweighted(one, len(positive)), intervals[name])
        for name, one in statistics.items()
    }
    diagram = reliability(positive, chance, examples.questions)
    bins = [
        ReliabilityBin(**{name: getattr(one, name) for name in one.__slots__})
        for one in (diagram.bins if diagram else ())
    ]
    return LearnedQuality(
        **figures,
        correlation=correlation(chances.sum(axis=1), examples.levels),
        embedded_correlation=correlation(evidence, examples.levels),
        brier=float(np.square(chance - positive).mean()),
        calibration_error=diagram.error if diagram else None,
        reliability=bins,
    )


def correlation(a: Floats, b: NDArray[np.int_] | Floats) -> float | None:
    """Pearson's correlation; None if one of them is constant."""
    if min(np.std(a), np.std(b)) < 1e-9:
        return None
    return float(np.corrcoef(a, b)[0, 1])

"""Fits the model of one prompt to verdicts, and measures it on questions that it has not seen.

Ordinal logistic regression: one logistic regression for each level l, of the items at level l or
above. The evidence of the lexical judge has a small penalty and all other features a ten times
larger one: with few verdicts the model ranks almost as the evidence does, with many it learns more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragmetrics.people.calibration.agreement_figures import (
    auc_statistic,
    auc_within_statistic,
    pearson_statistic,
    reliability,
)
from ragmetrics.people.calibration.logistic import fit_logistic
from ragmetrics.people.calibration.units import figures_of
from ragmetrics.records import (
    FOLDS,
    LearnedPrompt,
    LearnedQuality,
    fold_of,
    level_chances,
    standardised,
)
from ragmetrics.stats import Numbers, Statistic

FEWEST_VERDICTS = 200
"""Fewest verdicts on items of one prompt: with less, models were no better than the evidence."""
FEWEST_OF_A_CLASS = 20
"""Fewest items at level 0, and fewest above it."""
FEWEST_QUESTIONS = 2 * FOLDS
PENALTY, OF_EVIDENCE = 10.0, 1.0
_DIGITS = 9


@dataclass(frozen=True)
class Examples:
    """Items with verdicts. All lists have an entry per item."""

    features: Numbers
    """A column per feature; the first is the lexical judge's evidence."""
    levels: NDArray[np.int_]
    questions: NDArray[np.str_]
    """Texts of the questions."""
    rows: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.levels)

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int_]) -> Examples:
        """Some of the items."""
        return Examples(*(getattr(self, field)[chosen] for field in self.__dataclass_fields__))


@dataclass(frozen=True)
class Fitted:
    """Coefficients by fold, and the predictions that they give of their own folds."""

    mean: Numbers
    scale: Numbers
    coefficients: list[list[Numbers]]
    chances: Numbers
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
    examples: Examples, top: int, most: int | None = None, seen: NDArray[np.bool_] | None = None
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
    folds = np.array([fold_of(str(name)) for name in names])[place]
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
    why = why_not_better(found)
    return LearnedPrompt(
        name=name,
        digest=digest,
        top=top,
        features=list(features),
        mean=fitted.mean.tolist(),
        scale=fitted.scale.tolist(),
        coefficients=[[one.tolist() for one in own] for own in fitted.coefficients],
        cuts=cuts(examples.levels, fitted.chances),
        verdicts=len(examples),
        questions=len(np.unique(examples.questions)),
        used=not why,
        why=why,
        quality=found,
    )


def cuts(levels: NDArray[np.int_], chances: Numbers) -> list[float]:
    """By level, the chance that as many predictions exceed as there are verdicts of that level."""
    return [
        _cut(chances[:, place], int((levels > place).sum())) for place in range(chances.shape[1])
    ]


def _cut(chances: Numbers, count: int) -> float:
    """Halfway between the `count` highest chances and the others; 1 if none is to be above it."""
    if count in (0, len(chances)):
        return float(count == 0)
    ordered = np.sort(chances)[::-1]
    return round(float(ordered[count - 1 : count + 1].mean()), _DIGITS)


def why_not_better(found: LearnedQuality) -> str:
    """Why a model is not used beside the lexical judge's evidence, in a few words; empty if it is:
    its AUC is significantly higher, and the correlation of its row scores not lower.
    """
    gain, mine, other = found.auc_gain, found.row_correlation, found.embedded_row_correlation
    if gain.low is None or gain.low <= 0:
        return "no better"
    if mine.value is not None and mine.value < (other.value or 0.0):
        return "no better by row"
    return ""


def quality(examples: Examples, chances: Numbers) -> LearnedQuality:
    """Figures of predictions that did not see their own questions."""
    positive = (examples.levels > 0).astype(np.float64)
    evidence, chance = examples.features[:, 0], chances[:, 0]
    mine, other = auc_statistic(positive, chance), auc_statistic(positive, evidence)
    by_row = RowMeans(examples)
    truth = by_row.of(examples.levels)
    statistics: dict[str, Statistic] = {
        "auc": mine,
        "embedded_auc": other,
        "auc_gain": lambda counts: mine(counts) - other(counts),
        "auc_within": auc_within_statistic(examples.rows, positive, chance),
        "embedded_auc_within": auc_within_statistic(examples.rows, positive, evidence),
    }
    by_rows: dict[str, Statistic] = {
        "row_correlation": pearson_statistic(by_row.of(chances.sum(axis=1)), truth),
        "embedded_row_correlation": pearson_statistic(by_row.of(evidence), truth),
    }
    figures = figures_of(statistics, examples.questions) | figures_of(by_rows, by_row.questions)
    bins, error = reliability(positive, chance, examples.questions)
    return LearnedQuality(
        **figures,
        correlation=correlation(chances.sum(axis=1), examples.levels),
        embedded_correlation=correlation(evidence, examples.levels),
        brier=float(np.square(chance - positive).mean()),
        calibration_error=error,
        reliability=bins,
    )


class RowMeans:
    """Means of items by row."""

    def __init__(self, examples: Examples) -> None:
        _, first, place = np.unique(examples.rows, return_index=True, return_inverse=True)
        self._place, self._items = place, np.bincount(place)
        self.questions = examples.questions[first]

    def of(self, values: NDArray[np.int_] | Numbers) -> Numbers:
        """The mean value of each row's items."""
        means: Numbers = np.bincount(self._place, weights=values) / self._items
        return means


def correlation(a: Numbers, b: NDArray[np.int_] | Numbers) -> float | None:
    """Pearson's correlation; None if one of them is constant."""
    if min(np.std(a), np.std(b)) < 1e-9:
        return None
    return float(np.corrcoef(a, b)[0, 1])

"""Fits how a judge's strengths become probabilities, on labels or on verdicts of another judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ragmetrics.config import Settings
from ragmetrics.people.calibration.labelled_sets import TARGETS
from ragmetrics.people.calibration.logistic import fit_logistic
from ragmetrics.people.calibration.run_judges import JudgedSet
from ragmetrics.people.calibration.units import Columns, Unit, calibration_error, columns
from ragmetrics.records import (
    Calibration,
    MetricCalibration,
    Recalibration,
    StrengthMap,
    fold_of,
    log_odds,
    probabilities,
)
from ragmetrics.stats import Numbers

FEWEST, FEWEST_OF_A_CLASS = 50, 5
"""Fewest labels, and fewest of either class."""
_OF_ODDS, _OF_SKEW = 0.3, 3.0
"""Ridge penalties, chosen on half of the labelled sets: few labels give one slope, as Platt's
scaling has, many give either end a slope of its own."""
_DIGITS = 9


def without_fits(settings: Settings) -> Settings:
    """The settings without a `calibration` of a judge: strengths are what is fitted."""
    panel = tuple(judge.model_copy(update={"calibration": None}) for judge in settings.panel)
    return settings.with_panel(panel)


def fit_map(strengths: Numbers, expected: Numbers) -> tuple[float, float, float]:
    """The numbers c, a and b of a `StrengthMap`, by a logistic regression with a ridge penalty.

        log odds(p) = c + a ln(s) - b ln(1 - s),   a, b >= 0

    The penalty is 0.3 on the slope of the log odds of s, and 3 on the difference of a and b, both
    of standardised features. Where a or b would be negative it is 0, so that p never falls with s.
    """
    ends = log_odds(strengths)
    c, (odds, skew) = _regression(ends @ [[1.0, 1.0], [1.0, -1.0]], expected, (_OF_ODDS, _OF_SKEW))
    a, b = odds + skew, odds - skew
    if min(a, b) < 0:
        kept = int(b > a)
        c, (slope,) = _regression(ends[:, [kept]], expected, (_OF_ODDS,))
        if slope < 0:  # it ranks the wrong way round: its strengths say nothing
            c, (slope,) = _regression(0 * ends[:, [kept]], expected, (_OF_ODDS,))
        a, b = (0.0, slope) if kept else (slope, 0.0)
    return round(c, _DIGITS), round(a, _DIGITS), round(b, _DIGITS)


def _regression(x: Numbers, y: Numbers, penalties: Sequence[float]) -> tuple[float, list[float]]:
    """Intercept and slopes; the penalties are on standardised features."""
    mean, spread = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    intercept, *slopes = fit_logistic((x - mean) / spread, y, penalties).tolist()
    slopes = [slope / float(width) for slope, width in zip(slopes, spread, strict=True)]
    return intercept - float(mean @ slopes), slopes


def cross_fitted(data: Columns) -> Numbers:
    """The probability of each unit, by a fit without the questions of its fold."""
    names, place = np.unique(data.questions, return_inverse=True)
    folds = np.array([fold_of(str(name)) for name in names])[place]
    fitted = np.zeros(len(folds))
    for fold in np.unique(folds):
        inside = folds == fold
        c, a, b = fit_map(data.strengths[~inside], data.expected[~inside])
        fitted[inside] = probabilities(data.strengths[inside], c, a, b)
    return fitted


def log_loss(expected: Numbers, p: Numbers) -> float:
    """Mean of -y ln p - (1 - y) ln(1 - p); probabilities within 0.001 of 0 or 1 count as that."""
    ends = log_odds(p)
    return float(-(expected * ends[:, 0] - (1 - expected) * ends[:, 1]).mean())


def with_fit(
    calibration: Calibration, judged: JudgedSet
) -> tuple[Calibration, Recalibration | None]:
    """A calibration with what is fitted to its units, and the fit; None if no metric has one."""
    pairs = [_fitted(metric, judged) for metric in calibration.metrics]
    maps = [known for _, known in pairs if known]
    fit = Recalibration(
        judge=judged.judge.name,
        judge_fingerprint=judged.fingerprint,
        source=calibration.source,
        maps=maps,
    )
    changes = {"metrics": [metric for metric, _ in pairs], "fit": fit.id if maps else ""}
    return calibration.model_copy(update=changes), fit if maps else None


def _fitted(
    metric: MetricCalibration, judged: JudgedSet
) -> tuple[MetricCalibration, StrengthMap | None]:
    """A metric with its map, or with the reason why it has none."""
    data = _columns(metric, judged.units)
    why, fitted = _why_not_fitted(metric, data), np.zeros(0)
    if not why:
        fitted = cross_fitted(data)
        losses = log_loss(data.expected, fitted), log_loss(data.expected, data.strengths)
        if judged.gives_probabilities and losses[0] >= losses[1]:
            why = "its strengths are probabilities, and no fit to these labels is better"
    if why:
        return metric.model_copy(update={"not_fitted": why}), None
    after = calibration_error(data, fitted)
    known = _map(metric.metric, sorted(judged.prompts[metric.metric]), data)
    return metric.model_copy(update={"error_after_fit": after}), known


def _columns(metric: MetricCalibration, units: Mapping[str, Sequence[Unit]]) -> Columns:
    (target,) = (target for target in TARGETS if target.metric == metric.metric)
    return columns(units[metric.metric], target.label_from, target.verdict_from)


def _why_not_fitted(metric: MetricCalibration, data: Columns) -> str:
    """Why no map is fitted to some units, in a few words; empty if one is."""
    if metric.strengths == "verdict":
        return "this judge gives no strengths"
    if data.strengths.min() < 0 or data.strengths.max() > 1:
        return "its strengths are not in [0, 1]"
    count, positive = len(data.labels), float(data.expected.sum())
    if count < FEWEST:
        return f"{count} labels; {FEWEST - count} are missing of {FEWEST}"
    if len(set(map(fold_of, data.questions.tolist()))) < 2:
        return "labels of too few questions: none is left to measure a fit on"
    if min(positive, count - positive) < FEWEST_OF_A_CLASS:
        return f"fewer than {FEWEST_OF_A_CLASS} of {count:,} labels are of one class"
    return ""


def _map(metric: str, prompts: list[str], data: Columns) -> StrengthMap:
    c, a, b = fit_map(data.strengths, data.expected)
    shares = [float((data.expected == level).mean()) for level in (0, 0.5, 1)]
    return StrengthMap(
        metric=metric,
        prompts=prompts,
        c=c,
        a=a,
        b=b,
        levels=(shares[0], shares[1], shares[2]) if data.label_from < 1 else None,
        labels=len(data.labels),
        questions=len(np.unique(data.questions)),
    )

"""What people would say by the judge's error rates, where no row has a label.

The newest calibration of the same judge and metric says how often the judge found what people found
in a labelled set. That its rates are the same in the traffic is the assumption.
"""

from __future__ import annotations

from collections.abc import Sequence

from scipy import special

from ragmetrics.people.labels.people_estimate import ErrorRates, JudgedNight, rogan_gladen
from ragmetrics.records import Agreement, Calibration, PeopleMean, Summary
from ragmetrics.stats import CONFIDENCE

SHARES = ("context_recall", "context_relevancy", "faithfulness")
"""Metrics whose value is the share of a row's units that the judge finds positive."""
_POSITIVE = 1.0


def judged_night(summary: Summary | None) -> JudgedNight:
    """A night by the judge alone. The standard error is that of the stored interval."""
    if summary is None or summary.mean is None or summary.low is None or summary.high is None:
        raise ValueError("a night without an interval has no labelled row")
    z = float(special.ndtri(0.5 + CONFIDENCE / 2))
    return JudgedNight(summary.mean, (summary.high - summary.low) / (2 * z))


def by_error_rates(summary: Summary, calibrations: Sequence[Calibration]) -> PeopleMean | None:
    """What people would say of a metric; None where the judge's error rates are not known."""
    if summary.metric not in SHARES:
        return None
    for calibration in reversed(calibrations):
        measured = calibration.measured(summary.metric)
        if measured and measured.overall and measured.fingerprint == summary.fingerprint:
            return _people(summary, measured.overall)
    return None


def _people(summary: Summary, found: Agreement) -> PeopleMean | None:
    judged, rates = judged_night(summary), _rates(found)
    mean = rogan_gladen(judged, rates) if rates else None
    if mean is None or mean.low is None or mean.high is None:
        return None
    return PeopleMean(
        method="error_rates",
        mean=mean.mean,
        low=mean.low,
        high=mean.high,
        labels=found.units,
        questions=found.questions,
        bias=judged.mean - mean.mean,
        bias_low=judged.mean - mean.high,
        bias_high=judged.mean - mean.low,
    )


def _rates(found: Agreement) -> ErrorRates | None:
    """Sensitivity and specificity. Units of one question count as one, as if they were equal."""
    table = found.confusion
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for label, row in zip(table.labels, table.counts, strict=True):
        for verdict, count in zip(table.verdicts, row, strict=True):
            counts[label >= _POSITIVE, verdict >= _POSITIVE] += count
    positive = counts[True, True] + counts[True, False]
    negative = counts[False, True] + counts[False, False]
    if not positive or not negative:
        return None
    share = found.questions / found.units
    return ErrorRates(
        positive * share,
        negative * share,
        counts[True, True] / positive,
        counts[False, False] / negative,
    )

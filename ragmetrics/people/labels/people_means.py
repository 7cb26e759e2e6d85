"""What people would say of a night: each metric's mean, by labelled rows or by error rates.

    enough labels      `people_mean` of `stats`: prediction-powered, moved to tonight by the judge
    too few labels     the judge's error rates on a labelled set, where they are known
    neither            only the number of labels

Alerts stay on the judge's mean: labels are too few for a drop from night to night.
The newest calibration of the same judge and metric says how often the judge found what people found
in a labelled set. That its rates are the same in the traffic is the assumption.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from ragmetrics.config import Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.people.labels.feedback_labels import USERS, add_feedback, with_answered
from ragmetrics.people.labels.label_file import LabelSet, RowLabel, read_labels
from ragmetrics.people.labels.labelled_scores import LabelledScore, LabelledScores, join_scores
from ragmetrics.people.labels.people_estimate import (
    ErrorRates,
    JudgedNight,
    bias_difference,
    people_mean,
    rogan_gladen,
)
from ragmetrics.records import (
    FEWEST_LABELS,
    Agreement,
    Calibration,
    LabelReport,
    Manifest,
    PeopleMean,
    Summary,
)
from ragmetrics.stats import CONFIDENCE, krippendorff_alpha
from ragmetrics.storage import Files

log = logging.getLogger(__name__)
_MOST_PEOPLE = 50
_MOST_REASONS = 50
_FEWEST_SHARED = 5
"""Fewest rows of several people for their agreement."""
SHARES = ("context_recall", "context_relevancy", "faithfulness")
"""Metrics whose value is the share of a row's units that the judge finds positive."""
_POSITIVE = 1.0


def with_people(
    settings: Settings,
    files: Files,
    manifest: Manifest,
    earlier: Sequence[Manifest] = (),
    calibrations: Sequence[Calibration] = (),
    *,
    dated: bool = True,
) -> Manifest:
    """The manifest with what people would say of each metric, and how labels were used.

    Without `labels:` or `feedback_labels:` in the settings it stays as it is. Labels that cannot be
    read cost a sentence and no night.
    """
    by_users, place = settings.feedback_labels, settings.labels or "feedback of users"
    if settings.labels is None and not by_users:
        return manifest
    try:
        read = read_labels(settings) if settings.labels else LabelSet(place)
        add_feedback(read, files, by_users, [manifest, *reversed(earlier)])
        joined = join_all(files, read.labels, manifest, earlier, dated=dated)
    except (InputError, StoreError) as error:
        log.error("the labels cannot be read: %s", error)
        problem = LabelReport(place=place, problem=str(error))
        return manifest.model_copy(update={"labels": problem})
    summaries = [
        _with_people(
            manifest,
            metric,
            joined.get(metric.metric),
            earlier,
            calibrations,
            by_users.get(metric.metric),
        )
        for metric in manifest.metrics
    ]
    return manifest.model_copy(update={"labels": report_of(read, joined), "metrics": summaries})


def join_all(
    files: Files,
    labels: Sequence[RowLabel],
    tonight: Manifest,
    earlier: Sequence[Manifest],
    *,
    dated: bool = True,
) -> dict[str, LabelledScores]:
    """The labelled rows by metric."""
    by_metric: dict[str, list[RowLabel]] = {}
    for label in labels:
        by_metric.setdefault(label.metric, []).append(label)
    return {
        metric: join_scores(files, metric, of_metric, tonight, earlier, dated=dated)
        for metric, of_metric in by_metric.items()
    }


def report_of(read: LabelSet, joined: Mapping[str, LabelledScores]) -> LabelReport:
    """Which labels were used."""
    unused = sum((one.unused for one in joined.values()), start=type(read.rejected)())
    rejected = dict(read.rejected.most_common(_MOST_REASONS))
    places = {reason: read.first[reason] for reason in rejected}
    return LabelReport(
        place=read.place,
        labels=len(read.labels),
        empty=read.empty,
        rejected=rejected,
        first={reason: f"{one.path}:{one.number}" for reason, one in places.items()},
        unused=dict(unused.most_common()),
        rows={metric: len(one.rows) for metric, one in joined.items()},
        problem=read.problem,
    )


def _with_people(
    manifest: Manifest,
    summary: Summary,
    joined: LabelledScores | None,
    earlier: Sequence[Manifest],
    calibrations: Sequence[Calibration],
    users: str | None = None,
) -> Summary:
    if summary.mean is None or summary.low is None or summary.high is None:
        return summary
    rows = joined.rows if joined else []
    found = (
        _by_labels(manifest, summary, rows, earlier)
        if len(rows) >= FEWEST_LABELS
        else by_error_rates(summary, calibrations)
    )
    if users and any(USERS in row.people for row in rows):
        found = with_answered(found, manifest, users)
    return summary.model_copy(update={"people": found}) if found else summary


def _by_labels(
    manifest: Manifest, summary: Summary, rows: Sequence[LabelledScore], earlier: Sequence[Manifest]
) -> PeopleMean | None:
    """What people would say, by the labelled rows of tonight and of earlier nights."""
    days = [manifest.date, *sorted({row.night for row in rows} - {manifest.date})]
    nights = {one.date: one for one in (*earlier, manifest)}
    means = [judged_night(nights[day].summary(summary.metric)) for day in days]
    judge, people = [row.judge for row in rows], [row.value for row in rows]
    question = [row.question for row in rows]
    night = [days.index(row.night) for row in rows]
    weights = [row.weight for row in rows]
    found = people_mean(judge, people, question, means, night, weights)
    if found is None:
        return None
    return PeopleMean(
        mean=found.mean.mean,
        low=found.mean.low,
        high=found.mean.high,
        labels=len(rows),
        questions=found.mean.clusters,
        people=len({person for row in rows for person in row.people}),
        nights=len(set(night)),
        oldest=days[1] if len(days) > 1 else None,
        bias=found.bias,
        bias_low=found.bias_low,
        bias_high=found.bias_high,
        p_value=found.p_value,
        weight=found.weight,
        agreement=_agreement(rows),
        uneven=bias_difference(judge, people, question, night),
    )


def _agreement(rows: Sequence[LabelledScore]) -> float | None:
    """Krippendorff's alpha of the people who labelled the same rows; None for fewer than five."""
    shared = [row for row in rows if len(row.people) > 1]
    names = sorted({person for one in shared for person in one.people})[:_MOST_PEOPLE]
    if len(shared) < _FEWEST_SHARED:
        return None
    ratings = np.array([[one.people.get(name, np.nan) for one in shared] for name in names])
    return krippendorff_alpha(ratings, level="interval")


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
    labels, verdicts = (np.array(side) >= _POSITIVE for side in (table.labels, table.verdicts))
    right, wrong = (np.array(table.counts)[side] for side in (labels, ~labels))
    positive, negative = int(right.sum()), int(wrong.sum())
    if not positive or not negative:
        return None
    share = found.questions / found.units
    sensitivity = int(right[:, verdicts].sum()) / positive
    specificity = int(wrong[:, ~verdicts].sum()) / negative
    return ErrorRates(positive * share, negative * share, sensitivity, specificity)

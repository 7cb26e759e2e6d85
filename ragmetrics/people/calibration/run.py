"""Calibration: compares any judge with labelled rows, set by set.

The nightly calibration judges a small labelled set again each day. It measures the judge of today,
so no reply of an earlier day is used. A second run on the same day finds the verdicts and requests
nothing, unless the first run got no verdict.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from ragmetrics.config import Settings
from ragmetrics.errors import InputError, JudgeError, StoreError
from ragmetrics.http import run_coroutine
from ragmetrics.judges import make_judges
from ragmetrics.metrics import find_metric, label_targets, metrics
from ragmetrics.people.calibration.attacks import METRIC as ATTACKED_METRIC
from ragmetrics.people.calibration.canaries import asked_at_once
from ragmetrics.people.calibration.labelled_sets import (
    LabelledSet,
    LabelTarget,
    read_sets,
    set_name,
    targets,
)
from ragmetrics.people.calibration.recalibration import with_fit, without_fits
from ragmetrics.people.calibration.run_judges import JudgedSet, Progress, judge_set, shares_of
from ragmetrics.people.calibration.store import load_calibrations, load_units, save_calibration
from ragmetrics.people.calibration.thresholds import fit_certain_thresholds, fit_thresholds
from ragmetrics.people.calibration.units import (
    Unit,
    agreement,
    by_segment,
    by_status,
    columns,
    gold_ranks,
    has_strengths,
)
from ragmetrics.records import Calibration, MetricCalibration
from ragmetrics.scoring import chosen_metrics
from ragmetrics.storage import AskedWays, Files, save_record
from ragmetrics.version import __version__

ATTACKED = 20
"""Contexts of a set that `ragmetrics calibrate` attacks. The nightly attacks none."""
_UNSCORED = "this judge does not score it"
log = logging.getLogger(__name__)


def calibrate(
    settings: Settings,
    paths: Sequence[str],
    metrics: Sequence[str] | None = None,
    limit: int | None = None,
    now: datetime | None = None,
    *,
    files: Files | None = None,
    progress: Progress | None = None,
    attacks: int = 0,
    fit: bool = False,
) -> list[Calibration]:
    """Compare every judge of the settings with the labelled sets; one record per set and judge.

    `attacks` is the number of irrelevant contexts of a set that are attacked: five requests each.
    `files` is a store for replies and records. `fit` also fits the judge's strengths to the labels,
    and stores that for `judge: calibration:`; one that the settings name is left out. Works inside
    a running event loop too. If one of several judges refuses, its record says so in `refused` and
    is not stored. Raises InputError for an unknown place or metric, JudgeRefused where no judge can
    be asked.
    """
    check_metrics(metrics)
    at = now or datetime.now(UTC)
    settings = without_fits(settings) if fit else settings
    found = []
    for labelled in read_sets(settings, paths, limit, files):
        hostile = attacks if metrics is None or ATTACKED_METRIC in metrics else 0
        for judged in run_coroutine(
            judge_set(settings, labelled, metrics, at, files, progress, hostile)
        ):
            calibration = record(labelled, judged, at, metrics, redact=settings.redact)
            if fit and files:
                calibration, fitted = with_fit(calibration, judged)
                if fitted:
                    save_record(files, fitted.path, fitted)
            if files and not judged.refused:
                save_calibration(files, calibration, judged.units)
            found.append(calibration)
    return found


def check_metrics(wanted: Sequence[str] | None) -> None:
    """Raise InputError for an unknown metric."""
    for name in wanted or ():
        if find_metric(name) is None:
            raise InputError(f"no metric {name!r}; there are: {', '.join(metrics())}")


def record(
    labelled: LabelledSet,
    judged: JudgedSet,
    at: datetime,
    wanted: Sequence[str] | None,
    *,
    redact: bool,
) -> Calibration:
    """All figures of one judge on one set."""
    measured: list[MetricCalibration] = []
    skipped: dict[str, str] = {}
    for target in () if judged.refused else targets(wanted):
        units = judged.units.get(target.metric, [])
        if reason := _not_comparable(target, units, judged):
            skipped[target.metric] = reason
        else:
            one = _measured(target, units, judged.fingerprints.get(target.metric, ""))
            measured.append(one.model_copy(update=_thresholds(units)) if judged.reranks else one)
    gold = gold_ranks(judged.gold)
    calibrated = {one.metric for one in measured} | {one.metric for one in gold}
    for name in () if judged.refused else wanted or ():
        if name not in calibrated:
            missing = f"no row has labels.gold.{name}"
            skipped.setdefault(name, _UNSCORED if name in judged.unscored else missing)
    return Calibration(
        name=labelled.name,
        source=labelled.source,
        at=at,
        ragmetrics=__version__,
        judge=judged.judge,
        rows=len(labelled.rows),
        rejected=labelled.reasons(),
        broken=labelled.broken,
        metrics=measured,
        gold=gold,
        attacks=judged.attacks,
        skipped=skipped,
        usage=judged.usage,
        corpus=judged.corpus,
        refused=judged.refused,
        redact=redact,
    )


def _thresholds(units: Sequence[Unit]) -> dict[str, object]:
    """The thresholds of a reranker by itself, and in a cascade."""
    found = fit_certain_thresholds(units)
    return {
        "thresholds": fit_thresholds(units),
        "cascade_thresholds": found and found.thresholds,
        "certain": found and found.certain,
    }


def _not_comparable(target: LabelTarget, units: Sequence[Unit], judged: JudgedSet) -> str:
    """Why a metric cannot be compared with its labels; empty where it can."""
    if target.metric in judged.unscored:
        return _UNSCORED
    if not units:
        return f"no row has labels.{target.label} for it"
    if len({unit.label >= target.label_from for unit in units}) < 2:
        return f"all {len(units):,} labels are of one class: there is nothing to distinguish"
    return ""


def _measured(target: LabelTarget, units: Sequence[Unit], fingerprint: str) -> MetricCalibration:
    cuts = target.label_from, target.verdict_from
    segments = (agreement(columns(inside, *cuts), segment) for segment, inside in by_segment(units))
    return MetricCalibration(
        metric=target.metric,
        fingerprint=fingerprint,
        unit=target.unit,
        label=target.label,
        strengths="evidence" if has_strengths(units) else "verdict",
        status=by_status(units),
        overall=agreement(columns(units, *cuts)),
        segments=[segment for segment in segments if segment],
    )


def judge_drift_set(settings: Settings, files: Files, now: datetime) -> str | None:
    """Judge the set of `alerts: drift_set`, unless it was judged today.

    Return the reason where the judges could not be asked or the store failed; the night continues
    without it. A batch judge is asked live. Raises InputError for a set that cannot be read, or
    that no metric of the night can be compared with.
    """
    place = settings.alerts.drift_set
    if place is None:
        return None
    live = settings.with_panel([asked_at_once(judge) for judge in settings.panel])
    wanted = sorted({metric.label_target for metric in chosen_metrics(live) if metric.label_target})
    if not wanted:
        raise InputError(
            "alerts: drift_set: none of the metrics that can be compared with labels is scored: "
            + ", ".join(label_targets())
        )
    try:
        if _judged_today(live, files, place, wanted, now):
            return None
        found = calibrate(live, [place], wanted, live.alerts.drift_rows, now, files=files)
    except (JudgeError, StoreError) as error:
        return _not_judged(place, str(error))
    problems = dict.fromkeys(why for one in found if (why := _failure(files, one, wanted)))
    return _not_judged(place, "; ".join(problems)) if problems else None


def _judged_today(
    settings: Settings, files: Files, place: str, wanted: Sequence[str], now: datetime
) -> bool:
    """Whether each judge that has something to score has given verdicts today."""
    todays = [
        calibration.judge.fingerprint
        for calibration in load_calibrations(files, name=set_name(place))
        if calibration.at.date() == now.date() and _verdicts(files, calibration)
    ]
    judges, ways = make_judges(settings), AskedWays(files)
    prints = [
        chosen.scored_fingerprint(ways.compared(judge.fingerprint))
        for chosen, judge in zip(settings.panel, judges, strict=True)
    ]
    lacking = [known not in todays for known in prints]
    if settings.joined != "also" or not any(lacking):
        return not any(lacking)
    (labelled,) = read_sets(settings, [place], settings.alerts.drift_rows, files)
    shares = shares_of(settings, judges, labelled, wanted)
    return not any(share for share, lacks in zip(shares, lacking, strict=True) if lacks)


def _verdicts(files: Files, calibration: Calibration) -> int | None:
    """Number of verdicts; None where no row has labels for the wanted metrics."""
    units = [one for of in load_units(files, calibration).values() for one in of]
    return sum(unit.verdict is not None for unit in units) if units else None


def _failure(files: Files, calibration: Calibration, wanted: Sequence[str]) -> str:
    """Why a judge gave no verdict on the set; empty where it gave one."""
    if calibration.refused:
        return f"{calibration.judge.name}: {calibration.refused}"
    count = _verdicts(files, calibration)
    if count is None:
        return f"it has no labels for {', '.join(wanted)}"
    return "" if count else f"{calibration.judge.name}: no verdict"


def _not_judged(place: str, reason: str) -> str:
    message = f"labelled set {set_name(place)} for judge drift: {reason}"
    log.warning("not judged: %s", message)
    return message

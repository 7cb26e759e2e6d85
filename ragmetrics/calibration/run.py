"""Calibration: compares any judge with labelled rows, set by set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ragmetrics import event_loop as loop
from ragmetrics.calibration.attacks import METRIC as ATTACKED_METRIC
from ragmetrics.calibration.gold_correlation import gold_ranks
from ragmetrics.calibration.label_mapping import LabelTarget
from ragmetrics.calibration.run_judges import JudgedSet, Progress, judge_set
from ragmetrics.calibration.sets import LabelledSet, read_sets, targets
from ragmetrics.calibration.store import save_calibration
from ragmetrics.calibration.units import (
    Unit,
    agreement,
    by_segment,
    by_status,
    columns,
    has_strengths,
)
from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.metrics import metrics
from ragmetrics.model import Calibration, MetricCalibration
from ragmetrics.storage import Files
from ragmetrics.version import __version__

ATTACKED = 20
"""Contexts of a set that `ragmetrics calibrate` attacks. The nightly attacks none."""


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
) -> list[Calibration]:
    """Compare every judge of the settings with the labelled sets; one record per set and judge.

    `attacks` is the number of irrelevant contexts of a set that are attacked: five requests each.
    `files` is a store for replies and records. Works inside a running event loop too. If one of
    several judges refuses, its record says so in `refused` and is not stored. Raises InputError
    for an unknown place or metric, JudgeRefused where no judge can be asked.
    """
    check_metrics(metrics)
    at = now or datetime.now(UTC)
    found = []
    for one in read_sets(settings, paths, limit):
        hostile = attacks if metrics is None or ATTACKED_METRIC in metrics else 0
        for judged in loop.run(judge_set(settings, one, metrics, at, files, progress, hostile)):
            found.append(record(one, judged, at, metrics, redact=settings.redact))
            if files and not judged.refused:
                save_calibration(files, found[-1], judged.units)
    return found


def check_metrics(wanted: Sequence[str] | None) -> None:
    """Raise InputError for an unknown metric."""
    for name in wanted or ():
        if name not in metrics():
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
        if reason := _not_comparable(target, units):
            skipped[target.metric] = reason
        else:
            measured.append(_measured(target, units, judged.fingerprints.get(target.metric, "")))
    gold = gold_ranks(judged.gold)
    calibrated = {one.metric for one in measured} | {one.metric for one in gold}
    for name in () if judged.refused else wanted or ():
        if name not in calibrated:
            skipped.setdefault(name, f"no row has labels.gold.{name}")
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


def _not_comparable(target: LabelTarget, units: Sequence[Unit]) -> str:
    """Why a metric cannot be compared with its labels; empty where it can."""
    if not units:
        return f"no row has labels.{target.label} for it"
    if len({one.label >= target.label_from for one in units}) < 2:
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
        segments=[one for one in segments if one],
    )

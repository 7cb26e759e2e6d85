"""Calibrations and drift made to measure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ragmetrics.people import History
from ragmetrics.records import (
    Agreement,
    Calibration,
    Confusion,
    Drift,
    Figure,
    FigureName,
    JudgeInfo,
    MetricCalibration,
    MetricDrift,
    ReliabilityBin,
    Segment,
)

FIRST = datetime(2026, 11, 2, 4, tzinfo=UTC)
NAMES: tuple[FigureName, ...] = (
    "auc",
    "auc_within",
    "kappa",
    "kappa_quadratic",
    "alpha",
    "spearman",
    "accuracy",
)


def figure(value: float) -> Figure:
    """A figure with an interval of 0.05 to each side."""
    return Figure(value=value, low=value - 0.05, high=value + 0.05)


def agreement(kappa: float = 0.6, auc: float = 0.8, **change: Any) -> Agreement:
    """A judge of a hundred contexts, of which a quarter are relevant."""
    values: dict[str, Any] = {
        "rows": 50,
        "units": 100,
        "questions": 50,
        "positive": 0.25,
        "figures": {name: figure(auc if "auc" in name else kappa) for name in NAMES},
        "confusion": Confusion(
            labels=[0, 1], verdicts=[0, 0.5, 1], counts=[[60, 9, 6], [5, 7, 13]]
        ),
        "reliability": [
            ReliabilityBin(
                low=0.1,
                high=0.2,
                n=70,
                judged=0.15,
                observed=0.1,
                observed_low=0.05,
                observed_high=0.2,
            ),
            ReliabilityBin(
                low=0.8,
                high=0.9,
                n=30,
                judged=0.85,
                observed=0.6,
                observed_low=0.4,
                observed_high=0.8,
            ),
        ],
        "calibration_error": 0.111,
    }
    return Agreement(**{**values, **change})


def measured(
    metric: str = "context_relevance", kappa: float = 0.6, **change: Any
) -> MetricCalibration:
    """One metric with figures; three units got no verdict."""
    values: dict[str, Any] = {
        "metric": metric,
        "fingerprint": f"{metric}-p1",
        "unit": "context",
        "label": "chunk_relevance",
        "strengths": "evidence",
        "status": {"scored": 100, "unreadable": 3},
        "overall": agreement(kappa),
    }
    return MetricCalibration(**{**values, **change})


def in_language(value: str, auc: float, tag: str = "language") -> Agreement:
    """The units of one language."""
    return agreement(auc=auc, segment=Segment(tag=tag, value=value), units=40)


def calibration(
    week: int = 0, name: str = "towers", judge: str | JudgeInfo = "lexical", **change: Any
) -> Calibration:
    """A judge held against a set, so many weeks after the first time."""
    if isinstance(judge, str):
        judge = JudgeInfo(name=judge, fingerprint="f1", note="a baseline")
    values: dict[str, Any] = {
        "name": name,
        "source": f"labelled/{name}.jsonl",
        "at": FIRST + timedelta(weeks=week),
        "ragmetrics": "0.1.0",
        "judge": judge,
        "rows": 50,
        "metrics": [measured()],
    }
    return Calibration(**{**values, **change})


def drift_between(
    earlier: Calibration, later: Calibration, *drifted: str, by: float = -0.3
) -> Drift:
    """What changed between two calibrations: some metrics by so much, the others not at all."""
    return Drift(
        version=2,
        before=earlier.at,
        name=later.name,
        judge=later.judge.name,
        earlier=earlier.at,
        later=later.at,
        same_fingerprint=earlier.judge.fingerprint == later.judge.fingerprint,
        metrics=[
            _moved(metric.metric, by if metric.metric in drifted else 0.0).model_copy(
                update={"earlier": earlier.at}
            )
            for metric in later.metrics
        ],
    )


def history(*calibrations: Calibration, drifted: tuple[str, ...] = ()) -> History:
    """The calibrations, each held against the one before; the newest shows some metrics drifted."""
    drifts = []
    for number, later in enumerate(calibrations):
        pair = later.name, later.judge.name
        before = [c for c in calibrations[:number] if (c.name, c.judge.name) == pair]
        if before:
            moved = drifted if later is calibrations[-1] else ()
            drifts.append(drift_between(before[-1], later, *moved))
    return History(calibrations, drifts)


def _moved(metric: str, by: float) -> MetricDrift:
    return MetricDrift(
        metric=metric,
        units=100,
        questions=50,
        changed=figure(abs(by) or 0.01),
        figures={"kappa_quadratic": figure(by), "auc": figure(by / 2)},
        drifted=by != 0,
    )

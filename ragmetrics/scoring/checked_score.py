"""The door for what a metric returns: a sound score, or `metric_failed` with the reason.

A metric may be another package's. What it returns is checked here and nowhere else, before a panel
combines it and before it is stored.
"""

from __future__ import annotations

import json
from dataclasses import replace

from ragmetrics.metrics import Metric
from ragmetrics.records import Score, Status, real_number
from ragmetrics.text import shorten

LARGEST = 1e100
"""Largest absolute value of a metric without a range. The square of a larger one may be infinite,
and so has no mean or interval."""
_ROUNDING = 1e-6
"""How far beyond its range a value may be by rounding, as a cosine of float32 is. It is cut."""


def checked_score(metric: Metric, returned: object) -> Score:
    """The score that a metric returned, with a value that is a float in the metric's range.

    `metric_failed` where it is no Score, its value is no finite number or is out of range, or
    it has a value and the status of a row without one, or the reverse.
    """
    if not isinstance(returned, Score):
        return metric_failed(f"a metric returns a Score, not {_shown(returned)}")
    if (returned.value is None) == (returned.status is Status.SCORED):
        what = "no value" if returned.value is None else "a value"
        return metric_failed(f"a score with {what} and the status {_shown(returned.status)}")
    if problem := "" if metric.bundled else _unstorable(returned):
        return metric_failed(problem)
    if returned.value is None:
        return returned
    try:
        value = _in_range(metric, real_number(returned.value))
    except ValueError as error:
        return metric_failed(str(error))
    return returned if returned.value is value else replace(returned, value=value)


def _unstorable(score: Score) -> str:
    """Why a score cannot be stored; empty if it can."""
    try:
        json.dumps(dict(score.details), allow_nan=False, ensure_ascii=False).encode()
        score.reason.encode()
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        return f"details or reason that cannot be stored: {shorten(repr(error))}"
    return ""


def metric_failed(reason: str) -> Score:
    """The score of a row on which the metric's own code failed."""
    return Score(None, reason, status=Status.METRIC_FAILED)


def _shown(value: object) -> str:
    """A foreign value as text, whatever its `repr` does."""
    try:
        return shorten(repr(value))
    except Exception:
        return f"an object of type {type(value).__name__}"


def _in_range(metric: Metric, value: float) -> float:
    low, high = metric.score_range or (-LARGEST, LARGEST)
    if not low - _ROUNDING <= value <= high + _ROUNDING:
        raise ValueError(f"a score of {value:g}: outside [{low:g}, {high:g}]")
    return min(max(value, low), high)

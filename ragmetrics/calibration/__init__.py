"""Calibration: any judge held against rows that people labelled.

found = calibrate(settings, ["labelled.jsonl"], files=open_store(settings))
load_calibrations(files), compare(files, earlier, later), drifts(files)
"""

from ragmetrics.calibration.drift import compare, drifts, since_last
from ragmetrics.calibration.recorded_verdicts import calibrate_replies
from ragmetrics.calibration.run import ATTACKED, calibrate
from ragmetrics.calibration.store import load_calibrations, load_units
from ragmetrics.model.calibration import Calibration, Drift, as_json

__all__ = [
    "ATTACKED",
    "Calibration",
    "Drift",
    "as_json",
    "calibrate",
    "calibrate_replies",
    "compare",
    "drifts",
    "load_calibrations",
    "load_units",
    "since_last",
]

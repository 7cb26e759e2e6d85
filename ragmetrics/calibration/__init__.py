"""Calibration: any judge held against rows that people labelled.

found = calibrate(settings, ["labelled.jsonl"], files=open_store(settings))
load_calibrations(files), compare(files, earlier, later), drifts(files)
"""

from ragmetrics.calibration.drift import compare, drifts, since_last
from ragmetrics.calibration.kept import load_calibrations, load_units
from ragmetrics.calibration.records import Calibration, Drift, as_json
from ragmetrics.calibration.replies import calibrate_replies
from ragmetrics.calibration.run import ATTACKED, calibrate

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

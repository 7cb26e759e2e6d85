"""Probabilities in place of a judge's strengths, by what `ragmetrics calibrate --fit` fitted.

calibrations/fits/ID.json      named by `judge: calibration: ID`
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Judge
from ragmetrics.records import Ask, HasStrengths, Recalibration
from ragmetrics.storage import Files, require_record


def find_fit(chosen: JudgeSettings, judge: Judge, files: Files) -> Recalibration | None:
    """The fit that the settings of a judge name; None if they name none.

    Raises JudgeRefused for one that is not in the store, or that is another judge's.
    """
    if chosen.calibration is None:
        return None
    fit = require_record(files, Recalibration.place(chosen.calibration), Recalibration)
    if fit is None:
        raise JudgeRefused(
            f"judge: calibration: {chosen.calibration} is not in {files.uri()}: `ragmetrics "
            "calibrate LABELLED --fit` makes one, and says its name"
        )
    if fit.judge_fingerprint != judge.fingerprint:
        raise JudgeRefused(
            f"judge: calibration: {chosen.calibration} was fitted to {fit.judge} "
            f"({fit.judge_fingerprint}), and this judge is {judge.name} ({judge.fingerprint})"
        )
    return fit


def recalibrated(fit: Recalibration, judge: Judge, request: Ask, verdict: BaseModel) -> BaseModel:
    """The expectation of a verdict by calibrated probabilities; the verdict for a prompt that the
    judge's fit does not know.
    """
    known, expect = fit.map_of(request.prompt.digest), request.prompt.expect
    if known is None or expect is None:
        return verdict
    if isinstance(verdict, HasStrengths):
        strengths: Sequence[float] | None = verdict.strengths
    else:
        strengths = judge.evidence(request)
    if strengths is None:
        return verdict
    expected: BaseModel = expect(known.distributions(strengths), request.data)
    return expected

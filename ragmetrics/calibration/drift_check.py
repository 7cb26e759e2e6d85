"""The nightly calibration: a small labelled set that is judged again each day.

It measures the judge of today, so no reply of an earlier day is used. A second run on the same day
finds the verdicts and requests nothing, unless the first run got no verdict.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from ragmetrics.calibration.run import calibrate
from ragmetrics.calibration.sets import set_name
from ragmetrics.calibration.store import load_calibrations, load_units
from ragmetrics.config import Settings
from ragmetrics.errors import InputError, JudgeError, StoreError
from ragmetrics.judges import Corpus, make_judges
from ragmetrics.metrics import label_targets
from ragmetrics.model import Calibration
from ragmetrics.scoring import chosen_metrics
from ragmetrics.storage import Files

log = logging.getLogger(__name__)


def judge_drift_set(settings: Settings, files: Files, now: datetime) -> str | None:
    """Judge the set of `alerts: drift_set`, unless it was judged today.

    Return the reason where the judges could not be asked or the store failed; the night continues
    without it. A batch judge is asked live. Raises InputError for a set that cannot be read, or
    that no metric of the night can be compared with.
    """
    place = settings.alerts.drift_set
    if place is None:
        return None
    live = _asked_live(settings)
    wanted = sorted({one.label_target for one in chosen_metrics(live) if one.label_target})
    if not wanted:
        raise InputError(
            "alerts: drift_set: none of the metrics that can be compared with labels is scored: "
            + ", ".join(label_targets())
        )
    try:
        if _judged_today(live, files, set_name(place), now):
            return None
        found = calibrate(live, [place], wanted, live.alerts.drift_rows, now, files=files)
    except (JudgeError, StoreError) as error:
        return _not_judged(place, str(error))
    problems = dict.fromkeys(why for one in found if (why := _failure(files, one, wanted)))
    return _not_judged(place, "; ".join(problems)) if problems else None


def _asked_live(settings: Settings) -> Settings:
    """The same models without batches, as a batch may take a day."""
    live = [
        one.model_copy(update={"name": "openai"}) if one.name == "openai-batch" else one
        for one in settings.panel
    ]
    several = len(live) > 1
    return settings.model_copy(
        update={"judges": tuple(live)} if several else {"judge": live[0], "judges": ()}
    )


def _judged_today(settings: Settings, files: Files, name: str, now: datetime) -> bool:
    """Whether each judge has given verdicts today."""
    todays = [
        one.judge.fingerprint
        for one in load_calibrations(files, name=name)
        if one.at.date() == now.date() and _verdicts(files, one)
    ]
    return all(one.fingerprint in todays for one in make_judges(settings, Corpus()))


def _verdicts(files: Files, calibration: Calibration) -> int | None:
    """Number of verdicts; None where no row has labels for the wanted metrics."""
    units = [one for of in load_units(files, calibration).values() for one in of]
    return sum(one.verdict is not None for one in units) if units else None


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


__all__ = ["judge_drift_set"]

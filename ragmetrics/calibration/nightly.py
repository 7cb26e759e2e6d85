"""The nightly's own calibration: a small labelled set, judged afresh once a day.

It asks what is true of the judge today, so no reply of an earlier day is used; a repetition on the
same day finds the set judged and asks nothing.
"""

from __future__ import annotations

import logging
from datetime import datetime

from ragmetrics.calibration.run import calibrate
from ragmetrics.calibration.sets import set_name
from ragmetrics.calibration.targets import BASES
from ragmetrics.errors import InputError, JudgeError
from ragmetrics.judges import make_judges
from ragmetrics.judges.corpus import Corpus
from ragmetrics.registry import chosen_metrics
from ragmetrics.settings import Settings
from ragmetrics.store.files import Files

log = logging.getLogger(__name__)


def judge_drift_set(settings: Settings, files: Files, now: datetime) -> str | None:
    """Judge the set that the settings name for it, unless it was judged today.

    Return why not, where its judges could not be asked: the night goes on without. A batch judge is
    asked live. Raises InputError for a set that cannot be read, or that no metric of the night can
    be held against.
    """
    place = settings.alerts.drift_set
    if place is None:
        return None
    live = _asked_live(settings)
    wanted = sorted({BASES[one.name] for one in chosen_metrics(live) if one.name in BASES})
    if not wanted:
        raise InputError(
            "alerts: drift_set: none of the metrics that labels are held against is scored: "
            + ", ".join(BASES)
        )
    try:
        if _judged_today(live, files, set_name(place), now):
            return None
        found = calibrate(live, [place], wanted, live.alerts.drift_rows, now, files=files)
    except JudgeError as error:
        return _told(place, str(error))
    problems = [f"{one.judge.name}: {one.refused}" for one in found if one.refused]
    if not any(one.metrics for one in found):
        problems.append(f"it has no labels, or no verdicts, for {', '.join(wanted)}")
    return _told(place, "; ".join(problems)) if problems else None


def _asked_live(settings: Settings) -> Settings:
    """The same models, without batches: those may take a day."""
    live = [
        one.model_copy(update={"name": "openai"}) if one.name == "openai-batch" else one
        for one in settings.panel
    ]
    several = len(live) > 1
    return settings.model_copy(
        update={"judges": tuple(live)} if several else {"judge": live[0], "judges": ()}
    )


def _judged_today(settings: Settings, files: Files, name: str, now: datetime) -> bool:
    kept = [info.path for info in files.below(f"calibrations/set={name}")]
    return all(
        any(_is_of(path, judge.fingerprint, now) for path in kept)
        for judge in make_judges(settings, Corpus())
    )


def _is_of(path: str, judge: str, now: datetime) -> bool:
    return f"/judge={judge}/{now:%Y%m%d}T" in path and path.endswith(".json")


def _told(place: str, reason: str) -> str:
    told = f"labelled set {set_name(place)}, by which judge drift is told: {reason}"
    log.warning("not judged: %s", told)
    return told


__all__ = ["judge_drift_set"]

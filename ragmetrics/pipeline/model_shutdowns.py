"""When the models of judges are shut down, by what their endpoints announce."""

from __future__ import annotations

import logging
from datetime import date

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import RagmetricsError
from ragmetrics.http import run_coroutine
from ragmetrics.rules import shutdown_text

log = logging.getLogger(__name__)


def shutdowns_of(settings: Settings) -> dict[str, date] | None:
    """The days on which the judges' models end, without models for which none is announced.

    None if an endpoint does not say it: many servers have no such list.
    """
    ends: dict[str, date] = {}
    for judge in settings.panel:
        if judge.kind.ends is None:
            continue
        try:
            day = run_coroutine(judge.kind.ends(judge))
        except RagmetricsError as error:
            log.info("when the model %s ends is not known: %s", judge.model, error)
            return None
        ends |= {judge.model: day} if day else {}
    return ends


def ending_of(judge: JudgeSettings, today: date, settings: Settings) -> str:
    """What `doctor` says of a judge whose model ends soon; empty for another one."""
    one = settings.model_copy(update={"judge": judge, "judges": ()})
    return shutdown_text(shutdowns_of(one) or {}, today, settings.alerts)

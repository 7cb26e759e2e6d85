"""Judge shutdown: the endpoint announces that a judge's model ends soon.

Its scores end with it, and those of another model are not comparable. So there is time to choose
the next one, and to let both judge for some nights.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import date

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import RagmetricsError
from ragmetrics.http import run_coroutine
from ragmetrics.records import Finding
from ragmetrics.rules.night_check import Limit, Sample, Tonight, check

_RULE = "the judge's model is not shut down soon"
_DAYS = 60.0
log = logging.getLogger(__name__)


@check(
    "judge_shutdown",
    "the judge's model ends soon",
    order=85,
    needs=(),
    limit=Limit(_DAYS, 0, 365),
    sample=Sample(
        "A judge's model ends",
        _RULE,
        "gpt-4.1-mini is shut down on 2027-01-14, in 56 days: set another `judge: model:` before",
        night={"shutdowns": {"gpt-4.1-mini": "2027-01-14"}},
    ),
)
def judge_shutdown(tonight: Tonight) -> Iterator[Finding]:
    """The endpoint of a judge announces that its model is shut down within 60 days. A warning, with
    a reminder each week.

    No finding where no date is known, or none is near and no alert is open.
    """
    manifest = tonight.manifest
    if manifest.shutdowns is None:
        return
    text = _text(manifest.shutdowns, manifest.date, tonight.limit)
    if text:
        yield tonight.finding("breach", _RULE, text)
    elif tonight.is_open:
        yield tonight.finding("ok", _RULE, "no shutdown of its model is near")


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


def shutdown_of(judge: JudgeSettings, today: date, settings: Settings) -> str:
    """What `doctor` says of a judge whose model ends within the limit of the check; empty for
    another one, and without a limit.
    """
    alone = settings.model_copy(update={"judge": judge, "judges": ()})
    days = judge_shutdown.limit_of(settings.alerts)
    return "" if days is None else _text(shutdowns_of(alone) or {}, today, days)


def _text(ends: Mapping[str, date], today: date, days: float) -> str:
    near = {model: day for model, day in ends.items() if (day - today).days <= days}
    return "; ".join(_words(model, day, (day - today).days) for model, day in near.items())


def _words(model: str, day: date, left: int) -> str:
    if left < 0:
        return f"{model} was shut down on {day}: set another `judge: model:`"
    when = {0: "today", 1: "tomorrow"}.get(left, f"in {left} days")
    return f"{model} is shut down on {day}, {when}: set another `judge: model:` before"

"""Baselines: which nights a drop is measured against, as `versus` of its rule says.

previous      the last night that compares           pinned:RUN  one run of the store, always
trailing:N    the last N of them                     serving     the nights of the build that serves

Of all but a pinned run: nights on which the alert was firing, and those that led to it, are no
measure: a drop that stays must not come to look resolved. Nor are nights with too few rows. A spell
that is merely pending is left out as long as it lasts; it counts again once it is over, for to drop
all poor nights for good would make of the best ones the measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from ragmetrics.alerts.context import Baseline, NightContext
from ragmetrics.alerts.firing_history import MOST_NIGHTS, incident_start, nights_out
from ragmetrics.config import Rule
from ragmetrics.model import Manifest

SERVING_NIGHTS = 7
"""Newest nights of the serving build that speak for it."""


@dataclass(frozen=True)
class NoBaseline:
    """Why there is nothing to compare with."""

    reason: str
    for_good: bool = False
    """Whether no further night will mend it, but the settings have to be changed."""


def find_baseline(rule: Rule, night: NightContext, key: str) -> Baseline | NoBaseline:
    """What tonight is compared with, and the nights of the present spell."""
    comparable = night.comparable(rule.metric)
    start = incident_start(night.earlier, key, rule.for_ - 1) or night.manifest.date
    spell = [one for one in comparable if one.date >= start][-(MOST_NIGHTS - 1) :]
    kind, _, which = rule.versus.partition(":")
    before = usual_nights(night, rule.metric, key, start)
    if kind == "pinned":
        found = _pinned(rule, night, which, spell)
        return found if isinstance(found, NoBaseline) else replace(found, usual=before)
    if not before:
        return NoBaseline("no earlier night by the same judge")
    if kind == "serving":
        return _serving(night, before, spell)
    nights = before[-1 if kind == "previous" else -int(which) :]
    past = [one for one in comparable if one.date < start]
    return Baseline(nights, _label(nights), spell=spell, usual=before, past=past)


def usual_nights(night: NightContext, metric: str, key: str, start: date) -> list[Manifest]:
    """The nights before a spell that compare and on which the alert was not firing."""
    out = nights_out(night.earlier, key)
    return [one for one in night.comparable(metric) if one.date < start and one.date not in out]


def _label(nights: Sequence[Manifest]) -> str:
    return nights[0].date.isoformat() if len(nights) == 1 else f"{len(nights)} nights before"


def _pinned(
    rule: Rule, night: NightContext, run: str, spell: Sequence[Manifest]
) -> Baseline | NoBaseline:
    found = night.find_run(run)
    if found is None:
        return NoBaseline(
            f"no run {run} in the store: `versus: {rule.versus}` needs the name of a run, as in "
            "runs/dt=DATE/run=NAME.json",
            for_good=True,
        )
    if not night.compares(found, rule.metric):
        return NoBaseline(
            f"run {run} of {found.date} was not scored by {rule.metric}, or by another judge, "
            "prompt or metric version: pin a run that was scored as tonight",
            for_good=True,
        )
    return Baseline([found], f"run {run} of {found.date}", spell=spell, fixed=True)


def _serving(
    night: NightContext, before: Sequence[Manifest], spell: Sequence[Manifest]
) -> Baseline | NoBaseline:
    """The build that was promoted last, or that most rows of the newest night name. One that has
    not served any night yet is preceded by the build that it was held against, and in a spell by
    the one that served before it: the builds of a spell's own nights are no measure.
    """
    builds = list(night.serving())
    builds += _most_rows(before) if spell or not builds else []
    if not builds:
        return NoBaseline(
            "nothing says which index build serves: none was promoted by a gate, and no row of "
            "the nights before has an index_build",
            for_good=True,
        )
    for build in builds:
        if served := [one for one in before if build in one.source.index_builds]:
            nights = served[-SERVING_NIGHTS:]
            label = f"index build {build}"
            return Baseline(nights, label, build=build, spell=spell, usual=served)
    return NoBaseline(f"no night of index build {builds[0]} by the same judge")


def _most_rows(before: Sequence[Manifest]) -> list[str]:
    """The build of most rows of the newest night that names any."""
    for one in reversed(before):
        if builds := one.source.index_builds:
            return [max(builds, key=lambda name: builds[name])]
    return []

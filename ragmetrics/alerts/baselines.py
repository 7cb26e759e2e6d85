"""Baselines: the nights that a drop is compared with, as `versus` of its rule says.

previous      the last comparable night              pinned:RUN  always one run of the store
trailing:N    the last N comparable nights           serving     the nights of the serving build

Except for a pinned run, a baseline excludes nights on which the alert was firing, and the pending
nights before: otherwise a lasting drop would look resolved. It excludes nights with too few rows. A
pending incident is excluded while it lasts. Later its nights count again: if all poor nights were
excluded, the best nights would become the baseline.
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
"""Most nights of the serving build in its baseline: the newest ones."""


@dataclass(frozen=True)
class NoBaseline:
    """Why there is nothing to compare with."""

    reason: str
    for_good: bool = False
    """Whether only a change of the settings helps, and no further night."""


def find_baseline(rule: Rule, night: NightContext, key: str) -> Baseline | NoBaseline:
    """The baseline of tonight, with the nights of the current incident."""
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
    """The comparable nights before an incident on which the alert was not firing."""
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
    """The baseline of the serving build: the build promoted last, or that of most rows of the
    newest night.

    Where that build has no comparable night yet, the build that it was compared with is used, and
    during an incident the build in service before it.
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
    """The build of most rows, in the newest night that has a build."""
    for one in reversed(before):
        if builds := one.source.index_builds:
            return [max(builds, key=lambda name: builds[name])]
    return []

"""The input of the alert rules: tonight's scores, those of earlier nights, incidents, baselines.

An incident of an alert is a row of nights on which it was not ok. A night with too few rows does
not count: the alert fires for lack of data, and no drop is known. Such a night neither begins nor
ends an incident.

A baseline is the nights that a drop is compared with, as `versus` of its rule says:

previous      the last comparable night              pinned:RUN  always one run of the store
trailing:N    the last N comparable nights           serving     the nights of the serving build

Where scores go by the day of the week, `previous` is the same day of a week before, and an incident
is judged by tonight alone: its other nights are of other days.

Except for a pinned run, a baseline excludes nights on which the alert was firing, and the pending
nights before: otherwise a lasting drop would look resolved. It excludes nights with too few rows. A
pending incident is excluded while it lasts. Later its nights count again: if all poor nights were
excluded, the best nights would become the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

from ragmetrics.config import Rule
from ragmetrics.records import (
    BUILDS,
    AlertState,
    Drift,
    Finding,
    JudgeMovement,
    Manifest,
    Notification,
    Segment,
)
from ragmetrics.rules.tagged_rows import RowCoder
from ragmetrics.rules.weekly_cycle import goes_by_weekday, may_show_cycle, nights_of_day
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import LevelError, QuestionValues

if TYPE_CHECKING:
    from ragmetrics.passages import IdReader
    from ragmetrics.people import FixedSets


Load: TypeAlias = Callable[[Manifest, str], MetricScores]
"""Reads a metric's scores of an earlier night."""

MOST_NIGHTS = 7
"""Most nights of an incident that are judged together: the newest ones."""
SERVING_NIGHTS = 7
"""Most nights of the serving build in its baseline: the newest ones."""

_NO_CYCLE = ", of any weekday, as no weekly cycle is known yet"


@dataclass(frozen=True)
class Baseline:
    """What a drop is measured from: the rows of some nights, of one index build or of all."""

    nights: Sequence[Manifest]
    label: str = ""
    note: str = ""
    """What it does not take into account, as the end of a phrase."""
    build: str | None = None
    """Only the rows of this index build count; None: all rows."""
    spell: Sequence[Manifest] = ()
    """The nights of the current incident before tonight; they are judged together with it."""
    fixed: bool = False
    """Whether the baseline does not depend on the alert's history."""
    usual: Sequence[Manifest] = ()
    """All nights before the incident on which the alert was not firing."""
    past: Sequence[Manifest] = ()
    """All nights before the incident, including nights on which the alert was firing."""


@dataclass(frozen=True)
class NightContext:
    """The input of the rules: the manifest so far, this night's scores, and the earlier nights.

    `drifts` are the newest drifts of this night's judges, one per labelled set. `find_run` finds a
    run of the store by its name. `serving` lists the index builds promoted to serve this night,
    newest first. Only rules that need these two call them. `fixed_sets` give the judges' levels on
    labelled sets in each night.
    """

    manifest: Manifest
    scores: dict[str, MetricScores]
    earlier: Sequence[Manifest]
    load: Load
    drifts: Sequence[Drift] = ()
    find_run: Callable[[str], Manifest | None] = field(default=lambda _: None)
    serving: Callable[[], Sequence[str]] = field(default=lambda: ())
    fixed_sets: FixedSets | None = None
    ids: IdReader | None = None
    """Reads which contexts a night retrieved."""
    states: Mapping[str, AlertState] = field(default_factory=dict)
    """The states of the alerts before tonight, by their keys: those of the fold over the nights."""
    notified: Mapping[str, Notification] = field(default_factory=dict)
    """The last notification of each firing alert, by the alert's key."""
    history: Sequence[Manifest] = ()
    """The earlier nights further back, for declines over weeks; empty: no more than `earlier`."""
    mix_tags: Sequence[str] | None = None
    """Tags by which nights are compared like with like; None: those that explain the scores."""
    stale: set[str] = field(default_factory=set, init=False, compare=False)
    """Questions of tonight whose labels name documents that no longer exist."""
    baselines: dict[str, Baseline] = field(default_factory=dict, init=False, compare=False)
    """The baseline of each alert's drop, by the alert's key."""
    coder: RowCoder = field(default_factory=RowCoder, init=False, repr=False, compare=False)
    """The rows of nights as numbers."""
    movements: dict[str, JudgeMovement | None] = field(
        default_factory=dict, init=False, compare=False
    )
    """Cached movement of the judge from night to night, by metric."""
    spreads: dict[str, LevelError | None] = field(default_factory=dict, init=False, compare=False)
    """Movement of a night's level beyond its questions, by metric; each drop counts it."""
    _read: dict[tuple[str, str], MetricScores] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def was_firing(self, key: str) -> bool:
        """Whether an alert was firing on the last night that judged it."""
        state = self.states.get(key)
        return state is not None and state.state == state.judged == "firing"

    def incident_start(self, key: str, most: int | None = None) -> date | None:
        """First night of the incident that lasts until tonight; None where there is none.

        A pending incident has at most `most` nights. A firing incident includes the pending nights
        before it. Nights that did not judge the alert do not count.
        """
        state = self.states.get(key)
        if state is None or state.since is None:
            return None
        nights = [
            night.date
            for night in self.earlier
            if night.date >= state.since
            if any(one.key == key and one.level in ("breach", "suspect") for one in night.findings)
        ]
        first = 0 if most is None or state.judged == "firing" else max(0, len(nights) - most)
        return next(iter(nights[first:]), None)

    def comparable(self, metric: str) -> list[Manifest]:
        """The earlier nights that were scored in the same way by the same judge."""
        return [one for one in self.earlier if self.compares(one, metric)]

    def compares(self, one: Manifest, metric: str) -> bool:
        """Whether a run scored the metric in the same way and by the same judge as tonight."""
        now, summary = self.manifest.summary(metric), one.summary(metric)
        return bool(now and summary and summary.scored and summary.fingerprint == now.fingerprint)

    def questions(
        self,
        metric: str,
        segment: Segment | None,
        nights: Sequence[Manifest],
        build: str | None = None,
    ) -> list[QuestionValues]:
        """The values of each question on some nights, for one index build or all."""
        return [self.rows(metric, night, build).by_question(segment) for night in nights]

    def rows(self, metric: str, one: Manifest, build: str | None = None) -> MetricScores:
        """A metric's scores of a night, for one index build or all.

        Each night is read once for all segments of a metric, and cached until the next metric.
        """
        if one.run == self.manifest.run and one.date == self.manifest.date:
            return _of_build(self.scores[metric], build)
        place = f"{one.date}/{one.run}"
        if (metric, place) not in self._read:
            if any(name != metric for name, _ in self._read):
                self._read.clear()
            self._read[metric, place] = self.load(one, metric)
        return _of_build(self._read[metric, place], build)


def _of_build(scores: MetricScores, build: str | None) -> MetricScores:
    if build is None:
        return scores
    table = scores.table
    return replace(scores, table=table[table[BUILDS] == build] if BUILDS in table else table[:0])


def nights_out(earlier: Sequence[Manifest], key: str) -> set[date]:
    """The nights of all firing incidents with their pending nights, and the nights with too few
    rows to judge the alert.
    """
    out, spell = set[date](), list[date]()
    for night, finding in _findings(earlier, key):
        if finding.level == "no_data" and finding.state == "firing":  # nothing judged it
            out.add(night)
            continue
        spell = [*spell, night] if finding.state != "ok" else []
        if finding.state == "firing":
            out.update(one.date for one in earlier if spell[0] <= one.date <= night)
    return out


def _findings(nights: Iterable[Manifest], key: str) -> Iterator[tuple[date, Finding]]:
    for night in nights:
        for finding in night.findings:
            if finding.key == key:
                yield night.date, finding


@dataclass(frozen=True)
class NoBaseline:
    """Why there is nothing to compare with."""

    reason: str
    for_good: bool = False
    """Whether only a change of the settings helps, and no further night."""


def find_baseline(rule: Rule, night: NightContext, key: str) -> Baseline | NoBaseline:
    """The baseline of tonight, with the nights of the current incident."""
    comparable = night.comparable(rule.metric)
    start = night.incident_start(key, rule.for_ - 1) or night.manifest.date
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
    past = [one for one in comparable if one.date < start]
    if kind == "previous":
        return _previous(rule.metric, night, Baseline(before[-1:], usual=before, past=past), spell)
    nights = before[-int(which) :]
    return Baseline(nights, _label(nights), spell=spell, usual=before, past=past)


def _previous(
    metric: str, night: NightContext, last: Baseline, spell: Sequence[Manifest]
) -> Baseline | NoBaseline:
    """The last usual night; where scores go by the day of the week, the last one of tonight's."""
    label, day = _label(last.nights), night.manifest.date
    if not goes_by_weekday(last.past, metric, day):
        note = "" if may_show_cycle(last.past) else _NO_CYCLE
        return replace(last, label=label, note=note, spell=spell)
    same = nights_of_day(last.usual, day)[-1:]
    if not same:
        return NoBaseline(f"scores follow the day of the week, and no {day:%A} is comparable")
    return replace(last, nights=same, label=f"{_label(same)}, the {day:%A} before")


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
            "prompt or metric version: pin a run that was scored in the same way",
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
            "the serving index build is not known: no gate promoted one, and no row of the nights "
            "before has an index_build",
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
    for manifest in reversed(before):
        if builds := manifest.source.index_builds:
            return [max(builds, key=lambda name: builds[name])]
    return []

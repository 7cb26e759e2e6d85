"""What the runs of a store are needed for: `prune` removes no run that something refers to.

rule              the run of `versus: pinned:RUN`, with its rows
rules, pages      the newest nights; the nights of the serving index build
alert             the run of its last message, from which an escalation is measured
label             the night of a labelled row
golden set        the nights whose rows `golden check` reads
learned judge     the runs that its newest version was fitted on
write-back        a night that a tracing tool has not confirmed
run in progress   a run whose files changed in the last day, and the runs that it reuses
gate              the runs of the serving build, of the build before, and of undecided builds
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from ragmetrics.comparison import GATES, find_serving, load_gates
from ragmetrics.config import Settings
from ragmetrics.delivery import load_alerts, waiting
from ragmetrics.errors import InputError
from ragmetrics.people import read_labels
from ragmetrics.pipeline.lost_passages import usual_nights
from ragmetrics.records import Manifest
from ragmetrics.scoring import Staged, load_reuse
from ragmetrics.storage import FileInfo, Files, LearnedJudges, RunRef, Runs

NEEDED_NIGHTS = 90
"""Newest nights whose scores are needed: slow declines are looked for in so many."""
COMPARED_NIGHTS = 60
"""Nights before a night that rules compare it with."""
_ROW_NIGHTS = 15
"""Newest nights whose rows are needed: pages are of 14, and compare each with the night before."""
_SERVING_NIGHTS = 30
"""Newest nights in which a gate looks for the serving build."""
_OF_A_GATE = 7
"""Nights of the serving build that a gate compares with."""
IN_PROGRESS = timedelta(days=1)
"""A run whose files changed within this time may be in progress."""

RUN_FILE = re.compile(
    r"(?P<gate>gates/)?(?P<kind>runs|scores|rows|quarantine)/dt=(?P<day>\d{4}-\d\d-\d\d)/"
    r"run=(?P<run>[^/]+?)(?:\.jsonl?)?(?:/|$)"
)
_PINNED = re.compile(r"pinned:([\w.-]{1,100})")


@dataclass(frozen=True)
class RunKey:
    """A run of a night, or of a gate."""

    night: date
    run: str
    gate: bool = False


@dataclass
class References:
    """Why runs are needed. Of `scores` the rows may still be removed."""

    whole: dict[RunKey, str] = field(default_factory=dict)
    scores: dict[RunKey, str] = field(default_factory=dict)

    def why(self, key: RunKey, *, rows: bool) -> str:
        """Why a run, or its `rows`, must stay; empty where nothing refers to it."""
        return self.whole.get(key, "") or ("" if rows else self.scores.get(key, ""))

    def add(self, keys: Iterable[RunKey], why: str, *, rows: bool = True) -> None:
        """Note why some runs are needed. The first reason counts."""
        for key in keys:
            (self.whole if rows else self.scores).setdefault(key, why)


def run_key(path: str) -> RunKey | None:
    """The run that a file belongs to; None for a file of no run."""
    match = RUN_FILE.match(path)
    if match is None:
        return None
    try:
        day = date.fromisoformat(match["day"])
    except ValueError:  # such as 2026-13-45
        return None
    return RunKey(day, match["run"], gate=bool(match["gate"]))


def find_references(
    settings: Settings, files: Files, listed: Sequence[FileInfo], now: datetime
) -> References:
    """What the runs of a store are needed for.

    Raises InputError where the labels cannot be read, StoreError where the store cannot be read: it
    is then unknown what may be removed.
    """
    references, known = References(), Runs(files).outlines()
    newest = Runs(files).in_full(known[-1:])
    dataset = known[-1].dataset if known else settings.dataset  # the settings may be the defaults
    runs: dict[RunKey, list[FileInfo]] = {}
    for info in listed:
        if key := run_key(info.path):
            runs.setdefault(key, []).append(info)
    references.add(
        _in_progress(files, runs, now), "it changed in the last day, or such a run uses it"
    )
    pinned = _pinned(settings, newest)
    references.add((run for run in runs if run.run in pinned), "a rule pins it")
    references.add(_labelled(settings, known), "labels are of its rows")
    for model in LearnedJudges(files).all():
        references.add(
            (run for run in runs if run.run in model.runs and not run.gate),
            f"the learned judge of {model.judge} was fitted on it",
        )
    references.add((_key(one.night, one.run) for one in waiting(files)), "it waits for write-back")
    references.add(map(_key_of, _rows_of_nights(dataset, files, known)), "nights and gates read it")
    if settings.golden or any(night.settings.get("golden") for night in newest):
        read = known[-COMPARED_NIGHTS - 1 :]
        references.add(map(_key_of, read), "`golden check` reads its rows")
    references.add(map(_key_of, known[-NEEDED_NIGHTS:]), "rules compare with it", rows=False)
    told = [
        state.notified
        for state in load_alerts(files, settings.alerts.remind_days).states.values()
        if state.notified and state.notified.level != "no_data"
    ]
    references.add((_key(one.night, one.run) for one in told), "an alert refers to it", rows=False)
    references.add(_of_gates(dataset, files, runs), "it is of a build that gates compare with")
    _with_current_runs(references, known)
    return references


def _key(night: date, run: str) -> RunKey:
    return RunKey(night, run)


def _key_of(manifest: Manifest) -> RunKey:
    return RunKey(manifest.date, manifest.run)


def _in_progress(
    files: Files, runs: Mapping[RunKey, Sequence[FileInfo]], now: datetime
) -> Iterator[RunKey]:
    """The runs whose files changed in the last day, and the runs whose parts they reuse."""
    since = (now - IN_PROGRESS).timestamp()
    for key, infos in runs.items():
        if all(info.modified is not None and info.modified < since for info in infos):
            continue
        yield key
        if any(info.path.endswith("/reuse.json") for info in infos) and not key.gate:
            ref = RunRef(date=key.night, run=key.run, shards=1)
            yield from (_key(one.ref.date, one.ref.run) for one in load_reuse(files, ref).earlier)


def _pinned(settings: Settings, newest: Sequence[Manifest]) -> set[str]:
    """The names of runs that rules pin: those of the settings, and of the newest night."""
    texts = [rule.versus for rule in settings.alerts.rules or ()]
    texts += [str(night.settings.get("alerts", "")) for night in newest]
    texts += [finding.key for night in newest for finding in night.findings]
    return {name for text in texts for name in _PINNED.findall(text)}


def _labelled(settings: Settings, known: Sequence[Manifest]) -> Iterator[RunKey]:
    """The runs of the nights that labels name."""
    if settings.labels is None:
        if known and known[-1].labels:
            raise InputError(
                "the newest night has labels, and these settings name none: `labels:` says which "
                "nights must stay"
            )
        return
    labels = read_labels(settings)
    if labels.problem:
        raise InputError(
            f"labels {labels.place}: {labels.problem}; they say which nights must stay"
        )
    nights = {label.night for label in labels.labels}
    yield from (_key_of(one) for one in known if one.date in nights)


def _rows_of_nights(dataset: str, files: Files, known: Sequence[Manifest]) -> Iterator[Manifest]:
    """The nights whose rows are read: for pages, lost passages, and gates."""
    yield from known[-_ROW_NIGHTS:]
    yield from usual_nights(known[-COMPARED_NIGHTS:])
    recent = known[-_SERVING_NIGHTS:]
    for build in _serving(dataset, files, known):
        served = [one for one in recent if build in one.source.index_builds]
        yield from served[-_OF_A_GATE:]


def _serving(dataset: str, files: Files, known: Sequence[Manifest]) -> list[str]:
    """The serving build and the one before it, or the builds of the newest night."""
    promoted = find_serving(files, dataset, date.max)
    return promoted or [build for one in known[-1:] for build in one.source.index_builds]


def _of_gates(
    dataset: str, files: Files, runs: Mapping[RunKey, Sequence[FileInfo]]
) -> Iterator[RunKey]:
    """The runs of gates with rows of the serving build, the build before, or an undecided build."""
    keys = [key for key in runs if key.gate]
    if not keys:
        return
    serving = find_serving(files, dataset, date.max)
    gates = [gate for gate in load_gates(files) if gate.build in serving or not gate.is_decided]
    builds = {gate.build for gate in gates}.union(serving)
    places = {place for gate in gates for place in (gate.logs, gate.serving_logs) if place}
    for key in keys:
        staged = Staged.find(files.at(GATES), f"rows/dt={key.night}/run={key.run}")
        source = staged.source if staged else None
        if source and (source.logs in places or not builds.isdisjoint(source.index_builds)):
            yield key


def _with_current_runs(references: References, known: Sequence[Manifest]) -> None:
    """Add the current run of each night that keeps another run: without it, the other one would
    become the current one.
    """
    nights = {key.night for key in (*references.whole, *references.scores) if not key.gate}
    current = (_key_of(one) for one in known if one.date in nights)
    references.add(current, "another run of its night is needed", rows=False)

"""Staging a gate: which build serves, where both builds' rows are, and what they are judged by.

A judge that weighs words by how common they are (the embedded one) would give the same row another
score in another log. So both builds are weighed by the word counts of the serving one: equal rows
get equal scores, and a serving build that was compared before keeps those it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime

from pydantic import Field

from ragmetrics.comparison.build_logs import (
    BuildLog,
    content_of,
    find_build_log,
    find_log,
    same_log,
)
from ragmetrics.comparison.gate.rules import gate_run_settings
from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.judges import Corpus
from ragmetrics.logs import NightInputs
from ragmetrics.model import Gate, IndexBuild, Manifest, Record, Source, is_name
from ragmetrics.scoring import (
    Staged,
    check_prices,
    chosen_metrics,
    judge_info,
    lacks_verdicts,
    load_corpus,
    metric_fingerprints,
    plan_budget,
    plan_run,
    stage_run,
)
from ragmetrics.storage import (
    Files,
    RunRef,
    is_whole,
    load_gate,
    load_gates,
    nights,
    open_store,
    outlines,
    ref_of,
)

NO_NIGHT = date(1970, 1, 1)
"""A gate's run has no day: repeated on another, it finds what is done."""
_LOOKED_THROUGH = 30
_NIGHTS = 7
_MOST_ATTEMPTS = 10


class BuildSide(Record):
    """One of the two builds that a gate compares, and where its scores are or will be."""

    build: str
    logs: str
    """Where its rows are read: a place, or nights."""
    staged: Staged | None = None
    """Its run in STORE/gates, from its log."""
    nights: list[RunRef] = Field(default_factory=list)
    """The nights whose rows of this build speak for it, where it has no log."""


class StagedGate(Record):
    """What staging found: small enough to pass between tasks."""

    build: IndexBuild
    serving: str | None
    """The build that serves, as the event says or as was found out."""
    now: BuildSide
    """The new build."""
    before: BuildSide | None = None
    """The build that serves, where it has a log or nights."""
    content: str = ""
    """Digest of the new build's log; none where there is no log."""
    problems: list[str] = Field(default_factory=list)
    """Why there is nothing to compare."""
    started_at: datetime

    @property
    def runs(self) -> list[Staged]:
        """The runs to be scored, the serving build's first; none where nothing can be compared."""
        sides = [] if self.problems else [self.before, self.now]
        return [side.staged for side in sides if side and side.staged]


def stage_gate(settings: Settings, build: IndexBuild) -> StagedGate:
    """Find both builds' logs and stage them as runs, or find the runs as they were staged.

    A log that is not there or cannot be read is no error but a problem of the gate, which then
    decides nothing. Raises InputError for a build of another data set or a rule that cannot be
    held or a name that is taken, JudgeRefused for a judge without its key, a transient StoreError.
    """
    check_dataset(settings, build)
    started_at = datetime.now(UTC)
    run = gate_run_settings(settings)
    check_prices(run)
    ours = find_log(settings, build.logs or settings.gate.logs, build.build)
    known, content = _known(settings, build), content_of(ours)
    serving = build.serving or (known.serving if known and known.content == content else None)
    serving = serving or _find_serving(settings, build.build)
    before, lacking = _stage_before(settings, run, serving)
    problems = [f"build {build.build}: {ours.problem}"] if ours.problem else []
    problems += [lacking] if lacking else _troubles(before)
    now = BuildSide(build=build.build, logs=ours.place)
    if before and not problems and ours.inputs:
        now = _stage(settings, run, build.build, ours, *_reference_corpus(settings, run, before))
        problems += [*_troubles(now), *_same_log(settings, ours, before)]
    return StagedGate(
        build=build,
        serving=serving,
        now=now,
        before=before,
        content=content,
        problems=problems,
        started_at=started_at,
    )


def check_dataset(settings: Settings, build: IndexBuild) -> None:
    """Raise InputError for a build of another data set: its questions are other ones."""
    if build.dataset != settings.dataset:
        raise InputError(
            f"build {build.build} is of the data set {build.dataset}, and the settings are of "
            f"{settings.dataset}"
        )


def _known(settings: Settings, build: IndexBuild) -> Gate | None:
    """What was decided on a build. Announced again with the same log, it is held against the same
    build: else a late repeat would be judged by its successors, and an old one would serve again.

    Raises InputError where the store has a verdict of that name on another data set.
    """
    known = load_gate(open_store(settings), build.build)
    if known and known.dataset != build.dataset:
        raise InputError(
            f"the store has a verdict on build {build.build} of the data set {known.dataset}: give "
            f"{build.dataset} a store of its own, or the build another name"
        )
    return known if known and known.is_decided else None


def _find_serving(settings: Settings, build: str) -> str | None:
    """The build that was promoted last, or that most rows of the newest night name; not this."""
    files = open_store(settings)
    for gate in load_gates(files):
        if (gate.verdict, gate.dataset) == ("promote", settings.dataset) and gate.build != build:
            return gate.build
    named = [name for night in nights(files, last=1) for name in night.source.index_builds]
    return next((name for name in named if name != build and is_name(name)), None)


def _stage_before(
    settings: Settings, run: Settings, serving: str | None
) -> tuple[BuildSide | None, str]:
    """The serving build's run from its log, or the nights that it served; else why neither."""
    if serving is None:
        return None, (
            "nothing says which build serves: name it, by `serving` in the event or --against"
        )
    found = find_build_log(settings, serving)
    if found.inputs:
        return _stage(settings, run, serving, found), ""
    if by_nights := find_build_nights(settings, run, serving):
        return by_nights, ""
    return None, (
        f"serving build {serving}: {found.problem}, and no night has rows of it that were judged "
        "in the same way"
    )


def _stage(
    settings: Settings,
    run: Settings,
    build: str,
    found: BuildLog,
    yardstick: str = "",
    weighed_by: Corpus | None = None,
) -> BuildSide:
    """Stage a build's log as a run, and decide what of it a budget lets be judged."""
    if found.inputs is None:
        raise InputError(found.problem)
    info, embedder = judge_info(run)
    judged_by = "/".join([info.fingerprint, embedder, found.place, yardstick])
    ref = _plan(run, found.inputs, judged_by)
    of_log = run.model_copy(update={"logs": found.place})
    staged = stage_run(of_log, ref, found.inputs, datetime.now(UTC), weighed_by)
    plan_budget(run, open_store(run), ref, open_store(settings))
    return BuildSide(build=build, logs=found.place, staged=staged)


def _plan(run: Settings, inputs: NightInputs, judged_by: str) -> RunRef:
    """The run of a log: the first, or where the judge failed on rows of that one the next, which
    asks for them again; its other answers are in the store.
    """
    files, ref = open_store(run), plan_run(run, NO_NIGHT, inputs, judged_by)
    for attempt in range(2, _MOST_ATTEMPTS + 1):
        if not _ended_short(run, files, ref):
            break
        ref = plan_run(run, NO_NIGHT, inputs, f"{judged_by}/attempt {attempt}")
    return ref


def _ended_short(run: Settings, files: Files, ref: RunRef) -> bool:
    """Whether a run was scored to its end, and rows of it have no verdict."""
    names = [metric.name for metric in chosen_metrics(run)]
    paths = [ref.scores(name, shard) for name in names for shard in range(ref.shards)]
    ended = all(is_whole(files, path) for path in paths)
    return ended and any(lacks_verdicts(files, path) for path in paths)


def _reference_corpus(
    settings: Settings, run: Settings, before: BuildSide
) -> tuple[str, Corpus | None]:
    """By whose word counts the new build is weighed, and the counts; none where nobody weighs."""
    if not run.reads_corpus:
        return "", None
    files, ref = _newest(settings, run, before)
    return f"weighed by {ref.date}/{ref.run}", load_corpus(files, ref)


def _newest(settings: Settings, run: Settings, side: BuildSide) -> tuple[Files, RunRef]:
    if side.staged:
        return open_store(run), side.staged.ref
    return open_store(settings), side.nights[0]


def _judged_alike(night: Manifest, prints: Mapping[str, str]) -> bool:
    """Whether what a night scored of these metrics, and that is something, can be compared."""
    scored = [one for one in night.metrics if one.metric in prints and one.scored]
    return bool(scored) and all(one.fingerprint == prints[one.metric] for one in scored)


def _troubles(side: BuildSide | None) -> list[str]:
    """Why a staged log is no evidence of its build."""
    if side is None or side.staged is None:
        return []
    source = side.staged.source
    if source.problem:
        return [f"build {side.build}: {source.problem}{_most_frequent(source)}"]
    others = {name: rows for name, rows in source.index_builds.items() if name != side.build}
    if others:
        name, rows = max(others.items(), key=lambda item: item[1])
        return [
            f"build {side.build}: {rows:,} of the {source.rows:,} rows at {side.logs} say that "
            f"they are of build {name}"
        ]
    return []


def _most_frequent(source: Source) -> str:
    if source.broken:
        return f"; {source.broken[0].file}: {source.broken[0].reason}"
    for what, counts in (("quarantined", source.reasons), ("skipped", source.skipped)):
        if counts:
            reason, count = next(iter(counts.items()))
            return f"; {sum(counts.values()):,} {what}, most often: {reason} ({count:,})"
    return ""


def _same_log(settings: Settings, ours: BuildLog, before: BuildSide) -> list[str]:
    return same_log(settings, ours, before.logs) if before.staged else []


def find_build_nights(settings: Settings, run: Settings, build: str) -> BuildSide | None:
    """The newest nights with rows of a build that were judged as `run` says; of a judge that
    weighs words one night alone, as each has its own counts.
    """
    files, prints = open_store(settings), metric_fingerprints(run)
    found = [
        night
        for night in reversed(outlines(files, last=_LOOKED_THROUGH))
        if build in night.source.index_builds and _judged_alike(night, prints)
    ]
    if run.reads_corpus:
        counted = (one for one in found if files.exists(f"{ref_of(one).folder('rows')}/corpus.bin"))
        found = [one for one in [next(counted, None)] if one]
    found = found[:_NIGHTS]
    if not found:
        return None
    first, last = found[-1].date, found[0].date
    when = f"night {last}" if first == last else f"nights {first} to {last}"
    return BuildSide(build=build, logs=when, nights=[ref_of(one) for one in found])

"""Stages a gate: its rules, the serving build, both builds' rows, and their planned runs.

A judge that weights words by frequency (the lexical judge) would score the same row differently in
another log. So both builds use the word counts of the serving build: equal rows get equal scores,
and a serving build that was compared before keeps its scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from itertools import islice

from pydantic import Field

from ragmetrics.comparison.gate.build_logs import (
    BuildLog,
    check_announced,
    check_dataset,
    content_of,
    find_build_log,
    find_log,
    same_log,
)
from ragmetrics.comparison.gate.store import GATES, load_gate, load_gates
from ragmetrics.config import GateRule, Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.judges import Corpus
from ragmetrics.logs import NightInputs
from ragmetrics.records import Gate, IndexBuild, Manifest, Record, Source, across_change, is_name
from ragmetrics.scoring import (
    Staged,
    check_judging,
    choose_rows,
    chosen_metrics,
    corpus_of,
    judge_info,
    lacks_verdicts,
    metric_fingerprints,
    plan_run,
    scoring_only,
    stage_run,
    stored_bridge,
)
from ragmetrics.storage import Files, RunRef, Runs, StoredPart, open_store

NO_NIGHT = date(1970, 1, 1)
"""The date of a gate's run. It is constant, so a repeat on another day finds finished parts."""
_SEARCHED_NIGHTS = 30
_NIGHTS = 7
_MOST_ATTEMPTS = 10
DEFAULT_RULES = (GateRule(metric="context_relevance"), GateRule(metric="context_recall"))


class BuildSide(Record):
    """One of the two builds that a gate compares, and the place of its scores."""

    build: str
    logs: str
    """Where its rows come from: a place of logs, or nights."""
    staged: Staged | None = None
    """Its run in STORE/gates, made from its log."""
    nights: list[RunRef] = Field(default_factory=list)
    """The nights with rows of this build, where it has no log."""
    is_log: bool = False
    """Whether two logs are compared, and no builds: the log stands for itself."""

    @property
    def title(self) -> str:
        """What it is called in sentences."""
        return self.logs if self.is_log else f"build {self.build}"

    @property
    def source(self) -> Source | None:
        """The source of its log's rows; None where it has no log."""
        return self.staged.source if self.staged else None


class StagedGate(Record):
    """The result of staging, small enough to pass between tasks."""

    build: IndexBuild
    serving: str | None
    """The serving build, from the event or from the store."""
    now: BuildSide
    """The new build."""
    before: BuildSide | None = None
    """The serving build, where it has a log or nights."""
    content: str = ""
    """Digest of the new build's log; empty where there is no log."""
    problems: list[str] = Field(default_factory=list)
    """Why there is nothing to compare."""
    started_at: datetime

    @property
    def runs(self) -> list[Staged]:
        """The runs to score, the serving build's first; none where nothing can be compared."""
        sides = [] if self.problems else [self.before, self.now]
        return [side.staged for side in sides if side and side.staged]


def stage_gate(
    settings: Settings, build: IndexBuild, *, announced: bool = False, before: str | None = None
) -> StagedGate:
    """Find both builds' logs and stage them as runs, or find the runs staged before.

    `announced`: by an event, whose logs have to lie below the folder of `gate: logs:`. `before`:
    the log that is compared with `build.logs`, where two logs are compared and no builds.

    A missing or unreadable log is a problem of the gate and no error; the gate is then
    inconclusive. Raises InputError for a build of another data set, a place where an event's log
    may not be, an invalid rule, or a name that is taken; JudgeRefused for a judge without its key;
    a transient StoreError.
    """
    check_dataset(settings, build)
    if announced:
        check_announced(settings, build)
    started_at = datetime.now(UTC)
    run = gate_run_settings(settings)
    check_judging(run)
    ours = find_log(settings, build.logs or settings.gate.logs, build.build)
    known, content = _known(settings, build), content_of(ours)
    serving = build.serving or (known.serving if known and known.content == content else None)
    serving = serving or _find_serving(settings, build.build)
    old, lacking = _stage_before(settings, run, serving, announced, before)
    now = BuildSide(build=build.build, logs=ours.place, is_log=before is not None)
    problems = [f"{now.title}: {ours.problem}"] if ours.problem else []
    problems += [lacking] if lacking else _troubles(old)
    if old and not problems and ours.inputs:
        weighed_by = _reference_corpus(settings, run, old)
        staged = _stage(settings, run, ours, *weighed_by)
        now = now.model_copy(update={"staged": staged})
        problems += _troubles(now)
        problems += same_log(settings, ours, old.logs) if old.staged else []
    return StagedGate(
        build=build,
        serving=serving,
        now=now,
        before=old,
        content=content,
        problems=problems,
        started_at=started_at,
    )


def _known(settings: Settings, build: IndexBuild) -> Gate | None:
    """The stored verdict on a build. If the build is announced again with the same log, it is
    compared with the same serving build. Otherwise a late repeat would be compared with its
    successors, and an old build would serve again.

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
    """Of the promoted builds the one made last, or the first build of the newest night; never
    `build` itself.
    """
    files = open_store(settings)
    for gate in load_gates(files):
        if (gate.verdict, gate.dataset) == ("promote", settings.dataset) and gate.build != build:
            return gate.build
    named = [name for night in Runs(files).nights(last=1) for name in night.source.index_builds]
    return next((name for name in named if name != build and is_name(name)), None)


def _stage_before(
    settings: Settings, run: Settings, serving: str | None, announced: bool, log: str | None
) -> tuple[BuildSide | None, str]:
    """The serving build's run from its log, or the nights that it served; else the problem.

    `log` is a log that is compared for itself.
    """
    if serving is None:
        return None, (
            "the serving build is not known: name it, by `serving` in the event or --against"
        )
    if log:
        found = find_log(settings, log, serving)
    else:
        found = find_build_log(settings, serving, announced=announced)
    if found.inputs:
        staged, is_log = _stage(settings, run, found), log is not None
        return BuildSide(build=serving, logs=found.place, staged=staged, is_log=is_log), ""
    if log:
        return None, f"{log}: {found.problem}"
    if by_nights := find_build_nights(settings, run, serving):
        return by_nights, ""
    bridge = stored_bridge(open_store(settings))
    return None, (
        f"serving build {serving}: {found.problem}, and no night has rows of it that were judged "
        f"in the same way{bridge.broken if bridge else ''}"
    )


def _stage(
    settings: Settings,
    run: Settings,
    found: BuildLog,
    yardstick: str = "",
    weighed_by: Corpus | None = None,
) -> Staged:
    """Stage a build's log as a run, and plan its budget."""
    if found.inputs is None:
        raise InputError(found.problem)
    info, embedder = judge_info(run)
    judged_by = "/".join([info.identity, embedder, found.place, yardstick])
    ref = _plan(run, found.inputs, judged_by)
    of_log = run.model_copy(update={"logs": found.place})
    staged = stage_run(of_log, ref, found.inputs, datetime.now(UTC), weighed_by)
    choose_rows(run, ref, open_store(settings))
    return staged


def _plan(run: Settings, inputs: NightInputs, judged_by: str) -> RunRef:
    """The run of a log. Where the judge failed on rows of a run, the next attempt is a new run,
    which requests them again and finds the other answers in the store.
    """
    files, ref = open_store(run), plan_run(run, NO_NIGHT, inputs, judged_by)
    for attempt in range(2, _MOST_ATTEMPTS + 1):
        if not _ended_short(run, files, ref):
            break
        ref = plan_run(run, NO_NIGHT, inputs, f"{judged_by}/attempt {attempt}")
    return ref


def _ended_short(run: Settings, files: Files, ref: RunRef) -> bool:
    """Whether a run is complete, and rows of it have no verdict."""
    names = [metric.name for metric in chosen_metrics(run)]
    paths = [ref.scores(name, shard) for name in names for shard in range(ref.shards)]
    ended = all(StoredPart(files, path).is_whole() for path in paths)
    return ended and any(lacks_verdicts(files, path) for path in paths)


def _reference_corpus(
    settings: Settings, run: Settings, before: BuildSide
) -> tuple[str, Corpus | None]:
    """The word counts for the new build, with the name of their run; none where no judge needs
    them.
    """
    if not run.reads_corpus:
        return "", None
    files = open_store(run if before.staged else settings)
    ref = before.staged.ref if before.staged else before.nights[0]
    corpus = corpus_of(files, ref)
    if corpus is None:
        raise StoreError(f"{files.uri(ref.folder('rows'))}: the rows of the serving build are gone")
    return f"weighed by {ref.date}/{ref.run}", corpus


def _judged_alike(night: Manifest, prints: Mapping[str, str]) -> bool:
    """Whether a night has scores in some of these metrics, and all of them are comparable."""
    scored = [metric for metric in night.metrics if metric.metric in prints and metric.scored]
    return bool(scored) and all(one.fingerprint == prints[one.metric] for one in scored)


def _troubles(side: BuildSide | None) -> list[str]:
    """Why a staged log cannot represent its build."""
    source = side.source if side else None
    if side is None or source is None:
        return []
    if source.problem:
        return [f"{side.title}: {source.problem}{_most_frequent(source)}"]
    others = {name: rows for name, rows in source.index_builds.items() if name != side.build}
    if others and not side.is_log:
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


def find_build_nights(settings: Settings, run: Settings, build: str) -> BuildSide | None:
    """The newest nights with rows of a build that were judged with the settings `run`. For a judge
    that uses word counts it is one night, as each night has its own counts.
    """
    files, prints = open_store(settings), metric_fingerprints(run)
    nights = across_change(Runs(files).outlines(last=_SEARCHED_NIGHTS), stored_bridge(files))
    found = [
        night
        for night in reversed(nights)
        if build in night.source.index_builds and _judged_alike(night, prints)
    ]
    if run.reads_corpus:
        counted = (night for night in found if corpus_of(files, RunRef.of(night)) is not None)
        found = list(islice(counted, 1))
    found = found[:_NIGHTS]
    if not found:
        return None
    first, last = found[-1].date, found[0].date
    when = f"night {last}" if first == last else f"nights {first} to {last}"
    return BuildSide(build=build, logs=when, nights=[RunRef.of(one) for one in found])


def gate_rules(settings: Settings) -> tuple[GateRule, ...]:
    """The rules of the settings, or the default ones whose metrics are scored.

    Raises InputError for a rule on a metric that is not scored, or in which lower is better, and
    for a limit that no drop can reach.
    """
    scored = {metric.name: metric for metric in chosen_metrics(settings)}
    if settings.gate.rules is None:
        rules = tuple(rule for rule in DEFAULT_RULES if rule.metric in scored)
        if not rules:
            raise InputError(
                "gate: rules: name a metric, as neither context_relevance nor context_recall is "
                f"scored; scored are: {', '.join(scored)}"
            )
        return rules
    for rule in settings.gate.rules:
        if rule.metric not in scored:
            raise InputError(
                f"gate: rules: {rule.metric!r} is not scored; scored are: {', '.join(scored)}"
            )
        if not scored[rule.metric].higher_is_better:
            raise InputError(
                f"gate: rules: in {rule.metric!r} lower is better, or neither, and a gate decides "
                "by metrics in which higher is"
            )
        scored[rule.metric].check_limit(rule.max_drop, "gate")
    return settings.gate.rules


def gate_run_settings(settings: Settings) -> Settings:
    """The settings of a gate's runs: store STORE/gates, the rules' metrics, all rows.

    Judge replies stay in the main store: pass that as `kept`.
    """
    store = open_store(settings).at(GATES).root
    named = settings.model_copy(update={"store": store, "sample": None})
    return scoring_only(named, {rule.metric for rule in gate_rules(settings)})

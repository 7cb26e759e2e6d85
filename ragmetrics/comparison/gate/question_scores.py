"""Evidence: both builds' scores by question, what of them can be compared, and what fell."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean

from ragmetrics.calibration import carried_movement, is_of_one_day, level_error, newest_movement
from ragmetrics.comparison.gate.staging import BuildSide
from ragmetrics.comparison.gate.verdict import VerdictEvidence, measure
from ragmetrics.config import GateRule, Settings
from ragmetrics.model import JudgeMovement, Manifest, Status, Usage, WorseQuestion
from ragmetrics.scoring import MetricScores, summarise_run
from ragmetrics.storage import (
    Files,
    RunRef,
    find_manifest,
    open_store,
    outlines,
    read_columns,
    scored_rows,
)

MOST_FALLEN = 10
"""Questions shown per metric."""
_ABSENT = "absent"
_LOOKED_THROUGH = 30


@dataclass(frozen=True)
class Answers:
    """One metric's scores of one build by question."""

    values: dict[str, list[float]] = field(default_factory=dict)
    """Of the rows that have one."""
    states: dict[str, str] = field(default_factory=dict)
    """Of each question a row's status, a scored one's before all others."""

    def add(self, question: str, value: float | None, status: str) -> None:
        """Note the score of one row."""
        if status == Status.SCORED.value and value is not None:
            self.values.setdefault(question, []).append(value)
            self.states[question] = status
        else:
            self.states.setdefault(question, status)

    @property
    def applicable(self) -> set[str]:
        """The questions that the metric can be asked about."""
        return {q for q, state in self.states.items() if state != Status.NOT_APPLICABLE.value}

    @property
    def passed_over(self) -> set[str]:
        """The questions that a budget left out: those that are asked are a sample."""
        return {q for q, state in self.states.items() if state == Status.OVER_BUDGET.value}


@dataclass(frozen=True)
class SideScores:
    """What became of one build's rows."""

    answers: Mapping[str, Answers]
    """By metric."""
    manifest: Manifest | None = None
    tables: Mapping[str, MetricScores] = field(default_factory=dict)
    nights: Sequence[Manifest] = ()
    """The runs by which its rows were judged."""

    @property
    def usage(self) -> Usage:
        """What its rows were judged for; those of nights, for nothing more."""
        return self.manifest.usage if self.manifest else Usage()

    @property
    def problems(self) -> list[str]:
        """Why some of it could not be scored."""
        return self.manifest.problems if self.manifest else []


def load_side(
    settings: Settings, run: Settings, side: BuildSide, metrics: Sequence[str], now: datetime
) -> SideScores:
    """The scores of a build: those of its run, or those of the nights that it served."""
    if side.staged is None:
        files = open_store(settings)
        nights = [night for ref in side.nights if (night := find_manifest(files, ref))]
        return SideScores({one: _of_nights(files, side, one) for one in metrics}, nights=nights)
    manifest, tables = summarise_run(run, open_store(run), side.staged, now)
    answers = {name: Answers() for name in metrics}
    for name, scores in tables.items():
        columns = (scores.table[column] for column in ("question", "value", "status"))
        for question, value, status in zip(*columns, strict=True):
            answers[name].add(question, value, status)
    return SideScores(answers, manifest, tables, [manifest])


def find_movements(
    settings: Settings, fingerprints: Mapping[str, str]
) -> dict[str, JudgeMovement | None]:
    """How far the judge moves from night to night, by metric, as the newest nights of the store say
    that were scored in the same way.
    """
    nights = outlines(open_store(settings), last=_LOOKED_THROUGH)
    return {
        metric: newest_movement(
            metric,
            [one for one in nights if (own := one.summary(metric)) and own.fingerprint == known],
        )
        for metric, known in fingerprints.items()
    }


def _of_nights(files: Files, side: BuildSide, metric: str) -> Answers:
    answers = Answers()
    for ref in side.nights:
        for shard in range(ref.shards):
            for question, value, status, build in _score_records(files, ref, metric, shard):
                if build == side.build:
                    answers.add(question, value, status)
    return answers


def _score_records(
    files: Files, ref: RunRef, metric: str, shard: int
) -> Iterable[tuple[str, float | None, str, str | None]]:
    """Question, value, status and build of each row; none where the night lacks the part."""
    path = ref.scores(metric, shard)
    if not files.exists(path):
        return ()
    names = ["question", "value", "status", "index_build"]
    table = read_columns(files, path, names)
    return zip(*(table[name].to_pylist() for name in names), strict=True)


@dataclass(frozen=True)
class Compared:
    """All that a gate's verdict rests on."""

    evidence: list[VerdictEvidence]
    left_out: list[str]
    """Metrics of default rules that the serving build has nothing to be scored by."""
    missing: dict[str, str]
    """Questions of the serving build that could not be compared, and why."""

    @property
    def missing_why(self) -> dict[str, int]:
        """How many for each reason."""
        return dict(Counter(self.missing.values()).most_common())


def compare_sides(
    rules: Sequence[GateRule],
    before: SideScores,
    now: SideScores,
    fingerprints: Mapping[str, str],
    *,
    by_default: bool,
    whole: bool,
    golden: Set[str] = frozenset(),
    movements: Mapping[str, JudgeMovement | None] | None = None,
) -> Compared:
    """Compare two builds by each rule's metric.

    `by_default`: the rules are the default ones, each of which is held only where it can be.
    `whole`: all questions of the serving build should be in the new one's log. Those of nights
    need not, save the `golden` ones; of the others only those that both have are looked at.
    `movements` say how far the judge moves from night to night.
    """
    evidence: list[VerdictEvidence] = []
    left_out: list[str] = []
    missing: dict[str, str] = {}
    for rule in rules:
        old, new = before.answers[rule.metric], now.answers[rule.metric]
        if by_default and not old.applicable:
            left_out.append(rule.metric)
            continue
        asked = old.applicable - old.passed_over - new.passed_over
        asked = asked if whole else asked & (new.states.keys() | golden)
        lacking = {q: why for q in sorted(asked) if (why := _why_missing(old, new, q))}
        missing = lacking | missing
        moves = _movement(rule.metric, before, now, movements or {})
        level = level_error(moves, rule.metric, before.nights, now.nights)
        evidence.append(
            VerdictEvidence(
                rule.metric,
                measure(old.values, new.values, level),
                rule.max_drop,
                len(asked),
                len(lacking),
                fingerprints[rule.metric],
                moves,
            )
        )
    return Compared(evidence, left_out, missing)


def _movement(
    metric: str,
    before: SideScores,
    now: SideScores,
    movements: Mapping[str, JudgeMovement | None],
) -> JudgeMovement | None:
    """How far the judge moves, where the builds were judged on different days, or by verdicts of
    different days as far as anybody knows: those that a run finds in the store may be its own, of
    an attempt that died.
    """
    if not (before.nights and now.nights and carried_movement(metric, before.nights, now.nights)):
        return None
    if known := movements.get(metric):
        return known
    return None if is_of_one_day(before.nights, now.nights) else JudgeMovement(sd=None, nights=0)


def _why_missing(old: Answers, new: Answers, question: str) -> str | None:
    """Why a question of the serving build cannot be compared; None where it can."""
    if question not in new.states:
        return _ABSENT
    if question not in new.values:
        return new.states[question]
    return None if question in old.values else f"{old.states[question]} in the serving build"


def find_fallen(
    files: Files, ref: RunRef, metrics: Sequence[str], before: SideScores, now: SideScores
) -> list[WorseQuestion]:
    """The questions that fell furthest, by metric, with the new build's rows."""
    worst = [
        (metric, question, drop)
        for metric in metrics
        for question, drop in _fallen(before.answers[metric].values, now.answers[metric].values)
    ]
    places = {metric: _places(now.tables[metric]) for metric in metrics}
    wanted: dict[int, set[int]] = {}
    for metric, question, _ in worst:
        shard, position = places[metric][question]
        wanted.setdefault(shard, set()).add(position)
    rows = scored_rows(files, ref, [], wanted)
    return [
        WorseQuestion(
            metric=metric,
            user_input=rows[places[metric][question]].row.user_input,
            id=rows[places[metric][question]].row.id,
            before=fmean(before.answers[metric].values[question]),
            after=fmean(now.answers[metric].values[question]),
        )
        for metric, question, _ in worst
    ]


def _fallen(
    before: Mapping[str, Sequence[float]], now: Mapping[str, Sequence[float]]
) -> list[tuple[str, float]]:
    drops = ((q, fmean(before[q]) - fmean(now[q])) for q in before.keys() & now.keys())
    fell = ((q, drop) for q, drop in drops if drop > 0)
    return heapq.nsmallest(MOST_FALLEN, fell, key=lambda one: (-one[1], one[0]))


def _places(scores: MetricScores) -> dict[str, tuple[int, int]]:
    """Where each question's first scored row stands: shard and position."""
    found: dict[str, tuple[int, int]] = {}
    columns = (scores.scored[name] for name in ("question", "shard", "position"))
    for question, shard, position in zip(*columns, strict=True):
        found.setdefault(question, (int(shard), int(position)))
    return found

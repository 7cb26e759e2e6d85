"""Both builds' scores by question, the questions that can be compared, and those that got worse."""

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
_SEARCHED_NIGHTS = 30


@dataclass(frozen=True)
class Answers:
    """One metric's scores of one build by question."""

    values: dict[str, list[float]] = field(default_factory=dict)
    """Values of the scored rows, by question."""
    states: dict[str, str] = field(default_factory=dict)
    """Status of each question: `scored` where a row is scored, else the first row's status."""

    def add(self, question: str, value: float | None, status: str) -> None:
        """Add the score of one row."""
        if status == Status.SCORED.value and value is not None:
            self.values.setdefault(question, []).append(value)
            self.states[question] = status
        else:
            self.states.setdefault(question, status)

    @property
    def applicable(self) -> set[str]:
        """The questions that the metric applies to."""
        return {q for q, state in self.states.items() if state != Status.NOT_APPLICABLE.value}

    @property
    def over_budget(self) -> set[str]:
        """The questions that a budget left out."""
        return {q for q, state in self.states.items() if state == Status.OVER_BUDGET.value}


@dataclass(frozen=True)
class SideScores:
    """The scores of one build."""

    answers: Mapping[str, Answers]
    """Scores by metric and question."""
    manifest: Manifest | None = None
    tables: Mapping[str, MetricScores] = field(default_factory=dict)
    nights: Sequence[Manifest] = ()
    """The runs that judged its rows."""

    @property
    def usage(self) -> Usage:
        """Usage of the gate's run; none where the scores come from nights."""
        return self.manifest.usage if self.manifest else Usage()

    @property
    def problems(self) -> list[str]:
        """Why parts could not be scored."""
        return self.manifest.problems if self.manifest else []


def load_side(
    settings: Settings, run: Settings, side: BuildSide, metrics: Sequence[str], now: datetime
) -> SideScores:
    """The scores of a build: from its run, or from the nights that it served."""
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
    """The judge's movement from night to night, by metric, from the newest stored nights that were
    scored in the same way.
    """
    nights = outlines(open_store(settings), last=_SEARCHED_NIGHTS)
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
    """Question, value, status and build of each row; empty where the night lacks the part."""
    path = ref.scores(metric, shard)
    if not files.exists(path):
        return ()
    names = ["question", "value", "status", "index_build"]
    table = read_columns(files, path, names)
    return zip(*(table[name].to_pylist() for name in names), strict=True)


@dataclass(frozen=True)
class Compared:
    """The evidence of a gate's verdict."""

    evidence: list[VerdictEvidence]
    left_out: list[str]
    """Metrics of default rules that do not apply to the serving build."""
    missing: dict[str, str]
    """Questions of the serving build that could not be compared, with the reason."""

    @property
    def missing_why(self) -> dict[str, int]:
        """Count of missing questions by reason."""
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

    `by_default`: these are the default rules, which apply only where they can.
    `whole`: all questions of the serving build should be in the new build's log. Where the serving
    build's questions come from nights, only the `golden` ones should; other questions count only
    where both builds have them. `movements` give the judge's movement from night to night.
    """
    evidence: list[VerdictEvidence] = []
    left_out: list[str] = []
    missing: dict[str, str] = {}
    for rule in rules:
        old, new = before.answers[rule.metric], now.answers[rule.metric]
        if by_default and not old.applicable:
            left_out.append(rule.metric)
            continue
        asked = old.applicable - old.over_budget - new.over_budget
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
    """The judge's movement, where the builds may have verdicts of different days.

    Cached verdicts of a run may be its own, from an attempt that died.
    """
    if not (before.nights and now.nights and carried_movement(metric, before.nights, now.nights)):
        return None
    if known := movements.get(metric):
        return known
    return None if is_of_one_day(before.nights, now.nights) else JudgeMovement(sd=None, nights=0)


def _why_missing(old: Answers, new: Answers, question: str) -> str | None:
    """The reason why a question of the serving build cannot be compared; None where it can."""
    if question not in new.states:
        return _ABSENT
    if question not in new.values:
        return new.states[question]
    return None if question in old.values else f"{old.states[question]} in the serving build"


def find_fallen(
    files: Files, ref: RunRef, metrics: Sequence[str], before: SideScores, now: SideScores
) -> list[WorseQuestion]:
    """The questions with the largest drops, by metric, with the new build's rows."""
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
    worse = ((q, drop) for q, drop in drops if drop > 0)
    return heapq.nsmallest(MOST_FALLEN, worse, key=lambda one: (-one[1], one[0]))


def _places(scores: MetricScores) -> dict[str, tuple[int, int]]:
    """Shard and position of each question's first scored row."""
    found: dict[str, tuple[int, int]] = {}
    columns = (scores.scored[name] for name in ("question", "shard", "position"))
    for question, shard, position in zip(*columns, strict=True):
        found.setdefault(question, (int(shard), int(position)))
    return found

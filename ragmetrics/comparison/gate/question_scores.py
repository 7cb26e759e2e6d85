"""Both builds' scores by question: what can be compared, what got worse, and golden questions."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from statistics import fmean

from ragmetrics.comparison.gate.measured_drop import measure
from ragmetrics.comparison.gate.staging import BuildSide
from ragmetrics.comparison.gate.verdict import VerdictEvidence
from ragmetrics.comparison.sides import read_nights
from ragmetrics.config import GateRule, Settings
from ragmetrics.logs import GoldenSet
from ragmetrics.records import JudgeMovement, Manifest, Status, Usage, WorseQuestion, across_change
from ragmetrics.rules import (
    carried_movement,
    is_of_one_day,
    level_of_builds,
    newest_movement,
)
from ragmetrics.scoring import MetricScores, stored_bridge, summarise_run
from ragmetrics.storage import Files, Runs, by_shard, open_store, scored_rows

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

    @classmethod
    def of(cls, scores: MetricScores) -> Answers:
        """The scores of all rows. With active sampling some judged rows do not compare."""
        values: dict[str, list[float]] = {}
        states: dict[str, str] = {}
        shown = scores.table
        if "compared" in shown:
            apart = shown["compared"].eq(False)
            shown = shown.assign(status=shown["status"].mask(apart, Status.NOT_SAMPLED.value))
        columns = (shown[column].tolist() for column in ("question", "value", "status"))
        for question, value, status in zip(*columns, strict=True):
            if status == Status.SCORED.value:
                values.setdefault(question, []).append(value)
                states[question] = status
            else:
                states.setdefault(question, status)
        return cls(values, states)

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

    side: BuildSide
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
    if side.staged:
        manifest, tables = summarise_run(run, open_store(run), side.staged, now)
        nights, of_run = [manifest], manifest
    else:
        files, of_run = open_store(settings), None
        nights = [night for ref in side.nights if (night := Runs(files).find(ref))]
        nights = across_change(nights, stored_bridge(files))
        known = [metric for metric in metrics if any(night.summary(metric) for night in nights)]
        tables = {one: read_nights(files, nights, one, build=side.build) for one in known}
    answers = {one: Answers.of(tables[one]) if one in tables else Answers() for one in metrics}
    return SideScores(side, answers, of_run, tables, nights)


def find_movements(
    settings: Settings, fingerprints: Mapping[str, str]
) -> dict[str, JudgeMovement | None]:
    """The judge's movement from night to night, by metric, from the newest stored nights that were
    scored in the same way.
    """
    nights = Runs(open_store(settings)).outlines(last=_SEARCHED_NIGHTS)
    return {
        metric: newest_movement(
            metric,
            [one for one in nights if (own := one.summary(metric)) and own.fingerprint == known],
        )
        for metric, known in fingerprints.items()
    }


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
    golden: Set[str],
    movements: Mapping[str, JudgeMovement | None],
) -> Compared:
    """Compare two builds by each rule's metric.

    `by_default`: these are the default rules, which apply only where they can.
    All questions of the serving build's log should be in the new build's log. Where the serving
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
        if before.side.staged is None:
            asked &= new.states.keys() | golden
        lacking = {q: why for q in sorted(asked) if (why := _why_missing(old, new, q))}
        missing = lacking | missing
        moves = _movement(rule.metric, before, now, movements)
        level_of = partial(
            level_of_builds,
            metric=rule.metric,
            before=before.nights,
            now=now.nights,
            movement=moves,
        )
        evidence.append(
            VerdictEvidence(
                metric=rule.metric,
                fall=measure(old.values, new.values, level_of),
                max_drop=rule.max_drop,
                asked=len(asked),
                missing=len(lacking),
                fingerprint=fingerprints[rule.metric],
                movement=moves,
            )
        )
    return Compared(evidence, left_out, missing)


def _movement(
    metric: str, before: SideScores, now: SideScores, movements: Mapping[str, JudgeMovement | None]
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
    return None if question in old.values else f"{old.states[question]} before"


def find_fallen(
    files: Files, metrics: Sequence[str], before: SideScores, now: SideScores
) -> list[WorseQuestion]:
    """The questions with the largest drops, by metric, with the new build's rows."""
    if now.side.staged is None:
        return []
    worst = [
        (metric, question, place)
        for metric in metrics
        for question, place in _fallen(metric, before, now).items()
    ]
    wanted = by_shard([place for _, _, place in worst])
    rows = scored_rows(files, now.side.staged.ref, [], wanted)
    return [
        WorseQuestion(
            metric=metric,
            user_input=rows[place].row.user_input,
            id=rows[place].row.id,
            before=fmean(before.answers[metric].values[question]),
            after=fmean(now.answers[metric].values[question]),
        )
        for metric, question, place in worst
    ]


def _fallen(metric: str, before: SideScores, now: SideScores) -> dict[str, tuple[int, int]]:
    """The questions with the largest drops, each with the place of its first scored row."""
    old, new = before.answers[metric].values, now.answers[metric].values
    gains = ((fmean(new[q]) - fmean(old[q]), q) for q in old.keys() & new.keys())
    worst = [q for _, q in heapq.nsmallest(MOST_FALLEN, (gain for gain in gains if gain[0] < 0))]
    rows = now.tables[metric].scored.drop_duplicates("question").set_index("question").loc[worst]
    places = rows[["shard", "position"]].astype(int).itertuples(index=False, name=None)
    return dict(zip(worst, places, strict=True))


def golden_obstacles(
    settings: Settings, golden: GoldenSet, sides: Sequence[SideScores]
) -> list[str]:
    """Reasons in the golden set against a promotion; they do not depend on the numbers."""
    if settings.golden is None:
        return []
    if not golden.questions:
        return [f"golden set {settings.golden}: no question can be read in it"]
    cut = [bad for bad in golden.rejected if bad.whole_file]
    broken = len(golden.rejected) - len(cut)
    rows = broken + len(golden.questions)
    found = [f"{bad.file} is read in part: {bad.reason}" for bad in cut]
    if broken > settings.gate.max_missing * rows:
        found.append(f"{broken:,} of {rows:,} rows of the golden set could not be read")
    return found + [
        f"golden set {settings.golden}: {side.side.title} has no row of any question in it"
        for side in sides
        if not _asked(golden, side)
    ]


def not_compared(golden: GoldenSet, before: SideScores, compared: Compared) -> list[str]:
    """Notes on metrics and golden questions that are not compared, where others are."""
    side = before.side.title
    notes = [
        f"{metric} is not compared: no row of {side} has what it needs"
        for metric in (compared.left_out if compared.evidence else ())
    ]
    asked, total = _asked(golden, before), len(golden.questions)
    if 0 < asked < total:
        notes.append(
            f"{total - asked:,} of {total:,} golden questions have no row of {side} and are "
            "not compared"
        )
    return notes


def _asked(golden: GoldenSet, scores: SideScores) -> int:
    """Number of golden questions that a build has rows of."""
    if scores.side.staged:
        return scores.side.staged.source.golden_questions
    nights = {question for answer in scores.answers.values() for question in answer.states}
    return len(golden.questions & nights)

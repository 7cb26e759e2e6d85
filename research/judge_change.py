"""A change of judge in a week of nights, from real scores of two judges on the same rows.

python -m research judge-change [--rows DRAWS]

Rows are drawn with replacement from rows that two judges scored: GPT-3.5 and GPT-4 on WiCE (their
recorded replies), the lexical judge and the labels of people on SelQA. Seven nights are judged by the
first; then the second replaces it, and up to 500 rows of a night are judged by both.

fresh   300 other rows every night         golden   the same 200, of which 15% change each night

A drop replaces rows by such as both judges score low, until the first judge's mean is lower by 0.1.
Coverage is that of the 95% interval of the corrected drop, on the first night, of which both judges
score all rows or 100; its truth is the drop by the first judge. Alarms are those of `max_drop: 0.05`:
of that night by the t test, and in fewer weeks of the first three nights by the code of a run.
`without` is the same week judged by the first judge throughout.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache

import numpy as np

from research.moving_world import LIMIT, Values, World, _FIRST, _table, data_folder
from ragmetrics import evaluate
from ragmetrics.config import AlertSettings, Rule
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.records import JudgeBridge, JudgedTwice, Manifest, across_change
from ragmetrics.rules import NightContext, evaluate_rules
from ragmetrics.rules.context import Baseline
from ragmetrics.rules.corrections import judge_change, mix
from ragmetrics.rules.question_mix import RowSelection
from ragmetrics.rules.sides import NightSides
from ragmetrics.scoring import MetricScores
from ragmetrics.scoring.judge_bridge import _differences, find_offset
from ragmetrics.stats import Drop, OffsetError, compare_aligned

METRIC = "context_recall"
DRAWS, BEFORE, AFTER, BOTH, SEED = 2_000, 7, 3, 500, 78
ROWS = {"fresh": 300, "golden": 200}
FEW, CHANGING, DROP = 100, 0.15, 0.1
FALSE_ALARMS = 0.01


@cache
def pairs_of(name: str) -> Values:
    """Rows x both judges; SystemExit where the data are not there."""
    log = data_folder() / {"wice": "wice_judge_replies.jsonl", "selqa": "selqa_sentences.jsonl"}[name]
    if not log.is_file():
        raise SystemExit(f"no {log}: RAGMETRICS_DATA names the folder of labelled data")
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    if name == "wice":
        replies = [row["labels"]["judge"] for row in rows]
        found = [[of[f"gpt-{kind}-0613"]["label"] for kind in ("3.5-turbo", "4")] for of in replies]
    else:
        fields = ("id", "user_input", "retrieved_contexts")
        result = evaluate([{key: row[key] for key in fields} for row in rows], metrics=["context_relevancy"])
        lexical = {record["id"]: record["value"] for record in result.records()}
        people = {row["id"]: row["labels"]["gold"].get("context_relevance_sentence") for row in rows}
        found = [[lexical[key], people[key]] for key in people]
    return np.array([pair for pair in found if None not in pair], dtype=np.float64)


@dataclass
class Rows:
    """The rows of one night after another, as both judges score them."""

    pairs: Values
    world: str
    random: np.random.Generator
    drop: float = 0.0
    number: int = 0
    kept: Values | None = None
    bad: Values = field(init=False)

    def __post_init__(self) -> None:
        low = self.pairs.sum(axis=1)
        self.bad = self.pairs[low <= np.quantile(low, 0.25)]

    def night(self, *, fallen: bool = False) -> tuple[list[str], Values]:
        """The names of a night's questions, and their values by both judges."""
        count = ROWS[self.world]
        drawn = self._drawn(count)
        if self.world == "golden":
            changed = self.random.random(count) < CHANGING
            drawn = drawn if self.kept is None else np.where(changed[:, None], drawn, self.kept)
            self.kept = drawn
        else:
            self.number += count
        if fallen:
            share = self.drop / (self.pairs[:, 0].mean() - self.bad[:, 0].mean())
            worse = self.bad[self.random.integers(len(self.bad), size=count)]
            drawn = np.where((self.random.random(count) < share)[:, None], worse, drawn)
        return [f"q{self.number + place}" for place in range(count)], drawn

    def _drawn(self, count: int) -> Values:
        return self.pairs[self.random.integers(len(self.pairs), size=count)]


@dataclass
class Week:
    """Nights of which the judge changes; the last ones are judged by both."""

    random: np.random.Generator
    world: World = field(default_factory=lambda: World(knows=False, max_drop=0.05))
    judged: list[JudgedTwice] = field(default_factory=list)
    tables: dict[date, MetricScores] = field(default_factory=dict)
    book: AlertStates = field(default_factory=AlertStates)
    context: NightContext | None = None

    def add(self, night: tuple[list[str], Values], judge: int, *, ruled: bool = True) -> Manifest:
        """Another night, by the first or the second judge."""
        names, values = night
        scores = _table(METRIC, values[:, judge])
        scores.table["question"] = names
        manifest = self._manifest(scores, judge)
        bridge = self._bridge(names, values) if judge else None
        earlier = across_change(self.world.nights, bridge)
        self.context = NightContext(manifest, {METRIC: scores}, earlier, self._load, states=self.book.states)
        if ruled:
            rules = (Rule(metric=METRIC, max_drop=0.05, versus="trailing:7"),)
            found = evaluate_rules(AlertSettings(rules=rules), self.context)
            self.book, told = advance_states(self.book, found, manifest.date, remind_days=7)
            manifest = manifest.model_copy(update={"findings": told})
        self.tables[manifest.date] = scores
        self.world.nights.append(manifest)
        return manifest

    def drop(self) -> Drop | None:
        """The corrected drop of the last night from the seven before the change."""
        night = self.context
        if night is None:
            return None
        before = Baseline(night.earlier[:BEFORE])
        sides = NightSides(night, RowSelection(METRIC), before, [night.manifest], in_order=False)
        found = sides.corrected((mix, judge_change))
        return found.left if found else None

    def _bridge(self, names: list[str], values: Values) -> JudgeBridge:
        places = self.random.permutation(len(values))[:BOTH]
        self.judged += [
            JudgedTwice(question=names[place], old=values[place, 0], new=values[place, 1])
            for place in places
        ]
        offset = find_offset(METRIC, "0", "1", self.judged)
        known = [offset.model_copy(update={"differences": _differences(self.judged)})] if offset else []
        return JudgeBridge(replaced="first", since=_FIRST.date(), offsets=known)

    def _manifest(self, scores: MetricScores, judge: int) -> Manifest:
        plain = self.world._manifest({METRIC: scores})
        metrics = [one.model_copy(update={"fingerprint": str(judge)}) for one in plain.metrics]
        return plain.model_copy(update={"metrics": metrics})

    def _load(self, one: Manifest, metric: str) -> MetricScores:
        return self.tables[one.date].moved(one)


def week(rows: Rows, random: np.random.Generator, *, changes: bool, fallen: bool, nights: int, ruled: bool) -> tuple[list[bool], Drop | None]:
    """On which nights after the change an alert had fired, and the corrected drop of the first."""
    found, first = Week(random), None
    for _ in range(BEFORE):
        found.add(rows.night(), 0, ruled=False)
    fired: list[bool] = []
    for number in range(nights):
        night = found.add(rows.night(fallen=fallen), int(changes), ruled=ruled)
        fired.append(any(one.state == "firing" for one in night.findings) or (fired[-1] if fired else False))
        first = found.drop() if not number else first
    return fired, first


@dataclass(frozen=True)
class Found:
    """Of some weeks, with or without a change of judge."""

    coverage: float
    """Share of the intervals of the first night that hold the truth."""
    below: float
    """Share of them that lie above it, of 2.5%."""
    fired: list[float]
    """Share of the weeks with an alarm up to each night."""


def weeks(pairs: Values, world: str, draws: int, *, changes: bool, fallen: bool, nights: int = 1, ruled: bool = False) -> Found:
    """So many weeks, of which the first night is measured; alarms only where they are `ruled`."""
    held = above = 0
    fired = np.zeros(nights)
    truth = DROP if fallen else 0.0
    for draw in range(draws):
        random = np.random.default_rng([SEED, draw])
        rows = Rows(pairs, world, random, DROP)
        told, drop = week(rows, random, changes=changes, fallen=fallen, nights=nights, ruled=ruled)
        fired += told
        if drop:
            held += drop.low <= truth <= drop.high
            above += drop.low > truth
    return Found(held / draws, above / draws, (fired / draws).tolist())


@dataclass(frozen=True)
class FirstNights:
    """The first nights after the change, over some draws."""

    covered: float
    """Share of the intervals that hold the truth."""
    above: float
    """Share of them that lie above it, of 2.5%."""
    alarms: float
    """Share with a drop above `max_drop: 0.05` and p below `false_alarms: 0.01`."""


def first_nights(
    pairs: Values, world: str, draws: int, *, fallen: bool, both: int = BOTH, changes: bool = True
) -> FirstNights:
    """So many first nights of which up to `both` rows are judged by both; without a change the first
    judge scores them. p is that of the t test, also where questions recur.
    """
    held = above = alarms = 0
    truth = DROP if fallen else 0.0
    for draw in range(draws):
        random = np.random.default_rng([SEED, draw])
        drop = _first_night(Rows(pairs, world, random, DROP), fallen=fallen, both=both, changes=changes)
        held += drop.low <= truth <= drop.high
        above += drop.low > truth
        alarms += drop.drop > LIMIT and drop.p_value < FALSE_ALARMS
    return FirstNights(held / draws, above / draws, alarms / draws)


def _first_night(rows: Rows, *, fallen: bool, both: int, changes: bool) -> Drop:
    """The corrected drop of a night from the seven before it, as `NightSides` measures it."""
    nights = np.array([rows.night()[1][:, 0] for _ in range(BEFORE)])
    names, scores = rows.night(fallen=fallen)
    twice = scores[:both].T
    offset = compare_aligned(*twice)
    assert offset
    recurs = rows.world == "golden"
    earlier = nights.mean(axis=0) if recurs else nights.ravel()
    if not changes:
        return _compared(earlier, scores[:, 0], recurs)
    earlier = earlier - offset.drop
    if recurs and both >= len(names):
        return _compared(earlier, scores[:, 0] - offset.drop, recurs)
    error = OffsetError(1.0, offset.error, offset.freedom, _named(twice[0] - twice[1], names))
    before = _named(earlier, names if recurs else [f"earlier {place}" for place in range(len(earlier))])
    return error.added_to(_compared(earlier, scores[:, 1], recurs), before, _named(scores[:, 1], names))


def _compared(before: Values, now: Values, recurs: bool) -> Drop:
    absent = [np.full(len(side), np.nan) for side in (before, now)]
    sides = (before, now) if recurs else (np.append(before, absent[1]), np.append(absent[0], now))
    drop = compare_aligned(*sides)
    assert drop
    return drop


def _named(values: Values, names: list[str]) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=False))


def report(draws: int) -> Iterator[str]:
    """Coverage and alarms of each pair of judges and world."""
    for name in ("wice", "selqa"):
        pairs = pairs_of(name)
        for world in ROWS:
            for fallen in (False, True):
                case = f"{name:6} {world:7} {'drop' if fallen else 'same':5}"
                for both in (BOTH, FEW):
                    found = first_nights(pairs, world, draws, fallen=fallen, both=both)
                    rows = min(both, ROWS[world])
                    yield (
                        f"{case} {rows} of {ROWS[world]} rows by both: covered {found.covered:.1%}, "
                        f"above the truth {found.above:.1%}, alarms {found.alarms:.1%}"
                    )
                found = first_nights(pairs, world, draws, fallen=fallen, changes=False)
                yield f"{case} without the change: covered {found.covered:.1%}, alarms {found.alarms:.1%}"
                for changes in (True, False):
                    few = max(1, draws // (50 if world == "fresh" else 250))
                    fired = weeks(pairs, world, few, changes=changes, fallen=fallen, nights=AFTER, ruled=True).fired
                    told = " ".join(f"{share:6.1%}" for share in fired)
                    yield f"{case} {few} weeks {'changes' if changes else 'without':8} alarm by night: {told}"

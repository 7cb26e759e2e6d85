"""Health metrics without a judge: faults that they find, and unchanged nights on which they fire.

python -m research health [--rows NIGHTS]

The questions and contexts are those of `chunkeval_bm25`; which section is asked for goes by the day of
the week. Times, errors and dates of documents are drawn, each section with its own level. The rules
are those that `ragmetrics init` proposes from the first two weeks. What the nights before say of a
row is drawn too: one context in ten is new, a best score has any place, a word in seven is new.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.metrics import Metric, bundled_metrics
from ragmetrics.pipeline.init.rule_limits import rule_limits
from ragmetrics.records import Finding, JudgeInfo, LogRow, Manifest, Source, Status
from ragmetrics.records.judging import Usage
from ragmetrics.rules import NightContext, evaluate_rules, for_later_nights
from ragmetrics.scoring import MetricScores, summarise

QUESTIONS = 300
HISTORY = 21
STRENGTH = 0.5
"""Height of the week's wave, in standard deviations of the sections' order."""
METRICS = {name: metric for name, metric in bundled_metrics().items() if metric.least_change}
_NOW = datetime(2026, 1, 5, tzinfo=UTC)
_FIRST = date(2026, 1, 5)
_REMEMBERED = 30
FAULTS: Mapping[str, str] = {
    "a tenth of the lists empty": "zero_results",
    "a chunker that doubles lengths": "context_tokens",
    "duplicates from a double ingest": "duplicate_contexts",
    "an index that is two weeks older": "document_age",
    "a retriever that takes half as long again": "retrieval_latency_ms",
    "one retrieval in twenty fails": "retrieval_errors",
    "a filter that shuffles ranks": "list_overlap",
    "a score scale that changes": "score_shift",
    "a source that asks something else": "query_drift",
}


def rows_by_section() -> list[list[LogRow]] | None:
    """The questions of each section; None where the data do not lie beside the checkout, nor where
    RAGMETRICS_DATA says."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    file = Path(os.environ.get("RAGMETRICS_DATA") or beside) / "chunkeval_bm25.jsonl"
    if not file.exists():
        return None
    found: dict[tuple[str, int], list[LogRow]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        row = LogRow(data["id"], data["user_input"], tuple(data["retrieved_contexts"]), _NOW)
        found.setdefault((data["meta"]["corpus"], data["meta"]["chunk_size"]), []).append(row)
    return [found[section] for section in sorted(found)]


def nightly(
    random: np.random.Generator, sections: list[list[LogRow]], day: int, fault: str = ""
) -> list[LogRow]:
    """The rows of a night, with a fault."""
    wave = np.cos(2 * np.pi * (day % 7) / 7)
    places = np.arange(len(sections))
    mix = np.exp(STRENGTH * wave * (places - places.mean()) / places.std())
    chosen = random.choice(len(sections), size=QUESTIONS, p=mix / mix.sum())
    rows = [sections[one][random.integers(len(sections[one]))] for one in chosen]
    return [
        _logged(random, row, section, fault)
        for row, section in zip(rows, chosen.tolist(), strict=True)
    ]


def _logged(random: np.random.Generator, row: LogRow, section: int, fault: str) -> LogRow:
    texts = list(row.retrieved_contexts)[: int(random.integers(3, 6))]
    kind = FAULTS.get(fault, "")
    if kind == "context_tokens":
        texts = [text + other for text, other in zip(texts, texts[1:] + texts[:1], strict=True)]
    if kind == "duplicate_contexts":
        texts = [text for text in texts for _ in range(2)][: len(texts)]
    empty = random.random() < 0.008 or (kind == "zero_results" and random.random() < 0.1)
    failed = random.random() < 0.002 or (kind == "retrieval_errors" and random.random() < 0.05)
    slower = 1.5 if kind == "retrieval_latency_ms" else 1.0
    keys = LogRow("", "", tuple(texts)).context_keys
    last = [key if random.random() < 0.9 else f"old {key}" for key in keys]
    if kind == "list_overlap":
        random.shuffle(texts)
    place = random.random()
    ages = random.exponential(20 + 2 * section, len(texts)) + 14 * (kind == "document_age")
    return replace(
        row,
        retrieved_contexts=() if empty or failed else tuple(texts),
        retrieval_ms=slower * float(np.exp(random.normal(4 + section / 20, 0.5))),
        retrieval_error="timeout" if failed else None,
        last_contexts=tuple(last),
        retrieved_context_scores=(1.0,),
        score_place=place**0.5 if kind == "score_shift" else place,
        new_words=min(1.0, random.beta(1, 6) + 0.5 * (kind == "query_drift" and random.random() < 0.2)),
        retrieved_context_dates=tuple(_NOW - timedelta(days=float(age)) for age in ages),
    )


@dataclass
class World:
    """Nights in a row, as proposed rules see them."""

    settings: AlertSettings
    nights: list[Manifest] = field(default_factory=list)
    scores: dict[date, dict[str, MetricScores]] = field(default_factory=dict)
    book: AlertStates = field(default_factory=AlertStates)

    def copy(self) -> World:
        """The same history, that may go on otherwise."""
        return replace(self, nights=[*self.nights], scores={**self.scores})

    def add(self, rows: list[LogRow]) -> list[Finding]:
        """Another night; return what fires."""
        day = _FIRST + timedelta(len(self.nights))
        scores = {name: _scores(one, rows, len(self.nights)) for name, one in METRICS.items()}
        manifest = for_later_nights(self.settings, _manifest(day, scores), scores)
        night = NightContext(
            manifest,
            scores,
            self.nights[-_REMEMBERED:],
            lambda one, metric: self.scores[one.date][metric],
            history=self.nights[-90:],
            states=self.book.states,
        )
        found = evaluate_rules(self.settings, night)
        self.book, told = advance_states(self.book, found, day, remind_days=7)
        self.nights.append(manifest.model_copy(update={"findings": told}))
        self.scores[day] = scores
        self.scores.pop(day - timedelta(_REMEMBERED + 1), None)
        return [one for one in told if one.kind in ("metric", "slow_decline")]


def _scores(metric: Metric, rows: list[LogRow], night: int) -> MetricScores:
    values = [_value(metric, row) for row in rows]
    known = [value for value in values if value is not None]
    table = pd.DataFrame({"question": [f"n{night}q{number}" for number in range(len(known))]})
    columns = dict.fromkeys(("reason", "votes", "failed"))
    table = table.assign(
        value=known, status=Status.SCORED.value, spread=np.nan, index_build=None, **columns
    )
    return MetricScores(metric.name, table, metric.higher_is_better)


def _value(metric: Metric, row: LogRow) -> float | None:
    steps = metric.play(row)
    try:
        next(steps)
    except StopIteration as stop:
        value: float | None = stop.value.value
        return value
    raise ValueError(f"{metric.name} asks a judge")


def _manifest(day: date, scores: Mapping[str, MetricScores]) -> Manifest:
    return Manifest(
        dataset="simulated",
        date=day,
        run="run",
        started_at=_NOW,
        finished_at=_NOW,
        ragmetrics="0",
        source=Source(logs="logs", files=1, rows=QUESTIONS),
        judge=JudgeInfo(name="judge", fingerprint="judge"),
        shards=1,
        metrics=[summarise(one, "judge") for one in scores.values()],
        segments=[],
        findings=[],
        worst=[],
        usage=Usage(),
    )


def started(random: np.random.Generator, sections: list[list[LogRow]]) -> World:
    """Three weeks without a change; the rules are proposed after the second one."""
    world = World(AlertSettings(rules=()))
    for day in range(HISTORY):
        if day == 14:
            summaries = [{one.metric: one for one in night.metrics} for night in world.nights]
            limits = rule_limits(
                summaries, QUESTIONS, false_alarms=AlertSettings().rules_level
            )
            rules = tuple(
                Rule(metric=one.metric, max_drop=one.max_drop, severity="warning") for one in limits
            )
            world.settings = AlertSettings(rules=rules)
        world.add(nightly(random, sections, day))
    return world


def fired_nights(world: World, random: np.random.Generator, sections: list[list[LogRow]], nights: int) -> int:
    """On how many of so many unchanged nights an alert fired anew."""
    fired = 0
    for _ in range(nights):
        found = world.add(nightly(random, sections, len(world.nights)))
        fired += any(one.transition == "fired" for one in found)
    return fired


def found_at_once(
    fault: str, random: np.random.Generator, sections: list[list[LogRow]], trials: int
) -> int:
    """In how many trials the metric of a fault fires on its first night; ten trials share a past."""
    found = 0
    for trial in range(trials):
        if trial % 10 == 0:
            past = started(random, sections)
        findings = past.copy().add(nightly(random, sections, HISTORY, fault))
        found += any(
            one.metric == FAULTS[fault] and one.state == "firing" for one in findings
        )
    return found


def report(nights: int, trials: int) -> Iterator[str]:
    """One line a fault, and one of the unchanged nights."""
    sections = rows_by_section()
    if sections is None:
        yield "The labelled data are not there: set RAGMETRICS_DATA."
        return
    random, start = np.random.default_rng(37), time.process_time()
    for fault, metric in FAULTS.items():
        found = found_at_once(fault, random, sections, trials)
        yield f"{fault}: {metric} fires on the first night in {found} of {trials} trials"
    fired = fired_nights(started(random, sections), random, sections, nights)
    yield f"unchanged, with a weekly cycle: {len(METRICS)} metrics fire on {fired} of {nights} nights"
    yield f"{time.process_time() - start:.0f} CPU s"

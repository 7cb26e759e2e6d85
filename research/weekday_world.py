"""Nights of a service whose users differ by the day of the week, as the alerts see them.

Each night has 300 questions, drawn from real ones with their scores. How many are of which section
goes by the day of the week; a section's scores never change. Questions are drawn with replacement
and named anew every night, as those of other users are: no night pairs with another.

The scores are those of `chunkeval_bm25` (see its card): the characters of the reference that were
retrieved stand for context_recall, the share of relevant contexts for context_relevance, over ten
sections, a corpus at a size of chunks each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragmetrics.config import AlertSettings
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.records import Finding, JudgeInfo, Manifest, Segment, Source, Status, Summary
from ragmetrics.records.judging import Usage
from ragmetrics.rules import NightContext, evaluate_rules, for_later_nights
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import mean_interval

Values: TypeAlias = NDArray[np.float64]
Sections: TypeAlias = Mapping[str, Values]
"""Of each section its questions' scores: questions x metrics."""

METRICS = ("context_recall", "context_relevance")
QUESTIONS = 300
TAG = "section"
_FILE = "chunkeval_bm25.jsonl"
_FIRST = date(2026, 1, 5)
_MOMENT = datetime(2026, 1, 5, tzinfo=UTC)
_REMEMBERED = 60
_HISTORY = 90


def real_sections() -> Sections | None:
    """The scores of the labelled data; None where they do not lie beside the checkout, nor where
    RAGMETRICS_DATA says."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    file = Path(os.environ.get("RAGMETRICS_DATA") or beside) / _FILE
    if not file.exists():
        return None
    found: dict[str, list[list[float]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        section = f"{row['meta']['corpus']} {row['meta']['chunk_size']}"
        relevance = row["labels"]["chunk_relevance"]
        scores = [row["labels"]["gold"]["char_recall"], sum(relevance) / len(relevance)]
        found.setdefault(section, []).append(scores)
    return {name: np.array(values) for name, values in sorted(found.items())}


def made_sections(random: np.random.Generator) -> Sections:
    """Sections of like means and spreads, where the labelled data are not there."""
    means = [0.73, 0.67, 0.68, 0.83, 0.70, 0.96, 0.84, 0.89, 0.96, 0.96]
    return {
        f"section {number}": np.stack(
            [random.binomial(1, mean, 60), random.binomial(5, 0.2, 60) / 5], axis=1
        ).astype(float)
        for number, mean in enumerate(means)
    }


def shares(sections: Sections, strength: float) -> Values:
    """The share of each section on each day of the week: days x sections.

    On some days the sections with high recall are asked for, on others those with low recall:
    a wave over the week, its height `strength` in standard deviations of the sections' means.
    """
    means = np.array([values[:, 0].mean() for values in sections.values()])
    wave = np.cos(2 * np.pi * np.arange(7) / 7)
    weights = np.exp(strength * np.outer(wave, (means - means.mean()) / means.std()))
    found: Values = weights / weights.sum(axis=1, keepdims=True)
    return found


@dataclass(frozen=True)
class Drawn:
    """The questions of a night: their sections and scores."""

    sections: Sequence[str]
    values: Values

    def less(self, section: str, fall: float) -> Drawn:
        """The same night, whose mean is lower by `fall` for what one section lost: rows that were
        not 0 already are 0, as many as that takes."""
        values, left = self.values.copy(), fall * len(self.values)
        for row in np.flatnonzero(np.array(self.sections) == section):
            lost = min(float(values[row, 0]), left)
            values[row, 0] -= lost
            left -= lost
        return replace(self, values=values)

    def moved(self, random: np.random.Generator, by: float) -> Drawn:
        """The same night, whose mean in the first metric is moved: rows at random become 0 or 1, as
        many as that takes."""
        values, left = self.values.copy(), abs(by) * len(self.values)
        end = float(by > 0)
        for row in random.permutation(len(values)):
            step = min(abs(end - values[row, 0]), left)
            values[row, 0] += step if by > 0 else -step
            left -= step
        return replace(self, values=values)


def draw(random: np.random.Generator, sections: Sections, mix: Values) -> Drawn:
    """A night of a mix."""
    names = list(sections)
    chosen = random.choice(len(names), size=QUESTIONS, p=mix)
    values = [sections[names[one]][random.integers(len(sections[names[one]]))] for one in chosen]
    return Drawn([names[one] for one in chosen], np.array(values))


def week_after_week(
    random: np.random.Generator, sections: Sections, strength: float
) -> Iterator[Drawn]:
    """Nights on which nothing changes but the day of the week."""
    mixes = shares(sections, strength)
    while True:
        for mix in mixes:
            yield draw(random, sections, mix)


@dataclass
class World:
    """Nights in a row, as the default rules see them."""

    mix_tags: tuple[str, ...] | None = None
    tagged: bool = True
    """Whether rows have their section as a tag."""
    settings: AlertSettings = field(default_factory=AlertSettings)
    nights: list[Manifest] = field(default_factory=list)
    scores: dict[date, dict[str, MetricScores]] = field(default_factory=dict)
    book: AlertStates = field(default_factory=AlertStates)

    def copy(self) -> World:
        """The same history, that may go on otherwise."""
        return replace(self, nights=[*self.nights], scores={**self.scores})

    def add(self, drawn: Drawn) -> list[Finding]:
        """Another night; return what the rules find."""
        day = _FIRST + timedelta(len(self.nights))
        scores = {name: self._table(name, drawn, len(self.nights)) for name in METRICS}
        manifest = for_later_nights(self.settings, _manifest(day, scores), scores)
        night = NightContext(
            manifest,
            scores,
            self.nights[-_REMEMBERED:],
            lambda one, metric: self.scores[one.date][metric],
            mix_tags=self.mix_tags,
            history=self.nights[-_HISTORY:],
            states=self.book.states,
        )
        self.book, told = advance_states(
            self.book, evaluate_rules(self.settings, night), day, remind_days=7
        )
        self.nights.append(manifest.model_copy(update={"findings": told}))
        self.scores[day] = scores
        self.scores.pop(day - timedelta(_REMEMBERED + 1), None)
        return [one for one in told if one.kind in ("metric", "slow_decline")]

    def _table(self, metric: str, drawn: Drawn, night: int) -> MetricScores:
        columns: dict[str, object] = {
            "question": [f"n{night}q{number}" for number in range(QUESTIONS)],
            "value": drawn.values[:, METRICS.index(metric)],
            "status": Status.SCORED.value,
        }
        if self.tagged:
            columns[f"tag:{TAG}"] = list(drawn.sections)
        return _Scores(metric, pd.DataFrame(columns).astype(dict.fromkeys(columns, object)))


class _Scores(MetricScores):
    """Scores with one row per question, all scored, grouped once: pandas would take most of the
    time."""

    @property
    def scored(self) -> pd.DataFrame:
        """See `MetricScores`."""
        return self.table

    def by_question(self, segment: Segment | None = None) -> dict[str, list[float]]:
        """See `MetricScores`."""
        kept: dict[str, list[float]] | None = self.__dict__.get("_kept")
        if kept is None or segment is not None:
            kept = super().by_question(segment)
        if segment is None:
            self.__dict__["_kept"] = kept
        return kept


def _summary(scores: MetricScores) -> Summary:
    values = scores.table["value"].to_numpy(dtype=np.float64)
    mean = mean_interval(values, np.arange(len(values)))
    if mean is None:
        raise ValueError("a night without questions")
    return Summary(
        metric=scores.metric,
        mean=mean.mean,
        low=mean.low,
        high=mean.high,
        scored=len(values),
        questions=len(values),
        status={Status.SCORED.value: len(values)},
        fingerprint="judge",
    )


def _manifest(day: date, scores: Mapping[str, MetricScores]) -> Manifest:
    return Manifest(
        dataset="simulated",
        date=day,
        run="run",
        started_at=_MOMENT,
        finished_at=_MOMENT,
        ragmetrics="0",
        source=Source(logs="logs", files=1, rows=QUESTIONS),
        judge=JudgeInfo(name="judge", fingerprint="judge"),
        shards=1,
        metrics=[_summary(one) for one in scores.values()],
        segments=[],
        findings=[],
        worst=[],
        usage=Usage(),
    )

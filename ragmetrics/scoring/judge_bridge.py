"""A change of judge that trends, rules, comparisons and gates go on over.

    judge: {name: openai, model: new, replaces: {name: openai, model: old}, bridge: 7 nights}

On the first nights of the new judge the old one scores a sample of the rows too (`both_judges`).
Of each metric the offset is estimated from the rows of all these nights, paired by question. Then
`across_change` moves the numbers of the old judge's nights by the offset, so that they compare with
the new ones; `stats.OffsetError` adds its error to a drop. Where the judges differ by more than an
offset, the old nights stay as they are, and the baseline begins again:

- rank correlation: with 97.5% confidence Spearman's rho is below 0.3
- by segment: the gains (new - old) of a tag's value are more than 0.1 from those of the other rows,
  and so are its new values with equal old ones (residuals of a linear fit); both of one sign, by
  question, with Welch's p below 0.01 over all values together

Each contrast alone takes quality for bias. A judge that halves all scores gains less where scores
are high. And as an old verdict is noisy, the fit predicts too little of a segment's quality, so
that of two judges alike the better segment seems to be favoured (Lord's paradox). Both err in
opposite ways, so of noisy judges a bias that evens out the quality of segments may stay unseen.

Sources: Bonett and Wright 2000, "Sample size requirements for estimating Pearson, Kendall and
Spearman correlations", for the interval of rho; Swaminathan and Rogers 1990 for items that function
differently in groups of equal ability; Lord 1967, "A paradox in the interpretation of group
comparisons".
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import RagmetricsError, StoreError
from ragmetrics.records import JudgeBridge, JudgedTwice, JudgeOffset, Manifest, Usage
from ragmetrics.scoring.both_judges import BridgeRows, SecondScoring
from ragmetrics.scoring.metric_choice import judge_info, metric_fingerprints
from ragmetrics.scoring.scores import MetricScores
from ragmetrics.stats import MeanDifference, Numbers, compare_aligned, midranks
from ragmetrics.storage import Files, RunRef, Runs, find_record, save_record

LEAST = 20
"""Fewest questions of an offset, and of a segment that is compared with the others."""
LEAST_CORRELATION = 0.3
_STANDARD_ERRORS = 1.96
_APART, _SURE = 0.1, 0.01
_SEARCHED_NIGHTS = 60
log = logging.getLogger(__name__)


def find_bridge(
    settings: Settings,
    files: Files,
    night: Manifest,
    scores: Mapping[str, MetricScores],
    earlier: Sequence[Manifest],
) -> tuple[JudgeBridge | None, Usage | None]:
    """The bridge of a night to those of the judge that its own replaced, and what the old one cost
    tonight; None where no earlier night is of the old judge.

    After its nights the bridge is that of the night before, also without `replaces`. A judge that
    comes back begins another one. An old judge that cannot be made, or a store that cannot be read,
    costs no night: the bridge is that of the night before, and its `problem` says why.
    """
    alike = [one for one in earlier if one.judge.fingerprint == night.judge.fingerprint]
    changes = settings.replaced and earlier[-1:] != alike[-1:]
    last = None if changes else next((one.bridge for one in reversed(alike) if one.bridge), None)
    runs = {**(last.runs if last else {}), night.date: night.run}
    bridge, spent = last, None
    try:
        if settings.replaced and len(runs) <= _first(settings).bridge:
            work = _Bridging(settings, files, night, scores, runs, last)
            bridge, spent = work.bridge(earlier)
    except RagmetricsError as error:
        log.error("the nights of the replaced judge: %s", error)
        if len(alike) < len(earlier):
            bridge = _with_problem(settings, last, night, str(error))
    return _with_known_differences(files, bridge, earlier), spent


def _with_known_differences(
    files: Files, bridge: JudgeBridge | None, nights: Sequence[Manifest]
) -> JudgeBridge | None:
    """A bridge with the differences of its questions, if its rows can be read."""
    try:
        return _with_differences(files, bridge, nights)
    except StoreError as error:
        log.error("the differences of both judges cannot be read: %s", error)
        return bridge


def _with_problem(
    settings: Settings, last: JudgeBridge | None, night: Manifest, problem: str
) -> JudgeBridge | None:
    """The last bridge, or one without offsets, with the reason why tonight's could not be made."""
    if last is None and settings.replaced:
        old = _first(settings).replaces or _first(settings)
        last = JudgeBridge(replaced=f"{old.name}:{old.model}", since=night.date)
    return last.model_copy(update={"problem": problem}) if last else None


@dataclass(frozen=True)
class _Bridging:
    """A night that the judge and the one that it replaces both score."""

    settings: Settings
    files: Files
    night: Manifest
    scores: Mapping[str, MetricScores]
    runs: Mapping[date, str]
    """The runs that both judged, with tonight's."""
    last: JudgeBridge | None

    def bridge(self, earlier: Sequence[Manifest]) -> tuple[JudgeBridge | None, Usage | None]:
        """The bridge with tonight's rows, and what the old judge cost; the last one where no metric
        of tonight has nights of the old judge.
        """
        old = self.settings.replaced
        prints = metric_fingerprints(old, stored=True) if old else {}
        changed = _changed(prints, self.night, earlier)
        if old is None or not changed:
            return self.last, None
        judged = self._judged(old, list(changed))
        known = self._offsets(changed)
        bridge = JudgeBridge(
            replaced=judge_info(old, stored=True)[0].name,
            since=min([*self.runs, *([self.last.since] if self.last else [])]),
            runs=dict(self.runs),
            offsets=list(known.values()),
            unpaired=[metric for metric in changed if metric not in known],
            problem=judged.problem,
        )
        return bridge, judged.usage

    def _judged(self, old: Settings, metrics: Sequence[str]) -> BridgeRows:
        """Tonight's rows by both judges: those of the store, else the old judge is asked."""
        path = RunRef.of(self.night).beside_rows("bridge")
        problem = "not readable: both judges are asked again"
        if (judged := find_record(self.files, path, BridgeRows, problem)) is None:
            work = SecondScoring(old, self.files, self.night, self.scores, metrics)
            judged = work.pairs(_first(self.settings).bridge_rows)
            save_record(self.files, path, judged)
        return judged

    def _offsets(self, changed: Mapping[str, tuple[str, str]]) -> dict[str, JudgeOffset]:
        """The offset of each metric; that of the last night where tonight has no score of it."""
        offsets = {one.metric: one for one in (self.last.offsets if self.last else ())}
        pooled = _pooled(self.files, self.runs)
        for metric, prints in changed.items():
            if offset := find_offset(metric, *prints, pooled.get(metric, ())):
                offsets[metric] = offset
        return offsets


def _first(settings: Settings) -> JudgeSettings:
    """The first judge that replaces another one."""
    return next(judge for judge in settings.panel if judge.replaces)


def _changed(
    prints: Mapping[str, str], night: Manifest, earlier: Sequence[Manifest]
) -> dict[str, tuple[str, str]]:
    """The fingerprints by the old and by the new judge of the metrics that change with the judge
    and that earlier nights have by the old one. `prints` are those by the old one.
    """
    scored = {(one.metric, one.fingerprint) for past in earlier for one in past.metrics}
    return {
        now.metric: (old, now.fingerprint)
        for now in night.metrics
        if (old := prints.get(now.metric)) and now.scored
        if old != now.fingerprint and (now.metric, old) in scored
    }


def _pooled(files: Files, runs: Mapping[date, str]) -> dict[str, list[JudgedTwice]]:
    """The rows that both judges scored on some nights, by metric, as far as they are kept."""
    pooled: dict[str, list[JudgedTwice]] = defaultdict(list)
    for night, run in runs.items():
        path = RunRef(date=night, run=run, shards=1).beside_rows("bridge")
        if judged := find_record(files, path, BridgeRows, "not readable, and left out"):
            for metric, rows in judged.rows.items():
                pooled[metric] += rows
    return pooled


def _with_differences(
    files: Files, bridge: JudgeBridge | None, nights: Sequence[Manifest]
) -> JudgeBridge | None:
    """A bridge with the differences of its questions, if one of the nights is of the old judge."""
    if bridge is None:
        return None
    replaced = {offset.replaced for offset in bridge.offsets}
    if not any(one.fingerprint in replaced for night in nights for one in night.metrics):
        return bridge
    pooled = _pooled(files, bridge.runs)
    offsets = [
        offset.model_copy(update={"differences": _differences(pooled.get(offset.metric, ()))})
        for offset in bridge.offsets
    ]
    return bridge.model_copy(update={"offsets": offsets})


def stored_bridge(files: Files) -> JudgeBridge | None:
    """The newest bridge of a store, with the differences of its questions."""
    nights = Runs(files).outlines(last=_SEARCHED_NIGHTS)
    newest = next((night.bridge for night in reversed(nights) if night.bridge), None)
    return _with_differences(files, newest, nights)


def find_offset(
    metric: str, replaced: str, fingerprint: str, rows: Sequence[JudgedTwice]
) -> JudgeOffset | None:
    """The offset of a metric from the rows that both judges scored.

        offset = mean over questions of (mean of its new values - mean of its old values)

    Paired by question, so that a question of several nights is one cluster. None for less than two
    questions.
    """
    means = _means(rows)
    old, new = (np.array([pair[side] for pair in means.values()]) for side in (0, 1))
    drop = compare_aligned(old, new)
    if drop is None:
        return None
    correlation = _rank_correlation(old, new)
    return JudgeOffset(
        metric=metric,
        replaced=replaced,
        fingerprint=fingerprint,
        offset=-drop.drop,
        low=-drop.high,
        high=-drop.low,
        error=drop.error,
        freedom=drop.freedom,
        questions=len(means),
        correlation=correlation,
        apart=_why_apart(rows, len(means), correlation),
    )


def _means(rows: Sequence[JudgedTwice]) -> dict[str, tuple[float, float]]:
    """The mean of the old and of the new values of each question."""
    values: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        values[row.question].append((row.old, row.new))
    return {
        question: (fmean(old for old, _ in pairs), fmean(new for _, new in pairs))
        for question, pairs in values.items()
    }


def _differences(rows: Sequence[JudgedTwice]) -> dict[str, float]:
    return {question: old - new for question, (old, new) in _means(rows).items()}


def _rank_correlation(old: Numbers, new: Numbers) -> float | None:
    """Spearman's rho with midranks; None where one side has one value."""
    if not (np.ptp(old) and np.ptp(new)):
        return None
    once = np.ones((1, len(old)))
    return float(np.corrcoef(midranks(old)(once)[0], midranks(new)(once)[0])[0, 1])


def _why_apart(rows: Sequence[JudgedTwice], questions: int, correlation: float | None) -> str:
    """Why the judges differ by more than an offset; empty where they do not."""
    if questions < LEAST:
        return f"{questions} questions have verdicts of both judges, and {LEAST} are needed"
    if correlation is not None:
        reach = _STANDARD_ERRORS * math.sqrt((1 + correlation**2 / 2) / (questions - 3))
        if (
            math.tanh(math.atanh(float(np.clip(correlation, -0.999, 0.999))) + reach)
            < LEAST_CORRELATION
        ):
            return f"the rank correlation of both judges is {correlation:.2f}"
    return _segment_apart(rows)


def _segment_apart(rows: Sequence[JudgedTwice]) -> str:
    """The segment that the new judge scores most unlike other rows, if both of its contrasts say
    so: that of the gains, and that of what old values do not predict.
    """
    left, gains = _residuals(rows), np.array([row.new - row.old for row in rows])
    found: list[tuple[list[MeanDifference], str]] = []
    for tag, value in sorted({pair for row in rows for pair in row.tags.items()}):
        inside = np.array([row.tags.get(tag) == value for row in rows])
        if contrasts := _contrasts(rows, inside, left, gains):
            found.append((contrasts, f"{tag}={value}"))
    certain = [(one[0].difference, name) for one, name in found if _is_certain(one, len(found))]
    if not certain:
        return ""
    apart, name = max(certain, key=lambda one: abs(one[0]))
    return f"with equal old scores, the new judge scores {name} by {apart:+.3f} unlike other rows"


def _contrasts(
    rows: Sequence[JudgedTwice], inside: NDArray[np.bool_], *values: Numbers
) -> list[MeanDifference]:
    """The difference of each value between a segment and the other rows, by question; none where
    one side has few questions.
    """
    sides = [[_means_of(rows, of, part) for part in (inside, ~inside)] for of in values]
    if min(map(len, sides[0])) < LEAST:
        return []
    return [MeanDifference.unpaired(*pair) for pair in sides]


def _is_certain(contrasts: Sequence[MeanDifference], tests: int) -> bool:
    """Whether all contrasts are large, significant over so many tests, and of one sign."""
    signs = {one.difference > 0 for one in contrasts}
    large = all(abs(one.difference) > _APART for one in contrasts)
    return large and len(signs) == 1 and all(one.p_two_sided * tests < _SURE for one in contrasts)


def _residuals(rows: Sequence[JudgedTwice]) -> Numbers:
    """The new value of each row less what its old value predicts. Segments of another quality do
    not differ by it as far as old values are without noise.
    """
    old, new = (np.array([getattr(row, side) for row in rows]) for side in ("old", "new"))
    slope = np.cov(old, new)[0, 1] / old.var(ddof=1) if np.ptp(old) else 0.0
    return np.asarray(new - slope * old, dtype=np.float64)


def _means_of(rows: Sequence[JudgedTwice], values: Numbers, part: NDArray[np.bool_]) -> Numbers:
    """The mean of each question over some rows."""
    names = [row.question for row in rows]
    questions = np.unique(names, return_inverse=True)[1]
    sums, counts = (
        np.bincount(questions[part], weights=weights) for weights in (values[part], None)
    )
    return np.asarray(sums[counts > 0] / counts[counts > 0], dtype=np.float64)

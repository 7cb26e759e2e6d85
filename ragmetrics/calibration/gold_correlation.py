"""Gold figures of whole rows, and their rank correlation with a metric's row scores.

A gold figure is compared with the metric of its own name. The figures of known labelled sets are
compared with the metric that measures the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragmetrics.calibration.labelled import LabelledRow
from ragmetrics.calibration.units import figure
from ragmetrics.metrics import metrics
from ragmetrics.model import GoldRank, Score
from ragmetrics.stats import bootstrap_interval, spearman_statistic, unweighted

GOLD = {
    "char_recall": "context_recall",
    "char_precision": "context_relevancy",
    "context_relevance_sentence": "context_relevancy",
    "context_relevance_chunk": "context_relevancy_chunks",
    "chunk_precision": "context_relevancy_chunks",
}
"""Gold figure -> metric."""


@dataclass(frozen=True, slots=True)
class GoldScore:
    """A row's gold figure and the metric's score of the row."""

    metric: str
    gold: str
    value: float
    question: str
    score: Score


def gold_metrics(
    labelled: LabelledRow, wanted: Sequence[str] | None
) -> list[tuple[str, str, float]]:
    """The row's gold figures as (metric, name of the figure, value)."""
    found = []
    for key, value in labelled.labels.gold.items():
        name = GOLD.get(key, key)
        if value is not None and name in metrics() and (wanted is None or name in wanted):
            found.append((name, key, value))
    return found


def gold_ranks(scores: Iterable[GoldScore]) -> list[GoldRank]:
    """Spearman's correlation of scores and gold figures, by metric and figure."""
    groups: dict[tuple[str, str], list[GoldScore]] = {}
    for one in scores:
        groups.setdefault((one.metric, one.gold), []).append(one)
    return [_rank(*names, inside) for names, inside in sorted(groups.items())]


def _rank(metric: str, gold: str, scores: Sequence[GoldScore]) -> GoldRank:
    pairs = [(one, one.score.value) for one in scores if one.score.value is not None]
    statistic = spearman_statistic([one.value for one, _ in pairs], [value for _, value in pairs])
    interval = bootstrap_interval(statistic, [one.question for one, _ in pairs])
    status: dict[str, int] = {}
    for one in scores:
        status[one.score.status] = status.get(one.score.status, 0) + 1
    return GoldRank(
        metric=metric,
        gold=gold,
        spearman=figure(unweighted(statistic, len(pairs)), interval),
        rows=len(pairs),
        status=status,
    )

"""Whether the relevant contexts were retrieved and ranked first."""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from ragmetrics.metrics.bundled._matching import NEEDS, SIMILAR_FROM, Match, Ranking, score_by
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


def _ndcg(ranking: Ranking, k: int | None) -> float:
    gaining = _gaining(ranking)
    missed = ranking.references - len(ranking.found())
    ideal = range(1, len(gaining) + missed + 1)
    return _gain(rank for rank in gaining if k is None or rank <= k) / _gain(ideal[:k])


def _gaining(ranking: Ranking) -> list[int]:
    """The ranks with a reference that no higher rank holds."""
    seen: set[int] = set()
    ranks = []
    for rank, held in enumerate(ranking.held, 1):
        if not held <= seen:
            ranks.append(rank)
            seen |= held
    return ranks


def _gain(ranks: Iterable[int]) -> float:
    return sum(1 / log2(rank + 1) for rank in ranks)


@metric(version=1, display="nDCG", needs=NEEDS, calls="0")
def ndcg(
    row: LogRow, *, k: int | None = None, match: Match = "auto", similar_from: float = SIMILAR_FROM
) -> Steps[Score]:
    """Discounted gain of the reference contexts among the first k, as a share of the best.

        DCG@k = sum over gaining ranks r <= k of 1 / log2(r + 1)
        nDCG@k = DCG@k / (sum over r = 1..min(R, k) of 1 / log2(r + 1)),   k = None: no limit

    R is the number of relevant contexts. Range [0, 1], higher is better; exactly 1 if all of
    them come first. No judge call. A rank gains if it holds a reference that no higher rank
    holds: a repeat gains nothing. Rows without ids on both sides are compared by text (details:
    `matched_by`): a context holds a reference if `similar_from` of it or more is there, and
    references that one context holds together count as one in R. Short references that differ
    in one word or number can match: use ids, or raise `similar_from`. Neither ids on both sides
    nor reference_contexts: not applicable, as is a row whose references are empty.
    Nothing retrieved: 0.0. Raises InputError for a parameter out of range.
    Source: Jarvelin, Kekalainen 2002, with binary gains as in trec_eval.
    """
    return score_by("ndcg", _ndcg, row, k, match, similar_from)

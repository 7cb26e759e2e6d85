"""Whether any relevant context was retrieved."""

from __future__ import annotations

from ragmetrics.metrics.bundled._matching import NEEDS, SIMILAR_FROM, Match, Ranking, score_by
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


def _hit(ranking: Ranking, k: int | None) -> float:
    return float(any(ranking.relevant[:k]))


@metric(version=1, display="Hit rate", needs=NEEDS, calls="0")
def hit_rate(
    row: LogRow, *, k: int | None = None, match: Match = "auto", similar_from: float = SIMILAR_FROM
) -> Steps[Score]:
    """Whether a reference context is among the first k retrieved, by id or by text.

        hit@k = 1 if any of ranks 1..k is relevant, else 0,   k = None: all ranks

    Range [0, 1], 0 or 1 for a row; its mean is the hit rate, also called success@k. No judge
    call. Rows without ids on both sides are compared by text (details: `matched_by`): a context
    is relevant if it holds a reference by `similar_from` or more. Short references that differ
    in one word or number can match: use ids, or raise `similar_from`. Neither ids on both sides
    nor reference_contexts: not applicable, as is a row whose references are empty.
    Nothing retrieved: 0.0. Raises InputError for a parameter out of range.
    Source: success at k, as in trec_eval.
    """
    return score_by("hit_rate", _hit, row, k, match, similar_from)

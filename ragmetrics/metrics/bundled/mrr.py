"""Reciprocal rank of the first relevant context."""

from __future__ import annotations

from ragmetrics.metrics.bundled._matching import NEEDS, SIMILAR_FROM, Match, Ranking, score_by
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


def _reciprocal_rank(ranking: Ranking, k: int | None) -> float:
    ranks = enumerate(ranking.relevant[:k], 1)
    return next((1 / rank for rank, relevant in ranks if relevant), 0.0)


@metric(version=1, display="Reciprocal rank", needs=NEEDS, calls="0")
def mrr(
    row: LogRow, *, k: int | None = None, match: Match = "auto", similar_from: float = SIMILAR_FROM
) -> Steps[Score]:
    """Reciprocal rank of the first reference context among the first k, by id or by text.

        rr@k = 1 / rank of the first relevant context, 0 if none in ranks 1..k

    Range [0, 1], higher is better; its mean over rows is the mean reciprocal rank. No judge
    call. Rows without ids on both sides are compared by text (details: `matched_by`): a context
    is relevant if it holds a reference by `similar_from` or more. Short references that differ
    in one word or number can match: use ids, or raise `similar_from`. Neither ids on both sides
    nor reference_contexts: not applicable, as is a row whose references are empty.
    Nothing retrieved: 0.0. Raises InputError for a parameter out of range.
    Source: Voorhees 1999, "The TREC-8 question answering track report".
    """
    return score_by("mrr", _reciprocal_rank, row, k, match, similar_from)

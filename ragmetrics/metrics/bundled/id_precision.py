"""Share of the retrieved contexts that are reference contexts."""

from __future__ import annotations

from ragmetrics.metrics.bundled._matching import NEEDS, SIMILAR_FROM, Match, Ranking, score_by
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


def _precision(ranking: Ranking, k: int | None) -> float:
    return sum(ranking.relevant[:k]) / (k or len(ranking.relevant))


@metric(version=1, display="Precision by id", needs=NEEDS, calls="0")
def id_precision(
    row: LogRow, *, k: int | None = None, match: Match = "auto", similar_from: float = SIMILAR_FROM
) -> Steps[Score]:
    """Share of the first k retrieved contexts that are reference contexts, by id or by text.

        precision@k = |relevant among ranks 1..k| / k,   k = None: |relevant| / |retrieved|

    Range [0, 1], higher is better; no judge call. As in trec_eval the denominator is k even
    if fewer were retrieved. A repeated context keeps its rank and is not relevant again.
    Rows without ids on both sides are compared by text (details: `matched_by`): a context is
    relevant if it holds a reference by `similar_from` or more. Short references that differ in
    one word or number can match: use ids, or raise `similar_from`. Neither ids on both sides
    nor reference_contexts: not applicable, as is a row whose references are empty.
    Nothing retrieved: 0.0. Raises InputError for a parameter out of range.
    Source: Manning, Raghavan, Schuetze 2008, "Introduction to Information Retrieval", 8.3, 8.4.
    """
    return score_by("id_precision", _precision, row, k, match, similar_from)

"""Share of the reference contexts that were retrieved."""

from __future__ import annotations

from ragmetrics.metrics.bundled._matching import NEEDS, SIMILAR_FROM, Match, Ranking, score_by
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


def _recall(ranking: Ranking, k: int | None) -> float:
    return len(ranking.found(k)) / ranking.references


@metric(version=1, display="Recall by id", needs=NEEDS, calls="0")
def id_recall(
    row: LogRow, *, k: int | None = None, match: Match = "auto", similar_from: float = SIMILAR_FROM
) -> Steps[Score]:
    """Share of the reference contexts that are among the first k retrieved, by id or by text.

        recall@k = |references held by ranks 1..k| / |references|,   k = None: all ranks

    Range [0, 1], higher is better; no judge call. Ids are compared as they are. Rows without
    ids on both sides are compared by text (details: `matched_by`): a context holds a reference
    if `similar_from` of it or more is there, regardless of case, spaces and punctuation; a part
    of a reference does not match. Short references that differ in one word or number can
    match ("The warranty lasts 24 months." is in "... 36 months." by 0.76): use ids, or raise
    `similar_from`. Repeated references count once. Neither ids on both sides nor
    reference_contexts: not applicable, as is a row whose references are empty.
    Nothing retrieved: 0.0. Raises InputError for a parameter out of range.
    Source: Manning, Raghavan, Schuetze 2008, "Introduction to Information Retrieval", 8.3.
    """
    return score_by("id_recall", _recall, row, k, match, similar_from)

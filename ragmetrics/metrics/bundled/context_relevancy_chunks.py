"""Which contexts hold a sentence that is needed to answer the question."""

from __future__ import annotations

from ragmetrics.metrics.bundled._support import share
from ragmetrics.metrics.bundled.context_relevancy import NEEDED, needed, split
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps


@metric(
    version=1,
    display="Chunks needed",
    prompts=[NEEDED],
    calls="0: reuses the verdict of context_relevancy",
    label_target="context_relevancy",
)
def context_relevancy_chunks(row: LogRow) -> Steps[Score]:
    """Share of the retrieved contexts that hold a sentence needed to answer the question.

        context_relevancy_chunks = |contexts with a needed sentence| / |contexts|

    Range [0, 1], higher is better; no calls beyond that of context_relevancy. Fair to large
    chunks that hold a one-sentence answer. Empty question: not applicable. Nothing retrieved,
    or no sentence in it: 0.0, not asked. Raises Unanswered if the reply stays unreadable. With a
    decision model a context counts with the probability of its surest sentence.
    Source: our own, after RAGAS (Es et al. 2023).
    """
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    contexts = split(row)
    if not any(contexts):
        return Score(0.0, reason="no sentence retrieved")
    weights_of = yield from needed(row, contexts)
    surest = [max(weights, default=0.0) for weights in weights_of]
    relevant = [i for i, weight in enumerate(surest) if weight > 0.5]
    return share(surest, {"relevant_contexts": relevant})

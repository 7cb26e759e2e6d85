"""Share of the reference answer that the retrieved contexts support."""

from __future__ import annotations

from ragmetrics.metrics.bundled._support import claims, share, support_prompt
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps, ask

SUPPORT = support_prompt(
    "sentences",
    name="support",
    version=2,
    instruction="""
Check which sentences of a reference answer the retrieved contexts support.
For each sentence, in order: 1 if the contexts, taken together, say what it says; 0 if they do
not, or only in part. Use no other knowledge. Give exactly one verdict per sentence.
""",
    examples=(
        (
            {
                "question": "When was the Eiffel Tower built?",
                "contexts": ["It was built from 1887 to 1889."],
                "sentences": ["It was built in 1887-1889.", "Eiffel built it."],
            },
            {"supported": [1, 0]},
        ),
    ),
    rubric="The contexts, taken together, say all that the sentence says.",
)


@metric(
    version=1,
    display="Context recall",
    prompts=[SUPPORT],
    needs=("retrieved_contexts", "reference"),
    calls="1",
    label_target="context_recall",
)
def context_recall(row: LogRow) -> Steps[Score]:
    """Share of the reference's sentences that the retrieved contexts support.

        recall = |{s in S : contexts support s}| / |S|,   S = sentences(reference)

    Range [0, 1], higher is better; at most one judge call per row.
    No reference, or none with a word in it: not applicable. Nothing retrieved: 0.0, not asked.
    Raises Unanswered if the reply stays unreadable: not one verdict per sentence.
    Source: RAGAS context recall, with our own sentences as the denominator.
    """
    stated = claims(row.reference, row.language)
    if not stated:
        return Score.not_applicable("no reference answer")
    if not any(context.strip() for context in row.retrieved_contexts):
        return Score(0.0, reason="nothing retrieved")
    verdict = yield from ask(
        SUPPORT, question=row.user_input, contexts=list(row.retrieved_contexts), sentences=stated
    )
    return share(verdict.weights, {"attributed": [bool(true) for true in verdict.supported]})

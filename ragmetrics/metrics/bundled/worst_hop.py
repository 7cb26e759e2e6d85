"""How well the retrieval of a trace that served its own query worst did."""

from __future__ import annotations

from ragmetrics.metrics.bundled.context_relevance import GRADE
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps, ask_each


@metric(
    version=1,
    display="Worst hop",
    prompts=[GRADE],
    needs=("user_input", "retrieved_contexts", "hop_sizes"),
    calls="1 per distinct (query of a hop, context)",
)
def worst_hop(row: LogRow) -> Steps[Score]:
    """Relevance of the best context of the hop whose contexts fit its own query worst.

        worst_hop = min over hops h of max(grade of c for q_h, c in contexts of h) / 2

    Range [0, 1], higher is better; one judge call per distinct query of a hop and context of it. A
    context is graded 0, 1 or 2 against what its hop asked, as in `context_relevance`; details
    name the hop (`worst`, from 1) and the best grade of each. A row that is no trace of several
    retrievals is one hop. A hop that retrieved nothing, blank contexts or asked nothing: grade 0,
    not asked. Empty question: not applicable. Raises Unanswered if a grade cannot be obtained.
    Source: our own; a chain of retrievals is as good as its weakest link.
    """
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    asked = [
        (place, {"question": hop.query, "context": context})
        for place, hop in enumerate(row.hops)
        for context in hop.contexts
        if context.strip() and hop.query.strip()
    ]
    best = [0.0] * len(row.hops)
    if asked:
        verdicts = yield from ask_each(GRADE, [data for _, data in asked])
        for (place, _), verdict in zip(asked, verdicts, strict=True):
            best[place] = max(best[place], verdict.level / 2)
    value = min(best)
    reason = "" if asked else "nothing retrieved"
    return Score(value, reason, {"hops": best, "worst": best.index(value) + 1})

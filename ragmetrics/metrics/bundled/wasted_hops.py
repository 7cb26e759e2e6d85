"""Share of the retrievals of a trace that added nothing of use."""

from __future__ import annotations

from ragmetrics.metrics.bundled.context_precision_with_reference import USEFUL
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps, ask_each


@metric(
    version=1,
    display="Wasted hops",
    prompts=[USEFUL],
    needs=("user_input", "retrieved_contexts", "hop_sizes", "reference | response"),
    calls="1 per distinct (question, context, answer)",
    higher_is_better=False,
)
def wasted_hops(row: LogRow) -> Steps[Score]:
    """Share of the hops of a trace that added no context that supports anything of the answer.

        wasted_hops = |{h : no new context of h is useful}| / number of hops

    Range [0, 1], lower is better; one judge call per distinct (question, context, answer). The
    answer is the reference, else the response. A context that an earlier hop had retrieved is not
    new. Details list the wasted hops, from 1. One retrieval only, an empty question or no answer:
    not applicable. Blank context: not useful, not asked. Raises Unanswered if a verdict cannot be
    obtained.
    Source: our own; usefulness is that of `context_precision_with_reference`.
    """
    answer, hops = row.reference or row.response or "", row.hops
    if len(hops) == 1:
        return Score.not_applicable("one retrieval")
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    if not answer.strip():
        return Score.not_applicable("neither reference nor response")
    first: dict[str, int] = {}
    for number, hop in enumerate(hops, 1):
        for context in filter(str.strip, hop.contexts):
            first.setdefault(context, number)
    items = [{"question": row.user_input, "context": one, "answer": answer} for one in first]
    verdicts = (yield from ask_each(USEFUL, items)) if items else []
    used = {
        number for number, verdict in zip(first.values(), verdicts, strict=True) if verdict.useful
    }
    wasted = [number for number in range(1, len(hops) + 1) if number not in used]
    return Score(len(wasted) / len(hops), details={"wasted": wasted})

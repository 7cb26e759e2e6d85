"""Share of the retrievals of a trace that added nothing of use."""

from __future__ import annotations

from ragmetrics.metrics.bundled._support import claims
from ragmetrics.metrics.bundled.context_recall import SUPPORT
from ragmetrics.metrics.definition import metric
from ragmetrics.records import LogRow, Score, Steps, ask_each


@metric(
    version=1,
    display="Wasted hops",
    prompts=[SUPPORT],
    needs=("user_input", "retrieved_contexts", "hop_sizes", "reference | response"),
    calls="1 per hop",
    higher_is_better=False,
)
def wasted_hops(row: LogRow) -> Steps[Score]:
    """Share of the hops of a trace that added no context that supports anything of the answer.

        wasted_hops = |{h : new contexts of h support no s in S}| / number of hops,
        S = sentences(reference, else response)

    Range [0, 1], lower is better; at most one judge call per hop. A context that an earlier hop had
    retrieved is not new; a hop without new contexts is wasted, not asked. Details list the wasted
    hops, from 1. A hop that found only a step on the way is wasted unless the answer states that
    step, so let references state all steps. One retrieval only, or an answer without a word in it:
    not applicable. Raises Unanswered if a verdict cannot be obtained.
    Source: our own; support is that of `context_recall`.
    """
    hops = row.hops
    if len(hops) == 1:
        return Score.not_applicable("one retrieval")
    stated = claims(row.reference or row.response, row.language)
    if not stated:
        return Score.not_applicable("neither reference nor response")
    seen: set[str] = set()
    added: dict[int, list[str]] = {}
    for number, hop in enumerate(hops, 1):
        new = [one for one in dict.fromkeys(hop.contexts) if one.strip() and one not in seen]
        seen.update(new)
        if new:
            added[number] = new
    asked = [
        {"question": row.user_input, "contexts": new, "sentences": stated} for new in added.values()
    ]
    verdicts = (yield from ask_each(SUPPORT, asked)) if asked else []
    used = {hop for hop, one in zip(added, verdicts, strict=True) if any(one.supported)}
    wasted = [number for number in range(1, len(hops) + 1) if number not in used]
    return Score(len(wasted) / len(hops), details={"wasted": wasted})

"""How much of what was retrieved repeats what stands above it. Asks no judge."""

from __future__ import annotations

from ragmetrics import LogRow, Score, Steps, metric, sentences


@metric(version=1, needs=("retrieved_contexts",), calls="0", higher_is_better=False)
def context_redundancy(row: LogRow) -> Steps[Score]:
    """Share of the retrieved sentences that stand in a context further up as well.

        context_redundancy = |repeated sentences| / |sentences of all contexts|

    Range [0, 1], LOWER is better. No judge call. No sentence retrieved: not applicable.
    Source: our own.
    """
    seen: set[str] = set()
    total = repeated = 0
    for context in row.retrieved_contexts:
        found = [one.casefold() for one in sentences(context, row.language)]
        total += len(found)
        repeated += sum(one in seen for one in found)
        seen.update(found)
    if not total:
        return Score.not_applicable("no sentence retrieved")
    yield from ()  # a metric is a generator, also one that asks nothing
    return Score(repeated / total, details={"repeated": repeated, "sentences": total})

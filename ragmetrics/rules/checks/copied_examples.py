"""Copied examples: a judge replies with the example of its prompt, and not about the row."""

from __future__ import annotations

from collections.abc import Iterator

from ragmetrics.records import Finding, VerdictCount
from ragmetrics.rules.night_check import Limit, Sample, Tonight, check

_FEWEST = 3
"""Copies that are told: one may be a row about the same subject as the example."""
_DO = "the scores of its metrics are meaningless: choose another or larger model"


@check(
    "copied_examples",
    "a judge that copies examples",
    order=37,
    limit=Limit(0.05),
    sample=Sample(
        "Copied examples",
        "at most 5% of the replies to a prompt copy its example",
        f"openai smol-135m: 31 of 40 replies to questions copy an example of the prompt; {_DO}",
    ),
)
def copied_examples(tonight: Tonight) -> Iterator[Finding]:
    """More than 5% of a judge's replies to a prompt, and at least three, have a text of an example
    of the prompt that the request itself does not have.

    Texts that a judge has to choose from are none. One finding for all judges; no finding in nights
    without counts, as those of earlier versions. An alert that is open then resolves where its
    judge was replaced.
    """
    verdicts = tonight.manifest.verdicts
    if not (verdicts or tonight.is_over):
        return
    copying = [
        f"{judge}: {count.copied:,} of {count.replies:,} replies to {prompt} copy an example of "
        "the prompt"
        for judge, of_judge in verdicts.items()
        for prompt, count in of_judge.items()
        if _copies(count, tonight.limit)
    ]
    rule = f"at most {tonight.limit:.0%} of the replies to a prompt copy its example"
    text = "; ".join([*copying, _DO]) if copying else "no judge copies examples"
    yield tonight.finding("breach" if copying else "ok", rule, text)


def _copies(count: VerdictCount, limit: float) -> bool:
    return count.copied >= _FEWEST and count.copied > limit * count.replies

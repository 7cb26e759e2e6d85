"""Whether the retrieved contexts contradict each other. Asks the judge once per row."""

from __future__ import annotations

import re
from itertools import combinations

from pydantic import BaseModel

from ragmetrics import Data, Lexicon, LogRow, Prompt, Score, Steps, ask, errors, metric

ALIKE_FROM = 0.6


class Contradictions(BaseModel):
    """The numbers of contexts that another one contradicts."""

    contradicted: list[int]


def _check(verdict: Contradictions, data: Data) -> None:
    """What a schema cannot say; an unreadable reply is asked again."""
    if strange := set(verdict.contradicted) - set(map(int, data["contexts"])):
        raise errors.UnreadableReply(f"contradicted: there is no context {min(strange)}")


def _baseline(data: Data, lexicon: Lexicon) -> Contradictions:
    """The lexical judge's answer: contexts in almost the same words with other numbers."""
    contradicted: set[int] = set()
    for (one, left), (other, right) in combinations(data["contexts"].items(), 2):
        alike = min(lexicon.coverage(left, right), lexicon.coverage(right, left)) >= ALIKE_FROM
        if alike and set(re.findall(r"\d+", left)) != set(re.findall(r"\d+", right)):
            contradicted |= {int(one), int(other)}
    return Contradictions(contradicted=sorted(contradicted))


CONTRADICTIONS = Prompt(
    name="house_contradictions",
    version=1,
    verdict=Contradictions,
    instruction="""
You look for contradictions between retrieved contexts. The input holds a question and contexts by
number. Reply with the numbers of all contexts that contradict another one on what the question asks
about; with an empty list if none do.
""",
    examples=(
        (
            {
                "question": "When does the museum open?",
                "contexts": {"1": "It opens at 9.", "2": "It opens at 10.", "3": "It is free."},
            },
            {"contradicted": [1, 2]},
        ),
    ),
    check=_check,
    baseline=_baseline,
)


@metric(version=1, prompts=[CONTRADICTIONS], calls="1")
def context_consistency(row: LogRow) -> Steps[Score]:
    """Share of the retrieved contexts that no other one contradicts.

        context_consistency = 1 - |contradicted contexts| / |contexts|

    Range [0, 1], higher is better; one judge call per row. Fewer than two contexts: not
    applicable. Raises Unanswered where the reply stays unreadable.
    Source: our own.
    """
    texts = [text for text in row.retrieved_contexts if text.strip()]
    if len(texts) < 2:
        return Score.not_applicable("fewer than two contexts")
    numbered = {str(number): text for number, text in enumerate(texts, 1)}
    verdict = yield from ask(CONTRADICTIONS, question=row.user_input, contexts=numbered)
    contradicted = sorted(set(verdict.contradicted))
    return Score(1 - len(contradicted) / len(texts), details={"contradicted": contradicted})

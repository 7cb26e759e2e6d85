"""Response relevancy (answer relevancy) of ragas 0.4: the same number from the same replies.

The words of the prompt are those of ragas 0.4.3, Apache License 2.0, see NOTICE.
"""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

import numpy as np
from pydantic import BaseModel, TypeAdapter

from ragmetrics.errors import InputError
from ragmetrics.metrics.bundled._ragas import baseline_of, read
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.metrics.definition import metric
from ragmetrics.records import (
    Data,
    Lexicon,
    LogRow,
    Prompt,
    Score,
    Status,
    Steps,
    Text,
    Vector,
    ask_times,
    dump_json,
    embed_each,
)

Rule = Literal["all", "any"]


class Generated(BaseModel):
    """A question that the response answers, and whether the response avoids to."""

    question: str
    noncommittal: int


_GENERATED = TypeAdapter(Generated)


def _check(verdict: Text, data: Data) -> None:
    read(_GENERATED, verdict.text)


def _baseline(data: Data, lexicon: Lexicon) -> Text:
    asked = {"response": json.loads(data["input"])["response"], "language": "en", "n": 1}
    baseline = baseline_of(QUESTIONS, asked, lexicon)
    (question,) = baseline.questions
    return Text(text=dump_json({"question": question, "noncommittal": int(baseline.noncommittal)}))


GENERATION = Prompt(
    name="ragas_generation",
    version=1,
    verdict=Text,
    verbatim=True,
    instruction="""\
Generate a question for the given answer and Identify if answer is noncommittal. Give \
noncommittal as 1 if the answer is noncommittal and 0 if the answer is committal. A noncommittal \
answer is one that is evasive, vague, or ambiguous. For example, "I don't know" or "I'm not \
sure" are noncommittal answers
Please return the output in a JSON format that complies with the following schema as specified \
in JSON Schema:
{"properties": {"question": {"title": "Question", "type": "string"}, "noncommittal": {"title": \
"Noncommittal", "type": "integer"}}, "required": ["question", "noncommittal"], "title": \
"ResponseRelevanceOutput", "type": "object"}Do not use single quotes in your response but double \
quotes,properly escaped with a backslash.

--------EXAMPLES-----------
Example 1
Input: {
    "response": "Albert Einstein was born in Germany."
}
Output: {
    "question": "Where was Albert Einstein born?",
    "noncommittal": 0
}

Example 2
Input: {
    "response": "I don't know about the  groundbreaking feature of the smartphone invented in \
2023 as am unaware of information beyond 2022. "
}
Output: {
    "question": "What was the groundbreaking feature of the smartphone invented in 2023?",
    "noncommittal": 1
}
-----------------------------

Now perform the same with the following input
input: {input}
Output: """,
    check=_check,
    baseline=_baseline,
)


@metric(
    version=1,
    display="Answer relevance (ragas)",
    prompts=[GENERATION],
    needs=("user_input", "response"),
    score_range=(-1.0, 1.0),
    calls="3 of one prompt, and an embedding of the question and of each generated question",
    embeds=True,
)
def ragas_response_relevancy(
    row: LogRow, noncommittal: Rule = "all", strictness: int = 3
) -> Steps[Score]:
    """Mean similarity of the question to questions generated one by one (ragas 0.4).

        ragas_response_relevancy = mean_i cos(e(question_i), e(user_input)),  0 if noncommittal

    Range [-1, 1] except for rounding, higher is better; `strictness` judge calls per row, all with
    the same text, then one embedding per distinct text. As in ragas.metrics of 0.4.3, equal
    questions each count; a generated question may be empty; the response is noncommittal if
    `all` of the replies say so (from 0.3.6 on), or if `any` does (up to 0.3.5), by any number
    except 0. Noncommittal: 0.0, nothing embedded (ragas embeds first). All generated questions
    empty, or an embedding of length 0: no score (unreadable); ragas gives NaN. Empty question
    or no response: not applicable.
    Raises InputError for another rule or a strictness below 1; Unanswered if a reply stays
    unreadable (no JSON with both fields; the request is repeated, while ragas asks for a repair)
    or an embedding fails.
    Source: ragas 0.4.3, metrics/_answer_relevance.py; `any`: 0.3.5.
    """
    if noncommittal not in get_args(Rule):
        raise InputError(f"ragas_response_relevancy: noncommittal: {noncommittal!r}: all or any")
    if strictness < 1:
        raise InputError(f"ragas_response_relevancy: strictness: {strictness} is less than 1")
    if not row.user_input.strip():
        return Score.not_applicable("empty question")
    if not (row.response or "").strip():
        return Score.not_applicable("no response")
    asked = json.dumps({"response": row.response}, ensure_ascii=False, indent=4)
    replies = yield from ask_times(GENERATION, strictness, input=asked)
    generated = [read(_GENERATED, reply.text) for reply in replies]
    flags = [bool(one.noncommittal) for one in generated]
    questions = [one.question for one in generated]
    details: dict[str, Any] = {"questions": questions, "noncommittal": flags}
    if not any(questions):
        return _no_score("every generated question is empty", details)
    if (all if noncommittal == "all" else any)(flags):
        return Score(0.0, reason="noncommittal response", details=details)
    vectors = yield from embed_each([row.user_input, *questions])
    cosines = _cosines(vectors)
    if not np.isfinite(cosines).all():
        return _no_score("an embedding has no direction", details)
    return Score(float(cosines.mean()), details={**details, "cosines": cosines.tolist()})


def _no_score(reason: str, details: dict[str, Any]) -> Score:
    return Score(None, reason, details, status=Status.UNREADABLE)


def _cosines(vectors: list[Vector]) -> Any:
    """Cosines of the first vector with the others, computed as in ragas, to the last bit."""
    asked = np.asarray(vectors[:1], dtype=np.float64)
    offered = np.asarray(vectors[1:], dtype=np.float64)
    norms = np.linalg.norm(offered, axis=1) * np.linalg.norm(asked, axis=1)
    with np.errstate(invalid="ignore"):
        return np.dot(offered, asked.T).reshape(-1) / norms

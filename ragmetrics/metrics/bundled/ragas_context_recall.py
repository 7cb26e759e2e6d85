"""Context recall of ragas 0.1: the same number from the same replies.

The words of the prompt are those of ragas 0.1.10, Apache License 2.0, see NOTICE.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter

from ragmetrics.metrics.bundled._ragas import baseline_of, joined, read
from ragmetrics.metrics.bundled.context_recall import SUPPORT
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
    ask,
    dump_json,
)
from ragmetrics.text import sentences


def _truncated(value: Any) -> Any:
    return int(value) if isinstance(value, float) and math.isfinite(value) else value


class Statement(BaseModel):
    """A statement that the judge found in the reference, and whether it is attributed."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    statement: str
    attributed: Annotated[int, BeforeValidator(_truncated)]
    reason: str


_STATEMENTS = TypeAdapter(list[Statement])


def _check(verdict: Text, data: Data) -> None:
    read(_STATEMENTS, verdict.text)


def _baseline(data: Data, lexicon: Lexicon) -> Text:
    claims = sentences(data["answer"], "en")
    asked = {"question": data["question"], "contexts": [data["context"]], "sentences": claims}
    supported = baseline_of(SUPPORT, asked, lexicon).supported
    items = [
        {"statement": claim, "attributed": verdict, "reason": "by overlap of words"}
        for claim, verdict in zip(claims, supported, strict=True)
    ]
    return Text(text=dump_json(items))


ATTRIBUTION = Prompt(
    name="ragas_attribution",
    version=1,
    verdict=Text,
    verbatim=True,
    instruction="""\
Given a context, and an answer, analyze each sentence in the answer and classify if the sentence \
can be attributed to the given context or not. Use only "Yes" (1) or "No" (0) as a binary \
classification. Output json with reason.

The output should be a well-formatted JSON instance that conforms to the JSON schema below.

As an example, for the schema {"properties": {"foo": {"title": "Foo", "description": "a list of \
strings", "type": "array", "items": {"type": "string"}}}, "required": ["foo"]}
the object {"foo": ["bar", "baz"]} is a well-formatted instance of the schema. The object \
{"properties": {"foo": ["bar", "baz"]}} is not well-formatted.

Here is the output JSON schema:
```
{"type": "array", "items": {"$ref": "#/definitions/ContextRecallClassificationAnswer"}, \
"definitions": {"ContextRecallClassificationAnswer": {"title": \
"ContextRecallClassificationAnswer", "type": "object", "properties": {"statement": {"title": \
"Statement", "type": "string"}, "attributed": {"title": "Attributed", "type": "integer"}, \
"reason": {"title": "Reason", "type": "string"}}, "required": ["statement", "attributed", \
"reason"]}}}
```

Do not return any preamble or explanations, return only a pure JSON string surrounded by triple \
backticks (```).

Examples:

question: "What can you tell me about albert Albert Einstein?"
context: "Albert Einstein (14 March 1879 - 18 April 1955) was a German-born theoretical \
physicist, widely held to be one of the greatest and most influential scientists of all time. \
Best known for developing the theory of relativity, he also made important contributions to \
quantum mechanics, and was thus a central figure in the revolutionary reshaping of the \
scientific understanding of nature that modern physics accomplished in the first decades of the \
twentieth century. His mass-energy equivalence formula E = mc2, which arises from relativity \
theory, has been called 'the world's most famous equation'. He received the 1921 Nobel Prize in \
Physics 'for his services to theoretical physics, and especially for his discovery of the law of \
the photoelectric effect', a pivotal step in the development of quantum theory. His work is also \
known for its influence on the philosophy of science. In a 1999 poll of 130 leading physicists \
worldwide by the British journal Physics World, Einstein was ranked the greatest physicist of \
all time. His intellectual achievements and originality have made Einstein synonymous with \
genius."
answer: "Albert Einstein born in 14 March 1879 was  German-born theoretical physicist, widely \
held to be one of the greatest and most influential scientists of all time. He received the 1921 \
Nobel Prize in Physics for his services to theoretical physics. He published 4 papers in 1905.  \
Einstein moved to Switzerland in 1895"
classification: ```[{"statement": "Albert Einstein, born on 14 March 1879, was a German-born \
theoretical physicist, widely held to be one of the greatest and most influential scientists of \
all time.", "attributed": 1, "reason": "The date of birth of Einstein is mentioned clearly in \
the context."}, {"statement": "He received the 1921 Nobel Prize in Physics for his services to \
theoretical physics.", "attributed": 1, "reason": "The exact sentence is present in the given \
context."}, {"statement": "He published 4 papers in 1905.", "attributed": 0, "reason": "There is \
no mention about papers he wrote in the given context."}, {"statement": "Einstein moved to \
Switzerland in 1895.", "attributed": 0, "reason": "There is no supporting evidence for this in \
the given context."}]```

question: "who won 2020 icc world cup?"
context: "The 2022 ICC Men's T20 World Cup, held from October 16 to November 13, 2022, in \
Australia, was the eighth edition of the tournament. Originally scheduled for 2020, it was \
postponed due to the COVID-19 pandemic. England emerged victorious, defeating Pakistan by five \
wickets in the final to clinch their second ICC Men's T20 World Cup title."
answer: "England"
classification: ```[{"statement": "England won the 2022 ICC Men's T20 World Cup.", "attributed": \
1, "reason": "From context it is clear that England defeated Pakistan to win the World Cup."}]```

question: "What is the primary fuel for the Sun?"
context: "NULL"
answer: "Hydrogen"
classification: ```[{"statement": "The Sun's primary fuel is hydrogen.", "attributed": 0, \
"reason": "The context contains no information"}]```

Your actual task:

question: {question}
context: {context}
answer: {answer}
classification:\x20
""",
    check=_check,
    baseline=_baseline,
)


@metric(
    version=1,
    display="Context recall (ragas)",
    prompts=[ATTRIBUTION],
    needs=("retrieved_contexts", "reference"),
    calls="1",
)
def ragas_context_recall(row: LogRow) -> Steps[Score]:
    """Share of the judge's statements of the reference that the contexts support (0.1).

        ragas_context_recall = |attributed statements| / |statements returned|

    Range [0, 1], higher is better; one judge call per row. As in ragas 0.1, contexts are
    joined by a line break; the judge both splits the reference and judges the statements, and
    these are not compared with the reference, so the denominator is the judge's; `attributed`
    counts unless it is 0 after truncation to an integer (2, -1 and true count; 0.9 does not).
    Nothing retrieved, or an empty question: asked. No statement returned: no score (unreadable);
    ragas gives NaN. No reference, or a blank one, which ragas asks: not applicable.
    Raises Unanswered if the reply stays unreadable: no JSON list of statements with reasons.
    Then the same request is repeated; ragas asks the judge once to repair its reply instead,
    and completes truncated JSON itself.
    Source: ragas 0.1.10, metrics/_context_recall.py (same in 0.1.7 to 0.1.21, which from
    0.1.14 on quote the inputs as JSON).
    """
    if not (row.reference or "").strip():
        return Score.not_applicable("no reference answer")
    reply = yield from ask(
        ATTRIBUTION, question=row.user_input, context=joined(row), answer=row.reference
    )
    classified = read(_STATEMENTS, reply.text)
    if not classified:
        return Score(None, "the judge returned no statement", status=Status.UNREADABLE)
    attributed = [bool(one.attributed) for one in classified]
    details = {"statements": [one.statement for one in classified], "attributed": attributed}
    return Score(sum(attributed) / len(classified), details=details)

"""Share of the response's statements that the retrieved contexts support."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import BaseModel

from ragmetrics.errors import UnreadableReply
from ragmetrics.metrics.bundled._support import claims, share, support_prompt
from ragmetrics.metrics.definition import metric
from ragmetrics.records import Data, Lexicon, LogRow, Prompt, Score, Size, Steps, ask


class Statements(BaseModel):
    """The statements of each sentence, in order; none for a sentence that claims nothing."""

    statements: list[list[str]]


def _check_statements(verdict: Statements, data: Data) -> None:
    asked, received = len(data["sentences"]), len(verdict.statements)
    if asked != received:
        raise UnreadableReply(f"statements: {received} lists for {asked} sentences")


def _sizes(data: Data) -> Mapping[str, Size]:
    lists = len(data["sentences"])
    return {"statements": Size(lists, lists, Size(0, 50, Size(0, 1_000)))}


def _each_as_it_stands(data: Data, lexicon: Lexicon) -> Statements:
    return Statements(statements=[[sentence] for sentence in data["sentences"]])


STATEMENTS = Prompt(
    name="statements",
    version=2,
    verdict=Statements,
    instruction="""
You take apart the sentences of an assistant's response into the statements that they make.
The input holds a question and the sentences of the response. For each sentence, in order, reply
with the list of its statements: short sentences in the language of the response, each of one
fact, each understood on its own, with names in place of pronouns. Add nothing that the sentence
does not say. A sentence that claims nothing, such as a greeting, a question or "I do not know",
has an empty list. Reply with exactly one list per sentence.
""",
    examples=(
        (
            {
                "question": "When was the Eiffel Tower built?",
                "sentences": [
                    "It was built from 1887 to 1889 by the company of Gustave Eiffel.",
                    "I hope that helps!",
                ],
            },
            {
                "statements": [
                    [
                        "The Eiffel Tower was built from 1887 to 1889.",
                        "The company of Gustave Eiffel built the Eiffel Tower.",
                    ],
                    [],
                ]
            },
        ),
    ),
    check=_check_statements,
    sizes=_sizes,
    baseline=_each_as_it_stands,
)


GROUNDED = support_prompt(
    "statements",
    name="grounded",
    version=2,
    instruction="""
You check which statements are supported by texts.
The input holds a question, contexts and statements made in reply to the question. For each
statement, in order, reply 1 if the contexts, taken together, say it or it follows from them
directly, and 0 if not. A statement that is supported only in part, or contradicted, is 0. Judge
only what the contexts say; do not use other knowledge, and judge each statement by itself.
Reply with exactly one verdict per statement.
""",
    examples=(
        (
            {
                "question": "When was the Eiffel Tower built?",
                "contexts": ["The Eiffel Tower was built from 1887 to 1889."],
                "statements": [
                    "The Eiffel Tower was finished in 1889.",
                    "The company of Gustave Eiffel built the Eiffel Tower.",
                ],
            },
            {"supported": [1, 0]},
        ),
    ),
    rubric="The contexts, taken together, say all of the statement, or it follows from them.",
)


def statements(row: LogRow) -> Steps[list[str]]:
    """The statements of a row's response, in order; no request if it has no sentence."""
    texts = claims(row.response, row.language)
    if not texts:
        return []
    verdict = yield from ask(STATEMENTS, question=row.user_input, sentences=texts)
    return [statement for group in verdict.statements for statement in group if statement.strip()]


def by_sentences(row: LogRow) -> Steps[list[str]]:
    """The sentences of a row's response in place of its statements; no request."""
    yield from ()
    return claims(row.response, row.language)


@metric(version=1, prompts=[GROUNDED], calls="1 for the verdicts on the response's sentences")
def _by_decisions(row: LogRow) -> Steps[Score]:
    """For a decision model, which writes no statements: each sentence of the response is one."""
    return (yield from _grounded(row, by_sentences))


@metric(
    version=1,
    display="Faithfulness",
    prompts=[STATEMENTS, GROUNDED],
    needs=("retrieved_contexts", "response"),
    calls="2: one for the statements, one for the verdicts",
    label_target="faithfulness",
    by_decisions=_by_decisions,
)
def faithfulness(row: LogRow) -> Steps[Score]:
    """Share of the response's statements that the retrieved contexts support.

        faithfulness = |{s in S : contexts support s}| / |S|,   S = statements of the response

    Range [0, 1], higher is better; two judge calls per row. The judge splits our sentences into
    statements; with the lexical judge each sentence is one statement. The question may be
    empty: it only gives context. No response, or no statement in it: not applicable. Nothing
    retrieved: 0.0, not asked. Raises Unanswered if a reply stays unreadable: not one list per
    sentence, or not one verdict per statement. A decision model writes no statements: with it each
    sentence of the response is one.
    Source: RAGAS faithfulness (Es et al. 2023), split sentence by sentence.
    """
    return (yield from _grounded(row, statements))


def _grounded(row: LogRow, split: Callable[[LogRow], Steps[list[str]]]) -> Steps[Score]:
    """The share of the response's statements, as `split` gives them, that the contexts support."""
    if not (row.response or "").strip():
        return Score.not_applicable("no response")
    contexts = [context for context in row.retrieved_contexts if context.strip()]
    if not contexts:
        return Score(0.0, reason="nothing retrieved supports it")
    stated = yield from split(row)
    if not stated:
        return Score.not_applicable("no statement in the response")
    verdict = yield from ask(
        GROUNDED, question=row.user_input, contexts=contexts, statements=stated
    )
    supported = [bool(true) for true in verdict.supported]
    return share(verdict.weights, {"statements": stated, "supported": supported})

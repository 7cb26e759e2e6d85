"""What the endpoint says to the prompts of ragas 0.4 and DeepEval, by plain word overlap.

Each reply holds what its prompt asks for and no more, reasons of some 15 words where it wants
reasons, so that completion tokens are those of a model that keeps to its instructions.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tests.fakes.verdicts import overlap, question_of

Answer: TypeAlias = Callable[[str, int], Any]

_SENTENCE = re.compile(r"[^.!?]+(?:[.!?](?!\s)[^.!?]*)*[.!?]?")


def peer_reply(user: str, number: int) -> str | None:
    """Answer a peer's prompt, put for the `number`-th time; None to any other prompt."""
    for beginning, answer in _ANSWERS.items():
        if user.startswith(beginning):
            said = answer(user, number)
            return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return None


def is_question_prompt(user: str) -> bool:
    """Whether ragas asks for a question, of which it wants several by the same prompt."""
    return user.startswith(_QUESTION)


def _grade(question: str, context: str) -> int:
    share = overlap(question, context)
    return 2 if share >= 0.6 else 1 if share >= 0.3 else 0


def _nv_grade(user: str, number: int) -> str:
    question, _, context = _after(user, "### Question: ").partition("\n\n### Context: ")
    return str(_grade(question, context.partition("\n\nDo not try to explain.")[0]))


def _rating(user: str, number: int) -> Any:
    data = _input(user)
    return {"rating": _grade(data["user_input"], data["context"])}


def _nv_grade_or_rating(user: str, number: int) -> Any:
    """Both APIs begin alike; the newer one asks for JSON."""
    return _rating(user, number) if "as JSON in this format" in user else _nv_grade(user, number)


def _attributions(user: str, number: int) -> Any:
    data = _input(user)
    return {
        "classifications": [
            {
                "statement": sentence,
                "reason": _reason(sentence, "the given context"),
                "attributed": int(overlap(sentence, data["context"]) >= 0.7),
            }
            for sentence in _sentences(data["answer"])
        ]
    }


def _question(user: str, number: int) -> Any:
    return {"question": question_of(_input(user)["response"], number + 1), "noncommittal": 0}


def _relevant_statements(user: str, number: int) -> Any:
    question, _, context = _after(user, "**\n\nInput:\n").partition("\n\nContext:\n")
    verdicts = []
    # High-level information, as the prompt wants it: what two neighbouring sentences say.
    for sentence in _sentences(context.removesuffix("\n\nJSON:"))[::2]:
        if overlap(question, sentence) >= 0.4:
            verdicts.append({"statement": sentence, "verdict": "yes"})
        else:
            reason = _reason(sentence, "the question that was asked")
            verdicts.append({"statement": sentence, "reason": reason, "verdict": "no"})
    return {"verdicts": verdicts}


def _attributed_sentences(user: str, number: int) -> Any:
    expected, _, context = _after(user, "**\n\nExpected Output:\n").partition(
        "\n\nRetrieval Context:\n"
    )
    return {
        "verdicts": [
            {
                "reason": _reason(sentence, "the 1st node in the retrieval context"),
                "verdict": "yes" if overlap(sentence, context) >= 0.7 else "no",
            }
            for sentence in _sentences(expected)
        ]
    }


def _statements(user: str, number: int) -> Any:
    return {"statements": _sentences(_after(user, "**\n\nText:\n").removesuffix("\n\nJSON:"))}


def _statement_verdicts(user: str, number: int) -> Any:
    question, _, listed = _after(user, "\n\nInput:\n").partition("\n\nStatements:\n")
    verdicts = []
    for sentence in ast.literal_eval(listed.removesuffix("\n\nJSON:").strip()):
        if overlap(question, sentence) >= 0.2:
            verdicts.append({"verdict": "yes"})
        else:
            verdicts.append({"reason": _reason(sentence, "the input"), "verdict": "no"})
    return {"verdicts": verdicts}


def _score_reason(user: str, number: int) -> Any:
    score = re.search(r"Score:\n([\d.]+)", user)
    return {
        "reason": f"The score is {score[1] if score else 0} because some of the statements bear "
        "on the question while others speak of parts and devices that nobody asked about."
    }


def _reason(sentence: str, what: str) -> str:
    return f"The sentence '{' '.join(sentence.split()[:6])} ...' was held against {what}."


def _sentences(text: str) -> list[str]:
    return [found.strip() for found in _SENTENCE.findall(text) if found.strip()]


def _after(text: str, mark: str) -> str:
    return text.rpartition(mark)[2]


def _input(user: str) -> dict[str, Any]:
    """The object that ragas puts after its last `input:`."""
    data: dict[str, Any]
    data, _ = json.JSONDecoder().raw_decode(_after(user, "\ninput: "))
    return data


_QUESTION = "Generate a question for the given answer"
_ANSWERS: Mapping[str, Answer] = {
    # ragas 0.4: ragas.metrics, then ragas.metrics.collections
    "### Instructions\n\nYou are a world class expert designed to evaluate": _nv_grade,
    "As a specially designed expert to assess the relevance score": _nv_grade_or_rating,
    "You are a world class expert designed to evaluate the relevance score": _rating,
    "Given a context, and an answer, analyze each sentence": _attributions,
    "Given a context and an answer, analyze each statement": _attributions,
    _QUESTION: _question,
    # DeepEval
    "Based on the input and context, please generate a JSON object": _relevant_statements,
    "For EACH sentence in the given expected output below": _attributed_sentences,
    "Given the text, breakdown and generate a list of statements": _statements,
    "For the provided list of statements, determine whether": _statement_verdicts,
    "Based on the given input, reasons for why the retrieval": _score_reason,
    "Given the original expected output, a list of supportive": _score_reason,
    "Given the answer relevancy score, the list of reasons": _score_reason,
}

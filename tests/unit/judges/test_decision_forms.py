"""The wire forms of decision models, by the types of the openai SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from ragmetrics.judges.decision_forms import FORMS, REFUSED
from ragmetrics.records import Predicate, Question, ScoreQuestion

types = pytest.importorskip("openai.types.decision", reason="an openai without decisions")
params = pytest.importorskip("openai.types.decision_create_params")

ASKED: list[tuple[str, Question]] = [
    ("grade c1", ScoreQuestion("", ("no use", "some use", "answers it"))),
    ("needed 1", Predicate("1")),
]
USAGE = {
    "input_tokens": 90,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 90,
}


def body(form: str) -> dict[str, Any]:
    """The body of a request."""
    read: dict[str, Any] = json.loads(FORMS[form].body("luna", "{}", ASKED))
    return read


def test_requests_have_the_types_of_the_sdk() -> None:
    """Each question is one of its union, with no key beyond."""
    sent = body("decisions")
    adapter: TypeAdapter[Any] = TypeAdapter(params.Question)
    for question in sent["questions"]:
        read = adapter.validate_python(question)
        assert read["type"] == question["type"]
    assert sent.keys() <= params.DecisionCreateParams.__annotations__.keys()
    assert [one["type"] for one in sent["questions"]] == ["score", "predicate"]


def test_answers_are_read_as_the_sdk_reads_them() -> None:
    """Probabilities by label, whatever their order; tokens under their names."""
    shares = [{"value": n, "label": str(n), "probability": p} for n, p in ((2, 0.7), (0, 0.1))]
    answers = [
        {
            "type": "score",
            "name": None,
            "score": 1.6,
            "confidence": 0.7,
            "probabilities": [*shares, {"value": 1, "label": "1", "probability": 0.2}],
        },
        {"type": "predicate", "name": None, "probability": 0.97},
    ]
    answer = {"model": "luna", "answers": answers, "usage": USAGE}
    types.Decision.model_validate(answer)
    decided = FORMS["decisions"].read(ASKED, answer)
    assert decided.answers == [[0.1, 0.2, 0.7], 0.97]
    assert decided.tokens[:3] == (90, 20, 0)


def test_system_one_has_answers_by_id() -> None:
    """Levels are the keys of the probabilities."""
    asked = body("systemone")["questions"]
    assert asked["1"] == {
        "type": "score",
        "instructions": "grade c1",
        "criteria": ["0", "1", "2"],
    }
    assert asked["2"] == {"type": "noul", "instructions": "needed 1"}
    answers = {
        "2": {"type": "noul", "noul": 0.97, "label_mass": 0.99},
        "1": {"type": "score", "score": 1.6, "probabilities": {"0": 0.1, "1": 0.2, "2": 0.7}},
    }
    decided = FORMS["systemone"].read(ASKED, {"answers": answers, "usage": USAGE})
    assert decided.answers == [[0.1, 0.2, 0.7], 0.97]


def test_a_refusal_is_of_its_question_alone() -> None:
    """The others keep their answers."""
    answers = [{"type": "refusal", "name": None}, {"type": "predicate", "probability": 0.5}]
    assert FORMS["decisions"].read(ASKED, {"answers": answers}).answers == [REFUSED, 0.5]


@pytest.mark.parametrize("form", ["decisions", "systemone"])
def test_answers_that_cannot_be_told_apart_are_none(form: str) -> None:
    """One answer to two questions is no answer to either, if they have no ids."""
    answer = {"type": "predicate", "probability": 0.5}
    answers: Any = [answer] if form == "decisions" else {"x": answer}
    assert FORMS[form].read(ASKED, {"answers": answers}).answers == [None, None]


@pytest.mark.parametrize("form", ["decisions", "systemone"])
@pytest.mark.parametrize("answer", [{}, {"answers": None}, {"answers": "yes"}])
def test_an_answer_of_another_server_raises(form: str, answer: dict[str, Any]) -> None:
    """The endpoint tells it as such."""
    with pytest.raises((LookupError, TypeError)):
        FORMS[form].read(ASKED, answer)

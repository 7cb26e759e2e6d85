"""ragas_response_relevancy: ragas 0.4's questions, one by one; replies played by hand."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import BaseModel

from ragmetrics.errors import InputError, Unanswered, UnreadableReply
from ragmetrics.judges import Corpus
from ragmetrics.judges.word_overlap import Overlap
from ragmetrics.metrics.bundled.ragas_response_relevancy import GENERATION, ragas_response_relevancy
from ragmetrics.records import Ask, Embed, Score, Status, Text
from tests import builders
from tests.builders import end

ASKED = "When was the tower opened?"
THREE = ["When did it open?", "In which year?", "What happened in 1889?"]
VECTORS = hnp.arrays(np.float32, (4, 5), elements=st.floats(-1e3, 1e3, width=32))
# What ragas 0.4.3 itself makes of this text: `ResponseRelevancePrompt().to_string(...)`, sha256.
AWKWARD = 'It\'s {input} "so"\n\u2028 \x01 ☃ \\u00e9 / \x7f'
RAGAS_TEXT = "7db0bba1f9e40f95"


class RagasInput(BaseModel):
    """ragas's model of the input, which pydantic writes as JSON."""

    response: str


a_row = partial(builders.a_row, user_input=ASKED, response="It was opened in 1889.")


def said(question: str, noncommittal: Any = 0) -> Text:
    """The judge's reply."""
    return Text(text=json.dumps({"question": question, "noncommittal": noncommittal}))


def play(flags: list[Any], *vectors: Any, **parameters: Any) -> Score:
    """The score for these flags and, unless there are none, these embeddings."""
    steps = ragas_response_relevancy.with_parameters(parameters).play(a_row())
    next(steps)
    replies = [said(question, flag) for question, flag in zip(THREE, flags, strict=True)]
    if not vectors:
        return end(steps, *replies)
    steps.send(replies)
    return end(steps, *[np.asarray(vector, dtype=np.float32) for vector in vectors])


SAME = ([1, 0], [1, 0], [2, 0], [3, 0])


def test_asks_the_same_three_times_then_for_embeddings() -> None:
    """Three requests of one text, each a question of its own; then one wave of embeddings."""
    steps = ragas_response_relevancy.play(a_row())
    data = {"input": '{\n    "response": "It was opened in 1889."\n}'}
    requests = next(steps)
    assert requests == [Ask(GENERATION, data, (number,)) for number in range(3)]
    assert len({request.key for request in requests}) == 3
    assert steps.send([said(one) for one in THREE]) == [Embed(ASKED), *map(Embed, THREE)]


def test_sends_the_very_words_of_ragas() -> None:
    """One user turn, equal byte by byte, braces and control characters included."""
    request = next(ragas_response_relevancy.play(a_row(response=AWKWARD)))[0]
    (turn,) = request.prompt.messages(request.data)
    assert turn["role"] == "user"
    assert hashlib.sha256(turn["content"].encode()).hexdigest()[:16] == RAGAS_TEXT


@given(st.text().filter(str.strip))
def test_the_input_is_the_json_that_pydantic_writes(response: str) -> None:
    """ragas sends `model_dump_json(indent=4)`."""
    request = next(ragas_response_relevancy.play(a_row(response=response)))[0]
    assert request.data["input"] == RagasInput(response=response).model_dump_json(indent=4)


def test_value_is_the_mean_cosine() -> None:
    """Cosines 1, 0 and 3/5 have the mean 8/15; lengths of vectors do not matter."""
    found = play([0, 0, 0], [2, 0], [1, 0], [0, 7], [3, 4])
    assert found.value == pytest.approx(8 / 15)
    assert found.details == {
        "questions": THREE,
        "noncommittal": [False, False, False],
        "cosines": [1.0, 0.0, 0.6],
    }


# Quirks


@pytest.mark.parametrize(
    ("flags", "of_all", "of_any"),
    [
        ([0, 0, 0], 1.0, 1.0),
        ([0, 1, 0], 1.0, 0.0),
        ([1, 1, 0], 1.0, 0.0),
        ([1, 1, 1], 0.0, 0.0),
        ([2, -1, True], 0.0, 0.0),
        ([0, "1", 1.0], 1.0, 0.0),
    ],
)
def test_noncommittal_by_all_or_by_any(flags: list[Any], of_all: float, of_any: float) -> None:
    """From 0.3.6 on all replies must say so, up to 0.3.5 any; a number other than 0 says so."""
    for rule, expected in (("all", of_all), ("any", of_any)):
        found = play(flags, *(SAME if expected else ()), noncommittal=rule)
        assert found.value == expected
        assert found.reason == ("" if expected else "noncommittal response")


def test_all_is_the_default() -> None:
    """As in 0.4."""
    assert play([1, 1, 0], *SAME).value == 1.0


def test_equal_questions_count_each() -> None:
    """Nothing makes the questions distinct: the one asked for twice weighs two thirds."""
    steps = ragas_response_relevancy.play(a_row())
    next(steps)
    assert steps.send([said("A?"), said("A?"), said("B?")])[1:] == [
        Embed("A?"),
        Embed("A?"),
        Embed("B?"),
    ]
    vectors = [np.asarray(v, dtype=np.float32) for v in ([1, 0], [1, 0], [1, 0], [0, 1])]
    assert end(steps, *vectors).value == pytest.approx(2 / 3)


def test_an_empty_question_among_others_is_embedded() -> None:
    """It counts with whatever its embedding says."""
    steps = ragas_response_relevancy.play(a_row())
    next(steps)
    assert steps.send([said(""), said("A?"), said("B?")])[1] == Embed("")


def test_all_questions_empty_is_no_score() -> None:
    """ragas gives NaN, noncommittal or not."""
    for flag in (0, 1):
        steps = ragas_response_relevancy.play(a_row())
        next(steps)
        found = end(steps, *[said("", flag)] * 3)
        assert (found.value, found.status) == (None, Status.UNREADABLE)
        assert found.reason == "every generated question is empty"


@pytest.mark.parametrize("vectors", [([0, 0], *SAME[1:]), (*SAME[:3], [0, 0])])
def test_an_embedding_without_direction_is_no_score(vectors: Any) -> None:
    """ragas divides by 0 and gives NaN."""
    found = play([0, 0, 0], *vectors)
    assert (found.value, found.status) == (None, Status.UNREADABLE)


def test_strictness_is_the_number_of_questions() -> None:
    """Each is a request."""
    steps = ragas_response_relevancy.with_parameters({"strictness": 5}).play(a_row())
    assert len(next(steps)) == 5


# Empty cases


def test_one_missing_reply_leaves_the_row_unanswered() -> None:
    """As in ragas, where the row fails."""
    steps = ragas_response_relevancy.play(a_row())
    next(steps)
    with pytest.raises(Unanswered, match="no JSON"):
        steps.send([said("A?"), Unanswered(Status.UNREADABLE, "no JSON"), said("B?")])


def test_a_failed_embedding_leaves_the_row_unanswered() -> None:
    """The driver makes it a status."""
    steps = ragas_response_relevancy.play(a_row())
    next(steps)
    steps.send([said(one) for one in THREE])
    with pytest.raises(Unanswered, match="timeout"):
        steps.send([Unanswered(Status.JUDGE_FAILED, "timeout")] * 4)


@pytest.mark.parametrize("parameters", [{"noncommittal": "most"}, {"strictness": 0}])
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any]) -> None:
    """With the parameter's name."""
    with pytest.raises(InputError, match=next(iter(parameters))):
        next(ragas_response_relevancy.with_parameters(parameters).play(a_row()))


# Replies


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "So: {} Hope it helps {:-)"])
def test_reads_the_first_object(form: str) -> None:
    """Prose and fences around it are passed over; braces in the question do not matter."""
    reply = form.replace("{}", '{"question": "Why {} here: }", "noncommittal": 0}', 1)
    assert GENERATION.parse(reply, {}) == Text(text=reply)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("When did it open?", "no JSON"),
        ('{"question": "When?"}', "noncommittal: not there"),
        ('{"noncommittal": 0}', "question: not there"),
        ('{"question": "When?", "noncommittal": "no"}', "noncommittal"),
        ('{"question": "When?", "noncommittal": 0.5}', "noncommittal"),
        ('{"question": null, "noncommittal": 0}', "question"),
        ('[{"question": "When?", "noncommittal": 0}]', "dictionary"),
        ('{"question": "When?", "noncommittal": 0', "no JSON"),
    ],
)
def test_any_other_reply_is_unreadable(reply: str, reason: str) -> None:
    """It is asked again, where ragas asks for a repair."""
    with pytest.raises(UnreadableReply, match=reason):
        GENERATION.parse(reply, {})


@pytest.mark.parametrize(("response", "flag"), [("It opened.", 0), ("I do not know.", 1)])
def test_the_embedded_judge_offers_the_response_itself(response: str, flag: int) -> None:
    """Its baseline answers in ragas's form."""
    assert GENERATION.baseline is not None
    data = {"input": json.dumps({"response": response})}
    reply = GENERATION.baseline(data, Overlap(Corpus()))
    assert json.loads(reply.text) == {"question": response, "noncommittal": flag}


# Properties


@given(VECTORS)
def test_value_is_in_bounds(vectors: Any) -> None:
    """In [-1, 1] but for rounding; no score only where a vector has no direction."""
    found = play([0, 0, 0], *vectors)
    if found.value is None:
        assert any(not np.linalg.norm(vector.astype(float)) for vector in vectors)
    else:
        assert abs(found.value) <= 1 + 1e-12


@given(VECTORS, st.permutations(range(3)))
def test_the_order_of_questions_does_not_matter(vectors: Any, order: list[int]) -> None:
    """But for rounding."""
    found = play([0, 0, 0], *vectors).value
    moved = play([0, 0, 0], vectors[0], *(vectors[1 + place] for place in order)).value
    assert moved == pytest.approx(found)

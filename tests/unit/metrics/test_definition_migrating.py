"""docs/how-to/migrating-from-ragas.md: its measured examples, worked out again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.metrics import metrics
from ragmetrics.records import Answer, Ask, LogRow, Request, Score, Status
from tests.fakes.processes import ROOT

PAGE = (ROOT / "docs/how-to/migrating-from-ragas.md").read_text()
EXAMPLE = re.compile(r"^\| (\d+) \| .* \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)
FIGURES = {int(number): (ragas, ours) for number, ragas, ours in EXAMPLE.findall(PAGE)}

TOWER = "The Eiffel Tower was opened to the public on 15 May 1889."
CHUNK = (
    f"The tower was built for the World's Fair. {TOWER} It was the tallest building of the world "
    "until 1930. Today it is seen by some six million people a year."
)
FOUR = (TOWER, "Paris is big.", "The Louvre is a museum.", "It rains in May.")
ROW = LogRow(
    id="row-1",
    user_input="When was the Eiffel Tower opened?",
    retrieved_contexts=FOUR,
    response="It was opened on 15 May 1889.",
    reference="It opened in May 1889. Mr. Eiffel built it. It is painted every seven years.",
)
Reply = Callable[[Ask], str]


def row(**fields: Any) -> LogRow:
    """The row of the examples, with some fields changed."""
    values = {name: getattr(ROW, name) for name in LogRow.__dataclass_fields__}
    return LogRow(**(values | fields))


def always(reply: str) -> Reply:
    """A judge that says one thing."""
    return lambda request: reply


def answer(request: Request, reply: Reply) -> Answer:
    """What the driver sends back; a text's embedding has the cosine 0.9 with the question's."""
    if not isinstance(request, Ask):
        asked = request.input == ROW.user_input
        return np.asarray([1, 0] if asked else [0.9, 0.19**0.5], dtype=np.float64)
    try:
        verdict: Answer = request.prompt.parse(reply(request), request.data)
    except UnreadableReply as error:
        return Unanswered(Status.UNREADABLE, str(error))
    return verdict


def play(name: str, reply: Reply = str, given: LogRow = ROW, **parameters: Any) -> str:
    """The value of a metric as the page writes it, or its status."""
    steps = metrics()[name].with_parameters(parameters).play(given)
    try:
        requests = next(steps)
        while True:
            requests = steps.send([answer(request, reply) for request in requests])
    except StopIteration as stop:
        score: Score = stop.value
    except Unanswered as error:
        score = Score.unanswered(error)
    return str(score.status) if score.value is None else f"{score.value:.11g}"


def sent(name: str) -> str:
    """The characters that a metric sends to the judge about the row."""
    requests = next(metrics()[name].play(ROW))
    turns = [m for one in requests if isinstance(one, Ask) for m in one.prompt.messages(one.data)]
    return f"{sum(len(turn['content']) for turn in turns):,}"


def edit_similarity(one: str, other: str) -> float:
    """ragas's NonLLMStringSimilarity: 1 - Levenshtein's distance / length of the longer."""
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b)))
        last = row
    return 1 - last[-1] / max(len(one), len(other))


def listed(*attributed: int) -> str:
    """A reply of ragas 0.1's context recall."""
    return json.dumps([{"statement": "", "reason": "", "attributed": one} for one in attributed])


def entities(request: Ask) -> str:
    """The reference's article is missing in the context, as it may be."""
    of_reference = request.data["text"] == ROW.reference
    names = ["Eiffel Tower" if of_reference else "the Eiffel Tower", "1889"]
    return json.dumps({"entities": names})


def one_grade(request: Ask) -> str:
    """The first context answers the question, the others have nothing to do with it."""
    return json.dumps({"grade": 2 if request.data["context"] == TOWER else 0})


def first_two(request: Ask) -> str:
    """The first two contexts are useful."""
    return json.dumps({"useful": int(request.data["context"] in FOUR[:2])})


def noncommittal_once() -> Reply:
    """Of three replies the first says that the response does not commit itself."""
    flags = iter([1, 0, 0])
    return lambda request: json.dumps({"question": "When?", "noncommittal": next(flags)})


THREE = '{"questions": ["When?", "Since when?", "Which day?"], "noncommittal": false}'
TEXTS = row(retrieved_contexts=(CHUNK,), reference_contexts=(TOWER,))
IDS = row(retrieved_context_ids=("a", "a", "b"), reference_context_ids=("a",))
NOTHING = row(retrieved_contexts=(), retrieved_context_ids=(), reference_context_ids=("a",))
NONE = "Insufficient Information"
OWN = "One. Two. Three. Four. Five."

EXAMPLES: Mapping[int, tuple[Callable[[], str], Callable[[], str]]] = {
    1: (
        lambda: play("ragas_context_relevancy", always(NONE)),
        lambda: play("context_relevancy", always('{"needed": []}')),
    ),
    2: (
        lambda: play("ragas_context_relevancy", always(OWN)),
        lambda: play("context_relevancy", always('{"needed": [5]}')),
    ),
    3: (
        lambda: play("ragas_context_recall", always(listed(1))),
        lambda: play("context_recall", always('{"supported": [1, 0, 0]}')),
    ),
    4: (
        lambda: play("ragas_context_recall", always("[]")),
        lambda: play("context_recall", always('{"supported": []}')),
    ),
    5: (
        lambda: play("ragas_context_relevance", always("2")),
        lambda: play("context_relevance", one_grade),
    ),
    6: (
        lambda: play("ragas_context_relevance", always("0, the page is of 2019")),
        lambda: play("context_relevance", always('{"grade": 0}')),
    ),
    7: (
        lambda: play("ragas_response_relevancy", noncommittal_once(), noncommittal="any"),
        lambda: play("response_relevancy", always(THREE)),
    ),
    8: (
        lambda: play("ragas_response_relevancy", noncommittal_once()),
        lambda: play("response_relevancy", always(THREE)),
    ),
    9: (lambda: sent("ragas_response_relevancy"), lambda: sent("response_relevancy")),
    10: (
        lambda: f"{2 / (2 + 1e-10):.11g}",
        lambda: play("context_precision_with_reference", first_two),
    ),
    11: (
        lambda: f"{1 / (2 + 1e-8):.11g}",
        lambda: play("context_entity_recall", entities),
    ),
    12: (
        lambda: f"{float(edit_similarity(TOWER, CHUNK) > 0.5):g}",
        lambda: play("id_recall", given=TEXTS),
    ),
    13: (
        lambda: f"{len({'a'}) / len({'a', 'b'}):.11g}",
        lambda: play("id_precision", given=IDS),
    ),
    14: (lambda: "nan", lambda: play("id_precision", given=NOTHING)),
}


@pytest.mark.parametrize("number", EXAMPLES)
def test_the_examples_figures_are_right(number: int) -> None:
    """Each figure of the page comes out again."""
    ragas, ours = EXAMPLES[number]
    assert (ragas(), ours()) == FIGURES[number]


def test_every_example_is_worked_out() -> None:
    """No figure stands on the page that no test holds."""
    assert FIGURES.keys() == EXAMPLES.keys()


@pytest.mark.parametrize("name", re.findall(r"`(ragas_\w+)`", PAGE))
def test_every_twin_that_is_named_exists(name: str) -> None:
    """Names of the page's twins are those of metrics."""
    assert name in metrics()


def test_every_metric_that_is_mapped_to_exists() -> None:
    """The middle columns of the tables name metrics there are."""
    rows = re.findall(r"^\| `[A-Z]\w+`.*?\| (.*?) \|", PAGE, re.MULTILINE)
    named = {name for cell in rows for name in re.findall(r"`(\w+)`", cell)}
    assert named
    assert named <= metrics().keys()

"""Fused requests: nothing of the originals is lost, and each gets its own part of the reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, Field

from ragmetrics.errors import UnreadableReply
from ragmetrics.judges import Fused, fusible, parts_of
from ragmetrics.metrics import GRADE, SUPPORT, bundled_metrics, prompts_of
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.records import Ask, Embed, Prompt, dump_json
from tests.fakes.verdicts import resolved


class Finding(BaseModel):
    """A part of a verdict."""

    claim: str
    sure: bool = False


class Findings(BaseModel):
    """A verdict with one property, which is a list of objects."""

    findings: list[Finding]


class Opinion(BaseModel):
    """A verdict with several properties, one of them an object."""

    main: Finding
    others: dict[str, Finding] = Field(default_factory=dict)
    tone: Literal["calm", "angry"] | None = None


def _other_finding() -> type[BaseModel]:
    class Finding(BaseModel):
        number: int

    class Numbers(BaseModel):
        found: list[Finding]
        left: int

    return Numbers


FINDINGS = Prompt("house_findings", 1, Findings, "List what the text claims.")
OPINION = Prompt("house_opinion", 1, Opinion, "Give an opinion.")
NUMBERS = Prompt("house_numbers", 1, _other_finding(), "Find the numbers.")
NAMESAKE = Prompt("house_findings", 1, Findings, "Other words of another package.")
PROMPTS = [
    *(one for one in prompts_of(bundled_metrics().values()).values() if not one.verbatim),
    *(FINDINGS, OPINION, NUMBERS, NAMESAKE),
]

HOSTILE = [
    "$1",
    "$2",
    "$12",
    "$",
    "$$1",
    "$x",
    "$¹",
    "$٣",
    '{"$": 1}',
    "1",
    "",
    "\ud800",
    "$1\u00ad",
]
TEXTS = st.sampled_from([*HOSTILE, "A text that occurs again and again."]) | st.text(max_size=20)
DATA = st.dictionaries(
    TEXTS,
    st.recursive(
        TEXTS | st.integers() | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)
ASKS = st.lists(st.builds(Ask, st.sampled_from(PROMPTS), DATA), min_size=1, max_size=5)


def sent(fused: Fused) -> Any:
    """The data of a fused request, as it arrives."""
    return json.loads(fused.ask.text)


# What is sent


@given(ASKS)
def test_the_data_of_every_request_can_be_told_from_what_is_sent(asks: list[Ask]) -> None:
    """Whatever the texts, those that look like references too, and in the requests' order.

    What arrives is what each request sends alone: without characters that nobody sees.
    """
    found = resolved(sent(Fused(asks)))
    expected = sorted(asks, key=lambda one: (one.prompt.name, one.prompt.digest))
    assert [data for task in found.values() for data in task] == [
        json.loads(one.text) for one in expected
    ]


@given(ASKS)
def test_the_requests_can_be_read_from_a_fused_request(asks: list[Ask]) -> None:
    """So a dry run can estimate the reply to each of them."""
    expected = sorted(asks, key=lambda one: (one.prompt.name, one.prompt.digest))
    assert [ask for _, ask in parts_of(Fused(asks).ask)] == expected
    assert parts_of(asks[0]) == [(asks[0].prompt.name, asks[0])]


@given(ASKS)
def test_the_order_in_which_prompts_come_does_not_matter(asks: list[Ask]) -> None:
    """The same prompts make the same instructions, so that providers' prefix caches hit."""
    one, other = Fused(asks), Fused(asks[::-1])
    assert one.ask.prompt is other.ask.prompt
    assert list(sent(one)["tasks"]) == list(sent(other)["tasks"])


def test_a_text_of_several_requests_is_carried_once() -> None:
    """Five contexts, each graded and all of them held against the reference."""
    asks = row_of_five()
    text = Fused(asks).ask.text
    assert all(text.count(context) == 1 for context in CONTEXTS)
    assert text.count(QUESTION) == 1


QUESTION = "When was the tower opened?"
CONTEXTS = [f"Context {n}: " + "it was opened in the year 1889. " * 13 for n in range(5)]


def row_of_five() -> list[Ask]:
    """What three metrics ask about a row with five contexts of 430 characters."""
    return [
        *(Ask(GRADE, {"question": QUESTION, "context": context}) for context in CONTEXTS),
        Ask(
            SUPPORT,
            {"question": QUESTION, "contexts": CONTEXTS, "sentences": ["In 1889.", "In May."]},
        ),
        Ask(QUESTIONS, {"response": "It was opened in 1889.", "language": "en", "n": 3}),
    ]


def characters(asks: Sequence[Ask]) -> int:
    """How much is sent."""
    return sum(len(turn["content"]) for ask in asks for turn in ask.prompt.messages(ask.data))


def test_a_row_costs_less_than_half() -> None:
    """At most 1,500 tokens of four characters, where single requests take twice as many."""
    asks = row_of_five()
    fused = characters([Fused(asks).ask])
    assert fused / 4 < 1_500
    assert fused < characters(asks) / 2


def test_short_texts_and_those_that_occur_once_stay_where_they_are() -> None:
    """A number would make them no shorter."""
    asks = [Ask(GRADE, {"question": "Why?", "context": f"Because of {n}."}) for n in range(2)]
    assert sent(Fused(asks))["texts"] == {}


def test_the_instructions_say_what_each_task_is_and_no_example() -> None:
    """They carry the shape of the reply once, at the end."""
    system = Fused(row_of_five()).ask.prompt.system
    for prompt in (GRADE, SUPPORT, QUESTIONS):
        assert f"Task `{prompt.name}`: {prompt.instruction.strip()}" in system
    assert system.endswith(
        'Reply with JSON alone: {"grade": [0 | 1 | 2, ...], '
        '"questions": [{"questions": ["text", ...], "noncommittal": true | false}, ...], '
        '"support": [[0 | 1, ...], ...]}'
    )
    assert "Eiffel" not in system


def test_prompts_of_one_name_are_tasks_of_their_own() -> None:
    """Two packages may call their prompts alike; each keeps its instructions."""
    asks = [Ask(FINDINGS, {"text": "a"}), Ask(NAMESAKE, {"text": "b"})]
    fused = Fused(asks)
    assert set(sent(fused)["tasks"]) == {"house_findings", "house_findings_2"}
    assert all(one.instruction in fused.ask.prompt.system for one in (FINDINGS, NAMESAKE))


def test_a_repeat_is_a_question_of_its_own() -> None:
    """A fused request is the repeat that its parts are."""
    asks = row_of_five()
    again = [replace(one, repeat=(1,)) for one in asks]
    assert Fused(again).ask.key != Fused(asks).ask.key


def test_fixed_wording_and_embeddings_stand_alone() -> None:
    """Another tool's words are sent as they are."""
    assert fusible(Ask(GRADE, {}))
    assert not fusible(Ask(replace(GRADE, verbatim=True), {}))
    assert not fusible(Embed("a text"))


# The schema


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema that names its keys."""
    if isinstance(schema, list):
        for one in schema:
            yield from objects(one)
    elif isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            yield schema
        for one in schema.values():
            yield from objects(one)


def references(schema: Any) -> Iterator[str]:
    """All references in a schema."""
    if isinstance(schema, list):
        for one in schema:
            yield from references(one)
    elif isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for one in schema.values():
            yield from references(one)


@given(st.lists(st.sampled_from(PROMPTS), min_size=1, unique_by=id))
def test_the_schema_is_strict(prompts: list[Prompt[Any]]) -> None:
    """All keys required and no others, in every object of it, and every reference leads there."""
    schema = Fused([Ask(one, {}) for one in prompts]).ask.prompt.schema
    for one in objects(schema):
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"])
    for reference in references(schema):
        assert reference.removeprefix("#/$defs/") in schema["$defs"]


def test_definitions_of_one_name_do_not_collide() -> None:
    """Two verdicts may each have their own `Finding`."""
    schema = Fused([Ask(FINDINGS, {}), Ask(NUMBERS, {})]).ask.prompt.schema
    fields = [list(one["properties"]) for one in schema["$defs"].values()]
    assert sorted(fields) == [["claim", "sure"], ["number"]]
    (claims,) = references(schema["properties"]["house_findings"])
    assert "claim" in schema["$defs"][claims.removeprefix("#/$defs/")]["properties"]


# The reply

VERDICTS: dict[str, st.SearchStrategy[Any]] = {
    "house_findings": st.lists(st.builds(dict, claim=TEXTS, sure=st.booleans())),
    "house_opinion": st.fixed_dictionaries(
        {
            "main": st.builds(dict, claim=TEXTS, sure=st.booleans()),
            "others": st.dictionaries(TEXTS, st.builds(dict, claim=TEXTS, sure=st.booleans())),
            "tone": st.sampled_from(["calm", "angry", None]),
        }
    ),
    "grade": st.sampled_from([0, 1, 2]),
    "entities": st.lists(TEXTS),
}
SPLIT = [FINDINGS, NAMESAKE, OPINION, GRADE, prompts_of(bundled_metrics().values())["entities"]]


@st.composite
def answered(draw: st.DrawFn) -> tuple[Fused, dict[str, list[Any]], list[tuple[Ask, Any]]]:
    """Requests, the reply to all of them, and the verdict that belongs to each."""
    numbers = st.integers(0, 10**6)
    asks = draw(
        st.lists(
            st.builds(lambda prompt, n: Ask(prompt, {"n": n}), st.sampled_from(SPLIT), numbers),
            min_size=1,
            max_size=8,
            unique_by=lambda one: one.key,
        )
    )
    fused = Fused(asks)
    reply: dict[str, list[Any]] = {}
    expected = []
    for task, inputs in sent(fused)["tasks"].items():
        prompt = fused.ask.prompt.tasks[task]  # type: ignore[attr-defined]
        for data in inputs:
            verdict = draw(VERDICTS[prompt.name])
            reply.setdefault(task, []).append(verdict)
            single = (
                verdict if prompt is OPINION else {next(iter(prompt.schema["properties"])): verdict}
            )
            expected.append((Ask(prompt, data), single))
    return fused, reply, expected


def readable(value: Any) -> bool:
    """Whether no half of a surrogate pair is in it: pydantic reads none."""
    try:
        dump_json(value).encode()
    except UnicodeEncodeError:
        return False
    return True


@given(answered())
def test_each_request_gets_its_own_verdict(
    case: tuple[Fused, dict[str, list[Any]], list[tuple[Ask, Any]]],
) -> None:
    """In any number and order, as the prompt would have had it in a reply of its own."""
    fused, reply, expected = case
    found = fused.split(f"Sure!\n```json\n{json.dumps(reply)}\n```")
    assert [(ask.key, json.loads(text)) for ask, text in found] == [
        (ask.key, verdict) for ask, verdict in expected
    ]
    for ask, text in found:
        if readable(text):
            ask.prompt.parse(text, ask.data)


@given(answered(), st.data())
def test_a_task_without_one_verdict_per_input_spoils_no_other(
    case: tuple[Fused, dict[str, list[Any]], list[tuple[Ask, Any]]], data: st.DataObject
) -> None:
    """Missing, too short, too long or no list: nobody knows which verdict is whose."""
    fused, reply, expected = case
    task = data.draw(st.sampled_from(list(reply)))
    spoilt = data.draw(st.sampled_from([None, [], [*reply[task], 1], {"0": 1}, "x", 7]))
    found = [text for _, text in fused.split(json.dumps({**reply, task: spoilt}))]
    tasks = [name for name, verdicts in reply.items() for _ in verdicts]
    assert [json.loads(text) if text else "lost" for text in found] == [
        "lost" if name == task else verdict
        for name, (_, verdict) in zip(tasks, expected, strict=True)
    ]


@pytest.mark.parametrize(
    "text", ["", "I would rather not.", "{", '{"grade": [', '{"a":' * 100_000 + "}", "\ud800"]
)
def test_a_reply_without_parts_is_unreadable(text: str) -> None:
    """Whatever it is instead."""
    with pytest.raises(UnreadableReply, match="row: "):
        Fused(row_of_five()).split(text)


@given(
    st.text()
    | st.recursive(
        st.none() | st.integers(),
        lambda x: (
            st.lists(x) | st.dictionaries(st.sampled_from(["grade", "support", "questions"]), x)
        ),
    ).map(json.dumps)
)
def test_any_reply_is_split_or_unreadable(text: str) -> None:
    """Each part is then read, or refused, by its own prompt."""
    fused = Fused(row_of_five())
    try:
        found = fused.split(text)
    except UnreadableReply:
        return
    assert sorted(ask.key for ask, _ in found) == sorted(one.key for one in row_of_five())


def test_a_verdict_written_out_is_read_too() -> None:
    """Models without a schema to hold them write `{"grade": 2}` in place of `2`."""
    asks = [Ask(GRADE, {"question": "?", "context": str(n)}) for n in range(2)]
    found = Fused(asks).split('{"grade": [{"grade": 2}, 1]}')
    assert [text for _, text in found] == ['{"grade":2}', '{"grade":1}']

"""context_entity_recall: entities of the reference that the contexts name; played by hand."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.judges import Corpus, LexicalJudge
from ragmetrics.metrics.bundled.context_entity_recall import (
    ENTITIES,
    Entities,
    context_entity_recall,
)
from ragmetrics.records import Ask, Score, Status
from tests import builders
from tests.builders import end

REFERENCE = "The Eiffel Tower in Paris was opened in 1889 by Gustave Eiffel."
NAMED = ["Eiffel Tower", "Paris", "1889", "Gustave Eiffel"]
NAMES = st.lists(st.sampled_from(["Rome", "Oslo", "Bern", "Lima", "Kyiv", "Cairo"]), max_size=6)


a_row = partial(builders.a_row, reference=REFERENCE)


def entities(*names: str) -> Entities:
    """What the judge finds in a text."""
    return Entities(entities=list(names))


def score(wanted: list[str], *contexts: list[str]) -> Score:
    """The score where the reference and the contexts name these entities."""
    steps = context_entity_recall.play(a_row(*(f"context {n}" for n in range(len(contexts)))))
    next(steps)
    steps.send([entities(*wanted)])
    return end(steps, *(entities(*names) for names in contexts))


def test_asks_about_the_reference_then_about_each_context() -> None:
    """A context is asked about alone, so that its answer serves wherever it comes back."""
    steps = context_entity_recall.play(a_row("one", " ", "two"))
    assert next(steps) == [Ask(ENTITIES, {"text": REFERENCE})]
    requests = steps.send([entities(*NAMED)])
    assert requests == [Ask(ENTITIES, {"text": "one"}), Ask(ENTITIES, {"text": "two"})]


def test_value_is_the_share_of_the_references_entities() -> None:
    """Three of four stand in one context or another; what else they name does not matter."""
    found = score(NAMED, ["Paris", "Eiffel Tower"], ["1889", "France", "Paris"])
    details = {"found": ["eiffel tower", "paris", "1889"], "missing": ["gustave eiffel"]}
    assert found == Score(0.75, details=details)


# What is one entity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Eiffel Tower", "EIFFEL  tower"),
        ("the Eiffel Tower", "Eiffel Tower"),
        ("The “Eiffel Tower”.", "Eiffel Tower"),
        ("(NASA)", "nasa"),
        ("ＮＡＳＡ", "NASA"),
        ("Straße", "STRASSE"),
        ("World’s Fair", "World's Fair"),
        ("1914–1918", "1914-1918"),
        ("l’Allemagne", "Allemagne"),
        ("die Donau", "Donau"),
        ("Los Angeles", "los angeles,"),
        ("《红楼梦》", "红楼梦"),
        ("¿Qué?", "Qué"),
    ],
)
def test_spelling_does_not_make_another_entity(one: str, other: str) -> None:
    """Case, width, spaces, surrounding punctuation and leading articles are passed over."""
    assert score([one], [other]).value == 1.0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C#"),
        ("50", "50%"),
        ("-5", "5"),
        ("Eiffel", "Eiffel Tower"),
        ("1889", "1989"),
        ("Theodor", "odor"),
        ("हिन्दी", "हिन्द"),
    ],
)
def test_other_names_are_other_entities(one: str, other: str) -> None:
    """Signs that mean something are kept, and parts of names are not the name."""
    assert score([one], [other]).value == 0.0


def test_each_entity_counts_once() -> None:
    """The reference's entities are a set, whatever the judge repeats."""
    assert score(["Paris", "paris", "the Paris", "Rome"], ["Paris"]).value == 0.5


# Empty cases


@pytest.mark.parametrize("names", [[], ["", " "], ["-", "«»"]])
def test_no_entity_in_the_reference_is_not_applicable(names: list[str]) -> None:
    """A reference that names nothing has no recall, and the contexts are not asked about."""
    steps = context_entity_recall.play(a_row("context"))
    next(steps)
    found = end(steps, entities(*names))
    assert found == Score(None, "no entity in the reference", status=Status.NOT_APPLICABLE)


def test_an_empty_question_is_scored_all_the_same() -> None:
    """The question is not part of the judgement."""
    assert "user_input" not in context_entity_recall.needs
    assert next(context_entity_recall.play(a_row("context", user_input="")))


def test_a_missing_list_leaves_the_row_unanswered() -> None:
    """A recall over part of the contexts would be another number: Unanswered goes up."""
    steps = context_entity_recall.play(a_row("one", "two"))
    next(steps)
    steps.send([entities("Paris")])
    with pytest.raises(Unanswered, match="no list"):
        steps.send([entities("Paris"), Unanswered(Status.UNREADABLE, "no list")])


# Replies


@pytest.mark.parametrize(
    ("reply", "names"),
    [
        ('{"entities": ["Paris", "1889"]}', ["Paris", "1889"]),
        ('Found:\n```json\n{"entities": []}\n```', []),
    ],
)
def test_reads_a_list_of_names(reply: str, names: list[str]) -> None:
    """Prose around the object is passed over; no entity is an answer too."""
    assert ENTITIES.parse(reply, {}).entities == names


@pytest.mark.parametrize(
    "reply",
    ["", "Paris, 1889", '["Paris"]', '{"entities": "Paris"}', '{"entities": [1889]}', "{}"],
)
def test_any_other_reply_is_unreadable(reply: str) -> None:
    """Only one object with a list of texts is a verdict."""
    with pytest.raises(UnreadableReply):
        ENTITIES.parse(reply, {})


# The lexical judge


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The tower of Gustave Eiffel opened in 1889.", ["Gustave", "Eiffel", "1889"]),
        (
            "Paris. In May, Tom met Ann (an MP3 fan) at b52.",
            ["Paris", "May", "Tom", "Ann", "MP3", "b52"],
        ),
        ("It rains.\nHe waits.", []),
        ("Der Turm steht in Paris.", ["Turm", "Paris"]),
        ("Он в Париже с 1889 года.", ["Париже", "1889"]),
        ("برج إيفل 1889", ["برج", "إيفل", "1889"]),
        ("თბილისი დიდია", ["თბილისი", "დიდია"]),
        ("巴黎铁塔", ["巴黎", "黎铁", "铁塔"]),
        ("塔", ["塔"]),
        ("", []),
    ],
)
def test_the_embedded_judge_takes_what_looks_like_a_name(text: str, names: list[str]) -> None:
    """Words with a capital or digit, without particles that begin a sentence; else all words."""
    reply = asyncio.run(LexicalJudge(Corpus()).reply(Ask(ENTITIES, {"text": text}), 0))
    assert reply.verdict == entities(*names)


# Properties


@given(NAMES.filter(bool), st.lists(NAMES, min_size=1, max_size=4))
def test_value_is_the_recall_of_the_sets(wanted: list[str], contexts: list[list[str]]) -> None:
    """In [0, 1], as sets of Python have it."""
    known = set().union(*contexts)
    assert score(wanted, *contexts).value == len(set(wanted) & known) / len(set(wanted))


@given(NAMES.filter(bool), st.lists(NAMES, min_size=1, max_size=4), st.randoms())
def test_no_order_matters(wanted: list[str], contexts: list[list[str]], chance: Any) -> None:
    """Neither the order of contexts nor that of names within them."""
    shuffled = [chance.sample(names, len(names)) for names in contexts]
    chance.shuffle(shuffled)
    mixed = chance.sample(wanted, len(wanted))
    assert score(mixed, *shuffled).value == score(wanted, *contexts).value


@given(NAMES.filter(bool), st.lists(NAMES, min_size=1, max_size=4), NAMES)
def test_one_more_context_never_hurts(
    wanted: list[str], contexts: list[list[str]], more: list[str]
) -> None:
    """Recall only grows with what is retrieved."""
    assert (score(wanted, *contexts, more).value or 0) >= (score(wanted, *contexts).value or 0)

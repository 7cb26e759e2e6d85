"""The retriever outside a replay: parameters, look-ups, limits of time."""

from __future__ import annotations

import json
import math
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import RetrieverSettings, Settings, make_settings
from ragmetrics.errors import InputError, RetrieverRefused, SettingsError
from ragmetrics.records import LogRow
from ragmetrics.retriever import Ask, Question, ask_retriever, look_up
from ragmetrics.retriever.templates import fill, fill_params, values_of
from tests.fakes import searching
from tests.fakes.retriever import SearchServer

QUESTION = Question("q1", "When?", "en", {"section": "hr"})


def settings_with(**retriever: Any) -> Settings:
    """Settings with a retriever."""
    return make_settings({"retriever": retriever})


def test_a_parameter_alone_keeps_its_type() -> None:
    """A number stays a number, inside a longer text it becomes text; unknown names stay."""
    values = values_of(QUESTION, "b1", {"k": 5, "rerank": False, "who": "{tags.section}"})
    template = {"k": "{k}", "rerank": "{rerank}", "text": "top {k} of {who}", "odd": "{odd}"}
    assert fill(template, values) == {
        "k": 5,
        "rerank": False,
        "text": "top 5 of hr",
        "odd": "{odd}",
    }


def test_a_missing_tag_is_an_empty_text() -> None:
    """Not every row has each tag."""
    assert fill("{tags.none}", values_of(QUESTION, "b1", {})) == ""


def test_parameters_go_into_urls() -> None:
    """Numbers and booleans as JSON, lists item by item."""
    values = values_of(QUESTION, "b1", {"k": 5, "on": True, "of": ["a", "b"]})
    params: Any = {"k": "{k}", "on": "{on}", "of": "{of}", "q": "{user_input}"}
    assert fill_params(params, values) == [
        ("k", "5"),
        ("on", "true"),
        ("of", "a"),
        ("of", "b"),
        ("q", "When?"),
    ]


@pytest.mark.parametrize(
    ("retriever", "said"),
    [
        ({"variants": {"large": {"k": 10}}}, "no such parameter"),
        ({"probe": {"unfiltered": {"filters": False}}}, "no such parameter"),
        ({"variants": {"as now": {}}}, "the name of the retriever without a variant"),
        ({"parameters": {"k": math.nan}}, "JSON does not support"),
        ({"parameters": {"user_input": 1}}, "a name of its own"),
        ({"parameters": {"top-k": 1}}, "a name of its own"),
        ({"lookup": "http://x.example.com/documents"}, "{id} is missing"),
    ],
)
def test_wrong_parameters_are_named(retriever: dict[str, Any], said: str) -> None:
    """A variant of nothing, or a look-up without an id, is an error of the settings."""
    with pytest.raises(SettingsError, match=said):
        settings_with(url="http://x.example.com/search", **retriever)


def test_a_function_must_take_its_parameters() -> None:
    """The error names the call."""
    settings = settings_with(entrypoint="tests.fakes.searching:refusing", parameters={"k": 3})
    with pytest.raises(InputError, match=r"function\(user_input, build, k\)"):
        ask_retriever(settings, "b1", [Ask(QUESTION)])


def test_asks_are_answered_in_their_order() -> None:
    """Each ask has its own parameters."""
    searching.reset("a", "b", "c")
    settings = make_settings({"retriever": searching.SETTINGS})
    asks = [Ask(QUESTION), Ask(QUESTION, {"k": 3}), Ask(QUESTION, {"k": 1})]
    found = ask_retriever(settings, "b1", asks)
    sizes = [len(row.retrieved_contexts) for row in found.rows if isinstance(row, LogRow)]
    assert (sizes, found.requests) == ([2, 3, 1], 3)


def test_a_refusal_is_raised_at_once() -> None:
    """Nobody waits for the other questions."""
    settings = settings_with(entrypoint="tests.fakes.searching:refusing")
    with pytest.raises(RetrieverRefused, match="no access"):
        ask_retriever(settings, "b1", [Ask(QUESTION)] * 5)


def test_no_retriever_is_an_error() -> None:
    """The message names the key."""
    with pytest.raises(InputError, match="retriever:"):
        ask_retriever(make_settings({}), "b1", [Ask(QUESTION)])


def test_a_real_server_gets_the_parameters(search_server: SearchServer) -> None:
    """The body over HTTP has the number as a number, and the tag as text."""
    body = {"query": "{user_input}", "k": "{k}", "who": "{tags.section}"}
    settings = settings_with(**{**search_server.settings, "body": body, "parameters": {"k": 3}})
    found = ask_retriever(settings, "b1", [Ask(QUESTION, {"k": 7})])
    assert isinstance(found.rows[0], LogRow)
    assert json.loads(search_server.stats()["last_body"]) == {"query": "When?", "k": 7, "who": "hr"}


def test_time_that_is_over_is_a_reason(search_server: SearchServer) -> None:
    """A server that hangs: the asks end with the time, and say so."""
    search_server.faults(fail={"hang": 1.0})
    settings = settings_with(**search_server.settings)
    found = ask_retriever(settings, "b1", [Ask(QUESTION)] * 3, seconds=0.3)
    assert found.rows == ["no time left"] * 3
    assert found.requests == search_server.stats()["requests"] == 1


def test_a_look_up_over_http(search_server: SearchServer) -> None:
    """2xx: the index has it; 404: it has not; anything else is not known."""
    settings = settings_with(
        **search_server.settings, lookup=f"{search_server.root}/documents/{{id}}"
    )
    assert look_up(settings, "b1", ["there", "gone", "broken/..?"]) == [
        True,
        False,
        "the look-up answered 500",
    ]


def test_a_look_up_by_a_function() -> None:
    """The function says whether the index has the document."""
    searching.reset("a")
    settings = make_settings(
        {"retriever": {**searching.SETTINGS, "lookup": "tests.fakes.searching:known"}}
    )
    assert look_up(settings, "b1", ["a", "b"]) == [True, False]


def test_look_ups_keep_the_rate(search_server: SearchServer) -> None:
    """Three look-ups at 20 a second take two intervals."""
    settings = settings_with(
        **search_server.settings,
        requests_per_second=20,
        lookup=f"{search_server.root}/documents/{{id}}",
    )
    started = time.monotonic()
    assert look_up(settings, "b1", ["there"] * 3) == [True] * 3
    assert time.monotonic() - started >= 0.1


def test_a_look_up_that_hangs_holds_no_process() -> None:
    """Its thread ends with the process, and no more threads than `concurrency` hang."""
    settings = settings_with(
        entrypoint="tests.fakes.searching:search",
        lookup="tests.fakes.searching:hanging",
        timeout_seconds=0.05,
        concurrency=1,
    )
    try:
        first, second = look_up(settings, "b1", ["a", "b"])
        hung = [one for one in threading.enumerate() if one.name == "ragmetrics-replay"]
        assert hung
        assert all(one.daemon for one in hung)
        assert first == "no answer within 0.05 s"
        assert "hangs: 1 calls" in str(second)
    finally:
        searching.released.set()


def test_a_replay_without_parameters_continues(tmp_path: Path) -> None:
    """The digest of a replay is that of versions without parameters."""
    from ragmetrics.comparison.replay.run import _digest
    from ragmetrics.retriever import QuestionSet

    plain = RetrieverSettings(url="http://x.example.com/search")
    asked = QuestionSet((QUESTION,), 0)
    more = plain.model_copy(update={"variants": {"a": {}}, "lookup": "http://x/{id}"})
    assert _digest(plain, "b1", asked) == _digest(more, "b1", asked)
    assert _digest(plain, "b1", asked) == "cba46cc4c8f950c9cff9bc06"  # of a version without them

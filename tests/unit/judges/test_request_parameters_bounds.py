"""Bounds of replies: in the schema that is sent, and in the tokens that a reply may have."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from ragmetrics.config import JudgeSettings
from ragmetrics.judges.base import Reply, find_access
from ragmetrics.judges.live import LiveJudge
from ragmetrics.judges.request_parameters import ReplyBounds, bounded_schema, reply_tokens, sizes_of
from ragmetrics.metrics import GRADE, NEEDED, SUPPORT, prompts_of
from ragmetrics.metrics.bundled.ragas_context_relevance import FIRST
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.metrics.definition import bundled_metrics
from ragmetrics.records import Ask, Prompt, Size
from tests.fakes.clients import JudgeServer

WORDS = {"minItems", "maxItems", "maxLength"}


def support(count: int = 2) -> Ask:
    """A request for a verdict on each of some sentences."""
    texts = [f"Tower {n} is {n} metres high." for n in range(count)]
    return Ask(SUPPORT, {"question": "How high?", "contexts": texts, "sentences": texts})


def questions() -> Ask:
    """A request for three questions."""
    return Ask(QUESTIONS, {"response": "It was opened in 1889.", "language": "en", "n": 3})


def grade(number: int = 1) -> Ask:
    """A request for a grade."""
    return Ask(GRADE, {"question": f"What is {number}?", "context": f"It is {number}."})


def replies(server: JudgeServer, asks: list[Ask], **more: Any) -> list[Reply]:
    """The replies of one judge, asked one after the other."""
    chosen = JudgeSettings(name="openai", model="judge", base_url=server.base_url, **more)

    async def ask() -> list[Reply]:
        judge = LiveJudge(find_access(chosen, chosen.base_url, None), chosen)
        try:
            return [await judge.reply(request, 0) for request in asks]
        finally:
            await judge.close()

    return asyncio.run(ask())


def sent_schema(server: JudgeServer) -> dict[str, Any]:
    """The schema of the latest request."""
    schema: dict[str, Any] = server.stats()["last_chat"]["response_format"]["json_schema"]["schema"]
    return schema


@pytest.mark.parametrize("prompt", prompts_of(bundled_metrics().values()).values())
def test_examples_of_bundled_prompts_are_within_their_bounds(prompt: Prompt[Any]) -> None:
    """Else a model that follows the examples could not reply."""
    for data, verdict in prompt.examples:
        sizes = prompt.sizes(data) if prompt.sizes else {}
        for name, size in sizes.items():
            assert size.least <= len(verdict[name]) <= size.most
        lists = [name for name, value in verdict.items() if isinstance(value, list)]
        assert set(lists) <= sizes.keys()


def test_a_schema_has_the_number_of_verdicts(judge_server: JudgeServer) -> None:
    """As many as there are sentences, in the request that is sent."""
    replies(judge_server, [support(3)])
    supported = sent_schema(judge_server)["properties"]["supported"]
    assert (supported["minItems"], supported["maxItems"]) == (3, 3)


def test_lists_and_texts_inside_lists_are_bounded() -> None:
    """Three questions, each of at most 300 characters."""
    asked = questions()
    schema = bounded_schema(asked.prompt, sizes_of(asked))
    listed = schema["properties"]["questions"]
    assert (listed["minItems"], listed["maxItems"], listed["items"]["maxLength"]) == (3, 3, 300)


def test_bounds_change_no_key() -> None:
    """Cached replies stay valid: digest, text and key are those of a prompt without sizes."""
    asked = support()
    bare = replace(asked, prompt=replace(asked.prompt, sizes=None))
    assert (bare.prompt.digest, bare.key) == (asked.prompt.digest, asked.key)
    assert not WORDS & set(str(asked.prompt.schema).split("'"))


def test_an_endless_list_ends(judge_server: JudgeServer) -> None:
    """A model that writes lists without an end gives one verdict for each sentence."""
    judge_server.faults(endless=True)
    (reply,) = replies(judge_server, [support(2)])
    assert len(SUPPORT.parse(reply.text, support(2).data).supported) == 2
    assert judge_server.stats()["requests"] == 1


@pytest.mark.parametrize(
    ("refused", "kept", "requests"),
    [
        (["maxLength"], {"minItems", "maxItems"}, 2),
        (["minItems"], {"maxItems", "maxLength"}, 2),
        (["minItems", "maxItems", "maxLength"], set(), 4),
    ],
)
def test_refused_words_are_dropped(
    judge_server: JudgeServer, refused: list[str], kept: set[str], requests: int
) -> None:
    """By name, once for a run; the schema is still sent."""
    judge_server.faults(refused_keywords=refused)
    (first, _) = replies(judge_server, [questions(), questions()])
    assert QUESTIONS.parse(first.text, questions().data)
    assert judge_server.stats()["requests"] == requests + 1
    assert WORDS & set(str(sent_schema(judge_server)).split("'")) == kept


def test_a_server_without_schemas_is_asked_as_before(judge_server: JudgeServer) -> None:
    """It refuses the format, not the bounds: the next format is tried."""
    judge_server.faults(json_schema=False)
    replies(judge_server, [support()])
    assert judge_server.stats()["last_chat"]["response_format"] == {"type": "json_object"}
    assert judge_server.stats()["requests"] == 2


def test_a_refusal_of_a_grammar_drops_all_bounds() -> None:
    """llama.cpp does not say which word its grammar is too long for."""
    bounds = ReplyBounds()
    assert bounds.turn("Failed to initialize samplers: failed to parse grammar", bounds.version)
    assert bounds.refused >= WORDS
    assert not bounds.turn("failed to parse grammar", bounds.version)


def test_another_request_was_refused_for_the_same(judge_server: JudgeServer) -> None:
    """It is sent again too, though nothing more is dropped."""
    bounds = ReplyBounds()
    assert bounds.turn("'maxLength' is not permitted", 0)
    assert bounds.turn("'maxLength' is not permitted", 0)
    assert bounds.refused == {"maxLength"}


def test_other_rejections_drop_nothing() -> None:
    """A model that does not exist has no bounds."""
    bounds = ReplyBounds()
    assert not bounds.turn("The model `judge` does not exist", bounds.version)
    assert not bounds.refused


class Recursive(BaseModel):
    """A verdict of any depth."""

    parts: list[Recursive]


@pytest.mark.parametrize(
    ("ask", "least", "most"),
    [
        (grade(), 10, 64),
        (support(57), 200, 600),
        (Ask(FIRST, {"question": "?", "context": "."}), 10, 20),
        (Ask(Prompt("r", 1, Recursive, "?"), {}), 1_000, 1_000),
    ],
)
def test_a_reply_has_room_by_its_schema(ask: Ask, least: int, most: int) -> None:
    """A grade needs ten tokens, a list of verdicts some for each; unknown lengths need all."""
    assert least <= reply_tokens(ask.prompt, sizes_of(ask), 1_000) <= most


def test_a_reply_has_at_most_the_tokens_of_the_settings() -> None:
    """However long the list is."""
    sizes = (("needed", Size(0, 5_000)),)
    assert reply_tokens(NEEDED, sizes, 900) == 900


def test_a_grade_is_sent_few_tokens(judge_server: JudgeServer) -> None:
    """`max_tokens` is by prompt, not by the settings alone."""
    replies(judge_server, [grade()])
    assert judge_server.stats()["last_chat"]["max_tokens"] < 64


def test_a_model_that_thinks_is_asked_once_more_and_never_again(judge_server: JudgeServer) -> None:
    """The first reply is cut: the same request has all tokens, and so have all later ones."""
    judge_server.faults(thoughts=1_200)
    first, second, third = replies(judge_server, [grade(1), grade(2), grade(3)])
    stats = judge_server.stats()
    assert not any(reply.cut_off for reply in (first, second, third))
    assert (first.failures, second.failures, third.failures) == ({"cut_off": 1}, {}, {})
    assert (stats["requests"], stats["last_chat"]["max_tokens"]) == (4, 1_000)
    assert (
        first.completion_tokens + second.completion_tokens + third.completion_tokens
        == (stats["completion_tokens"])
    )


def test_a_reply_that_stays_cut_does_not_loosen_the_bounds(judge_server: JudgeServer) -> None:
    """A model that never ends is still bounded for the next request."""
    judge_server.faults(thoughts=100_000)
    first, _ = replies(judge_server, [grade(1), grade(2)])
    assert first.cut_off
    assert judge_server.stats()["requests"] == 4

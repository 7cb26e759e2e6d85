"""What `make parity` stands on: varied rows, a judge that answers ragas's prompts, the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from openai import OpenAI

from ragmetrics.errors import UnreadableReply
from ragmetrics.metrics.bundled.ragas_context_recall import ATTRIBUTION
from ragmetrics.metrics.bundled.ragas_context_relevance import FIRST, SECOND
from ragmetrics.metrics.bundled.ragas_context_relevancy import EXTRACTION
from ragmetrics.metrics.bundled.ragas_response_relevancy import GENERATION
from ragmetrics.records import Prompt
from scripts.parity import ENVIRONMENTS, compared, make_rows, ours
from tests.fakes.clients import JudgeServer
from tests.fakes.ragas_replies import ragas_reply

DATA = {
    "question": "When did it open?",
    "context": "In 1889. In May.",
    "answer": "In 1889.",
    "input": '{"response": "In 1889, I think."}',
}


def replies(prompt: Prompt[Any], count: int = 60) -> set[str]:
    """What the fake judge says to a prompt, time after time."""
    (turn,) = prompt.messages(DATA)
    return {ragas_reply(turn["content"], number) or "" for number in range(count)}


def a_side(*scores: float | None, **messages: int) -> dict[str, Any]:
    """What one side found."""
    return {"scores": list(scores), "messages": messages}


@pytest.mark.parametrize("prompt", [EXTRACTION, ATTRIBUTION, GENERATION, FIRST, SECOND])
def test_the_fake_judge_is_varied(prompt: Prompt[Any]) -> None:
    """It says several things to each prompt of ragas, most of which can be read."""
    said = replies(prompt)
    assert len(said) > 5
    for reply in said - {"I cannot say."}:
        prompt.parse(reply, DATA)


def test_the_fake_judge_is_mute_at_times() -> None:
    """Some prompts never get a grade, others only sometimes."""
    assert "I cannot say." in replies(FIRST)
    with pytest.raises(UnreadableReply):
        FIRST.parse("I cannot say.", DATA)
    alike = {
        ragas_reply(FIRST.messages({**DATA, "question": str(n)})[0]["content"], 0)
        for n in range(50)
    }
    assert {"I cannot say.", "10"} < alike


def test_other_prompts_are_left_to_others() -> None:
    """The fake judge's own answers come for anything that is not ragas's."""
    assert ragas_reply("What is the grade?", 0) is None


def test_choices_are_those_of_repeated_requests(judge_server: JudgeServer) -> None:
    """One request for three completions and three for one get the same replies, in order."""
    (turn,) = GENERATION.messages(DATA)

    def ask(client: OpenAI, n: int) -> list[str | None]:
        made = client.chat.completions.create(model="judge", messages=[turn], n=n)  # type: ignore[list-item]
        return [choice.message.content for choice in made.choices]

    with OpenAI(base_url=judge_server.base_url, api_key="none") as client:
        at_once = ask(client, 3)
        judge_server.reset()
        assert [*ask(client, 1), *ask(client, 1), *ask(client, 1)] == at_once
    assert list(judge_server.stats()["by_messages"].values()) == [3]


def test_no_two_rows_share_a_prompt() -> None:
    """Each prompt has its own sequence of replies: sharing one would make order matter."""
    rows = make_rows(50)
    assert rows == make_rows(50)
    for fields in (("user_input", "retrieved_contexts", "reference"), ("response",)):
        assert len({str([row[name] for name in fields]) for row in rows}) == 50


def test_our_side_does_not_depend_on_the_order_of_rows(judge_server: JudgeServer) -> None:
    """The same scores, some of them none, from the same requests."""
    rows = make_rows(12)
    found = ours(judge_server, "ragas_context_relevance", rows)
    turned = ours(judge_server, "ragas_context_relevance", rows[::-1])
    assert turned == {**found, "scores": found["scores"][::-1]}
    assert None in found["scores"]
    assert len(set(found["scores"])) > 3


@pytest.mark.parametrize(
    ("theirs", "ours_", "words", "same"),
    [
        (
            a_side(0.5, None, x=2),
            a_side(0.5, None, x=2),
            "difference 0.0; 2 requests byte-id",
            True,
        ),
        (a_side(0.5, x=1, y=1), a_side(0.5, x=1), "byte-identical, 1 only by ragas", True),
        (a_side(0.5, x=1), a_side(0.25, x=1), "difference 0.25", False),
        (a_side(0.5, x=1), a_side(None, x=1), "1 by one only", False),
        (a_side(0.5, x=1), a_side(0.5, x=2), "DIFFERENT", False),
        (a_side(0.5), a_side(0.5, y=1), "DIFFERENT", False),
    ],
)
def test_the_verdict(theirs: Any, ours_: Any, words: str, same: bool) -> None:
    """Equal scores, nothing scored by one side only, and nothing sent that ragas does not send."""
    line, equal = compared("ragas_context_recall", theirs, ours_)
    assert words in line
    assert equal is same


@pytest.mark.process
def test_an_absent_ragas_is_told_with_the_way_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A path that is none, or a Python without ragas."""
    for python in ("/nowhere/python", "/bin/false"):
        monkeypatch.setenv(ENVIRONMENTS[0].variable, python)
        assert not ENVIRONMENTS[0].installed
        assert '/bin/pip install "ragas==0.4.3"' in ENVIRONMENTS[0].absent
        assert not replace(ENVIRONMENTS[0], version="0.0").installed

"""Translating prompts: what the judge is sent, and which of its replies are taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.errors import InputError, Unanswered
from ragmetrics.judges import asking, translate
from ragmetrics.judges.base import Reply
from ragmetrics.metrics import GRADE, NEEDED, SUPPORT, metrics, prompts_of
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.records import Ask, Prompt

REPLACEABLE = [p for p in prompts_of(metrics().values()).values() if not p.verbatim]
Translator = Callable[[list[str]], list[str]]


def shouted(texts: list[str]) -> list[str]:
    """A translation that keeps every word."""
    return [f"{text}!" for text in texts]


class Scripted:
    """A judge that translates by one function after the other; the last one stays."""

    name, note, fingerprint, concurrency, cacheable = "scripted", "", "scripted", 1, True

    def __init__(self, *scripts: Translator) -> None:
        self.scripts = scripts
        self.asked: list[Ask] = []

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The next translation."""
        self.asked.append(request)
        script = self.scripts[min(attempt, len(self.scripts) - 1)]
        return Reply(json.dumps({"translated": script(request.data["texts"])}))

    def evidence(self, request: Ask) -> None:
        """None."""

    async def close(self) -> None:
        """Nothing to give back."""


@pytest.fixture
def ask_scripted(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[Prompt | Unanswered, Scripted]]:
    """Translates one prompt into German by scripts."""

    def translated(prompt: Prompt, *scripts: Translator) -> tuple[Prompt | Unanswered, Scripted]:
        judge = Scripted(*scripts)
        monkeypatch.setattr(asking, "make_judge", lambda *_, **__: judge)
        settings = make_settings({"judge": {"name": "openai", "base_url": "http://nowhere"}})
        (found,) = translate(settings, [prompt], "de-AT")
        return found, judge

    return translated


def shape(value: Any) -> Any:
    """A value with its texts left out."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [shape(part) for part in value]
    return type(value) if isinstance(value, str) else value


@pytest.mark.parametrize("prompt", REPLACEABLE, ids=lambda prompt: prompt.name)
def test_only_texts_change(prompt: Prompt, ask_scripted: Any) -> None:
    """Keys, numbers, values and order of every bundled prompt's examples stay as they are."""
    found, judge = ask_scripted(prompt, shouted)
    assert found.instruction == f"{prompt.instruction.strip()}!"
    assert shape(found.examples) == shape(prompt.examples)
    assert found.examples != prompt.examples
    assert (found.schema, found.check, found.baseline) == (
        prompt.schema,
        prompt.check,
        prompt.baseline,
    )
    assert len(judge.asked) == 1


def test_the_judge_is_sent_texts_alone(ask_scripted: Any) -> None:
    """Instructions first, each text once, with the language's name and the words that must stay."""
    _, judge = ask_scripted(SUPPORT, shouted)
    assert judge.asked[0].data == {
        "language": "German (de-AT)",
        "keep": ["0", "1"],
        "texts": [
            SUPPORT.instruction.strip(),
            "When was the Eiffel Tower built?",
            "It was built from 1887 to 1889.",
            "It was built in 1887-1889.",
            "Eiffel built it.",
        ],
    }
    _, judge = ask_scripted(QUESTIONS, shouted)
    assert judge.asked[0].data["keep"] == ["`n`", "`noncommittal`"]


def test_the_language_of_an_example_becomes_the_new_one(ask_scripted: Any) -> None:
    """The example's texts are in it now."""
    found, _ = ask_scripted(QUESTIONS, shouted)
    assert [data["language"] for data, _ in found.examples] == ["de-AT", "de-AT"]


class Label(BaseModel):
    """A verdict of a listed word and a free text."""

    label: Literal["yes", "no"]
    reason: str


def test_listed_values_are_no_texts(ask_scripted: Any) -> None:
    """A word that the verdict's schema lists is not translated, nor is what has no letter."""
    example = ({"text": "It is."}, {"label": "yes", "reason": "1889"})
    prompt = Prompt("label", 1, Label, "Say yes or nothing.", (example,))
    found, judge = ask_scripted(prompt, shouted)
    assert judge.asked[0].data["texts"] == ["Say yes or nothing.", "It is."]
    assert judge.asked[0].data["keep"] == ["yes"]
    assert found.examples == (({"text": "It is.!"}, {"label": "yes", "reason": "1889"}),)


BAD: dict[str, tuple[Prompt, Translator]] = {
    "translated: 3 texts for 4": (
        replace(GRADE, examples=GRADE.examples[:2]),
        lambda texts: shouted(texts)[:3],
    ),
    "translated: a text is blank": (GRADE, lambda texts: [*shouted(texts)[:-1], " "]),
    "translated: the instructions lost `noncommittal`": (
        QUESTIONS,
        lambda texts: [text.replace("`noncommittal`", "`ausweichend`") for text in texts],
    ),
    "translated: the instructions are as they were": (NEEDED, lambda texts: texts),
    "translated: examples.0.output: questions: 1 distinct ones, 2 asked for": (
        QUESTIONS,
        lambda texts: [f"{texts[0]}!", *["Wann?"] * (len(texts) - 1)],
    ),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_translation_is_asked_again(ask_scripted: Any, reason: str) -> None:
    """And taken if the next one is good; else the reason is told, and no prompt made."""
    prompt, script = BAD[reason]
    found, judge = ask_scripted(prompt, script)
    assert isinstance(found, Unanswered)
    assert found.reason == reason
    assert len(judge.asked) == 1 + JudgeSettings().reasks
    found, judge = ask_scripted(prompt, script, shouted)
    assert isinstance(found, Prompt)
    assert len(judge.asked) == 2


def test_the_embedded_judge_cannot_translate() -> None:
    """Which is told before anything is asked; of a panel, another judge is asked."""
    with pytest.raises(InputError, match="the lexical judge cannot translate; name another one"):
        translate(make_settings({}), [GRADE], "de")


def test_of_a_panel_the_first_that_can_translate_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With room for a reply that is longer than a verdict."""
    seen: list[Any] = []

    def make(settings: Any, **_: Any) -> Scripted:
        seen.append(settings)
        return Scripted(shouted)

    monkeypatch.setattr(asking, "make_judge", make)
    judges = ["lexical", {"name": "openai", "base_url": "http://nowhere", "max_tokens": 500}]
    (found,) = translate(make_settings({"judges": judges}), [GRADE], "xx")
    assert isinstance(found, Prompt)
    assert (seen[0].name, seen[0].max_tokens) == ("openai", 4_000)

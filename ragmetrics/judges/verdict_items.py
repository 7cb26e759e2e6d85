"""The items of a request: what a verdict is made of, and the level of each item.

    verdict              items                              levels
    a grade, or 0 or 1   the context                        0 .. the highest value
    supported            each claim                         0, 1
    needed               each sentence of all contexts      0, 1

The learned judge predicts levels. A verdict of another form has no items, and the learned judge
answers such a request as the lexical judge does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel

from ragmetrics.records import Ask, Prompt

_CLAIMS = ("sentences", "statements")


@dataclass(frozen=True, slots=True)
class Item:
    """One verdict to be predicted: is this text supported by, or found in, these passages?"""

    sought: str
    """The text whose content is sought: a question or a claim."""
    passages: tuple[str, ...]
    """Where it is sought: one context, all contexts, or one sentence."""
    question: str
    around: str = ""
    """The context of a sentence; empty if the passages are whole contexts."""
    before: str = ""
    """The sentence before, in its context."""
    after: str = ""
    rank: float = 0.0
    """Rank of the sentence's context from 0; 0 if the request has one context or all of them."""
    place: float = 0.0
    """Place of the item among those of its text, from 0 to 1."""


def top_level(prompt: Prompt[Any]) -> int | None:
    """The highest level of an item of a prompt's verdict; None if the verdict has no items."""
    fields = prompt.verdict.model_fields
    if prompt.verbatim or len(fields) != 1:
        return None
    (name,) = fields
    if name in ("supported", "needed"):
        return 1
    levels = get_args(fields[name].annotation)
    if levels and sorted(levels) == list(range(len(levels))):
        return len(levels) - 1
    return None


def items_of(request: Ask) -> list[Item]:
    """The items of a request, in the order of its verdict; empty if the prompt has none."""
    data = request.data
    question = data.get("question")
    if top_level(request.prompt) is None or not isinstance(question, str):
        return []
    if "needed" in request.prompt.verdict.model_fields:
        return _sentences(question, data.get("contexts", ()))
    for name in _CLAIMS:
        if name in data:
            contexts, claims = tuple(data.get("contexts", ())), data[name]
            return [
                Item(claim, contexts, question, place=number / max(1, len(claims) - 1))
                for number, claim in enumerate(claims)
            ]
    if "context" not in data:
        return []
    sought = f"{question} {data['answer']}" if "answer" in data else question
    return [Item(sought, (data["context"],), question)]


def _sentences(question: str, contexts: Sequence[Mapping[str, str]]) -> list[Item]:
    items = []
    for rank, numbered in enumerate(contexts):
        texts = list(numbered.values())
        whole = " ".join(texts)
        for number, text in enumerate(texts):
            items.append(
                Item(
                    question,
                    (text,),
                    question,
                    around=whole,
                    before=texts[number - 1] if number else "",
                    after=texts[number + 1] if number + 1 < len(texts) else "",
                    rank=float(rank),
                    place=number / max(1, len(texts) - 1),
                )
            )
    return items


def levels_of(request: Ask, verdict: BaseModel) -> list[int]:
    """The level of each item in a verdict. The verdict has passed the prompt's check."""
    (value,) = verdict.model_dump().values()
    if "needed" in request.prompt.verdict.model_fields:
        wanted = set(value)
        return [int(number in wanted) for number in _numbers(request)]
    return [int(item) for item in value] if isinstance(value, list) else [int(value)]


def verdict_of(request: Ask, levels: Sequence[int]) -> BaseModel:
    """The verdict whose items have these levels."""
    (name,) = request.prompt.verdict.model_fields
    value: object = list(levels)
    if name == "needed":
        chosen = zip(_numbers(request), levels, strict=True)
        value = [number for number, level in chosen if level]
    elif name != "supported":
        (value,) = levels
    verdict: BaseModel = request.prompt.verdict.model_validate({name: value})
    return verdict


def _numbers(request: Ask) -> list[int]:
    return [int(number) for context in request.data["contexts"] for number in context]

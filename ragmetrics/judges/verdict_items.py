"""The items of a request: what a verdict is made of, and the level of each item.

    verdict              items                              levels
    a grade, or 0 or 1   the context                        0 .. the highest value
    supported            each claim                         0, 1
    needed               each sentence of all contexts      0, 1

The learned judge predicts levels. A verdict of another form has no items, and the learned judge
answers such a request as the lexical judge does. The levels of each judge's verdicts are counted by
prompt, and so are the replies that copy an example of their prompt.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import BaseModel

from ragmetrics.records import Ask, Prompt, VerdictCount, dump_json

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


@dataclass
class _Counts:
    top: int | None
    examples: frozenset[str]
    levels: Counter[int] = field(default_factory=Counter)
    replies: int = 0
    copied: int = 0


class VerdictCounts:
    """The verdicts of one judge, by prompt."""

    def __init__(self) -> None:
        self._prompts: dict[str, _Counts] = {}

    def add(self, request: Ask, verdict: BaseModel) -> None:
        """Count the verdict on a request."""
        prompt = request.prompt
        counts = self._prompts.get(prompt.name)
        if counts is None:
            counts = _Counts(top_level(prompt), frozenset(_example_texts(prompt)))
            self._prompts[prompt.name] = counts
        counts.replies += 1
        if counts.top is not None:
            counts.levels.update(_levels(request, verdict))
        if counts.examples:
            counts.copied += _copies(counts.examples, request, verdict)

    def notes(self) -> Mapping[str, Any]:
        """The counts as they are stored in the notes of a part."""
        return {
            name: VerdictCount(
                top=counts.top,
                levels=dict(sorted(counts.levels.items())),
                replies=counts.replies,
                copied=counts.copied,
            ).model_dump(mode="json")
            for name, counts in self._prompts.items()
        }


def _levels(request: Ask, verdict: BaseModel) -> list[int]:
    """The level of each item of a verdict: an expected level is rounded. Other tools' verdicts may
    have a field of the same name that holds anything.
    """
    (value,) = verdict.model_dump().values()
    items = value if isinstance(value, list) else [value]
    levels = [
        round(item) for item in items if isinstance(item, (int, float)) and math.isfinite(item)
    ]
    if "needed" not in type(verdict).model_fields:
        return levels
    contexts = request.data.get("contexts", ())
    sentences = sum(len(context) for context in contexts if isinstance(context, Mapping))
    needed = min(len(set(levels)), sentences)
    return [1] * needed + [0] * (sentences - needed)


def _copies(examples: frozenset[str], request: Ask, verdict: BaseModel) -> bool:
    """Whether a verdict has a text of an example that the data of its request does not have."""
    copied = examples.intersection(_texts(verdict.model_dump()))
    data = dump_json(request.data).casefold() if copied else ""
    return any(text not in data for text in copied)


def _example_texts(prompt: Prompt[Any]) -> Iterator[str]:
    """The texts in the verdicts of a prompt's examples that a judge would write itself: not those
    that it has to choose from.
    """
    schema = dump_json(prompt.schema).casefold()
    for _, verdict in prompt.examples:
        yield from (text for text in _texts(verdict) if f'"{text}"' not in schema)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value but blank ones, as they stand in JSON, whatever their case."""
    if isinstance(value, str):
        if value.strip():
            yield dump_json(value)[1:-1].casefold()
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)

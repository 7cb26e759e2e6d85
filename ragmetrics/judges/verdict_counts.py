"""Counts a judge's verdicts by prompt, and the replies that copy an example of their prompt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from ragmetrics.judges.verdict_items import top_level
from ragmetrics.records import Ask, Prompt, VerdictCount, dump_json


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
        round(item) for item in items if isinstance(item, int | float) and math.isfinite(item)
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

"""Fusing: what a row asks at one time as one request, which carries each text once.

    {"texts": {"1": "When was it opened?", "2": "It was opened in 1889.", ...},
     "tasks": {"grade": [{"question": {"$": 1}, "context": {"$": 2}}, ...], "support": [...]}}

The reply has one key per task, and in it one verdict per input; a verdict with one property is that
property's value alone: `{"grade": [2, 0], "support": [[1]]}`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel

from ragmetrics.errors import UnreadableReply
from ragmetrics.protocol import Ask, Data, Prompt, Request, dumps, outermost_object, shape

_SHORTEST = 16
"""Characters from which a text that occurs twice is worth a name."""

_INSTRUCTION = """
You carry out several tasks on one input, each by itself.
`texts` holds texts by number; {"$": 1} stands for text 1 wherever it occurs. `tasks` holds a list
of inputs for each task. For each task reply with a list of verdicts, one per input, in their order.
"""


class _Verdicts(BaseModel):
    """Read piece by piece, each by the prompt that it answers."""


@dataclass(frozen=True)
class FusedPrompt(Prompt[_Verdicts]):
    """Several prompts as one."""

    parts: tuple[Prompt[Any], ...] = ()

    @cached_property
    def schema(self) -> dict[str, Any]:
        """One list of verdicts per task."""
        definitions: dict[str, Any] = {}
        properties = {}
        for part in self.parts:
            definitions |= part.schema.get("$defs", {})
            properties[part.name] = {"type": "array", "items": _verdict_schema(part)}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
            **({"$defs": definitions} if definitions else {}),
        }

    @cached_property
    def system(self) -> str:
        """The tasks' instructions, without their examples."""
        tasks = [
            f"Task `{part.name}`: {part.instruction.strip()}\n"
            f"Verdict: {shape(_verdict_schema(part), part.schema.get('$defs', {}))}"
            for part in self.parts
        ]
        return "\n\n".join([self.instruction.strip(), *tasks, self.reply_form])


class Fused:
    """Several requests as one."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        by_prompt: dict[str, list[Ask]] = {}
        for ask in sorted(asks, key=lambda one: one.prompt.name):
            by_prompt.setdefault(ask.prompt.name, []).append(ask)
        self._by_prompt = by_prompt
        prompts = tuple(group[0].prompt for group in by_prompt.values())
        tasks = {name: [one.data for one in group] for name, group in by_prompt.items()}
        self.ask = Ask(_fused_prompt(prompts), _shared(tasks))

    def split(self, text: str) -> Iterator[tuple[Ask, str]]:
        """Each request with its part of the reply, as its own prompt would have it.

        Raises UnreadableReply for a reply that has no parts; a part that is missing is empty.
        """
        try:
            verdicts = json.loads(outermost_object(text))
        except ValueError as error:
            raise UnreadableReply(f"row: {error}") from None
        for name, asks in self._by_prompt.items():
            found = verdicts.get(name) if isinstance(verdicts, dict) else None
            whole = isinstance(found, list) and len(found) == len(asks)
            for place, ask in enumerate(asks):
                yield ask, _unfolded(ask.prompt, found[place]) if whole and found else ""


def fusible(request: Request) -> bool:
    """Whether a request may go with others: fixed wording and repeats stand alone."""
    return isinstance(request, Ask) and not request.prompt.verbatim and not request.repeat


@lru_cache(maxsize=1_000)
def _fused_prompt(parts: tuple[Prompt[Any], ...]) -> FusedPrompt:
    return FusedPrompt(
        name="row", version=1, verdict=_Verdicts, instruction=_INSTRUCTION, parts=parts
    )


def _verdict_schema(prompt: Prompt[Any]) -> Any:
    properties = prompt.schema["properties"]
    if len(properties) == 1:
        return next(iter(properties.values()))
    return {key: value for key, value in prompt.schema.items() if key != "$defs"}


def _unfolded(prompt: Prompt[Any], verdict: Any) -> str:
    properties = prompt.schema["properties"]
    return dumps({next(iter(properties)): verdict} if len(properties) == 1 else verdict)


def _shared(tasks: Mapping[str, Sequence[Data]]) -> Data:
    """The tasks' data with each text that occurs more than once named and carried once."""
    counts = Counter(_texts(tasks))
    names = {
        text: number
        for number, text in enumerate(
            (text for text, times in counts.items() if times > 1 and len(text) >= _SHORTEST), 1
        )
    }
    return {
        "texts": {str(number): text for text, number in names.items()},
        "tasks": _named(tasks, names),
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from _texts(one)


def _named(value: Any, names: Mapping[str, int]) -> Any:
    if isinstance(value, str):
        return {"$": names[value]} if value in names else value
    if isinstance(value, Mapping):
        return {key: _named(one, names) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_named(one, names) for one in value]
    return value

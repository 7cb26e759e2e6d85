"""Fused requests: the requests of a row at one time as one request, with each text once.

    {"texts": {"1": "When was it opened?", "2": "It was opened in 1889.", ...},
     "tasks": {"grade": [{"question": "$1", "context": "$2"}, ...], "support": [...]}}

A text that itself looks like `$1` is always replaced by its number, so that no text of a log can
refer to another text. The reply has one key per task, and in it one verdict per input; a verdict
with one property is that property's value alone: `{"grade": [2, 0], "support": [[1]]}`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeGuard

from pydantic import BaseModel

from ragmetrics.errors import UnreadableReply
from ragmetrics.records import Ask, Data, Prompt, Request, dump_json, strict_schema
from ragmetrics.text import json_objects, neutralise

_SHORTEST = 16
"""Characters from which a repeated text gets a number."""
_REFERENCE = re.compile(r"\$[0-9]+")

INSTRUCTION = """
Several tasks, each to be done by itself. The input's `texts` are numbered: "$1" stands for text 1
wherever it occurs. Its `tasks` hold the inputs of each task; give one verdict per input, in order.
"""


class _Verdicts(BaseModel):
    """Read piece by piece, each by the prompt that it answers."""


@dataclass(frozen=True)
class FusedPrompt(Prompt[_Verdicts]):
    """Several prompts as one; each is a task of it."""

    parts: tuple[Prompt[Any], ...] = ()

    @cached_property
    def tasks(self) -> dict[str, Prompt[Any]]:
        """The prompts by task name; equal names get a number."""
        tasks: dict[str, Prompt[Any]] = {}
        for part in self.parts:
            name, number = part.name, 1
            while name in tasks:
                number += 1
                name = f"{part.name}_{number}"
            tasks[name] = part
        return tasks

    @cached_property
    def schema(self) -> dict[str, Any]:
        """One list of verdicts per task."""
        properties: dict[str, Any] = {}
        definitions: dict[str, Any] = {}
        for number, (name, part) in enumerate(self.tasks.items()):
            schema = strict_schema(part.schema, f"{number}.")
            definitions |= schema.pop("$defs", {})
            only = _only_property(part)
            verdict = schema["properties"][only] if only else schema
            properties[name] = {"type": "array", "items": verdict}
        whole = strict_schema({"type": "object", "properties": properties})
        return whole | ({"$defs": definitions} if definitions else {})

    @cached_property
    def system(self) -> str:
        """The tasks' instructions, without their examples."""
        tasks = [f"Task `{name}`: {part.instruction.strip()}" for name, part in self.tasks.items()]
        return "\n\n".join([self.instruction.strip(), *tasks, self.reply_form])


class Fused:
    """Several requests as one; all have the same repeat number."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        by_prompt: dict[str, list[Ask]] = {}
        for ask in sorted(asks, key=lambda one: (one.prompt.name, one.prompt.digest)):
            by_prompt.setdefault(ask.prompt.digest, []).append(ask)
        prompts = [group[0].prompt for group in by_prompt.values()]
        prompt = _fused_prompt(_Parts(tuple(by_prompt), tuple(prompts)))
        self._by_task = dict(zip(prompt.tasks, by_prompt.values(), strict=True))
        tasks = {name: [one.data for one in group] for name, group in self._by_task.items()}
        self.ask = Ask(prompt, _numbered(tasks), asks[0].repeat)

    def split(self, text: str) -> list[tuple[Ask, str]]:
        """Each request with its part of the reply, in the format of its own prompt.

        A missing part is empty. If a task does not have one verdict per input, all its parts are
        empty, because they cannot be matched. Raises UnreadableReply for a reply without parts.
        """
        try:
            found = [json.loads(one) for one in json_objects(text)]
            if not found:
                raise UnreadableReply("no JSON object in the reply")
            verdicts = next((one for one in found if self._by_task.keys() & one.keys()), found[0])
            return list(self._split(verdicts))
        except (ValueError, RecursionError, UnreadableReply) as error:
            raise UnreadableReply(f"{self.ask.prompt.name}: {error}") from None

    def _split(self, verdicts: Data) -> Iterator[tuple[Ask, str]]:
        for task, asks in self._by_task.items():
            found = verdicts.get(task)
            if not isinstance(found, list) or len(found) != len(asks):
                found = [None] * len(asks)
            for ask, verdict in zip(asks, found, strict=True):
                yield ask, "" if verdict is None else dump_json(_unfolded(ask.prompt, verdict))


def parts_of(ask: Ask) -> list[tuple[str, Ask]]:
    """The requests in a fused request, each with the name of its task; `ask` itself otherwise."""
    if not isinstance(ask.prompt, FusedPrompt):
        return [(ask.prompt.name, ask)]
    texts = {f"${number}": text for number, text in ask.data["texts"].items()}
    return [
        (task, Ask(ask.prompt.tasks[task], _referring(data, texts), ask.repeat))
        for task, inputs in ask.data["tasks"].items()
        for data in inputs
    ]


def fusible(request: Request) -> TypeGuard[Ask]:
    """Whether a request can be fused; a verbatim prompt is always sent alone."""
    return isinstance(request, Ask) and not request.prompt.verbatim


@dataclass(frozen=True)
class _Parts:
    """Prompts, compared by their digests."""

    digests: tuple[str, ...]
    prompts: tuple[Prompt[Any], ...] = field(compare=False)


@lru_cache(maxsize=256)
def _fused_prompt(parts: _Parts) -> FusedPrompt:
    return FusedPrompt("row", 1, _Verdicts, INSTRUCTION, parts=parts.prompts)


def _only_property(prompt: Prompt[Any]) -> str | None:
    name, *others = prompt.schema["properties"]
    return None if others else name


def _unfolded(prompt: Prompt[Any], verdict: Any) -> Any:
    only = _only_property(prompt)
    # Without an enforced schema, models often write the property too.
    written_out = isinstance(verdict, dict) and list(verdict) == [only]
    return verdict if only is None or written_out else {only: verdict}


def _numbered(tasks: Mapping[str, Sequence[Data]]) -> Data:
    """The tasks' data, with repeated texts replaced by numbers."""
    counts = Counter(_texts(tasks))
    carried = [text for text, times in counts.items() if _is_carried(text, times)]
    numbers = {text: f"${number}" for number, text in enumerate(carried, 1)}
    return {
        "texts": {number[1:]: text for text, number in numbers.items()},
        "tasks": _referring(tasks, numbers),
    }


def _is_carried(text: str, times: int) -> bool:
    # As it is sent: without invisible characters.
    return (times > 1 and len(text) >= _SHORTEST) or bool(_REFERENCE.fullmatch(neutralise(text)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | Sequence):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)


def _referring(value: Any, numbers: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return numbers.get(value, value)
    if isinstance(value, Mapping):
        return {key: _referring(one, numbers) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_referring(one, numbers) for one in value]
    return value

"""What a model and its endpoint take of a chat request: parameters, and bounds of the reply.

An endpoint refuses parameters by name, as OpenAI's current models do, and keywords of a schema.
Each refusal changes how all later requests are sent, so the first one is sent alone. A model that
reasons is asked for the least effort that it takes, and its replies get room for reasoning besides
their own tokens.

The schema that is sent has the sizes of the verdict's lists and texts, and the limit of tokens has
room for the longest reply by that schema, as some models write without an end. Neither is part of
a fingerprint or of a cache key: a reply that the bounds cut is never used, but asked for again with
all tokens of the settings.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

from ragmetrics.config import JudgeSettings
from ragmetrics.judges.base import Reply
from ragmetrics.records import Ask, AskedWay, Prompt, Size, dump_json

Sizes: TypeAlias = tuple[tuple[str, Size], ...]

_LIMIT, _OTHER_LIMIT = "max_tokens", "max_completion_tokens"
_EFFORT, _TEMPERATURE = "reasoning_effort", "temperature"
PARAMETERS = (_LIMIT, _OTHER_LIMIT, _TEMPERATURE, _EFFORT)
"""Parameters that can be sent otherwise, or left out."""
EFFORTS = JudgeSettings.efforts
_LEAST = EFFORTS[0]
_ROOMS = dict(zip(EFFORTS, (0, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000), strict=True))
"""Tokens for reasoning: twice what OpenAI's models use for a short question at that effort."""
_USUAL_ROOM = _ROOMS["medium"]  # the effort of a model that is not told one
_FIRST_ROOM, _WIDER = 4_000, 4
MOST_ROOM = 100_000
"""Most tokens for reasoning in one reply: the models of 2026 write 128,000 in all."""
_CODES = ("unsupported_parameter", "unsupported_value", "unknown_parameter")
_REFUSAL = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown|unexpected|extra |deprecated|n't support|"
    r"not (?:be )?(?:support|permit|allow|recogni|accept)",
    re.IGNORECASE,
)
_NAMES = re.compile(rf"\b(?:{'|'.join(PARAMETERS)}|response_format)\b")
_QUOTED_EFFORT = re.compile(rf"[`'\"]({'|'.join(EFFORTS)})[`'\"]")
_FIRST_SECONDS = 5.0  # for which other requests wait for the first one
_MOST_READ = 200  # characters; what follows may quote the request
_LONGEST_NAME = 60
_MOST_BOUND = 1_000
"""Largest bound in a schema: llama.cpp compiles no repetition of 2,000."""
_AROUND = 32
"""Tokens around the JSON of a reply: a code fence, a sentence before it, an indentation."""
_OF_NUMBER = 4
_OF_VALUE = 3  # its comma, line break and indentation
_CHARACTERS_PER_TOKEN = 2  # English has about four, dense scripts have fewer
_WORDS = {"array": ("minItems", "maxItems"), "string": ("minLength", "maxLength")}
KEYWORDS = frozenset(word for pair in _WORDS.values() for word in pair)
"""Keywords of a schema that bound a size."""
_OF_BOUNDS = re.compile(r"minItems|maxItems|maxLength|grammar|repetition", re.IGNORECASE)


def refused_parameter(error: Mapping[str, Any]) -> str:
    """The parameter that the error of a rejected request refuses; empty if it refuses none.

    Only the first sentence is read: later ones may name a replacement, or quote a logged text. An
    error about the effort is always a refusal, since its value does not depend on the row.
    """
    message, name = error.get("message"), error.get("param")
    if name == _EFFORT:
        return _EFFORT
    first = re.split(r"\. |\n", str(message or "")[:_MOST_READ], maxsplit=1)[0]
    if error.get("code") not in _CODES and not _REFUSAL.search(first):
        return ""
    if isinstance(name, str) and name:
        return name[:_LONGEST_NAME]
    named = _NAMES.search(first)
    return named.group() if named else ""


class RequestParameters:
    """How one endpoint is asked for one model: by the settings, and by what it has refused.

    A model is known to reason by its name, or by what it refuses. Then it is asked for the effort
    `none`, unless the settings have another one.
    """

    def __init__(self, settings: JudgeSettings, learned: AskedWay | None = None) -> None:
        self._reasons = self._known = settings.reasons
        self._wanted, self._planned = settings.reasoning_effort, settings.planned_effort
        self._limit = _OTHER_LIMIT if self._reasons else _LIMIT
        self._effort: str | None = self._planned
        # OpenAI's models take a temperature with the least effort alone.
        self._sends_temperature = self._planned in (None, _LEAST) or not self._known
        self._refused: set[str] = set()
        """The refused names of the limit, and the refused efforts."""
        self._room = 0
        self.version = 0
        """Changes whenever requests are sent otherwise than before."""
        self.asked: AskedWay | None = None
        """How the endpoint was asked otherwise than planned. None before the first reply."""
        self._first = self.sent
        if learned and learned.parameters:
            self._begin_with(learned.parameters)

    @property
    def room(self) -> int:
        """Tokens that a reply may have for reasoning, besides those of the settings."""
        usual = _USUAL_ROOM if self._reasons else 0
        return max(self._room, usual if self._effort is None else _ROOMS[self._effort])

    @property
    def changes(self) -> str:
        """What is sent otherwise than in the settings: `max_completion_tokens in place of
        max_tokens, no temperature`; empty if nothing is.
        """
        limit = [f"{_OTHER_LIMIT} in place of {_LIMIT}"] if self._limit == _OTHER_LIMIT else []
        return ", ".join([*limit, *_differences(self._wanted, self.sent)])

    @property
    def sent(self) -> dict[str, Any]:
        """The parameters that are sent now; the value of the limit is the room for reasoning."""
        return self.fit({_LIMIT: 0, _TEMPERATURE: 0})

    def note(self, sent: Mapping[str, Any]) -> None:
        """Note the parameters of a request that was answered. What can change a reply is the way;
        the limit is no part of it.
        """
        way = ", ".join(_differences(self._planned, sent))
        self.asked = AskedWay(way=way, parameters={**sent} if sent != self._first else {})

    def _begin_with(self, sent: Mapping[str, str | float]) -> None:
        """Begin with what an earlier run has learned, so that no request is refused for it."""
        refused = self.sent.keys() - sent.keys()
        self._refused |= refused & {_LIMIT, _OTHER_LIMIT}
        self._limit = _OTHER_LIMIT if _OTHER_LIMIT in sent else _LIMIT
        self._reasons |= self._limit == _OTHER_LIMIT
        effort = sent.get(_EFFORT)
        if effort != self._effort:
            self._refused.add(self._effort or "")
            self._effort = effort if effort in EFFORTS else None
        self._sends_temperature = _TEMPERATURE in sent
        room = sent.get(self._limit)
        known = isinstance(room, float | int) and 0 <= room <= MOST_ROOM
        self._room = int(room or 0) if known else 0

    def fit(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request by the parameters that the model takes."""
        fitted: dict[str, Any] = {}
        for key, value in body.items():
            if key == _LIMIT:
                fitted[self._limit] = value + self.room
                fitted |= {_EFFORT: self._effort} if self._effort else {}
            elif key != _TEMPERATURE or self._sends_temperature:
                fitted[key] = value
        return fitted

    def turn(self, refused: str, sent: Mapping[str, Any], message: str = "") -> bool:
        """Learn from a rejection; whether the request can be sent again, in another way.

        What was refused is not sent again, so this ends. If the endpoint names something else,
        nothing helps. `sent` are the parameters of the request; others may have changed since.
        """
        if refused not in sent or refused not in PARAMETERS:
            return False
        if any(self.sent.get(name) != sent.get(name) for name in (refused, _EFFORT)):
            return True  # another request was refused before
        if refused == _EFFORT:
            self._effort = self._next_effort(message)
            self._sends_temperature &= not self._known
        elif refused == _TEMPERATURE:
            self._sends_temperature = self._tries_effort()
        elif not self._turn_limit(refused):
            return False
        self.version += 1
        return True

    def widen(self, sent: Mapping[str, Any]) -> None:
        """Leave more room after a reply that reasoning cut off, unless another one did."""
        if self.sent.get(self._limit) == sent.get(self._limit):
            self._room = min(max(_FIRST_ROOM, _WIDER * self.room), MOST_ROOM)
            self.version += 1

    def _turn_limit(self, refused: str) -> bool:
        self._refused.add(refused)
        if {_LIMIT, _OTHER_LIMIT} <= self._refused:
            return False
        self._limit = _OTHER_LIMIT if refused == _LIMIT else _LIMIT
        if self._limit == _OTHER_LIMIT:
            self._reasons = True
            self._tries_effort()
        return True

    def _tries_effort(self) -> bool:
        """Whether an effort is sent from now on: not if one was sent before."""
        if self._effort or self._refused & {*EFFORTS}:
            return False
        self._effort = _LEAST
        return True

    def _next_effort(self, message: str) -> str | None:
        """The effort next to the wanted one, of those that a refusal names. None: no effort."""
        self._refused.add(self._effort or "")
        named = [name for name in _QUOTED_EFFORT.findall(message) if name not in self._refused]
        wanted = EFFORTS.index(self._wanted or _LEAST)

        def distance(name: str) -> tuple[bool, int]:
            rank = EFFORTS.index(name)
            return rank < wanted, abs(rank - wanted)

        return min(named, key=distance, default=None)


def _differences(effort: str | None, sent: Mapping[str, Any]) -> list[str]:
    now = sent.get(_EFFORT)
    changed = [f"{_EFFORT} {now}" if now else f"no {_EFFORT}"] if now != effort else []
    return changed if _TEMPERATURE in sent else [*changed, f"no {_TEMPERATURE}"]


def sizes_of(request: Ask) -> Sizes:
    """The sizes of the verdict's lists and texts; empty if its prompt does not know them."""
    sizes = request.prompt.sizes
    return tuple(sizes(request.data).items()) if sizes else ()


def bounded_schema(
    prompt: Prompt[Any], sizes: Sizes, refused: Collection[str] = ()
) -> dict[str, Any]:
    """The schema of a verdict with its sizes, except for keywords that the endpoint refuses."""
    known = dict(sizes)
    properties = {
        name: _bounded(part, known.get(name), refused)
        for name, part in prompt.schema.get("properties", {}).items()
    }
    return prompt.schema | ({"properties": properties} if known else {})


def _bounded(schema: Mapping[str, Any], size: Size | None, refused: Collection[str]) -> Any:
    kind = schema.get("type")
    if size is None or kind not in _WORDS:
        return schema
    pairs = zip(_WORDS[kind], (size.least, size.most), strict=True)
    bounds = {word: n for word, n in pairs if 0 < n <= _MOST_BOUND and word not in refused}
    inner = {"items": _bounded(schema["items"], size.each, refused)} if "items" in schema else {}
    return {**schema, **inner, **bounds}


def reply_tokens(prompt: Prompt[Any], sizes: Sizes, most: int) -> int:
    """The tokens that the longest reply to a prompt takes, at most the `max_tokens` of the
    settings. All of them if the length of a list or a text is not known.
    """
    if prompt.verbatim:
        text = dict(sizes).get("text")
        needed = text.most / _CHARACTERS_PER_TOKEN if text else math.inf
    else:
        schema = bounded_schema(prompt, sizes)
        needed = _AROUND + _tokens(schema, schema.get("$defs", {}))
    return math.ceil(min(needed, most))


def _tokens(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> float:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        others = {key: part for key, part in definitions.items() if key != name}
        return _tokens(definitions[name], others) if name in definitions else math.inf
    if values := schema.get("enum") or [schema[key] for key in ("const",) if key in schema]:
        return max(len(dump_json(value)) for value in values)
    if "anyOf" in schema:
        return max(_tokens(part, definitions) for part in schema["anyOf"])
    if "properties" in schema:
        parts = schema["properties"].items()
        return sum(len(name) + _OF_VALUE + _tokens(part, definitions) for name, part in parts)
    if "items" in schema and "maxItems" in schema:
        item = _OF_VALUE + _tokens(schema["items"], definitions)
        return float(_OF_VALUE + schema["maxItems"] * item)
    if "maxLength" in schema:
        return float(schema["maxLength"] / _CHARACTERS_PER_TOKEN)
    kinds = {"integer": _OF_NUMBER, "number": 2 * _OF_NUMBER, "boolean": 1, "null": 1}
    return kinds.get(schema.get("type", ""), math.inf)


class ReplyBounds:
    """What one endpoint and its model have shown of the bounds that they take."""

    def __init__(self, refused: Collection[str] = ()) -> None:
        self.refused = set(refused)
        """Keywords of a schema that it refuses."""
        self.tokens = True
        """Whether `max_tokens` is bounded: not for a model that writes more than its JSON."""

    @property
    def version(self) -> int:
        """Changes whenever fewer bounds are sent."""
        return len(self.refused) + (not self.tokens)

    def turn(self, message: str, version: int) -> bool:
        """Learn from the rejection of what was sent by a version; whether to send it again.

        The words that the message names are not sent any more; all of them if it names a grammar.
        """
        if not (named := set(_OF_BOUNDS.findall(message))):
            return False
        if version != self.version:
            return True  # another request has turned meanwhile
        before = len(self.refused)
        self.refused |= (named & KEYWORDS) or KEYWORDS
        return len(self.refused) > before

    def note(self, reply: Reply, bound: int) -> None:
        """Learn from a reply that was cut at a bound, and was then asked for with more room."""
        written = reply.completion_tokens - reply.reasoning_tokens
        if not reply.cut_off and not 0 < written <= bound:  # 0: not reported
            self.tokens = False


class FirstAlone:
    """Lets the first request of a run pass alone, until it has its answer.

    It finds out what the endpoint refuses by name: a first wave would be refused as a whole. The
    others wait for a few seconds at most, as the first one may hang.
    """

    def __init__(self) -> None:
        self._is_sent = False
        self._answered = asyncio.Event()

    @asynccontextmanager
    async def passage(self) -> AsyncIterator[None]:
        """Let a request pass, in its turn."""
        if self._is_sent:
            if not self._answered.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._answered.wait(), _FIRST_SECONDS)
            yield
            return
        self._is_sent = True
        try:
            yield
        finally:
            self._answered.set()

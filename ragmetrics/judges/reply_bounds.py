"""Bounds of a reply, by its prompt and the data of the request: some models write without an end.

The schema that is sent has the sizes of the verdict's lists and texts, and `max_tokens` has room
for the longest reply by that schema. Neither is part of a fingerprint or of a cache key: a reply
that the bounds cut is never used, but asked for again with all tokens of the settings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from ragmetrics.judges.base import Reply
from ragmetrics.records import Ask, Prompt, Size, dump_json

Sizes: TypeAlias = tuple[tuple[str, Size], ...]

_MOST = 1_000
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
    bounds = {word: n for word, n in pairs if 0 < n <= _MOST and word not in refused}
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

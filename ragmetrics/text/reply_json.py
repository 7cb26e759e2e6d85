"""Finds the JSON objects in a judge's reply, and detects refusals.

Models write more than the object: reasoning in `<think>` tags, prose, Markdown fences, a second
pair of braces. Reasoning may contain drafts, so the last object is the verdict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from ragmetrics.errors import UnreadableReply

_LONGEST = 2_000_000  # characters of a reply that are searched
_EFFORT = 8  # most characters parsed, in lengths of the reply
_THOUGHTS = ("think", "thinking", "reasoning", "thought")
_OPENED = re.compile(rf"\s*<({'|'.join(_THOUGHTS)})>")
_CLOSED = re.compile(rf"</({'|'.join(_THOUGHTS)})>")
_BEGINS = re.compile(r'\{\s{0,999}(?:\}|"(?:[^"\\]|\\.){0,999}"\s{0,99}:)')
_REFUSAL = re.compile(
    r"\bI(?:['’]m| am)?(?: (?:really|very|so))?(?: sorry,? but I)?"
    r" ?(?:can['’]?t|cannot|can not|won['’]?t|will not|(?:am )?unable to|(?:am )?not able to"
    r"|(?:must|have to) (?:decline|refuse)|decline|refuse)\b"
    r"(?:\W+\w+){0,3}?\W+(?:help|assist|comply|answer|provide|fulfil+|continue|process|judge"
    r"|evaluate|grade|assess|engage|discuss|do|complete|respond|support|rate|participate)\b",
    re.IGNORECASE,
)
_REFUSAL_WITHIN = 300  # characters from the reply's beginning
_LONGEST_REFUSAL = 2_000


class _Duplicate(Exception):
    """A key occurs twice in an object."""


def json_objects(text: str) -> list[str]:
    """The outermost JSON objects of a reply as text, the last one first.

    Thoughts are passed over; where they have no end there is no verdict. Raises UnreadableReply
    where an object has a key twice, because it is unknown which value is meant.
    """
    if len(text) > _LONGEST:
        raise UnreadableReply(f"the reply has {len(text):,} characters")
    for part in _answers(text):
        try:
            objects = list(_balanced(part))
        except _Duplicate as error:
            raise UnreadableReply(f"the key {error} occurs twice in an object") from None
        if objects:
            return objects[::-1]
    return []


def is_refusal(text: str) -> bool:
    """Whether a reply without a verdict is a refusal of the model."""
    ends = [match.end() for match in _CLOSED.finditer(text)]
    answer = text[ends[-1] :].strip() if ends else text.strip()
    match = _REFUSAL.search(answer[:_REFUSAL_WITHIN])
    return match is not None and len(answer) <= _LONGEST_REFUSAL


def _answers(text: str) -> Iterator[str]:
    """Possible answers: the text after the reasoning, or the whole without reasoning."""
    ends = [match.end() for match in _CLOSED.finditer(text)]
    if ends:
        yield text[ends[-1] :]
    if not _OPENED.match(text):
        yield text
    elif len(ends) > 1:
        yield text[ends[0] :]


def _balanced(text: str) -> Iterator[str]:
    """The readable objects, in order. The work is bounded for any text."""
    effort, place = _EFFORT * len(text) + 10_000, 0
    while effort > 0 and (begins := _BEGINS.search(text, place)):
        start, place = begins.start(), begins.start() + 1
        try:
            _, place = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # Creating the error counts the lines before it, which takes time.
            effort -= error.pos - start + error.pos // 64 + 1
        except (ValueError, RecursionError):  # too deep, or a number too long
            effort -= len(text) - start
        else:
            effort -= place - start
            yield text[start:place]


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _Duplicate(json.dumps(name)[:100])
    return fields


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_number)

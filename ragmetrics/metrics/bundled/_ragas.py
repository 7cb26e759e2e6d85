"""Shared by the `ragas_*` metrics: joins contexts and reads replies as ragas does."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from ragmetrics.errors import UnreadableReply
from ragmetrics.records import Data, Lexicon, LogRow, Prompt, explain_validation_error

T = TypeVar("T")
V = TypeVar("V", bound=BaseModel)

_JSON = json.JSONDecoder(strict=False)  # raw line breaks inside strings pass, as in ragas
_FENCE = "```json"


def joined(row: LogRow) -> str:
    """The contexts as one text, as ragas sends them."""
    return "\n".join(row.retrieved_contexts)


def read(kind: TypeAdapter[T], reply: str) -> T:
    """The first JSON value of a reply. Raises UnreadableReply if it is not of this kind.

    As in ragas, a ```json fence has priority over an earlier bracket, and the rest is ignored.
    """
    start = max(reply.find(_FENCE), 0)
    brackets = [place for sign in "[{" if (place := reply.find(sign, start)) >= 0]
    try:
        value, _ = _JSON.raw_decode(reply, min(brackets, default=len(reply)))
        return kind.validate_python(value)
    except ValidationError as error:
        raise UnreadableReply(explain_validation_error(error)) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableReply(f"no JSON in the reply: {error}") from None


def baseline_of(prompt: Prompt[V], data: Data, lexicon: Lexicon) -> V:
    """The lexical judge's answer to a built-in prompt, for use in ragas's format."""
    if prompt.baseline is None:
        raise TypeError(f"{prompt.name} has no baseline")
    return prompt.baseline(data, lexicon)

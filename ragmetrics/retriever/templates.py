"""Fills the templates of a request: the body and the parameters of a URL.

A text may contain `{user_input}`, `{build}`, `{id}`, `{language}`, `{tags.NAME}` and the names
under `retriever: parameters:`. A text that is only the name of a parameter becomes its value, with
the JSON type. Each is filled in once, in the JSON values and never in JSON source text, so braces
and quotes in a question stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from ragmetrics.config import RetrieverSettings
from ragmetrics.retriever.questions import Question

_Param = str | bool | int | float


def values_of(
    question: Question, build: str, parameters: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """What placeholders stand for: the fields of a question, its tags, and parameters."""
    values: dict[str, JsonValue] = {
        "user_input": question.user_input,
        "build": build,
        "id": question.id,
        "language": question.language,
        **{f"tags.{name}": value for name, value in question.tags.items()},
    }
    return {**{name: fill(value, values) for name, value in parameters.items()}, **values}


def fill(template: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    """The template with its texts filled in; keys, numbers and other braces stay as they are."""
    if isinstance(template, str):
        return _filled(template, values)
    if isinstance(template, list):
        return [fill(item, values) for item in template]
    if isinstance(template, dict):
        return {key: fill(item, values) for key, item in template.items()}
    return template


def _filled(template: str, values: Mapping[str, JsonValue]) -> JsonValue:
    whole = RetrieverSettings.placeholder.fullmatch(template)
    if whole and whole[1] in values:
        return values[whole[1]]

    def value_of(hole: Any) -> str:
        if hole[1] in values:
            return text_of(values[hole[1]])
        return "" if hole[1].startswith("tags.") else str(hole[0])

    return RetrieverSettings.placeholder.sub(value_of, template)


def text_of(value: JsonValue) -> str:
    """A value inside a text: texts as they are, others as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def fill_body(template: JsonValue, values: Mapping[str, JsonValue]) -> bytes | None:
    """The body of a request, in ASCII; None where the template is."""
    return None if template is None else json.dumps(fill(template, values)).encode("ascii")


def fill_params(
    params: Mapping[str, _Param | list[_Param]], values: Mapping[str, JsonValue]
) -> list[tuple[str, str]]:
    """The parameters of a URL, not yet encoded; a list gives one for each item."""
    pairs = []
    for name, value in params.items():
        filled = [fill(item, values) for item in (value if isinstance(value, list) else [value])]
        flat = [one for item in filled for one in (item if isinstance(item, list) else [item])]
        pairs += [(name, text_of(one)) for one in flat]
    return pairs

"""Fills the template of a request to a retriever: in the JSON values, never in JSON source text.

A template is JSON whose texts may contain `{user_input}`, `{build}`, `{id}` and `{language}`. Each
is filled in once, so braces and quotes in a question stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import JsonValue

from ragmetrics.config import PLACEHOLDER, Param


def fill(template: JsonValue, values: Mapping[str, str]) -> JsonValue:
    """The template with its texts filled in; keys, numbers and other braces stay as they are."""
    if isinstance(template, str):
        return PLACEHOLDER.sub(lambda hole: values[hole[1]], template)
    if isinstance(template, list):
        return [fill(item, values) for item in template]
    if isinstance(template, dict):
        return {key: fill(item, values) for key, item in template.items()}
    return template


def fill_body(template: JsonValue, values: Mapping[str, str]) -> bytes | None:
    """The body of a request, in ASCII; None where the template is."""
    return None if template is None else json.dumps(fill(template, values)).encode("ascii")


def fill_params(
    params: Mapping[str, Param | list[Param]], values: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The parameters of a URL, not yet encoded; a list gives one for each item."""
    return [(name, _text(item, values)) for name, item in _each(params)]


def _each(params: Mapping[str, Param | list[Param]]) -> Iterator[tuple[str, Param]]:
    for name, value in params.items():
        for item in value if isinstance(value, list) else [value]:
            yield name, item


def _text(item: Param, values: Mapping[str, str]) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    return cast("str", fill(item, values)) if isinstance(item, str) else str(item)

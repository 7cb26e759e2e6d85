"""Reads lists and mappings as Python writes them in a text: what pandas puts into a cell of CSV.

`['a', "it's"]` is a list of pandas, `['a' 'b']` an array of numpy, `[np.float64(0.5)]` a list of
numbers of numpy. Nothing is executed, and memory is in proportion to the text.
"""

from __future__ import annotations

import re
from ast import literal_eval
from itertools import pairwise
from typing import Any

from pydantic_core import from_json, to_json

# The escapes that repr writes.
_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{{2}}|u[0-9a-f]{{4}}|U00(?:0[0-9a-f]|10)[0-9a-f]{{4}})"
_VALUE = rf"""
      (?P<text{{0}}> '(?:[^'\\\n\0]|{_ESCAPE})*+' | "(?:[^"\\\n\0]|{_ESCAPE})*+" )
    | (?P<number{{0}}> [-+]? (?: [0-9]++ (?:\.[0-9]*+)? | \.[0-9]++ ) (?: [eE][-+]?[0-9]++ )? )
    | (?P<name{{0}}> True | False | None | nan | NaN )
"""
_TOKEN = re.compile(
    rf"""
    \s* (?:
      {_VALUE.format("")}
    | (?: np | numpy ) \. \w+ \( (?: {_VALUE.format("_of_numpy")} ) \)
    | (?P<sign> [][{{}}(),:] )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMES = {"True": "true", "False": "false", "None": "null", "nan": "null", "NaN": "null"}
_BRACKETS = str.maketrans("()", "[]")


def read_literal(text: str) -> Any:
    """The list or mapping in a text, which is JSON or a Python literal. Raises ValueError."""
    try:
        return from_json(text)
    except ValueError:
        return from_json(_as_json(text))


def _as_json(text: str) -> str:
    """A Python literal as JSON. Values without a comma between them, as numpy writes them, are
    separate values: Python itself would join texts.
    """
    tokens, end = [], 0
    while match := _TOKEN.match(text, end):
        tokens.append(_token(match))
        end = match.end()
    if text[end:].strip():
        raise ValueError(f"neither JSON nor a Python list, at character {end + 1}")
    parts = []
    for symbol, after in pairwise([*tokens, ""]):
        if symbol == "," and after in ("]", "}"):
            continue  # (1,)
        parts.append(symbol)
        if _ends_value(symbol) and after and after not in ",:]}":
            parts.append(",")
    return "".join(parts)


def _token(match: re.Match[str]) -> str:
    if quoted := match["text"] or match["text_of_numpy"]:
        return to_json(literal_eval(quoted)).decode()
    if name := match["name"] or match["name_of_numpy"]:
        return _NAMES[name]
    if number := match["number"] or match["number_of_numpy"]:
        return repr(float(number)) if set(number) & set(".eE+") else number
    return match["sign"].translate(_BRACKETS)


def _ends_value(token: str) -> bool:
    return token not in (",", ":", "[", "{")

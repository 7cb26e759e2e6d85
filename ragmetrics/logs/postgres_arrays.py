r"""Reads arrays as Postgres writes them in a text: `{a,"b, \"c\"",NULL}`, and arrays of arrays."""

from __future__ import annotations

import re
from typing import Any

_MOST_DIMENSIONS = 6
"""Postgres has no more."""
_TOKEN = re.compile(
    r"""
    \s*+ (?:
      " (?P<quoted> (?: [^"\\] | \\. )*+ ) "
    | (?P<sign> [{},] )
    | (?P<plain> (?: [^{},"\\\s] | \\. ) (?: [^{},"\\] | \\. )*+ )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def read_array(text: str) -> list[Any]:
    """The items of an array, as texts; NULL is None. Raises ValueError for any other text."""
    whole: list[Any] = []
    lists, before, end = [whole], "", 0
    while (match := _TOKEN.match(text, end)) and (sign := match["sign"] or "item"):
        if sign not in (_AFTER[before] if len(lists) > 1 or not before else ()):
            break
        if sign == "{":
            lists.append([])
            lists[-2].append(lists[-1])
        elif sign == "}":
            lists.pop()
        elif sign == "item":
            lists[-1].append(_item(match))
        if len(lists) > _MOST_DIMENSIONS + 1:
            break
        before, end = sign, match.end()
    if before != "}" or len(lists) > 1 or text[end:].strip():
        raise ValueError(f"no array of Postgres, at character {end + 1}")
    items: list[Any] = whole[0]
    return items


_AFTER = {
    "": ("{",),
    "{": ("{", "}", "item"),
    ",": ("{", "item"),
    "item": (",", "}"),
    "}": (",", "}"),
}
"""What may follow each token."""


def _item(match: re.Match[str]) -> str | None:
    if match["quoted"] is not None:
        return _ESCAPED.sub(r"\1", match["quoted"])
    plain = _ESCAPED.sub(r"\1", match["plain"].rstrip())
    return None if plain.upper() == "NULL" else plain

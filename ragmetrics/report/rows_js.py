"""The data of rows.html: kept rows as scripts, which a browser loads from a folder, too.

2026-11-19/rows-1.js … rows-3.js     (globalThis.ROWS ??= []).push({"page": 1, "rows": [...]});
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragmetrics.report.formatting import anchor, clean
from ragmetrics.report.row_detail import RowDetail
from ragmetrics.text import finite

MOST_FILES = 3
MOST_FILE_BYTES = 1_000_000
"""Of one file."""
_HEAD = "(globalThis.ROWS ??= []).push("
_MOST_ROW_TAGS = 30
_LONGEST_NAME = 200
_LONGEST_QUESTION = 1_000
_SIGNS = {sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
_PACKED = {"<": "\x82", ">": "\x83", "&": "\x84"}
"""The signs of an article's markup as characters that no cleaned text holds: two bytes each, where
escapes would make the files half as large again. rows.js turns them back."""


def entry(found: RowDetail, article: str) -> bytes:
    """One row as JSON: what is searched, sorted and filtered by, and the row as it is shown.

    Metrics are named as in anchors.
    """
    row = found.row
    scores = {anchor(name): finite(score.value) for name, score in found.scores.items()}
    fields: dict[str, Any] = {
        "key": found.key,
        "id": _short(row.id),
        "question": _short(row.user_input, _LONGEST_QUESTION),
        "why": [
            {"kind": one.kind, "metric": anchor(one.metric), "before": finite(one.before)}
            if one.metric
            else {"kind": one.kind}
            for one in found.why
        ],
        "scores": {name: round(value, 6) for name, value in scores.items() if value is not None},
        "tags": list(shown_tags(found).items()),  # pairs: no object of a script keeps `__proto__`
        "build": _short(row.index_build or ""),
        "language": _short(row.language or ""),
        "at": row.timestamp.strftime("%Y-%m-%d %H:%M") if row.timestamp else "",
        "html": _replaced(article, _PACKED),
    }
    return _json(fields).encode()


def shown_tags(found: RowDetail) -> dict[str, str]:
    """The tags of a row that it can be found by, as far as names and values are shown."""
    tags = list(found.row.tags.items())[:_MOST_ROW_TAGS]
    return {_short(tag): _short(value) for tag, value in tags}


def pages_of(entries: Sequence[bytes]) -> list[list[bytes]]:
    """The rows of each file, in order; those that find no room any more are in none."""
    pages: list[list[bytes]] = []
    room = 0
    for one in entries:
        if len(one) > room or not pages:
            if len(pages) == MOST_FILES:
                break
            pages.append([])
            room = MOST_FILE_BYTES
        pages[-1].append(one)
        room -= len(one) + 1
    return pages


def script(page: int, rows: Sequence[bytes]) -> bytes:
    """A file of rows, numbered from 1."""
    return f'{_HEAD}{{"page":{page},"rows":[\n'.encode() + b",\n".join(rows) + b"\n]});\n"


def _short(text: str, longest: int = _LONGEST_NAME) -> str:
    """A text as it is listed, searched and saved as CSV: one that is cut ends in `…`."""
    return clean(text if len(text) <= longest else f"{text[: longest - 1]}…")


def _json(value: object) -> str:
    """JSON that neither ends a script nor begins an element, wherever it is put."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _replaced(text, _SIGNS)


def _replaced(text: str, signs: Mapping[str, str]) -> str:
    for sign, other in signs.items():  # far faster than `translate` where a text is not ASCII
        text = text.replace(sign, other)
    return text

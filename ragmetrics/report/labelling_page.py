"""The labelling page: one question on a screen, to be confirmed with its right answer and passages.

It is one file that works from a folder and sends nothing anywhere. The browser keeps what was
decided, and downloads it as a file of suggestions (`golden add`).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ragmetrics.golden import suggestion_record
from ragmetrics.model import REASON_WORDS, Suggestion
from ragmetrics.report.formatting import clean
from ragmetrics.report.templating import island, render_page

_LONGEST = 20_000


def write_labelling_page(path: Path, suggestions: Sequence[Suggestion]) -> None:
    """Write the page of some suggestions."""
    entries = [_entry(one) for one in suggestions]
    data = island({"key": _digest(entries), "entries": entries})
    style = "".join(_asset(name) for name in ("tokens.css", "labelling.css"))
    script = _asset("labelling.js")
    page = render_page(
        "labelling.html",
        0,
        count=len(entries),
        data=data,
        style=Markup(style),  # noqa: S704 - an asset of ours
        script=Markup(script),  # noqa: S704 - an asset of ours
        style_hash=_source(style),
        script_hash=_source(script),
    )
    path.write_bytes(page)


def _entry(one: Suggestion) -> dict[str, Any]:
    """A suggestion for the page: the row of the file, and what a person decides by."""
    return {
        "row": suggestion_record(one),
        "reason": REASON_WORDS[one.reason],
        "asked": one.asked,
        "night": one.night.isoformat(),
        "passages": [
            {"id": own.id, "text": clean(own.text[:_LONGEST]), "relevant": bool(own.relevant)}
            for own in one.passages
        ],
    }


def _asset(name: str) -> str:
    return (files("ragmetrics.report") / "assets" / name).read_text("utf-8")


def _source(text: str) -> str:
    """The content of an inline element, as a content security policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _digest(entries: Sequence[Any]) -> str:
    """Where the browser keeps the decisions on these questions."""
    return hashlib.blake2b(json.dumps(entries).encode(), digest_size=8).hexdigest()

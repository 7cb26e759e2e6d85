"""The labelling pages: one thing on a screen, to be decided by a person.

    golden questions   confirmed with their right answer and passages (`golden add`)
    rows               what people would say of their contexts and sentences (`labels:`)
    nuggets            reviewed: each is vital, okay or removed (`golden add`)

A page is one file that works from a folder and sends nothing anywhere. The browser keeps what was
decided, and downloads it as a file.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ragmetrics.dashboard.formatting import clean
from ragmetrics.dashboard.templating import island, render_page
from ragmetrics.passages import nugget_record, suggestion_record
from ragmetrics.people import COLUMNS, label_record
from ragmetrics.records import REASON_WORDS, LabelSuggestion, NuggetReview, Suggestion

_LONGEST = 20_000
_GRADED = "context_relevance"
"""The metric whose labels are of the contexts, so that they are on the page as its items."""
_GRADES = ((0, "no use"), (1, "helps in part"), (2, "answers it"))
_YES_NO = ((0, "no"), (1, "yes"))
_IMPORTANCE = (("1", "vital"), ("2", "okay"), ("0", "remove"))
_SHARES = ((0, "0"), (1, "¼"), (2, "½"), (3, "¾"), (4, "1"))


def write_labelling_page(path: Path, suggestions: Sequence[Suggestion]) -> None:
    """Write the page of some suggested golden questions."""
    entries = [_golden_entry(suggestion) for suggestion in suggestions]
    _write(path, "labelling.html", "labelling_golden.js", entries, "suggestions.jsonl")


def write_label_page(
    path: Path, suggestions: Sequence[LabelSuggestion] | Sequence[NuggetReview]
) -> None:
    """Write the page of some rows to label, or of golden questions whose nuggets are reviewed."""
    rows = [one for one in suggestions if isinstance(one, LabelSuggestion)]
    reviews = [one for one in suggestions if isinstance(one, NuggetReview)]
    if reviews:
        entries = list(map(_nugget_entry, reviews))
        _write(path, "label_nuggets.html", "label_rows.js", entries, "nuggets.jsonl")
    else:
        entries = list(map(_row_entry, rows))
        _write(path, "label_rows.html", "label_rows.js", entries, "labels.jsonl")


def _write(
    path: Path, template: str, script: str, entries: Sequence[Mapping[str, Any]], download: str
) -> None:
    data = island({"key": _digest(entries), "entries": entries, "file": download})
    style = "".join(_asset(name) for name in ("tokens.css", "labelling.css"))
    code = "".join(_asset(name) for name in ("labelling.js", script))
    page = render_page(
        template,
        0,
        count=len(entries),
        data=data,
        style=Markup(style),  # noqa: S704 - an asset of ours
        script=Markup(code),  # noqa: S704 - an asset of ours
        style_hash=_source(style),
        script_hash=_source(code),
    )
    path.write_bytes(page)


def _golden_entry(suggestion: Suggestion) -> dict[str, Any]:
    """A suggestion for the page: the row of the file, and what a person decides by."""
    return {
        "row": suggestion_record(suggestion),
        "reason": REASON_WORDS[suggestion.reason],
        "asked": suggestion.asked,
        "night": suggestion.night.isoformat(),
        "passages": [
            {"id": item.id, "text": clean(item.text[:_LONGEST]), "relevant": bool(item.relevant)}
            for item in suggestion.passages
        ],
    }


def _row_entry(suggestion: LabelSuggestion) -> dict[str, Any]:
    """A row for the page: the row of the file without values, and the items that are answered."""
    record = label_record(suggestion)
    given = {name: value for name, value in record.items() if value != ""}
    groups = [_group(metric, suggestion) for metric in suggestion.metrics]
    contexts = [] if _GRADED in suggestion.metrics else suggestion.contexts
    return {
        "row": given,
        "facts": f"Asked on {suggestion.night.isoformat()}",
        "response": clean((suggestion.response or "")[:_LONGEST]),
        "reference": clean((suggestion.reference or "")[:_LONGEST]),
        "groups": [group for group in groups if group["items"]],
        "contexts": [clean(text[:_LONGEST]) for text in contexts],
    }


def _nugget_entry(review: NuggetReview) -> dict[str, Any]:
    """The nuggets of a question for the page, each with what the judge said of it."""
    items = [
        f"{clean(nugget['text'][:_LONGEST])} (the judge: {nugget['importance']})"
        for nugget in review.nuggets
    ]
    options = [{"key": key, "value": value, "text": value} for key, value in _IMPORTANCE]
    title = "Does a right answer need each fact (vital), or may it say it (okay)?"
    group = {"title": title, "column": "importance", "whole": False, "items": items}
    return {
        "row": nugget_record(review),
        "facts": f"Golden question {clean(review.id)}",
        "response": "",
        "reference": clean(review.reference[:_LONGEST]),
        "groups": [{**group, "options": options}],
        "contexts": [],
    }


def _group(metric: str, suggestion: LabelSuggestion) -> dict[str, Any]:
    """The items of one metric, and their possible answers with their keys."""
    if metric == _GRADED:
        title = "How relevant is each context to the question?"
        return _items(title, metric, suggestion.contexts, _GRADES)
    if metric == "context_recall":
        title = "Do the contexts say what each sentence of the right answer says?"
        return _items(title, metric, suggestion.sentences, _YES_NO)
    title = f"Which {metric} has the row?"
    group = _items(title, metric, [""], _SHARES)
    options = [{**option, "value": option["value"] / 4} for option in group["options"]]
    return {**group, "whole": True, "options": options}


def _items(
    title: str, metric: str, texts: Sequence[str], options: Sequence[tuple[int, str]]
) -> dict[str, Any]:
    return {
        "title": title,
        "column": COLUMNS.get(metric, metric) if len(options) < len(_SHARES) else metric,
        "whole": False,
        "items": [clean(text[:_LONGEST]) for text in texts],
        "options": [{"key": str(value), "value": value, "text": text} for value, text in options],
    }


def _asset(name: str) -> str:
    return (files("ragmetrics.dashboard") / "assets" / name).read_text("utf-8")


def _source(text: str) -> str:
    """The content of an inline element, as a content security policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _digest(entries: Sequence[Any]) -> str:
    """Where the browser keeps the decisions on these entries."""
    return hashlib.blake2b(json.dumps(entries).encode(), digest_size=8).hexdigest()

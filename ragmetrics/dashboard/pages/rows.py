"""The rows of a night: the worst in full, and a search over all rows that are kept.

2026-11-19/rows.html              readable without scripts
2026-11-19/rows-1.js to rows-3.js   (globalThis.ROWS ??= []).push({"page": 1, "rows": [...]});

The kept rows are scripts, because a browser loads those from a folder too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from ragmetrics.dashboard.formatting import anchor, clean, replaced, script_json
from ragmetrics.dashboard.night_status import find_night_status, needing_reader
from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.dashboard.row_detail import RowDetail, row_detail
from ragmetrics.dashboard.row_selection import KeptRow, tag_values
from ragmetrics.dashboard.templating import render_page
from ragmetrics.records import LostPassage, Manifest
from ragmetrics.storage import Files, RowLocation, RunRef
from ragmetrics.text import finite

MOST_BYTES = 295_000
"""Size of the page."""
MOST_FILE_BYTES = 1_000_000
"""Size of one script."""
_MOST_FILES = 3
_ROOM = 16_000
"""Bytes of texts of a row that is among the worst or fell."""
_SAMPLED_ROOM = 6_000
"""Bytes of texts of a sampled row."""
_MOST_ROW_TAGS = 30
_FIRST_SAMPLED = 10
_LONGEST_NAME = 200
_LONGEST_QUESTION = 1_000
_HEAD = "(globalThis.ROWS ??= []).push("
_PACKED = {"<": "\x82", ">": "\x83", "&": "\x84"}
"""The signs of an article's markup as characters that no cleaned text contains. They take two bytes
each; escapes would make the files half as large again. rows.js turns them back."""


def render(shown: Shown) -> bytes | None:
    """The page, after its data; None without rows."""
    return write_rows(shown.site, shown.night, shown.rows)


def write_rows(site: Files, manifest: Manifest, rows: Sequence[KeptRow]) -> bytes | None:
    """Write the data of the page of a night's rows; return the page, or None without rows."""
    folder = manifest.date
    details = row_details(manifest, rows)
    articles = {detail.kept.key: _article(detail) for detail in details}
    pages = _pages_of([_entry(detail, articles[detail.kept.key]) for detail in details])
    for number, page in enumerate(pages, 1):  # before the page that names them
        site.write(f"{folder}/rows-{number}.js", _script(number, page))
    for number in range(len(pages) + 1, _MOST_FILES + 1):  # files of another run of the night
        site.discard(f"{folder}/rows-{number}.js")
    if not details:
        return None
    kept = details[: sum(map(len, pages))]
    return _page(manifest, kept, articles, len(pages))


def row_link(key: str | None) -> str:
    """A row's place on the page, for other pages of the night; empty if the row is not kept."""
    return "" if key is None else f"rows.html#row={quote(key, safe='')}"


def row_details(manifest: Manifest, rows: Sequence[KeptRow]) -> list[RowDetail]:
    """The rows as they are shown; of the reasons for a row, metrics that need a reader first."""
    key, lost = needing_reader(manifest), manifest.lost_passages
    passages: dict[RowLocation, list[LostPassage]] = {}
    for passage in lost.passages if lost else ():
        if passage.shard is not None and passage.position is not None:
            passages.setdefault((passage.shard, passage.position), []).append(passage)

    def detail(kept: KeptRow) -> RowDetail:
        why = sorted(kept.why, key=lambda one: key(one.metric))
        room = _SAMPLED_ROOM if all(one.kind == "sample" for one in why) else _ROOM
        return row_detail(replace(kept, why=tuple(why)), room, passages.get(kept.place, ()))

    return list(map(detail, rows))


def _article(detail: RowDetail) -> Markup:
    return Markup(render_page("_row.html", 1, found=detail).decode())  # noqa: S704 - by a template


def _page(
    manifest: Manifest, kept: Sequence[RowDetail], articles: Mapping[str, Markup], files: int
) -> bytes:
    """The page, with as many rows in full as its size allows."""
    ref, wanted = RunRef.of(manifest), _wanted(manifest, kept)

    def page(full: Sequence[Markup]) -> bytes:
        return render_page(
            "rows.html",
            1,
            manifest=manifest,
            full=full,
            more=len(wanted) - len(full),
            fell_by=anchor(fell) if (fell := find_night_status(manifest).story.metric) else "",
            metrics=[(anchor(metric.metric), metric) for metric in manifest.metrics],
            tags=tag_values(tag for row in kept for tag in _shown_tags(row).items()),
            kinds=Counter(kind for one in kept for kind in {why.kind for why in one.kept.why}),
            kept=len(kept),
            hidden=manifest.redacts,
            files=files,
            rows_folder=ref.folder("rows"),
            scores_folder=ref.folder("scores"),
        )

    full: list[Markup] = []
    room = MOST_BYTES - len(page([]))
    for key in wanted:
        size = len(articles[key].encode())
        if size <= room:
            full.append(articles[key])
            room -= size
    return page(full)


def _wanted(manifest: Manifest, kept: Sequence[RowDetail]) -> list[str]:
    """The keys of the rows to show without scripts: those that fell, the furthest first, then the
    worst of each metric in turn; without both, some of the rows.
    """
    falls = {one.kept.key: max(why.fall for why in one.kept.why) for one in kept}
    fallen = sorted(filter(falls.__getitem__, falls), key=falls.__getitem__, reverse=True)
    keys = {one.kept.place: one.kept.key for one in kept}
    by_metric: dict[str, list[str]] = {}
    for worst in manifest.worst:
        if key := keys.get((worst.shard, worst.position)):
            by_metric.setdefault(worst.metric, []).append(key)
    turns = (key for turn in zip_longest(*by_metric.values()) for key in turn if key)
    return list(dict.fromkeys([*fallen, *turns])) or list(falls)[:_FIRST_SAMPLED]


def _entry(detail: RowDetail, article: str) -> bytes:
    """One row as JSON: what the page searches, sorts and filters by, and the row as it is shown.

    Metrics have the names that anchors use.
    """
    row = detail.kept.row
    fields: dict[str, Any] = {
        "key": detail.kept.key,
        "id": _short(row.id),
        "question": _short(row.user_input, _LONGEST_QUESTION),
        "why": [
            {"kind": why.kind, **({"metric": anchor(why.metric)} if why.metric else {})}
            for why in detail.kept.why
        ],
        "scores": _rounded({name: score.value for name, score in detail.kept.scores.items()}),
        "before": _rounded(detail.before),
        "tags": list(_shown_tags(detail).items()),  # pairs: a script's object loses `__proto__`
        "build": _short(row.index_build or ""),
        "language": _short(row.language or ""),
        "at": row.timestamp.strftime("%Y-%m-%d %H:%M") if row.timestamp else "",
        "html": replaced(article, _PACKED),
    }
    return script_json(fields).encode()


def _rounded(values: Mapping[str, float | None]) -> dict[str, float]:
    known = {anchor(name): finite(value) for name, value in values.items()}
    return {name: round(value, 6) for name, value in known.items() if value is not None}


def _shown_tags(found: RowDetail) -> dict[str, str]:
    """The tags by which a row can be found, as the page shows them."""
    tags = list(found.kept.row.tags.items())[:_MOST_ROW_TAGS]
    return {_short(tag): _short(value) for tag, value in tags}


def _pages_of(entries: Sequence[bytes]) -> list[list[bytes]]:
    """The rows of each file, in order; rows without room in the last file are left out."""
    pages: list[list[bytes]] = []
    room = 0
    for entry in entries:
        if len(entry) > room or not pages:
            if len(pages) == _MOST_FILES:
                break
            pages.append([])
            room = MOST_FILE_BYTES
        pages[-1].append(entry)
        room -= len(entry) + 1
    return pages


def _script(page: int, rows: Sequence[bytes]) -> bytes:
    """A file of rows, numbered from 1."""
    return f'{_HEAD}{{"page":{page},"rows":[\n'.encode() + b",\n".join(rows) + b"\n]});\n"


def _short(text: str, longest: int = _LONGEST_NAME) -> str:
    """A text as it is listed, searched and saved as CSV; a text that is cut ends in `…`."""
    return clean(text if len(text) <= longest else f"{text[: longest - 1]}…")


rows = Page("rows", "Questions of this night", __doc__, render, place=10)

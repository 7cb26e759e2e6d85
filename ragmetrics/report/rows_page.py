"""The page of a night's rows: the worst in full, and all that are kept to be searched.

2026-11-19/rows.html       readable without scripts; with them a search over all kept rows
2026-11-19/rows-1.js ...   the kept rows: rows_files.py
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ragmetrics.model import Manifest, WorstRow
from ragmetrics.report.formatting import anchor, clean
from ragmetrics.report.night_status import find_night_status, metric_states, needing_reader
from ragmetrics.report.row_detail import RowDetail, row_details
from ragmetrics.report.row_selection import KeptRow
from ragmetrics.report.templating import render_page
from ragmetrics.storage import Files, RowLocation, ref_of, remove_file
from ragmetrics.text import finite

PAGE = "rows.html"
MOST_BYTES = 295_000
"""Of the page."""
_ROOM = 16_000
"""Bytes of texts of a row that is worst or fell,"""
_SAMPLED_ROOM = 6_000
"""and of one that is neither."""
_MOST_IN_LIST = 10
_MOST_TAGS = 150
_FIRST_SAMPLED = 10


@dataclass(frozen=True)
class WorstGroup:
    """The worst rows of one metric, worst first: those that are kept."""

    metric: str
    lines: tuple[tuple[WorstRow, RowDetail], ...]


@dataclass(frozen=True)
class Section:
    """A metric's part of the page: rows in full, and those that stand elsewhere."""

    group: WorstGroup
    articles: tuple[Markup, ...]
    elsewhere: tuple[tuple[WorstRow, RowDetail, bool], ...]
    """With whether it is on this page in full."""


def write_rows(site: Files, manifest: Manifest, rows: Sequence[KeptRow]) -> str | None:
    """Write the page of a night's rows, and its data; return its path, or None without rows."""
    folder = manifest.date
    found = {kept.place: _evidence(kept) for kept in rows}
    articles = {one.key: _article(one) for one in found.values()}
    pages = pages_of([entry(one, articles[one.key]) for one in found.values()])
    for number, page in enumerate(pages, 1):  # before the page that names them
        site.write(f"{folder}/rows-{number}.js", script(number, page))
    for number in range(len(pages) + 1, MOST_FILES + 1):  # of another run of the night
        remove_file(site, f"{folder}/rows-{number}.js")
    if not found:
        remove_file(site, f"{folder}/{PAGE}")
        return None
    kept = list(found.values())[: sum(map(len, pages))]
    worst = _worst_groups(manifest, found)
    site.write(f"{folder}/{PAGE}", _page(manifest, worst, kept, articles, len(pages)))
    return f"{folder}/{PAGE}"


def _evidence(kept: KeptRow) -> RowDetail:
    sampled = all(one.kind == "sample" for one in kept.why)
    return row_details(kept, _SAMPLED_ROOM if sampled else _ROOM)


def _article(found: RowDetail) -> Markup:
    return Markup(render_page("_row.html", 1, found=found).decode())  # noqa: S704 - by a template


def _worst_groups(manifest: Manifest, found: Mapping[RowLocation, RowDetail]) -> list[WorstGroup]:
    """The worst rows by metric, in the order of the cards."""
    by_metric: dict[str, list[tuple[WorstRow, RowDetail]]] = {}
    for one in manifest.worst:
        kept = found.get((one.shard, one.position))
        if kept:
            by_metric.setdefault(one.metric, []).append((one, kept))
    states = metric_states(manifest)
    ordered = sorted(by_metric, key=lambda metric: needing_reader(metric, states))
    return [WorstGroup(metric, tuple(by_metric[metric])) for metric in ordered]


def _page(
    manifest: Manifest,
    worst: Sequence[WorstGroup],
    kept: Sequence[RowDetail],
    articles: Mapping[str, Markup],
    files: int,
) -> bytes:
    """The page, with as many rows in full as it may weigh."""
    ref = ref_of(manifest)

    def page(full: Mapping[str, Markup]) -> bytes:
        return render_page(
            "rows.html",
            1,
            manifest=manifest,
            condition=find_night_status(manifest),
            sections=_sections(worst, full),
            fallen=[full[one.key] for one in fallen if one.key in full],
            others=[full[one.key] for one in kept if one.key in full] if not worst else [],
            metrics=[(anchor(one.metric), one) for one in manifest.metrics],
            tags=_tag_values(kept),
            kinds=Counter(kind for one in kept for kind in {why.kind for why in one.why}),
            kept=len(kept),
            hidden=manifest.redacts,
            files=files,
            rows_folder=ref.folder("rows"),
            scores_folder=ref.folder("scores"),
        )

    fallen = _only_fallen(worst, kept)
    wanted = _in_turn(worst) + [one.key for one in fallen]
    wanted = wanted or [one.key for one in kept[:_FIRST_SAMPLED]]
    full: dict[str, Markup] = {}
    room = MOST_BYTES - len(page({}))
    for key in wanted:
        size = len(articles[key].encode())
        if size <= room:
            full[key], room = articles[key], room - size
    return page(full)


def _only_fallen(worst: Sequence[WorstGroup], kept: Sequence[RowDetail]) -> list[RowDetail]:
    """Rows that fell and are not among the worst, furthest first; none where no row is worst."""
    among = {found.key for group in worst for _, found in group.lines}

    def depth(one: RowDetail) -> float:
        falls = (why for why in one.why if why.kind == "fell")
        return max((abs((why.before or 0.0) - (why.value or 0.0)) for why in falls), default=0.0)

    found = [one for one in kept if worst and one.key not in among and depth(one)]
    return sorted(found, key=depth, reverse=True)


def _in_turn(worst: Sequence[WorstGroup]) -> list[str]:
    """The worst row of each metric, then the second of each, and so on; each once."""
    longest = max((len(group.lines) for group in worst), default=0)
    keys = (
        group.lines[place][1].key
        for place in range(longest)
        for group in worst
        if place < len(group.lines)
    )
    return list(dict.fromkeys(keys))


def _sections(worst: Sequence[WorstGroup], full: Mapping[str, Markup]) -> list[Section]:
    """The metrics' parts: each row stands in full in the first that has it."""
    shown: set[str] = set()
    sections = []
    for group in worst:
        lines = group.lines[:_MOST_IN_LIST]
        keys = dict.fromkeys(found.key for _, found in lines)
        here = [key for key in keys if key in full and key not in shown]
        shown.update(here)
        elsewhere = tuple(
            (one, found, found.key in full) for one, found in lines if found.key not in here
        )
        sections.append(Section(group, tuple(full[key] for key in here), elsewhere))
    return sections


def _tag_values(kept: Sequence[RowDetail]) -> list[tuple[str, str, int]]:
    """The tags of the kept rows by which more than one row can be found: tag, value, rows."""
    counts = Counter(item for one in kept for item in shown_tags(one).items())
    per_tag = Counter(tag for tag, _ in counts)
    useful = [(item, rows) for item, rows in counts.items() if per_tag[item[0]] > 1]
    most = sorted(useful, key=lambda one: (-one[1], one[0]))[:_MOST_TAGS]
    return sorted((tag, value, rows) for (tag, value), rows in most)


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

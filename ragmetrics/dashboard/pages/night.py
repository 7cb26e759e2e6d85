"""One night: incidents, metrics, lost passages, segments, rows to look at first, data, settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

import yaml

from ragmetrics.comparison import load_whatif
from ragmetrics.dashboard.calibration import trusted
from ragmetrics.dashboard.cards import cards
from ragmetrics.dashboard.costs import costs
from ragmetrics.dashboard.figure_layout import histogram_figure
from ragmetrics.dashboard.formatting import anchor, clean, duration
from ragmetrics.dashboard.lost_passages_view import lost_passages_view
from ragmetrics.dashboard.night_status import (
    explained_rules,
    find_night_status,
    has_numbers,
    needing_reader,
    shown_rules,
)
from ragmetrics.dashboard.night_tables import STEPS, found_statuses, tag_tables
from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.dashboard.pages.rows import row_link
from ragmetrics.dashboard.redacting import redacted
from ragmetrics.dashboard.row_selection import KeptRow
from ragmetrics.dashboard.templating import render_page
from ragmetrics.dashboard.tiles import tiles
from ragmetrics.dashboard.whatif_view import whatif_lines
from ragmetrics.records import Calibration, Manifest, Segment, WhatIf
from ragmetrics.storage import RunRef

_SHOWN = 5
"""Rows of a metric on the night's page; the page of rows has all of them."""
_MOST_COLUMNS = 5
_FALLEN = 8
"""Questions that fell that stand open."""


@dataclass(frozen=True)
class RowLine:
    """One row in one metric: its value, and a link to its texts if they are kept."""

    question: str
    value: float | None
    link: str


@dataclass(frozen=True)
class RowGroup:
    """The lowest rows of one metric, worst first."""

    metric: str
    lowest: list[RowLine]


@dataclass(frozen=True)
class FallenQuestion:
    """A question that fell, with its values by metric: of the night before, and now."""

    question: str
    link: str
    passage: str
    """A passage that it needs and lost."""
    values: dict[str, tuple[float | None, float | None]]


def render(shown: Shown) -> bytes:
    """The page of the night as the store has it."""
    night = shown.night
    whatif = load_whatif(shown.files, night.date)
    if whatif and whatif.run != night.run:  # the night was run again since
        whatif = None
    return night_page(
        night,
        shown.earlier,
        shown.rows,
        shown.calibrations.calibrations,
        links=shown.links,
        raw=shown.files.uri(RunRef.of(night).folder("scores")),
        whatif=redacted(whatif, night.redacts) if whatif else None,
        before=shown.before_in_full if night.segments else None,
    )


def night_page(
    manifest: Manifest,
    earlier: Sequence[Manifest],
    rows: Sequence[KeptRow] = (),
    calibrations: Sequence[Calibration] = (),
    *,
    links: Sequence[tuple[str, str]] = (),
    raw: str = "",
    whatif: WhatIf | None = None,
    before: Manifest | None = None,
) -> bytes:
    """The first page of a night.

    `earlier` are the nights before, oldest first; `rows` are the rows of this night to show. Of the
    `calibrations`, the page shows those of the night's judges. `links` are the words and addresses
    of the night's other pages, `raw` is the folder of its scores, `whatif` what would fix them,
    `before` the night before in full.
    """
    numbers, rules = has_numbers(manifest), shown_rules(manifest, earlier)
    rows_kept, fallen = bool(rows), _fallen(manifest, rows)
    tables = tag_tables(manifest, before) if numbers else []
    tags = {table.tag for table in tables}
    return render_page(
        "night.html",
        1,
        manifest=manifest,
        condition=find_night_status(manifest, partial(_place, None if rows_kept else tags)),
        cards=cards(manifest, earlier) if numbers else [],
        figure=histogram_figure,
        tiles=tiles(manifest, earlier) if numbers else [],
        tables=tables,
        before=before,
        steps=STEPS,
        findings=rules,
        explained=explained_rules(manifest, rules),
        found_statuses=found_statuses(manifest),
        groups=_row_groups(manifest, rows),
        fallen=fallen,
        fallen_metrics=_fallen_metrics(manifest, rows),
        whatif=whatif_lines(whatif),
        lost=lost_passages_view(
            manifest.lost_passages, {row.place: row_link(row.key) for row in rows}
        ),
        most_rows=_SHOWN,
        most_fallen=_FALLEN,
        rows_page=rows_kept,
        previous=earlier[-1].date if earlier else None,
        earlier_nights=len(earlier),
        links=links,
        raw=raw,
        settings=_settings_text(manifest),
        took=duration(manifest.finished_at - manifest.started_at),
        trusted=trusted(manifest, calibrations),
        costs=costs(manifest),
    )


def _place(shown_tags: Collection[str] | None, metric: str, segment: Segment) -> str:
    """The address of the segment's questions; with the tags that are shown where no row is kept,
    of its tag.
    """
    if shown_tags is None:
        return f"rows.html#{urlencode({'metric': anchor(metric), 'tag': str(segment)})}"
    return f"#tag-{anchor(segment.tag)}" if segment.tag in shown_tags else ""


def _row_groups(manifest: Manifest, rows: Sequence[KeptRow]) -> list[RowGroup]:
    """The rows to look at by metric; metrics that need a reader come first.

    A worst row is named even if it is not kept, because its texts are gone from the store.
    """
    need = needing_reader(manifest)
    keys = {row.place: row.key for row in rows}
    groups: dict[str, RowGroup] = {}
    for row in manifest.worst:
        line = RowLine(row.user_input, row.value, row_link(keys.get((row.shard, row.position))))
        groups.setdefault(row.metric, RowGroup(row.metric, [])).lowest.append(line)
    return sorted(groups.values(), key=lambda group: need(group.metric))


def _fallen(manifest: Manifest, rows: Sequence[KeptRow]) -> list[FallenQuestion]:
    """The questions that fell: those by the metric that needs a reader most come first."""
    lost = manifest.lost_passages.passages if manifest.lost_passages else []
    passages = {(one.shard, one.position): one.id for one in reversed(lost)}
    need = needing_reader(manifest)
    lines = []
    for row in rows:
        falls = {why.metric: why for why in row.why if why.kind == "fell"}
        if falls:
            lead = min(falls, key=need)
            key = (*need(lead), -falls[lead].fall)
            link, passage = row_link(row.key), passages.get(row.place, "")
            values = _moved(row) | {name: (why.before, why.value) for name, why in falls.items()}
            lines.append((key, FallenQuestion(row.row.user_input, link, passage, values)))
    return [line for _, line in sorted(lines, key=lambda pair: pair[0])]


def _moved(row: KeptRow) -> dict[str, tuple[float | None, float | None]]:
    """The metrics whose value is not that of the newest earlier night, with both values."""
    before = row.earlier[0].values if row.earlier else {}
    pairs = {name: (before.get(name), score.value) for name, score in row.scores.items()}
    return {name: pair for name, pair in pairs.items() if None not in pair and pair[0] != pair[1]}


def _fallen_metrics(manifest: Manifest, rows: Sequence[KeptRow]) -> list[str]:
    """The columns of the questions that fell: metrics that need a reader first."""
    names = dict.fromkeys(why.metric for row in rows for why in row.why if why.kind == "fell")
    return sorted(names, key=needing_reader(manifest))[:_MOST_COLUMNS]


def _settings_text(manifest: Manifest) -> str:
    """The settings of the night's run as YAML; empty if an older version stored none."""
    if not manifest.settings:
        return ""
    return clean(yaml.safe_dump(manifest.settings, sort_keys=False, allow_unicode=True))


night = Page("night", "The night", __doc__, render, is_first=True)

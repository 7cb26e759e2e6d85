"""One night: how it stands, each metric, where it is low, its rows, and what it was made of.

2026-11-19/index.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

import yaml

from ragmetrics.model import Calibration, Manifest, WorstRow
from ragmetrics.report.calibration import trusted
from ragmetrics.report.calibration_page import CALIBRATION_PAGE
from ragmetrics.report.cards import cards
from ragmetrics.report.costs import costs
from ragmetrics.report.figure_layout import histogram_figure
from ragmetrics.report.formatting import clean, duration
from ragmetrics.report.night_status import (
    explained_rules,
    find_night_status,
    has_numbers,
    metric_states,
    needing_reader,
    shown_rules,
)
from ragmetrics.report.night_tables import STEPS, coverage, tag_tables
from ragmetrics.report.row_selection import KeptRow
from ragmetrics.report.rows_page import ROWS, write_rows
from ragmetrics.report.summaries import SUMMARY, summary_page
from ragmetrics.report.templating import render_page
from ragmetrics.storage import Files

_SHOWN = 5
"""Rows of a metric that the night's page names; all of them are on the page of rows."""


@dataclass(frozen=True)
class RowLine:
    """One row in one metric: a value, and where its texts are shown, if they are kept."""

    question: str
    value: float | None
    before: float | None
    """Of a row that fell: the mean of its question the night before."""
    link: str


@dataclass(frozen=True)
class RowGroup:
    """The rows of one metric that a reader should look at first, worst first."""

    metric: str
    lowest: tuple[RowLine, ...]
    fell: tuple[RowLine, ...]


def write_night(
    site: Files,
    manifest: Manifest,
    earlier: Sequence[Manifest],
    rows: Sequence[KeptRow],
    calibrations: Sequence[Calibration] = (),
    *,
    changed_since: date | None = None,
    raw: str = "",
) -> str:
    """Write the pages of a night; return the path of its first page, relative to the site.

    `earlier` are the nights before, oldest first; `rows` are the rows of this night to show. Of the
    `calibrations`, the page shows those of the night's judges. `changed_since` is the night that
    changes.html compares with, if there is such a page. `raw` is the folder of the night's scores.
    """
    write_rows(site, manifest, rows)
    site.write(f"{manifest.date}/{SUMMARY}", summary_page(manifest, earlier))
    page = night_page(manifest, earlier, rows, calibrations, changed_since=changed_since, raw=raw)
    path = f"{manifest.date}/index.html"
    site.write(path, page)
    return path


def night_page(
    manifest: Manifest,
    earlier: Sequence[Manifest],
    rows: Sequence[KeptRow] = (),
    calibrations: Sequence[Calibration] = (),
    *,
    changed_since: date | None = None,
    raw: str = "",
) -> bytes:
    """The first page of a night; for the parameters see `write_night`."""
    numbers, rules = has_numbers(manifest), shown_rules(manifest, earlier)
    return render_page(
        "night.html",
        1,
        manifest=manifest,
        condition=find_night_status(manifest),
        cards=cards(manifest, earlier) if numbers else [],
        figure=histogram_figure,
        tables=tag_tables(manifest) if numbers else [],
        steps=STEPS,
        findings=rules,
        explained=explained_rules(manifest, rules),
        coverage=coverage(manifest),
        groups=row_groups(manifest, rows),
        most_rows=_SHOWN,
        rows_page=ROWS if rows else "",
        previous=earlier[-1].date if earlier else None,
        earlier_nights=len(earlier),
        changed_since=changed_since,
        raw=raw,
        settings=settings_text(manifest),
        took=duration(manifest.finished_at - manifest.started_at),
        trusted=trusted(manifest, calibrations),
        costs=costs(manifest),
        calibration_page=CALIBRATION_PAGE,
    )


def row_groups(manifest: Manifest, rows: Sequence[KeptRow]) -> list[RowGroup]:
    """The rows to look at by metric, those metrics first that need a reader.

    A worst row that is not kept, as its texts are gone from the store, is named all the same.
    """
    states = metric_states(manifest)
    keys = {one.place: one.key for one in rows}
    fell = [(why, one) for one in rows for why in one.why if why.kind == "fell"]
    fell.sort(key=lambda found: -abs((found[0].before or 0.0) - (found[0].value or 0.0)))
    metrics = dict.fromkeys([*(one.metric for one in manifest.worst), *(w.metric for w, _ in fell)])
    return [
        RowGroup(
            metric,
            tuple(
                RowLine(one.user_input, one.value, None, _link(keys.get(_place(one))))
                for one in manifest.worst
                if one.metric == metric
            ),
            tuple(
                RowLine(one.row.user_input, why.value, why.before, _link(one.key))
                for why, one in fell
                if why.metric == metric
            ),
        )
        for metric in sorted(metrics, key=lambda metric: needing_reader(metric, states))
    ]


def _place(row: WorstRow) -> tuple[int, int]:
    return row.shard, row.position


def _link(key: str | None) -> str:
    """Where a row stands on the page of rows; nowhere if it is not kept."""
    return "" if key is None else f"{ROWS}#row={quote(key, safe='')}"


def settings_text(manifest: Manifest) -> str:
    """The settings that the night ran by, as YAML; nothing where an older version kept none."""
    if not manifest.settings:
        return ""
    return clean(yaml.safe_dump(manifest.settings, sort_keys=False, allow_unicode=True))

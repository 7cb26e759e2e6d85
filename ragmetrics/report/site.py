"""The site: one page per night, one per metric with its worst rows, and the overview.

index.html                              all nights
nights.js                               their dates: a night's page finds the next one there
calibration.html                        judges against labelled rows, where there are any
builds.html                             index builds and their verdicts, where there are any
2026-11-19/index.html                   one night
2026-11-19/worst-context_recall.html    the worst rows of a metric in that night
assets/                                 shared by all pages; nothing is fetched from elsewhere
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.calibration.records import Calibration
from ragmetrics.records import Manifest, WorstRow
from ragmetrics.report.assets import write_assets
from ragmetrics.report.builds_page import write_builds
from ragmetrics.report.calibration import trusted
from ragmetrics.report.calibration_page import PAGE, write_calibrations
from ragmetrics.report.cards import cards
from ragmetrics.report.condition import (
    by_state,
    condition,
    has_numbers,
    metric_states,
    needing_reader,
)
from ragmetrics.report.costs import costs
from ragmetrics.report.evidence import Evidence, evidence
from ragmetrics.report.histogram import histogram_figure
from ragmetrics.report.markdown import summary_markdown
from ragmetrics.report.pages import render
from ragmetrics.report.segments import tag_tables
from ragmetrics.report.trend_figure import trend_figure
from ragmetrics.report.trends import NIGHTS, trends
from ragmetrics.report.words import duration, slug
from ragmetrics.store.files import Files
from ragmetrics.store.parts import ScoredRow

_ROOM = 200_000
"""Bytes of texts on one page of rows."""

__all__ = [
    "summary_markdown",
    "write_assets",
    "write_builds",
    "write_calibrations",
    "write_night",
    "write_overview",
]


@dataclass(frozen=True)
class WorstGroup:
    """The worst rows of one metric: a line each on the night's page, all of it on their own."""

    metric: str
    page: str
    lines: tuple[tuple[WorstRow, Evidence | None], ...]

    @property
    def shown(self) -> list[Evidence]:
        """The rows that have a place on the page."""
        return [found for _, found in self.lines if found]


def write_night(
    site: Files,
    manifest: Manifest,
    earlier: Sequence[Manifest],
    rows: Sequence[ScoredRow],
    calibrations: Sequence[Calibration] = (),
) -> str:
    """Write one night's pages; return the path of the first, relative to the site.

    `earlier` are the manifests of the nights before, oldest first; `rows` the worst rows with
    their scores: `manifest.worst` names the metric each is worst in. `calibrations` are those of
    any judge: what they say of the night's own is shown beside its name.
    """
    folder = str(manifest.date)
    groups = _groups(manifest, rows)
    common = {"manifest": manifest, "condition": condition(manifest), "groups": groups}
    for group in groups:
        if group.shown:
            site.write(f"{folder}/{group.page}", render("rows.html", 1, group=group, **common))
    page = render(
        "night.html",
        1,
        cards=cards(manifest, earlier) if has_numbers(manifest) else [],
        figure=histogram_figure,
        tables=tag_tables(manifest) if has_numbers(manifest) else [],
        findings=by_state(manifest.findings),
        previous=earlier[-1].date if earlier else None,
        took=duration(manifest.finished_at - manifest.started_at),
        trusted=trusted(manifest, calibrations),
        costs=costs(manifest),
        calibration_page=PAGE,
        **common,
    )
    site.write(f"{folder}/index.html", page)
    return f"{folder}/index.html"


def write_overview(
    site: Files,
    nights: Sequence[Manifest],
    calibrations: str | None = None,
    builds: str | None = None,
) -> str:
    """Write the page of all nights, oldest first as given, and their list; return its path.

    `calibrations` and `builds` are the pages of the calibrations and of the index builds, where
    there are such.
    """
    if not nights:
        page = render("empty.html", 0, calibrations=calibrations, builds=builds)
        site.write("index.html", page)
        return "index.html"
    newest = nights[-1]
    page = render(
        "overview.html",
        0,
        manifest=newest,
        condition=condition(newest),
        findings=by_state(newest.findings),
        trends=trends(nights),
        states=metric_states(newest),
        figure=trend_figure,
        nights=[(night, condition(night)) for night in reversed(nights)],
        trend_nights=NIGHTS,
        calibrations=calibrations,
        builds=builds,
    )
    # Before the page: whoever is sent to a night from there can go on to the next one.
    dates = json.dumps([str(night.date) for night in nights])
    site.write("nights.js", f"const NIGHTS = {dates};\n".encode())
    site.write("index.html", page)
    return "index.html"


def _groups(manifest: Manifest, rows: Sequence[ScoredRow]) -> list[WorstGroup]:
    """The worst rows by metric, in the order of the cards; worst first."""
    by_metric: dict[str, list[WorstRow]] = {summary.metric: [] for summary in manifest.metrics}
    for worst in manifest.worst:
        by_metric.setdefault(worst.metric, []).append(worst)
    states = metric_states(manifest)
    ordered = sorted(by_metric, key=lambda metric: needing_reader(metric, states))
    return [_group(metric, by_metric[metric], rows) for metric in ordered if by_metric[metric]]


def _group(metric: str, worst: Sequence[WorstRow], rows: Sequence[ScoredRow]) -> WorstGroup:
    room = _ROOM // len(worst)
    lines = []
    for place, one in enumerate(worst, 1):
        scored = _find(one, rows)
        found = evidence(one, scored, f"row-{place}", room) if scored else None
        lines.append((one, found))
    return WorstGroup(metric, f"worst-{slug(metric)}.html", tuple(lines))


def _find(worst: WorstRow, rows: Sequence[ScoredRow]) -> ScoredRow | None:
    """The row of this id; of several, as logs may repeat ids, the one with this value."""
    same = [scored for scored in rows if scored.row.id == worst.id]
    for scored in same:
        score = scored.scores.get(worst.metric)
        if score and score.value == worst.value:
            return scored
    return same[0] if same else None

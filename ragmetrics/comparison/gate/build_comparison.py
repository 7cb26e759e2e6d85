"""Detailed comparison of a new build with the serving one: segments, questions and contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragmetrics.comparison.comparison import make_comparison
from ragmetrics.comparison.gate.question_scores import SideScores
from ragmetrics.comparison.gate.staging import BuildSide
from ragmetrics.comparison.nights import ROWS, shown_tags
from ragmetrics.comparison.side_scores import ScoredSide as Scored, read_nights, scored_side
from ragmetrics.config import Settings
from ragmetrics.model import Comparison, JudgeMovement
from ragmetrics.storage import find_manifest, open_store


def compare_builds(
    settings: Settings,
    run: Settings,
    sides: tuple[BuildSide, BuildSide],
    scores: tuple[SideScores, SideScores],
    metrics: Sequence[str],
    movements: Mapping[str, JudgeMovement | None],
) -> Comparison | None:
    """Compare the serving build (A) with the new one (B), by the gate's metrics that both have.

    None where there is no such metric. `run` are the settings of the gate's own runs, `movements`
    the judge's movement from night to night.
    """
    before, now = (_scored(settings, run, *one, metrics) for one in zip(sides, scores, strict=True))
    manifest = scores[1].manifest
    if before is None or now is None or manifest is None:
        return None
    names = [one for one in metrics if one in before.scores and one in now.scores]
    if not names:
        return None
    return make_comparison(before, now, names, shown_tags(manifest), rows=ROWS, movements=movements)


def _scored(
    settings: Settings, run: Settings, side: BuildSide, scores: SideScores, metrics: Sequence[str]
) -> Scored | None:
    """A build's run, or its rows in the nights that it served; None where these are not stored."""
    name = f"build {side.build} ({side.logs})"
    if scores.manifest:
        tables = {
            metric: replace(one, table=one.table.assign(night=0))
            for metric, one in scores.tables.items()
        }
        return scored_side(name, open_store(run), [scores.manifest], tables)
    files = open_store(settings)
    nights = [night for ref in side.nights if (night := find_manifest(files, ref))]
    if not nights:
        return None
    known = [one for one in metrics if any(night.summary(one) for night in nights)]
    tables = {one: read_nights(files, nights, one, build=side.build) for one in known}
    return scored_side(name, files, nights, tables)

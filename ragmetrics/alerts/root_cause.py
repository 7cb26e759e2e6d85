"""Explaining: of alerts that are firing, since which night the level is lower, and what carries it.

Nothing of it is done on a night on which no metric alert fires: it reads the nights before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import date

from ragmetrics.alerts.baselines import usual_nights
from ragmetrics.alerts.context import Baseline, NightContext
from ragmetrics.alerts.firing_history import MOST_NIGHTS, incident_start
from ragmetrics.alerts.judge_movement import find_movement
from ragmetrics.calibration import moving_share
from ragmetrics.errors import StoreError
from ragmetrics.model import BUILDS, ContributorShare, DatedChange, Finding, Manifest, Segment
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import (
    Attribution,
    ChangePoint,
    LevelError,
    TaggedRows,
    attribute_drop,
    date_change,
    date_change_in_order,
    question_means,
)
from ragmetrics.text import clean

USUAL_NIGHTS = 7
"""Before the spell: those that a change is dated from."""
MOST_CARRIERS = 3
MOST_ROWS = 500_000
"""Looked into on a side, from the nights next to the drop on; of the first of these all."""
_MOST_BUILDS = 20
log = logging.getLogger(__name__)


def explain_root_cause(night: NightContext, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, those of firing metric alerts with what their drop comes of.

    `findings` have their states. One that the night did not judge stays as it is.
    """
    return [_if_it_can_be(night, one) if _is_drop(one) else one for one in findings]


def _if_it_can_be(night: NightContext, finding: Finding) -> Finding:
    """The finding explained; as it is where the scores of earlier nights cannot be read."""
    try:
        return _explained(night, finding)
    except StoreError as error:
        log.warning("%s: what its drop comes of is not told: %s", finding.key, error)
        return finding


def _is_drop(finding: Finding) -> bool:
    judged = finding.level in ("breach", "suspect")
    return finding.kind == "metric" and finding.state == "firing" and judged


def _explained(night: NightContext, finding: Finding) -> Finding:
    """The finding with its change and carriers; as it is where no earlier night compares."""
    metric = finding.metric or ""
    since = incident_start(night.earlier, finding.key) or night.manifest.date
    usual = usual_nights(night, metric, finding.key, since)[-USUAL_NIGHTS:]
    baseline = night.baselines.get(finding.key) or Baseline(usual)
    if not baseline.nights:
        return finding
    change = _date(night, finding, usual, since)
    carried = _carry(night, finding, baseline)
    carriers = _named(carried) if carried else None
    told = [finding.message, *([str(change)] if change else []), *_carriers_in_words(carried)]
    update = {"change": change, "carriers": carriers, "message": clean("; ".join(told), 1_000)}
    return finding.model_copy(update=update)


def _date(
    night: NightContext, finding: Finding, usual: Sequence[Manifest], since: date
) -> DatedChange | None:
    """Over the usual nights, the first ones of the spell, and tonight."""
    metric = finding.metric or ""
    spell = [one for one in night.comparable(metric) if one.date >= since][: MOST_NIGHTS - 1]
    before = _first(usual[::-1], metric)
    nights = [*before[::-1], *_first([*spell, night.manifest], metric)]
    asked = night.questions(metric, finding.segment, nights)
    kept = [(one.date, values) for one, values in zip(nights, asked, strict=True) if values]
    level = _level(night, metric)
    found = date_change_in_order(question_means([values for _, values in kept]), level=level)
    if found is None:
        found = date_change([values for _, values in kept], level=level)
    if not isinstance(found, ChangePoint):
        return None
    dates = [day for day, _ in kept]
    return DatedChange(first=dates[found.first], nights=[dates[place] for place in found.nights])


def _level(night: NightContext, metric: str) -> LevelError | None:
    """By how much the judge moves each of the nights."""
    moves, share = find_movement(night, metric), moving_share(night.manifest, metric)
    if moves is None or not moves.sd or not share:
        return None
    return LevelError(share * moves.sd, moves.freedom)


def _carry(night: NightContext, finding: Finding, baseline: Baseline) -> Attribution | None:
    """What carries the drop that the finding tells: the same nights on both sides."""
    metric, segment = finding.metric or "", finding.segment
    tags = _tags(night, segment)
    old = _first(baseline.nights[::-1], metric)
    new = _first([*baseline.spell, night.manifest][::-1], metric)
    before = [night.rows(metric, one, baseline.build) for one in old]
    now = [night.rows(metric, one) for one in new]
    return attribute_drop(_tagged(before, segment, tags), _tagged(now, segment, tags))


def _first(nights: Sequence[Manifest], metric: str) -> list[Manifest]:
    """The first of some nights, of as many rows as are looked into."""
    kept, rows = list[Manifest](), 0
    for one in nights:
        summary = one.summary(metric)
        rows += summary.scored if summary else 0
        if kept and rows > MOST_ROWS:
            break
        kept.append(one)
    return kept


def _tags(night: NightContext, segment: Segment | None) -> list[str]:
    """The tags that scores are shown by, as columns; and the index builds, unless each row has
    its own."""
    shown = dict.fromkeys(
        one.segment.tag for one in night.manifest.segments if one.segment is not None
    )
    columns = [f"tag:{tag}" for tag in shown if segment is None or tag != segment.tag]
    return columns + ([BUILDS] if len(night.manifest.source.index_builds) <= _MOST_BUILDS else [])


def _tagged(
    sides: Sequence[MetricScores], segment: Segment | None, columns: Sequence[str]
) -> TaggedRows:
    """The scored rows of some nights with their tags; without a column where no row has it."""
    import pandas as pd

    rows = pd.concat([one.of_segment(segment).scored for one in sides], ignore_index=True)
    return TaggedRows(
        rows["question"].to_numpy(dtype=object),
        rows["value"].to_numpy(dtype="float64"),
        {
            column.removeprefix("tag:"): rows[column].tolist()
            for column in columns
            if column in rows and rows[column].notna().any()
        },
    )


def _named(carried: Attribution) -> list[ContributorShare]:
    return [
        ContributorShare(
            tag=one.tag,
            value=one.value,
            share=one.share,
            questions=one.questions,
            is_new=one.is_new,
        )
        for one in carried.named[:MOST_CARRIERS]
        if one.share is not None
    ]


def _carriers_in_words(carried: Attribution | None) -> list[str]:
    """Nothing where there is no tag that could carry it."""
    if carried is None or carried.drop <= 0:
        return []
    if named := _named(carried):
        return [f"carried by {', '.join(clean(str(one), 120) for one in named)}"]
    tested = any(one.p_value is not None for one in carried.carriers)
    return ["no tag or index build carries it alone"] if tested else []

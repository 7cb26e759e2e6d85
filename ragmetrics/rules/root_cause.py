"""Root causes of firing alerts: the first night of the lower level, and what the drop is
attributed to.

It reads earlier nights, so it runs only where a metric alert fires.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from ragmetrics.errors import StoreError
from ragmetrics.records import BUILDS, ContributorShare, DatedChange, Finding, Manifest, Segment
from ragmetrics.rules.attribution import Attribution, Contributor, TaggedRows, attribute_drop
from ragmetrics.rules.change_point import ChangePoint, date_change, date_change_in_order
from ragmetrics.rules.context import MOST_NIGHTS, Baseline, NightContext, usual_nights
from ragmetrics.rules.judge_movement import find_movement, moving_share
from ragmetrics.scoring import MetricScores
from ragmetrics.stats import LevelError, question_means
from ragmetrics.text import clean

USUAL_NIGHTS = 7
"""Nights before the incident that the start of a drop is dated from."""
MOST_CARRIERS = 4
MOST_ROWS = 500_000
"""Most rows per side, from the nights nearest to the drop. The nearest night is always whole."""
_MOST_BUILDS = 20
log = logging.getLogger(__name__)


def explain_root_cause(night: NightContext, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; firing metric alerts have the start and the attribution of their drop.

    `findings` have their states. A finding that the night did not judge stays as it is.
    """
    return [_try_explain(night, finding) if _is_drop(finding) else finding for finding in findings]


def _try_explain(night: NightContext, finding: Finding) -> Finding:
    """The finding explained; unchanged where the scores of earlier nights cannot be read."""
    try:
        return _explained(night, finding)
    except StoreError as error:
        log.warning("%s: the cause of its drop is not known: %s", finding.key, error)
        return finding


def _is_drop(finding: Finding) -> bool:
    judged = finding.level in ("breach", "suspect")
    return finding.is_rule and finding.state == "firing" and judged


def _explained(night: NightContext, finding: Finding) -> Finding:
    """The finding with its change and attribution; unchanged where no earlier night compares."""
    metric = finding.metric or ""
    since = night.incident_start(finding.key) or night.manifest.date
    usual = usual_nights(night, metric, finding.key, since)[-USUAL_NIGHTS:]
    baseline = night.baselines.get(finding.key) or Baseline(usual)
    if not baseline.nights:
        return finding
    change = _date(night, finding, usual, since)
    attribution = _attribute(night, finding, baseline)
    carriers = _named(attribution, rise=finding.rise) if attribution else None
    where = _attributed_to(attribution, rise=finding.rise)
    parts = [finding.message, *([str(change)] if change else []), *where]
    update = {"change": change, "carriers": carriers, "message": clean("; ".join(parts), 1_000)}
    return finding.model_copy(update=update)


def _date(
    night: NightContext, finding: Finding, usual: Sequence[Manifest], since: date
) -> DatedChange | None:
    """The start of the drop, from the usual nights, the incident's first nights and tonight."""
    metric = finding.metric or ""
    spell = [one for one in night.comparable(metric) if one.date >= since][: MOST_NIGHTS - 1]
    before = _first(usual[::-1], metric)
    nights = [*before[::-1], *_first([*spell, night.manifest], metric)]
    asked = night.questions(metric, finding.segment, nights)
    sign = -1 if finding.rise else 1
    scored = [
        (one.date, {question: [sign * value for value in values[question]] for question in values})
        for one, values in zip(nights, asked, strict=True)
        if values
    ]
    level = _level(night, metric)
    found = date_change_in_order(question_means([values for _, values in scored]), level=level)
    if found is None:
        found = date_change([values for _, values in scored], level=level)
    if not isinstance(found, ChangePoint):
        return None
    dates = [day for day, _ in scored]
    possible = [dates[place] for place in found.nights]
    return DatedChange(first=dates[found.first], nights=possible, rise=finding.rise)


def _level(night: NightContext, metric: str) -> LevelError | None:
    """The error of each night's level by the judge's movement."""
    moves, share = find_movement(night, metric), moving_share(night.manifest, metric)
    if moves is None or not moves.sd or not share:
        return None
    return LevelError(share * moves.sd, moves.freedom)


def _attribute(night: NightContext, finding: Finding, baseline: Baseline) -> Attribution | None:
    """Attribute the finding's drop to tags and builds, over the nights that it compares."""
    metric, segment = finding.metric or "", finding.segment
    tags = _tags(night, segment)
    old = _first(baseline.nights[::-1], metric)
    new = _first([*baseline.spell, night.manifest][::-1], metric)
    before = [night.rows(metric, one, baseline.build) for one in old]
    now = [night.rows(metric, one) for one in new]
    sign = -1 if finding.rise else 1
    return attribute_drop(*(_tagged(rows, segment, tags, sign) for rows in (before, now)))


def _first(nights: Sequence[Manifest], metric: str) -> list[Manifest]:
    """The first nights with at most MOST_ROWS rows together, at least one night."""
    first, rows = list[Manifest](), 0
    for night in nights:
        summary = night.summary(metric)
        rows += summary.scored if summary else 0
        if first and rows > MOST_ROWS:
            break
        first.append(night)
    return first


def _tags(night: NightContext, segment: Segment | None) -> list[str]:
    """The columns of the shown tags, and of the index build where there are not too many builds."""
    shown = dict.fromkeys(
        segment.segment.tag for segment in night.manifest.segments if segment.segment is not None
    )
    columns = [f"tag:{tag}" for tag in shown if segment is None or tag != segment.tag]
    return columns + ([BUILDS] if len(night.manifest.source.index_builds) <= _MOST_BUILDS else [])


def _tagged(
    sides: Sequence[MetricScores], segment: Segment | None, columns: Sequence[str], sign: int
) -> TaggedRows:
    """The scored rows of some nights with their tags, without tags that no row has."""
    import pandas as pd

    rows = pd.concat([side.of_segment(segment).compared for side in sides], ignore_index=True)
    return TaggedRows(
        rows["question"].to_numpy(dtype=object),
        sign * rows["value"].to_numpy(dtype="float64"),
        {
            column.removeprefix("tag:"): rows[column].tolist()
            for column in columns
            if column in rows and rows[column].notna().any()
        },
    )


def _named(attribution: Attribution, *, rise: bool) -> list[ContributorShare]:
    """The contributors with the means as they are, also where the negated ones fell."""
    named = [carrier for carrier in attribution.named[:MOST_CARRIERS] if carrier.share is not None]
    return [
        ContributorShare.model_validate(_upright(one) if rise else one, from_attributes=True)
        for one in named
    ]


def _upright(carrier: Contributor) -> Contributor:
    before, now = (None if mean is None else -mean for mean in (carrier.before, carrier.now))
    return replace(carrier, before=before, now=now)


def _attributed_to(attribution: Attribution | None, *, rise: bool) -> list[str]:
    """The attribution in words; empty where there is no tag to attribute the drop to."""
    if attribution is None or attribution.drop <= 0:
        return []
    if named := _named(attribution, rise=rise):
        return [f"attributed to {', '.join(clean(str(one), 120) for one in named)}"]
    tested = any(carrier.p_value is not None for carrier in attribution.carriers)
    return ["no single tag or index build explains it"] if tested else []
